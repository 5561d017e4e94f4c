"""Checks that data files have the size with which they were written.

A log file that was truncated between two blocks, or emptied, looks intact, and one truncated inside
a block looks like that of a failed writer: only its expected size shows that records are lost. The
metadata table and commits store sizes, which are compared with storage when a slice is read. A
listing has the actual sizes; the commits of the active timeline have the expected ones. A truncated
base file has no footer, so of listed files only log files are checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyhudi.config.options import CHECK_SIZES, ReadOptions
from pyhudi.errors import CorruptTable
from pyhudi.slices.file_slice import FileSlice, LogFile
from pyhudi.storage.options import is_bucket
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Instant, Timeline


def checks_sizes(options: Mapping[str, str]) -> bool:
    """Return whether the options enable the check of file sizes."""
    return ReadOptions.of(options).check_sizes


def check_sizes(timeline: Timeline, slices: Sequence[FileSlice]) -> None:
    """Raise `CorruptTable` for a log file that lost a part of its content.

    slices: as listed. Log files of archived commits are not checked.
    """
    logs = {log.path: log for slice_ in slices for log in slice_.logs}
    for instant in _writers(timeline, slices):
        for stat in timeline.commit_metadata(instant).write_stats:
            log = logs.get(stat.path or "")
            if log is not None and log.size < stat.file_size_in_bytes:
                raise _corrupt_error(log.path, log.size, stat.file_size_in_bytes)


def check_listed(
    storage: Storage, options: Mapping[str, str], timeline: Timeline, slices: Sequence[FileSlice]
) -> None:
    """Run `check_sizes` if the options enable it and storage may have lost a part of a file.

    On object stores each commit is a request, and objects are written atomically: no check.
    """
    if checks_sizes(options) and not is_bucket(storage.uri):
        check_sizes(timeline, slices)


def check_slice_sizes(storage: Storage, slice_: FileSlice) -> None:
    """Raise `CorruptTable` for a file of a slice with another size than expected.

    On object stores nothing is requested for that: objects are written atomically.
    """
    if is_bucket(storage.uri):
        return
    for file in (*([slice_.base] if slice_.base else ()), *slice_.logs):
        stored = storage.head(file.path) if file.checked and file.size > 0 else None
        if stored is None or stored.size == file.size:
            continue
        grows = isinstance(file, LogFile) and file.may_hold_several(slice_.base_instant)
        if grows and stored.size > file.size:
            continue
        raise _corrupt_error(file.path, stored.size, file.size)


def _writers(timeline: Timeline, slices: Sequence[FileSlice]) -> Iterator[Instant]:
    """Yield the commits that may have written to log files of the slices.

    If commits append to existing files, names contain only the instant of the slice.
    """
    logs = [
        (log.instant, log.may_hold_several(slice_.base_instant))
        for slice_ in slices
        for log in slice_.logs
    ]
    of_one = {instant for instant, several in logs if not several}
    since = min((instant for instant, several in logs if several), default=None)
    for instant in timeline.commits:
        if instant.requested in of_one or (since is not None and instant.requested >= since):
            yield instant


def _corrupt_error(path: str, actual: int, expected: int) -> CorruptTable:
    msg = f"{path} is damaged: it has {actual} bytes, expected {expected}"
    return CorruptTable(
        msg,
        file=path,
        offset=actual,
        hint="Rows may be lost with the missing bytes. To read the rest, as Hudi does, open the "
        f'table with options={{"{CHECK_SIZES}": "false"}}.',
    )
