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

HashingNodes = list[tuple[int, str]]
"""Last hash and file id prefix of each range, ascending."""

_HASHES = 1 << 31
"""Hashes are 0 or more and less than this."""


@dataclass(frozen=True)
class ChildNode:
    """The change of a hash node in a plan."""

    value: int
    """The last hash of its range."""
    prefix: str | None
    """Prefix of its new file id; None if the node is removed and its range goes to the next."""


@dataclass(frozen=True)
class HashRange:
    """A range of hashes, which may wrap around."""

    after: int
    """The last hash before it."""
    upto: int

    def contains(self, hashes: pa.Array[Any]) -> pa.Array[Any]:
        """Return for each hash whether it is in this range."""
        above, below = pc.greater(hashes, self.after), pc.less_equal(hashes, self.upto)
        return pc.and_(above, below) if self.after < self.upto else pc.or_(above, below)


def file_id_of(prefix: str) -> str:
    """Return the file id of a hash node."""
    return f"{prefix}-0"


def hash_range_of(nodes: HashingNodes, value: int) -> HashRange:
    """Return the hash range of the node with this value."""
    values = [last_hash for last_hash, _ in nodes]
    return HashRange(values[values.index(value) - 1], value)


def midpoint_of(nodes: HashingNodes, value: int) -> int | None:
    """Return the value that splits this node in two; None for a range of one hash."""
    hash_range = hash_range_of(nodes, value)
    wrapped = 0 if hash_range.after < value else _HASHES
    middle = ((hash_range.after + value + wrapped) >> 1) % _HASHES
    return None if middle in (hash_range.after, value) else middle


def replace_nodes(nodes: HashingNodes, children: Iterable[ChildNode]) -> HashingNodes:
    """Replace, add and remove nodes. Raises KeyError if one is missing."""
    prefixes: dict[int, str] = dict(nodes)
    for child in children:
        if child.prefix is None:
            del prefixes[child.value]
        else:
            prefixes[child.value] = child.prefix
    return sorted(prefixes.items())


# --- files ----------------------------------------------------------------------------------------


HASHING_METADATA_FOLDER = ".hoodie/.bucket_index/consistent_hashing_metadata"
HASHING_METADATA_SUFFIX = ".hashing_meta"
COMMIT_MARKER_SUFFIX = ".commit"
INITIAL_INSTANT = "00000000000000"


@dataclass(frozen=True)
class HashingMetadata:
    """The content of one file."""

    nodes: HashingNodes
    """Ascending."""
    sequence_number: int = 0
    """The number of earlier versions in the partition."""
    buckets: int = 0
    """The number of buckets in the partition's first version."""
    resizing: bool = False
    """Some of its nodes have children."""


def has_consistent_hashing(storage: Storage) -> bool:
    """Return whether the table's buckets are hash ranges."""
    return storage.list_dir(HASHING_METADATA_FOLDER) != ([], [])


def hashing_metadata_folder(partition: str) -> str:
    """Return the directory of a partition's hashing metadata."""
    return f"{HASHING_METADATA_FOLDER}/{partition}".rstrip("/")


def read_committed_hashing_metadata(
    storage: Storage, timeline: Timeline, partition: str
) -> HashingMetadata | None:
    """Return a partition's newest committed hashing metadata.

    None for a partition without any. Raises `CorruptTable` for an invalid file.
    """
    folder = hashing_metadata_folder(partition)
    names = {entry.name for entry in storage.list_dir(folder)[1]}
    instants = (
        name.removesuffix(HASHING_METADATA_SUFFIX)
        for name in names
        if name.endswith(HASHING_METADATA_SUFFIX)
    )
    stored = sorted(instants, reverse=True)
    archived = ""
    for earlier, instant in enumerate(stored, 1):
        marked = instant == INITIAL_INSTANT or f"{instant}{COMMIT_MARKER_SUFFIX}" in names
        is_old = timeline.is_before_start(instant)
        # One that was written after the timeline was loaded does not match its file groups.
        if not (timeline.is_committed(instant) or (marked and is_old)):
            continue
        metadata = _read_hashing_metadata_file(storage, _hashing_metadata_path(partition, instant))
        if marked or not is_old:
            return metadata
        # It may belong to an archived commit, or to a clustering that was rolled back.
        before = (
            _read_hashing_metadata_file(storage, _hashing_metadata_path(partition, other)).nodes
            for other in stored[earlier:][:1]
        )
        if _has_files(storage, partition, {*metadata.nodes}.difference(*before)):
            return metadata
        archived = archived or instant
    return (
        _read_hashing_metadata_file(storage, _hashing_metadata_path(partition, archived))
        if archived
        else None
    )


