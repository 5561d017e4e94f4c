"""Detection of the file groups that changed while an index was built concurrently with writers."""

from __future__ import annotations

from pyhudi.metadata.initial_records import Source
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.slice_builder import GroupKey
from pyhudi.timeline import Timeline
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.txn.conflicts import collect_written_file_groups


def find_changed_groups(before: Source, now: Source) -> set[GroupKey]:
    """Return the file groups whose newest slices differ between two snapshots of the table.

    From version 8 on every commit writes its own files. Up to version 6 log files do not show which
    commits they contain, and may be listed before those are complete; the commits do.
    """
    if now.table.config.version.logs_named_by_base_instant:
        return _groups_written_since(before.table.timeline, now.table.timeline)
    old, new = ({slice_.key: _files(slice_) for slice_ in side.slices} for side in (before, now))
    return {group for group in {*old, *new} if old.get(group) != new.get(group)}


def _files(slice_: FileSlice) -> tuple[str, ...]:
    base = "" if slice_.base is None else slice_.base.path
    return (base, *(log.name for log in slice_.logs))


def _groups_written_since(before: Timeline, now: Timeline) -> set[GroupKey]:
    earlier = {commit.requested for commit in before.commits}
    commits = [commit for commit in now.commits if commit.requested not in earlier]
    written = [now.commit_metadata(commit) for commit in commits]
    first = before.instants[0].requested if before.instants else None
    if first is not None and now.is_before_start(first):
        instant_range = InstantRange.between(first, now.instants[-1].requested)
        archived = [
            commit
            for commit in now.archive.commits(instant_range)
            if commit.requested not in earlier
        ]
        written += [now.archive.commit_metadata(commit) for commit in archived]
    return {group for metadata in written for group in collect_written_file_groups(metadata)}
