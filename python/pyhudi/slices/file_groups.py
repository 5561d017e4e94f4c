"""The file groups of a table that a write may use, and their pending services."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyhudi.config.actions import CLUSTERING, COMPACTION, LOG_COMPACTION, REPLACE_COMMIT
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.slice_builder import GroupKey, groups_of_plan
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.timeline import Timeline


def file_groups(
    timeline: Timeline, newest: Iterable[FileSlice], read: Sequence[FileSlice]
) -> list[FileGroup]:
    """Return the file groups of the slices `read`, in their order, as targets of a write.

    newest: the newest slice of each group, which a pending compaction may have opened; `read`: the
    slice that a snapshot reads of each.
    """
    appended_to = {slice_.key: slice_ for slice_ in newest}
    compactions = pending_compactions(timeline)
    clusterings = pending_clusterings(timeline)
    groups = []
    for slice_ in read:
        key = slice_.key
        newest_slice = appended_to[key]
        group = FileGroup(
            newest_slice,
            compactions.get(key),
            clusterings.get(key),
            read=None if newest_slice == slice_ else slice_,
        )
        groups.append(group)
    return groups


def pending_compactions(timeline: Timeline) -> dict[GroupKey, str]:
    """Return partition path and file id of groups with a pending compaction, and its instant."""
    return _groups_in_plans(timeline, COMPACTION)


def pending_log_compactions(timeline: Timeline) -> dict[GroupKey, str]:
    """Return partition path and file id of groups with a pending log compaction."""
    return _groups_in_plans(timeline, LOG_COMPACTION)


def pending_clusterings(timeline: Timeline) -> dict[GroupKey, str]:
    """Return partition path and file id of groups with a pending clustering, and its instant."""
    return _groups_in_plans(timeline, CLUSTERING, REPLACE_COMMIT)


def _groups_in_plans(timeline: Timeline, *actions: str) -> dict[GroupKey, str]:
    return {
        key: instant.requested
        for instant in timeline.pending(*actions)
        for key in groups_of_plan(timeline.plan(instant))
    }
