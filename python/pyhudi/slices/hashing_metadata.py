"""Consistent-hashing metadata: hash ranges, their split and merge, and the files that store them.

The nodes are the buckets of one partition. Each has the hashes after the node before it, up to its
own value; the first one also those beyond the last. Source: `ConsistentBucketIdentifier` (Hudi
0.15.0, 1.0.2, 1.2.0).

The metadata of a replace commit is valid once that is complete. A file next to it confirms that,
for when the commit is archived. Up to table version 6 it does not exist, because Hudi 0.15 puts
that file into the data partition, where it has no use; then the file groups show it. Sources:
`ConsistentBucketIndexUtils`, `HoodieConsistentHashingMetadata` (Hudi 0.15.0, 1.0.2, 1.2.0).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.bounded_json import parse_json
from pyhudi.errors import CommitConflict, CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline

Ring = list[tuple[int, str]]
"""Last hash and file id prefix of each range, ascending."""

_HASHES = 1 << 31
"""Hashes are 0 or more and less than this."""


@dataclass(frozen=True)
class Child:
    """The change of a hash node in a plan."""

    value: int
    """The last hash of its range."""
    prefix: str | None
    """Prefix of its new file id; None if the node is removed and its range goes to the next."""


@dataclass(frozen=True)
class Span:
    """A range of hashes, which may wrap around."""

    after: int
    """The last hash before it."""
    upto: int

    def holds(self, places: pa.Array[Any]) -> pa.Array[Any]:
        """Return for each hash whether it is in this range."""
        above, below = pc.greater(places, self.after), pc.less_equal(places, self.upto)
        return pc.and_(above, below) if self.after < self.upto else pc.or_(above, below)


def file_id_of(prefix: str) -> str:
    """Return the file id of a hash node."""
    return f"{prefix}-0"


def span_of(ring: Ring, value: int) -> Span:
    """Return the hash range of the node with this value."""
    values = [node for node, _ in ring]
    return Span(values[values.index(value) - 1], value)


def middle_of(ring: Ring, value: int) -> int | None:
    """Return the value that splits this node in two; None for a range of one hash."""
    span = span_of(ring, value)
    wrapped = 0 if span.after < value else _HASHES
    middle = ((span.after + value + wrapped) >> 1) % _HASHES
    return None if middle in (span.after, value) else middle


def replace_nodes(ring: Ring, children: Iterable[Child]) -> Ring:
    """Replace, add and remove nodes. Raises KeyError if one is missing."""
    nodes: dict[int, str] = dict(ring)
    for child in children:
        if child.prefix is None:
            del nodes[child.value]
        else:
            nodes[child.value] = child.prefix
    return sorted(nodes.items())


# --- files ----------------------------------------------------------------------------------------


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
        metadata = _read_ring(storage, _ring_path(partition, instant))
        if marked or not is_old:
            return metadata
        # It may belong to an archived commit, or to a clustering that was rolled back.
        before = (
            _read_ring(storage, _ring_path(partition, other)).nodes
            for other in stored[earlier:][:1]
        )
        if _has_files(storage, partition, {*metadata.nodes}.difference(*before)):
            return metadata
        archived = archived or instant
    return _read_ring(storage, _ring_path(partition, archived)) if archived else None


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
    path = _ring_path(partition, instant)
    # Its own file is not read again: if this writer stalled, another one may have removed it.
    is_created = storage.put_if_absent(path, _ring_content(partition, ring, instant))
    return ring if is_created else _read_ring(storage, path)


def replace_ring(storage: Storage, partition: str, ring: StoredRing, instant: str) -> None:
    """Store the hashing metadata of a commit, replacing that of a failed attempt."""
    storage.put(_ring_path(partition, instant), _ring_content(partition, ring, instant))


def _ring_content(partition: str, ring: StoredRing, instant: str) -> bytes:
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


def _ring_path(partition: str, instant: str) -> str:
    return f"{ring_folder(partition)}/{instant}{RING_SUFFIX}"


def _read_ring(storage: Storage, path: str) -> StoredRing:
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
