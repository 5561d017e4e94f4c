"""The files of consistent-hashing buckets: which file group has which part of the ring.

Sources: `ConsistentBucketIdentifier`, `HoodieConsistentHashingMetadata` (Hudi 1.2.0).
"""

from __future__ import annotations

import json
from typing import Any

from pyhudi.config.json_text import parse_json
from pyhudi.errors import CommitConflict, CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

RING_FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
RING_SUFFIX = ".hashing_meta"
RING_COMMITTED = ".commit"
FIRST_RING = "00000000000000"

Ring = list[tuple[int, str]]
"""Last hash and file id prefix of each range, rising."""


def ring_folder(partition: str) -> str:
    """Where the rings of a partition are stored."""
    return f"{RING_FOLDER}/{partition}".rstrip("/")


def committed_ring(
    storage: Storage, timeline: Timeline, partition: str
) -> tuple[Ring, bool] | None:
    """The nodes of a partition's newest ring, rising, and whether some of them have children.

    None for a partition without a ring. Raises `CorruptTable` for one that cannot be read.
    """
    folder = ring_folder(partition)
    names = {entry.name for entry in storage.list_dir(folder)[1]}
    for name in sorted((n for n in names if n.endswith(RING_SUFFIX)), reverse=True):
        instant = name.removesuffix(RING_SUFFIX)
        committed = instant == FIRST_RING or f"{instant}{RING_COMMITTED}" in names
        if committed or timeline.is_committed(instant):
            return _nodes(storage, f"{folder}/{name}")
    return None


def ring_to_write_by(storage: Storage, timeline: Timeline, partition: str) -> Ring | None:
    """As `committed_ring`. Raises `CommitConflict` while the ring is being resized."""
    found = committed_ring(storage, timeline, partition)
    if found is not None and found[1]:
        msg = f"the buckets of partition {partition!r} are being split or merged"
        raise CommitConflict(msg, hint="Complete or roll back the clustering, then write again.")
    return None if found is None else found[0]


def put_ring(
    storage: Storage, partition: str, ring: Ring, instant: str = FIRST_RING, number: int = 0
) -> Ring:
    """Stores a ring under an instant; gives the one of another writer that was faster.

    number: of rings that the partition has had.
    """
    content = {
        "version": 0,
        "partitionPath": partition,
        "instant": instant,
        "numBuckets": len(ring),
        "seqNo": number,
        "nodes": [
            {"value": value, "fileIdPrefix": prefix, "tag": "NORMAL"} for value, prefix in ring
        ],
    }
    path = f"{ring_folder(partition)}/{instant}{RING_SUFFIX}"
    storage.put_if_absent(path, json.dumps(content, indent=2).encode())
    return _nodes(storage, path)[0]


def _nodes(storage: Storage, path: str) -> tuple[Ring, bool]:
    record: dict[str, Any] = parse_json(storage.read(path), path)
    try:
        nodes = sorted((int(n["value"]), str(n["fileIdPrefix"])) for n in record["nodes"])
        return nodes, bool(record.get("childrenNodes"))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptTable(f"{path}: not hashing metadata: {error!r}", file=path) from error
