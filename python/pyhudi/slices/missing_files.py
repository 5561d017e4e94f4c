"""Detects missing data files, because a lost file must not look like an older snapshot.

A listing has the existing files. If a file of a newest slice is missing, the slice before would be
read in its place, and the next commit or service would make that final. Therefore listings of
storage are compared with the commits of the active timeline and, if a table is opened for writing,
with the files that its commit participants list of archived ones. Files of older slices may be
missing: cleaners remove them.
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
from pyhudi.slices.cleaned_files import clean_of, find_replaced_before_start, is_not_needed
from pyhudi.slices.file_size_checks import checks_sizes
from pyhudi.slices.file_slice import BaseFile, LogFile
from pyhudi.slices.file_system_view import FileSystemView, NamedFile
from pyhudi.slices.listing import PartitionFilter
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline

GO_ON = (
    "check() lists all missing files; check(repair=True) rebuilds a metadata table that "
    "lists files of rolled back commits. restore() returns to a state before the loss, "
    "delete_partitions() drops a partition. To go on without the rows, as Hudi does, open the "
    f'table with options={{"{CHECK_SIZES}": "false"}}.'
)
"""The options that remain for a lost file."""


def complete_view(
    table: TableSnapshot, partitions: PartitionFilter | None = None
) -> FileSystemView:
    """Return the files of a table, none of which may be missing that a snapshot reads.

    partitions: as in `FileSystemView`. The view raises as `check_complete` on first use.
    """
    check = partial(check_complete, table)
    return FileSystemView(table.storage, table.config, table.timeline, partitions, check=check)


def check_complete(
    table: TableSnapshot,
    view: FileSystemView,
    *,
    base_only: bool = False,
    past: bool = False,
    may_be_hidden: bool = False,
    stale: Collection[str] = (),
) -> None:
    """Raise `MissingFile` if a snapshot would read a file that a view has not listed.

    view: of the table's timeline. base_only: only base files are read. past: instants are missing
    on the timeline, so that cleans may have removed its current files: `cleaned_files.py` checks
    that. may_be_hidden: a partition around theirs may hide files from the listing. stale: paths
    that the metadata table lists although their commits were rolled back.
    """
    if not checks_sizes(table.options):
        return
    lost = find_lost_files(table, view, base_only=base_only, stale=stale)
    if past or table.timeline.bound is not None:
        uncut = table.timeline.uncut
        lost = [file for file in lost if clean_of(uncut, file.name) is None]
    if may_be_hidden:
        lost = [file for file in lost if not table.storage.exists(file.path)]
    if lost:
        raise _missing(table, lost)


def find_lost_files(
    table: TableSnapshot,
    view: FileSystemView,
    *,
    base_only: bool = False,
    stale: Collection[str] = (),
) -> list[BaseFile | LogFile]:
    """Return the files that a snapshot would read and that a view has not listed, by path.

    stale: as in `check_complete`.
    """
    named = (*_absent(table.timeline, view), *_files_of_participants(table, view))
    absent = [file for file in named if file.path not in stale]
    lost = view.find_missing(absent, base_only=base_only)
    if not lost:
        return []
    # Rare: the archive is read. A replace commit may be there while an older write is active.
    replaced = find_replaced_before_start(table.timeline)
    spared: set[str] = set()
    while more := {file.path for file in lost if is_not_needed(table.timeline, file.name)}:
        spared |= more
        remaining = [file for file in absent if file.path not in spared]
        lost = view.find_missing(remaining, base_only=base_only)
    return [file for file in lost if (file.partition, file.file_id) not in replaced]


def _absent(timeline: Timeline, view: FileSystemView) -> Iterator[NamedFile]:
    """Yield files that active commits name and a view has not listed, oldest first.

    Most of them were cleaned. This iterates over many commits with many files each.
    """
    for commit, named in timeline.paths_of_commits():
        time = (commit.completed if timeline.completes_in_names else None) or commit.requested
        for at in view.find_absent(named.paths):
            file = NamedFile(named.paths[at], named.file_ids[at])
            if not view.includes_partition(file.partition):
                continue
            if not view.is_superseded(file.path, file.file_id, time):
                yield file


def _files_of_participants(table: TableSnapshot, view: FileSystemView) -> Iterator[NamedFile]:
    """Yield files of archived commits that commit participants list."""
    if not table.participants or not table.timeline.may_have_archived:
        return
    for participant in table.participants:
        for path in participant.find_unlisted(table, view.listed, view.includes_partition):
            parsed = _parse(path.rpartition("/")[2])
            if parsed is None:
                continue
            if table.timeline.is_before_start(parsed.instant):
                yield NamedFile(path, parsed.file_id)


# --- messages -------------------------------------------------------------------------------------


def explain_missing_file(
    error: MissingFile, config: TableConfig, timeline: Timeline
) -> MissingFile:
    """Return the error for a lost file, which no writer was free to remove, with a likely cause.

    timeline: the current one.
    """
    if GO_ON in error.hint:
        return error
    name = (error.file or "").rpartition("/")[2]
    hint = f"{error.hint} If the error stays, the file is lost. {GO_ON}".lstrip()
    if config.bootstrap_path is not None and _parse(name) is None:
        cause = "it is a source file of a bootstrapped table, and was moved or lost"
        hint = f"{BOOTSTRAP_PATH} is {config.bootstrap_path}: put the source back there. {GO_ON}"
    else:
        cause = _cause(timeline, name)
    return MissingFile(f"{without_hint(error)}; {cause}", file=error.file, hint=hint)


def _missing(table: TableSnapshot, lost: list[BaseFile | LogFile]) -> MissingFile:
    first = lost[0]
    if table.storage.exists(first.path):
        return MissingFile(
            f"{first.path} exists but is not listed: its directory has no file "
            f"{PARTITION_METADATA_PREFIX}, or is inside another partition",
            file=first.path,
            hint="Copy that file from another partition of the same depth.",
        )
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    folders, files = table.storage.list_dir(first.partition)
    cause = (
        _cause(table.timeline.uncut, first.name)
        if folders or files
        else "its partition is empty: another program removed or moved it"
    )
    msg = f"{first.path} is missing{more}, but the table needs it; {cause}"
    return MissingFile(msg, file=first.path, hint=GO_ON)


def _cause(timeline: Timeline, name: str) -> str:
    clean = clean_of(timeline, name)
    if clean is None:
        return "no clean on the timeline removed it: it was lost, or deleted by another program"
    return f"the clean {clean} removed it, planned on another snapshot of the table"


def _parse(name: str) -> BaseName | LogName | None:
    return parse_base_name(name) or parse_log_name(name)
