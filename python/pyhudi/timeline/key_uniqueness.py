"""Whether a key may stand in a table several times: what its commits tell.

A record index has one place for each key, so a reader that goes by it misses every other copy.
Inserts look for no keys; upserts and deletes, services and changes of columns bring no copies. The
first commit of all brings none either: Hudi refuses to index a key that one commit brings twice, or
that the files have twice when the index is made (`HoodieTableMetadataUtil.reduceByKeys`,
`HoodieAvroHFileWriter`, Hudi 1.2.0). pyhudi's commits say how it stands after them, so that mostly
the newest one is read alone; who makes a record index has seen all keys, and the table's properties
say how it stood then. Of a long history that says nothing of keys nothing is known.

Not seen is that a writer of Hudi which looks in single partitions upserts a key into two of them.
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

_ARCHIVED_MOST = 100
"""Archived commits that are read: each may take a read of its own."""

OVERWRITE_TABLE = "INSERT_OVERWRITE_TABLE"
"""After it the table is as new."""

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
    """Whether an operation of this name leaves a table's keys as unique as they were."""
    return operation in _BRING_NO_COPIES


_known: WeakKeyDictionary[Timeline, bool] = WeakKeyDictionary()


def keys_are_unique(timeline: Timeline) -> bool:
    """Whether every key is known to be there once; in each partition, if the index is one by those.

    Looked up once a timeline.
    """
    found = _known.get(timeline)
    if found is None:
        found = _known[timeline] = _look_up(timeline)
    return found


def _look_up(timeline: Timeline) -> bool:
    """Whether the commits tell so.

    Reads commits from the newest backwards, to one that tells or to the first of all. Of a history
    that is damaged, or too long, nothing is known.
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
            told = metadata.extra_metadata.get(KEYS)
            if told is not None:
                return told == UNIQUE
            if metadata.operation_type == OVERWRITE_TABLE:
                return True
            inserts = not (metadata.compacted or preserves_key_uniqueness(metadata.operation_type))
    except (CorruptTable, _TooLongError):
        return False
    return True


def key_uniqueness_property(timeline: Timeline, *, unique: bool) -> dict[str, str]:
    """The property of a table all of whose keys were counted, as of a timeline.

    A write that is pending may come to bring copies that nobody would notice.
    """
    if timeline.last_commit is None:
        return {}
    unique = unique and not timeline.pending(*COMMIT_ACTIONS)
    return {KEYS: f"{timeline.last_commit.requested} {UNIQUE if unique else MAY_REPEAT}"}


class _TooLongError(Exception):
    """The history is longer than is read."""


def _newest_first(
    timeline: Timeline,
) -> Iterator[tuple[Instant, Callable[[Instant], CommitMetadata]]]:
    """Commits in the order in which they were completed, where that is known; what reads them."""
    active = list(timeline.commits)
    if timeline.completes_in_names:
        active.sort(key=lambda commit: commit.completed or "")
    for instant in reversed(active):
        yield instant, timeline.commit_metadata
    known = {instant.requested for instant in active}
    archived = [commit for commit in timeline.archive.commits() if commit.requested not in known]
    for instant in reversed(archived[-_ARCHIVED_MOST:]):
        yield instant, timeline.archive.commit_metadata
    if len(archived) > _ARCHIVED_MOST:
        raise _TooLongError
