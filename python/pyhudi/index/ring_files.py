"""The files of consistent-hashing buckets: which file group has which part of the ring.

Sources: `ConsistentBucketIdentifier`, `HoodieConsistentHashingMetadata` (Hudi 1.2.0).
"""

from __future__ import annotations

from typing import Any

from pyhudi.config.json_text import parse_json
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

RING_FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"


RING_SUFFIX = ".hashing_meta"


RING_COMMITTED = ".commit"


FIRST_RING = "00000000000000"


def ring_folder(partition: str) -> str:
    """Where the rings of a partition are stored."""
    return f"{RING_FOLDER}/{partition}".rstrip("/")


def committed_ring(
    storage: Storage, timeline: Timeline, partition: str
) -> tuple[list[tuple[int, str]], bool] | None:
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


def _nodes(storage: Storage, path: str) -> tuple[list[tuple[int, str]], bool]:
    record: dict[str, Any] = parse_json(storage.read(path), path)
    try:
        nodes = sorted((int(n["value"]), str(n["fileIdPrefix"])) for n in record["nodes"])
        return nodes, bool(record.get("childrenNodes"))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptTable(f"{path}: not hashing metadata: {error!r}", file=path) from error
