"""The files of consistent-hashing metadata: which file group has which hash range.

Metadata of a replace commit is valid once that is complete. A file next to it confirms that, for
when the commit is archived. Up to table version 6 there is none, since Hudi 0.15 puts that file
into the data partition, where it has no use; then the file groups show it. Sources:
`ConsistentBucketIndexUtils`, `HoodieConsistentHashingMetadata` (Hudi 0.15.0, 1.0.2, 1.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from pyhudi.config.bounded_json import parse_json
from pyhudi.errors import CommitConflict, CorruptTable
from pyhudi.slices.hashing_metadata import Ring
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

RING_FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
RING_SUFFIX = ".hashing_meta"
RING_COMMITTED = ".commit"
FIRST_RING = "00000000000000"


@dataclass(frozen=True)
class StoredRing:
    """The content of one file."""

    nodes: Ring
    """Ascending."""
    number: int = 0
    """The number of earlier versions in the partition."""
    buckets: int = 0
    """The number of buckets in the partition's first version."""
    resizing: bool = False
    """Some of its nodes have children."""


def has_rings(storage: Storage) -> bool:
    """Return whether the table's buckets are hash ranges."""
    return storage.list_dir(RING_FOLDER) != ([], [])


def ring_folder(partition: str) -> str:
    """Return the directory of a partition's hashing metadata."""
    return f"{RING_FOLDER}/{partition}".rstrip("/")


def read_committed_ring(storage: Storage, timeline: Timeline, partition: str) -> StoredRing | None:
    """Return a partition's newest committed hashing metadata.

    None for a partition without any. Raises `CorruptTable` for an invalid file.
    """
    folder = ring_folder(partition)
    names = {entry.name for entry in storage.list_dir(folder)[1]}
    instants = (name.removesuffix(RING_SUFFIX) for name in names if name.endswith(RING_SUFFIX))
    stored = sorted(instants, reverse=True)
    archived = ""
    for earlier, instant in enumerate(stored, 1):
        marked = instant == FIRST_RING or f"{instant}{RING_COMMITTED}" in names
        is_old = timeline.is_before_start(instant)
        # One that was written after the timeline was loaded does not match its file groups.
        if not (timeline.is_committed(instant) or (marked and is_old)):
            continue
        metadata = _read(storage, _path(partition, instant))
        if marked or not is_old:
            return metadata
        # It may belong to an archived commit, or to a clustering that was rolled back.
        before = (_read(storage, _path(partition, other)).nodes for other in stored[earlier:][:1])
        if _has_files(storage, partition, {*metadata.nodes}.difference(*before)):
            return metadata
        archived = archived or instant
    return _read(storage, _path(partition, archived)) if archived else None


def ring_to_write_by(storage: Storage, timeline: Timeline, partition: str) -> Ring | None:
    """Return the committed nodes; raise `CommitConflict` while a node is being resized."""
    metadata = read_committed_ring(storage, timeline, partition)
    if metadata is not None and metadata.resizing:
        msg = f"the buckets of partition {partition!r} are being resized"
        raise CommitConflict(msg, hint="Complete or roll back the clustering, then retry.")
    return None if metadata is None else metadata.nodes


def put_ring(
    storage: Storage, partition: str, ring: StoredRing, instant: str = FIRST_RING
) -> StoredRing:
    """Store hashing metadata with an instant; return that of another writer that was faster."""
    path = _path(partition, instant)
    # Its own file is not read again: if this writer stalled, another one may have removed it.
    is_created = storage.put_if_absent(path, _text(partition, ring, instant))
    return ring if is_created else _read(storage, path)


def put_ring_again(storage: Storage, partition: str, ring: StoredRing, instant: str) -> None:
    """Store the hashing metadata of a commit, replacing that of a failed attempt."""
    storage.put(_path(partition, instant), _text(partition, ring, instant))


def _text(partition: str, ring: StoredRing, instant: str) -> bytes:
    content = {
        "version": 0,
        "partitionPath": partition,
        "instant": instant,
        "numBuckets": ring.buckets,
        "seqNo": ring.number,
        "nodes": [
            {"value": value, "fileIdPrefix": prefix, "tag": "NORMAL"}
            for value, prefix in ring.nodes
        ],
    }
    return json.dumps(content, indent=2).encode()


def confirm_rings(storage: Storage, partitions: Iterable[str], instant: str) -> None:
    """Confirm the hashing metadata of an instant; nothing to do for "", without a commit."""
    for partition in partitions if instant else ():
        storage.put_if_absent(f"{ring_folder(partition)}/{instant}{RING_COMMITTED}", b"")


def forget_rings(storage: Storage, instant: str) -> None:
    """Remove the hashing metadata of an instant."""
    for entry in storage.list(RING_FOLDER):
        # The confirmation is removed first.
        if entry.name in (f"{instant}{RING_COMMITTED}", f"{instant}{RING_SUFFIX}"):
            storage.delete(entry.path)


def _has_files(storage: Storage, partition: str, nodes: Collection[tuple[int, str]]) -> bool:
    prefixes = tuple(prefix for _, prefix in nodes)
    files = storage.list_dir(partition)[1]
    return any(file.name.removeprefix(".").startswith(prefixes) for file in files)


def _path(partition: str, instant: str) -> str:
    return f"{ring_folder(partition)}/{instant}{RING_SUFFIX}"


def _read(storage: Storage, path: str) -> StoredRing:
    record: dict[str, Any] = parse_json(storage.read(path), path)
    try:
        nodes = sorted((int(n["value"]), str(n["fileIdPrefix"])) for n in record["nodes"])
        return StoredRing(
            nodes,
            int(record.get("seqNo") or 0),
            int(record.get("numBuckets") or len(nodes)),
            bool(record.get("childrenNodes")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptTable(f"{path}: not hashing metadata: {error!r}", file=path) from error
