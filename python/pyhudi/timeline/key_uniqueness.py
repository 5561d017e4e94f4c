"""Uniqueness of a table's keys, as its commits record it.

A record index has one location per key, so a reader that relies on it misses every duplicate.
Inserts do not look up keys; upserts and deletes, services and changes of columns add no duplicates.
Neither does the very first commit: Hudi refuses to index a key that one commit has twice, or that
the files have twice when the index is built (`HoodieTableMetadataUtil.reduceByKeys`,
`HoodieAvroHFileWriter`, Hudi 1.2.0). pyhudi's commits record whether keys are unique, so that
usually only the newest one is read. A writer that builds a record index has counted all keys, and
records the result in the table's properties. Keys of a long history without such records are
unknown.

One case is not detected: a writer of Hudi that looks up keys by partition upserts one key into two
partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from weakref import WeakKeyDictionary

from pyhudi.config.actions import COMMIT_ACTIONS, Instant
from pyhudi.config.property_names import KEYS
from pyhudi.errors import CorruptTable
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata

UNIQUE = "unique"
MAY_REPEAT = "may repeat"

_MAX_ARCHIVED = 100
"""Maximum number of archived commits to read: each may take a read of its own."""

OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
"""The operation that replaces all rows, and so all keys, of a table."""

_BRING_NO_COPIES = frozenset(
    {
        "UPSERT",
        "UPSERT_PREPPED",
        "DELETE",
        "DELETE_PREPPED",
        "DELETE_PARTITION",
        "COMPACT",
        "LOG_COMPACT",
        "CLUSTER",
        "ALTER_SCHEMA",
        "INDEX",
    }
)


def preserves_key_uniqueness(operation: str | None) -> bool:
    """Return whether an operation of this name adds no duplicate keys."""
    return operation in _BRING_NO_COPIES


_cache: WeakKeyDictionary[Timeline, bool] = WeakKeyDictionary()


def keys_are_unique(timeline: Timeline) -> bool:
    """Return whether every key is known to be unique; by partition, if the index is by partition.

    Computed once per timeline.
    """
    unique = _cache.get(timeline)
    if unique is None:
        unique = _cache[timeline] = _look_up(timeline)
    return unique


def _look_up(timeline: Timeline) -> bool:
    """Return whether the commits show it.

    Reads commits from the newest backwards, to one that records it or to the very first one. For a
    damaged or too long history the result is False.
    """
    counted_at, _, counted = timeline.keys_counted.partition(" ")
    inserts = False
    try:
        for instant, read in _newest_first(timeline):
            if inserts:
                return False
            if instant.requested == counted_at:
                return counted == UNIQUE
            metadata = read(instant)
            claim = metadata.extra_metadata.get(KEYS)
            if claim is not None:
                return claim == UNIQUE
            if metadata.operation_type == OVERWRITE_TABLE:
                return True
            inserts = not (metadata.compacted or preserves_key_uniqueness(metadata.operation_type))
    except (CorruptTable, _TooLongError):
        return False
    return True


def key_uniqueness_property(timeline: Timeline, *, unique: bool) -> dict[str, str]:
    """Return the property of a table whose keys were all counted, as of a timeline.

    A pending write may add duplicates that no count would notice.
    """
    if timeline.last_commit is None:
        return {}
    unique = unique and not timeline.pending(*COMMIT_ACTIONS)
    return {KEYS: f"{timeline.last_commit.requested} {UNIQUE if unique else MAY_REPEAT}"}


class _TooLongError(Exception):
    """The history has too many commits to read."""


def _newest_first(
    timeline: Timeline,
) -> Iterator[tuple[Instant, Callable[[Instant], CommitMetadata]]]:
    """Yield the commits, newest first, each with the function that reads it.

    The order is that of completion, if it is known.
    """
    active = list(timeline.commits)
    if timeline.completes_in_names:
        active.sort(key=lambda commit: commit.completed or "")
    for instant in reversed(active):
        yield instant, timeline.commit_metadata
    times = {instant.requested for instant in active}
    archived = [commit for commit in timeline.archive.commits() if commit.requested not in times]
    for instant in reversed(archived[-_MAX_ARCHIVED:]):
        yield instant, timeline.archive.commit_metadata
    if len(archived) > _MAX_ARCHIVED:
        raise _TooLongError
