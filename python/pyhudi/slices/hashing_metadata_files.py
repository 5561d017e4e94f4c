"""The files of consistent-hashing buckets: which file group has which part of the ring.

A ring of a replace commit counts once that is complete. Beside it comes a file that says so, for
when the commit is archived. Up to table version 6 there is none, since Hudi 0.15 puts that file
into the data partition, where it is of no use; then the file groups tell. Sources:
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
    """What one file says."""

    nodes: Ring
    """Rising."""
    number: int = 0
    """Of rings that the partition had before."""
    buckets: int = 0
    """Of the partition's first ring."""
    resizing: bool = False
    """Some of its nodes have children."""


def has_rings(storage: Storage) -> bool:
    """Whether the table's buckets are ranges of hash rings."""
    return storage.list_dir(RING_FOLDER) != ([], [])


def ring_folder(partition: str) -> str:
    """Where the rings of a partition are stored."""
    return f"{RING_FOLDER}/{partition}".rstrip("/")


def read_committed_ring(storage: Storage, timeline: Timeline, partition: str) -> StoredRing | None:
    """A partition's newest ring.

    None for a partition without a ring. Raises `CorruptTable` for one that cannot be read.
    """
    folder = ring_folder(partition)
    names = {entry.name for entry in storage.list_dir(folder)[1]}
    instants = (name.removesuffix(RING_SUFFIX) for name in names if name.endswith(RING_SUFFIX))
    known = sorted(instants, reverse=True)
    archived = ""
    for earlier, instant in enumerate(known, 1):
        marked = instant == FIRST_RING or f"{instant}{RING_COMMITTED}" in names
        is_old = timeline.is_before_start(instant)
        # One that came after the timeline was loaded does not go with its file groups.
        if not (timeline.is_committed(instant) or (marked and is_old)):
            continue
        found = _read(storage, _path(partition, instant))
        if marked or not is_old:
            return found
        # It may be of a commit that was archived, or of a clustering that was taken back.
        before = (_read(storage, _path(partition, other)).nodes for other in known[earlier:][:1])
        if _has_files(storage, partition, {*found.nodes}.difference(*before)):
            return found
        archived = archived or instant
    return _read(storage, _path(partition, archived)) if archived else None


def ring_to_write_by(storage: Storage, timeline: Timeline, partition: str) -> Ring | None:
    """Return the committed ring; raise `CommitConflict` while a node is being resized."""
    found = read_committed_ring(storage, timeline, partition)
    if found is not None and found.resizing:
        msg = f"the buckets of partition {partition!r} are being resized"
        raise CommitConflict(msg, hint="Complete or roll back the clustering, then retry.")
    return None if found is None else found.nodes


def put_ring(
    storage: Storage, partition: str, ring: StoredRing, instant: str = FIRST_RING
) -> StoredRing:
    """Stores a ring under an instant; gives the one of another writer that was faster."""
    path = _path(partition, instant)
    # Its own is not read again: of a writer that stands still others may have taken it away.
    made = storage.put_if_absent(path, _text(partition, ring, instant))
    return ring if made else _read(storage, path)


def put_ring_again(storage: Storage, partition: str, ring: StoredRing, instant: str) -> None:
    """Stores the ring of a commit, in place of what an attempt that failed may have left."""
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
    """Says beside the rings of an instant that they count; "" where nothing was committed."""
    for partition in partitions if instant else ():
        storage.put_if_absent(f"{ring_folder(partition)}/{instant}{RING_COMMITTED}", b"")


def forget_rings(storage: Storage, instant: str) -> None:
    """Removes the rings of an instant."""
    for entry in storage.list(RING_FOLDER):
        # That it counts goes first.
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
