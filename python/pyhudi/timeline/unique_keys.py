"""Whether a key may stand in a table several times: what its commits tell.

A record index has one place for each key, so a reader that goes by it misses every other copy.
Inserts look for no keys; upserts and deletes, services and changes of columns bring no copies. The
first commit of all brings none either: Hudi refuses to index a key that one commit brings twice, or
that the files have twice when the index is made (`HoodieTableMetadataUtil.reduceByKeys`,
`HoodieAvroHFileWriter`, Hudi 1.2.0). pyhudi's commits say how it stands after them, so that mostly
the newest one is read alone.

Not seen is that a writer of Hudi which looks in single partitions upserts a key into two of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyhudi.errors import CorruptTable

if TYPE_CHECKING:
    from pyhudi.timeline.active import Timeline
    from pyhudi.timeline.metadata import CommitMetadata

KEYS = "pyhudi.keys"
"""In the extra metadata of commits: what is known of the table's keys after it."""
UNIQUE = "unique"
MAY_REPEAT = "may repeat"

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


def brings_no_copies(operation: str | None) -> bool:
    """Whether an operation of this name leaves a table's keys as unique as they were."""
    return operation in _BRING_NO_COPIES


def keys_are_unique(timeline: Timeline) -> bool:
    """Whether every key is known to be there once; in each partition, if the index is one by those.

    Reads commits from the newest backwards, to one that tells or to the first of all. Of a history
    that is damaged nothing is known.
    """
    inserts = False
    try:
        for metadata in _newest_first(timeline):
            if inserts:
                return False
            told = metadata.extra_metadata.get(KEYS)
            if told is not None:
                return told == UNIQUE
            if metadata.operation_type == OVERWRITE_TABLE:
                return True
            inserts = not (metadata.compacted or brings_no_copies(metadata.operation_type))
    except CorruptTable:
        return False
    return True


def _newest_first(timeline: Timeline) -> Iterator[CommitMetadata]:
    active = timeline.commits
    for instant in reversed(active):
        yield timeline.commit_metadata(instant)
    known = {instant.requested for instant in active}
    for instant in reversed(timeline.archive.commits()):
        if instant.requested not in known:
            yield timeline.archive.commit_metadata(instant)