def nodes_for_write(storage: Storage, timeline: Timeline, partition: str) -> HashingNodes | None:
    """Return the committed nodes; raise `CommitConflict` while a node is being resized."""
    metadata = read_committed_hashing_metadata(storage, timeline, partition)
    if metadata is not None and metadata.resizing:
        msg = f"the buckets of partition {partition!r} are being resized"
        raise CommitConflict(msg, hint="Complete or roll back the clustering, then retry.")
    return None if metadata is None else metadata.nodes


def store_hashing_metadata(
    storage: Storage, partition: str, metadata: HashingMetadata, instant: str = INITIAL_INSTANT
) -> HashingMetadata:
    """Store hashing metadata with an instant; return that of another writer that was faster."""
    path = _hashing_metadata_path(partition, instant)
    # Its own file is not read again: if this writer stalled, another one may have removed it.
    is_created = storage.put_if_absent(
        path, _hashing_metadata_content(partition, metadata, instant)
    )
    return metadata if is_created else _read_hashing_metadata_file(storage, path)


def overwrite_hashing_metadata(
    storage: Storage, partition: str, metadata: HashingMetadata, instant: str
) -> None:
    """Store the hashing metadata of a commit, replacing that of a failed attempt."""
    storage.put(
        _hashing_metadata_path(partition, instant),
        _hashing_metadata_content(partition, metadata, instant),
    )


def _hashing_metadata_content(partition: str, metadata: HashingMetadata, instant: str) -> bytes:
    content = {
        "version": 0,
        "partitionPath": partition,
        "instant": instant,
        "numBuckets": metadata.buckets,
        "seqNo": metadata.sequence_number,
        "nodes": [
            {"value": value, "fileIdPrefix": prefix, "tag": "NORMAL"}
            for value, prefix in metadata.nodes
        ],
    }
    return json.dumps(content, indent=2).encode()


def confirm_hashing_metadata(storage: Storage, partitions: Iterable[str], instant: str) -> None:
    """Confirm the hashing metadata of an instant; nothing to do for "", without a commit."""
    for partition in partitions if instant else ():
        storage.put_if_absent(
            f"{hashing_metadata_folder(partition)}/{instant}{COMMIT_MARKER_SUFFIX}", b""
        )


def remove_hashing_metadata(storage: Storage, instant: str) -> None:
    """Remove the hashing metadata of an instant."""
    for entry in storage.list(HASHING_METADATA_FOLDER):
        # The confirmation is removed first.
        if entry.name in (
            f"{instant}{COMMIT_MARKER_SUFFIX}",
            f"{instant}{HASHING_METADATA_SUFFIX}",
        ):
            storage.delete(entry.path)


def _has_files(storage: Storage, partition: str, nodes: Collection[tuple[int, str]]) -> bool:
    prefixes = tuple(prefix for _, prefix in nodes)
    files = storage.list_dir(partition)[1]
    return any(file.name.removeprefix(".").startswith(prefixes) for file in files)


def _hashing_metadata_path(partition: str, instant: str) -> str:
    return f"{hashing_metadata_folder(partition)}/{instant}{HASHING_METADATA_SUFFIX}"


def _read_hashing_metadata_file(storage: Storage, path: str) -> HashingMetadata:
    record: dict[str, Any] = parse_json(storage.read(path), path)
    try:
        nodes = sorted((int(n["value"]), str(n["fileIdPrefix"])) for n in record["nodes"])
        return HashingMetadata(
            nodes,
            int(record.get("seqNo") or 0),
            int(record.get("numBuckets") or len(nodes)),
            bool(record.get("childrenNodes")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise CorruptTable(f"{path}: not hashing metadata: {error!r}", file=path) from error
