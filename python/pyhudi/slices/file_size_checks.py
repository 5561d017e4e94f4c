"""Whether data files are as large as they were written.

A log file that was cut between two blocks, or emptied, looks sound, and one that was cut inside a
block ends like one whose writer died: only who knows its size can tell that records are gone. The
metadata table and commits tell sizes, which are compared with those on storage when a slice is
read. A listing tells what there is; what there ought to be, the commits of the active timeline
know. A base file that was cut has no footer, so of listed files only log files are looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pyhudi.config.option_parsing import parse_bool
from pyhudi.config.options import CHECK_SIZES
from pyhudi.errors import CorruptTable
from pyhudi.slices.file_slice import FileSlice, LogFile
from pyhudi.storage.options import is_bucket
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Instant, Timeline


def checks_sizes(options: Mapping[str, str]) -> bool:
    """Whether the options let a file be refused for its size."""
    return parse_bool(options, CHECK_SIZES, default=True)


def check_sizes(timeline: Timeline, slices: Sequence[FileSlice]) -> None:
    """Raises `CorruptTable` for a log file that lost some of what was written to it.

    slices: as they were listed. Log files of archived commits are taken as they are.
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
    """As `check_sizes`, where the options want it and storage may have lost a part of a file.

    In a bucket, where each commit is a request, objects come whole or not at all.
    """
    if checks_sizes(options) and not is_bucket(storage.uri):
        check_sizes(timeline, slices)


def check_found(storage: Storage, slice_: FileSlice) -> None:
    """Raises `CorruptTable` for a file of a slice that has another size than is known of it.

    In a bucket nothing is asked for that: objects there come whole or not at all.
    """
    if is_bucket(storage.uri):
        return
    for file in (*([slice_.base] if slice_.base else ()), *slice_.logs):
        found = storage.head(file.path) if file.checked and file.size > 0 else None
        if found is None or found.size == file.size:
            continue
        grows = isinstance(file, LogFile) and file.may_hold_several(slice_.base_instant)
        if grows and found.size > file.size:
            continue
        raise _corrupt_error(file.path, found.size, file.size)


def _writers(timeline: Timeline, slices: Sequence[FileSlice]) -> Iterator[Instant]:
    """The commits that may have written to log files of the slices.

    Where commits append to files of others, names tell the instant of the slice alone.
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


def _corrupt_error(path: str, found: int, expected: int) -> CorruptTable:
    msg = f"{path} is damaged: it has {found} bytes, expected {expected}"
    return CorruptTable(
        msg,
        file=path,
        offset=found,
        hint="Rows may be gone with what is missing. To read what there is, as Hudi does, open the "
        f'table with options={{"{CHECK_SIZES}": "false"}}.',
    )
