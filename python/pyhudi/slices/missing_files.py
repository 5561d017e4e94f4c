"""Whether the data files are there that commits name: a lost file is no older state of the table.

A listing shows what there is. If a file of a newest slice is not among it, the slice before would
be read in its place, and the next commit or service would make that final. So whoever lists storage
compares it with the commits of the active timeline and, where a table is opened for writing, with
what its companions list of archived ones. Files of older slices may be gone: cleaners take them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from pyhudi.config.file_names import (
    PARTITION_METADATA_PREFIX,
    BaseName,
    LogName,
    parse_base_name,
    parse_log_name,
)
from pyhudi.config.options import CHECK_SIZES
from pyhudi.config.property_names import BOOTSTRAP_PATH
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import MissingFile, without_hint
from pyhudi.slices.cleaned_files import clean_of, find_replaced_before_start, is_spared
from pyhudi.slices.file_size_checks import checks_sizes
from pyhudi.slices.file_slice import BaseFile, LogFile
from pyhudi.slices.file_system_view import FileSystemView, NamedFile
from pyhudi.slices.listing import PartitionFilter
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import WriteStat

GO_ON = (
    "check() names all files that are missing; check(repair=True) rebuilds a metadata table that "
    "lists files of rolled back commits. restore() brings back a state before the loss, "
    "delete_partitions() gives a partition up. To go on without the rows, as Hudi does, open the "
    f'table with options={{"{CHECK_SIZES}": "false"}}.'
)
"""What is left to do about a file that is lost."""


def whole_view(table: TableSnapshot, partitions: PartitionFilter | None = None) -> FileSystemView:
    """The files of a table, of which none may be missing that a snapshot reads.

    partitions: as of `FileSystemView`. What is asked of the view raises as `check_complete`.
    """
    check = partial(check_complete, table)
    return FileSystemView(table.storage, table.config, table.timeline, partitions, check=check)


def check_complete(
    table: TableSnapshot,
    view: FileSystemView,
    *,
    base_only: bool = False,
    past: bool = False,
    stale: Collection[str] = (),
) -> None:
    """Raises `MissingFile` where a snapshot would read a file that a view has not listed.

    view: of the table's timeline. base_only: only base files are read. past: the timeline lacks
    instants, so that cleans may have taken what is current on it: that is `cleaned_files.py`'s
    part. stale: paths that the metadata table lists although their commits were rolled back.
    """
    if not checks_sizes(table.options):
        return
    lost = find_lost_files(table, view, base_only=base_only, stale=stale)
    if past or table.timeline.bound is not None:
        uncut = table.timeline.uncut
        lost = [file for file in lost if clean_of(uncut, file.name) is None]
    if lost:
        raise _missing(table, lost)


def find_lost_files(
    table: TableSnapshot,
    view: FileSystemView,
    *,
    base_only: bool = False,
    stale: Collection[str] = (),
) -> list[BaseFile | LogFile]:
    """The files that a snapshot would read and that a view has not listed, by path.

    stale: as of `check_complete`.
    """
    named = (*_absent(table.timeline, view), *_of_companions(table, view))
    absent = [file for file in named if file.path not in stale]
    found = view.lacking(absent, base_only=base_only)
    if not found:
        return []
    # Seldom: the archive is read. A replace commit may be there, while an older write is active.
    replaced = find_replaced_before_start(table.timeline)
    spared: set[str] = set()
    while more := {file.path for file in found if is_spared(table.timeline, file.name)}:
        spared |= more
        left = [file for file in absent if file.path not in spared]
        found = view.lacking(left, base_only=base_only)
    return [file for file in found if (file.partition, file.file_id) not in replaced]


def _absent(timeline: Timeline, view: FileSystemView) -> Iterator[NamedFile]:
    """What commits of the active timeline name, and a view has not listed, oldest first.

    Most of it was cleaned. Many commits with many files each are gone through.
    """
    for commit, metadata in timeline.metadata_of_commits():
        time = (commit.completed if timeline.completes_in_names else None) or commit.requested
        for partition, stats in metadata.partition_to_write_stats.items():
            if not view.looks_at(partition):
                continue
            for stat in stats:
                for path in _paths(stat):
                    if path not in view.paths and not view.is_superseded(path, stat.file_id, time):
                        yield NamedFile(path, stat.file_id)


def _paths(stat: WriteStat) -> Iterator[str]:
    """Of the file that was written, and of the base file of its slice."""
    if stat.path and _is_written(stat):
        yield stat.path
        if stat.base_file:
            folder, slash, _ = stat.path.rpartition("/")
            yield f"{folder}{slash}{stat.base_file.rpartition('/')[2]}"


def _is_written(stat: WriteStat) -> bool:
    """Whether there was something to write: a file without size and records may never have been."""
    return bool(stat.file_size_in_bytes or stat.num_writes or stat.num_deletes)


def _of_companions(table: TableSnapshot, view: FileSystemView) -> Iterator[NamedFile]:
    """What companions list of commits that are archived."""
    if not table.companions or not table.timeline.may_have_archived:
        return
    for companion in table.companions:
        for path in companion.list_files(table, view.looks_at):
            parsed = _parse(path.rpartition("/")[2])
            if parsed is None or path in view.paths:
                continue
            if table.timeline.is_before_start(parsed.instant):
                yield NamedFile(path, parsed.file_id)


# --- what is said ---------------------------------------------------------------------------------


def explain_missing_file(
    error: MissingFile, config: TableConfig, timeline: Timeline
) -> MissingFile:
    """The error of who met a file that is gone, which nobody was free to take, with a likely cause.

    timeline: as it is now.
    """
    if GO_ON in error.hint:
        return error
    name = (error.file or "").rpartition("/")[2]
    hint = f"{error.hint} Else it is lost. {GO_ON}".lstrip()
    if config.bootstrap_path is not None and _parse(name) is None:
        cause = "it has rows of a table that was bootstrapped, whose source was moved or lost"
        hint = f"{BOOTSTRAP_PATH} is {config.bootstrap_path}: put the source back there. {GO_ON}"
    else:
        cause = _cause(timeline, name)
    return MissingFile(f"{without_hint(error)}; {cause}", file=error.file, hint=hint)


def _missing(table: TableSnapshot, lost: list[BaseFile | LogFile]) -> MissingFile:
    first = lost[0]
    if table.storage.exists(first.path):
        return MissingFile(
            f"{first.path} is there and is not found: no file {PARTITION_METADATA_PREFIX} makes "
            "its folder a partition, or it lies within another one",
            file=first.path,
            hint="Copy that file from another partition of the same depth.",
        )
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    folders, files = table.storage.list_dir(first.partition)
    cause = (
        _cause(table.timeline.uncut, first.name)
        if folders or files
        else "nothing is left of its partition, which was removed or moved from outside"
    )
    msg = f"{first.path} is missing, which the table consists of{more}; {cause}"
    return MissingFile(msg, file=first.path, hint=GO_ON)


def _cause(timeline: Timeline, name: str) -> str:
    clean = clean_of(timeline, name)
    if clean is None:
        return "no clean of the timeline took it: it was lost, or removed from outside"
    return f"the clean {clean} took it, whose writer went by another state of the table"


def _parse(name: str) -> BaseName | LogName | None:
    return parse_base_name(name) or parse_log_name(name)
