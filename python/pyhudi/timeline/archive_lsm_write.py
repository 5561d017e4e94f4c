"""Writer of the LSM history: adds instants in new files, merges small files, removes old ones.

Names, columns, levels and manifests are those of `LSMTimelineWriter` (Hudi 1.2.0). The caller holds
the table's lock.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.config.retention_options import HistoryOptions
from pyhudi.storage.storage import Storage
from pyhudi.timeline import serde
from pyhudi.timeline.lsm_manifest import (
    Check,
    Manifest,
    current_manifest,
    manifest_numbers,
    no_check,
    read_manifest,
    remove_manifest,
    write_manifest,
)

_SCHEMA = pa.schema(
    [
        ("instantTime", pa.string()),
        ("completionTime", pa.string()),
        ("action", pa.string()),
        ("metadata", pa.binary()),
        ("plan", pa.binary()),
        pa.field("version", pa.int32(), nullable=False),
    ]
)
_NAME = re.compile(r"(\d+)_(\d+)_(\d)\.parquet", re.ASCII)
_BATCH_ROWS = 64
"""Rows decoded at a time when files are merged: content may be large."""


@dataclass(frozen=True)
class ArchivedInstant:
    """A completed instant as the history stores it."""

    requested: str
    completed: str
    action: str
    """The action of the completed file."""
    metadata: bytes | None
    """An Avro container, None for an empty file."""
    plan: bytes | None = None
    """The content of the requested file."""


def add_to_history(
    storage: Storage, folder: str, instants: Sequence[ArchivedInstant], check: Check = no_check
) -> None:
    """Add instants to a history, and create it if necessary. Without instants, write nothing.

    Raises the errors of `check`.
    """
    if not instants:
        return
    ordered = sorted(instants, key=lambda instant: (instant.requested, instant.action))
    name = f"{ordered[0].requested}_{ordered[-1].requested}_0.parquet"
    manifest = current_manifest(storage, folder)
    if name in manifest.files:  # a writer failed before it removed them
        return
    data = _bytes_of([_table(ordered)])
    storage.put(f"{folder}/{name}", data)
    write_manifest(storage, folder, manifest, {**manifest.files, name: len(data)}, check)


def merge_and_clean(
    storage: Storage, folder: str, options: HistoryOptions, check: Check = no_check
) -> None:
    """Merge full levels into the next ones, and remove files that no reader needs any more.

    Raises the errors of `check`.
    """
    level = 0
    while _merge_level(storage, folder, level, options, check):
        level += 1
    _clean(storage, folder, options.kept_manifests + level, check)


def _merge_level(
    storage: Storage, folder: str, level: int, options: HistoryOptions, check: Check
) -> bool:
    """Merge a level; return whether it had enough files for that."""
    manifest = current_manifest(storage, folder)
    of_level = sorted(name for name in manifest.files if _level(name) == level)
    if len(of_level) < options.merged_files:
        return False
    chosen = _select_files(of_level, manifest, options)
    if len(chosen) < 2:  # noqa: PLR2004 - one alone is not merged
        return False
    data = _bytes_of(part for name in chosen for part in _read(storage, f"{folder}/{name}"))
    bounds = [bound for name in chosen for bound in _bounds(name)]
    merged = f"{min(bounds)}_{max(bounds)}_{level + 1}.parquet"
    storage.put(f"{folder}/{merged}", data)
    files = {name: size for name, size in manifest.files.items() if name not in chosen}
    write_manifest(storage, folder, manifest, {**files, merged: len(data)}, check)
    return True


def _select_files(names: Iterable[str], manifest: Manifest, options: HistoryOptions) -> list[str]:
    """Return the first consecutive names that make a new file large enough.

    A file that is too large by itself is skipped (`LSMTimelineWriter.getCandidateFiles`).
    """
    chosen: list[str] = []
    total = 0
    for name in names:
        chosen.append(name)
        total += manifest.files[name]
        if len(chosen) >= options.merged_files:
            break
        if total > options.merged_bytes:
            if len(chosen) > 1:
                break
            chosen, total = [], 0
    return chosen


def _clean(storage: Storage, folder: str, kept_manifests: int, check: Check) -> None:
    """Remove old manifests, and the files that only they list.

    The directory is listed before the manifests are read, so a file that another writer adds in
    between stays.
    """
    names = [entry.name for entry in storage.list_dir(folder)[1]]
    numbers = sorted(manifest_numbers(storage, folder), reverse=True)
    if len(numbers) <= kept_manifests:
        return
    manifests = [read_manifest(storage, folder, number) for number in numbers[:kept_manifests]]
    needed = {name for manifest in manifests if manifest for name in manifest.files}
    check()
    for number in numbers[kept_manifests:]:
        remove_manifest(storage, folder, number)
    check()
    unneeded = (name for name in names if _NAME.fullmatch(name) and name not in needed)
    storage.delete_all(f"{folder}/{name}" for name in unneeded)


def _level(name: str) -> int | None:
    match = _NAME.fullmatch(name)
    return int(match[3]) if match else None


def _bounds(name: str) -> tuple[str, str]:
    first, last, _ = name.split("_")
    return first, last


def _table(instants: Sequence[ArchivedInstant]) -> pa.Table:
    columns = [
        [instant.requested for instant in instants],
        [instant.completed for instant in instants],
        [instant.action for instant in instants],
        [instant.metadata for instant in instants],
        [instant.plan for instant in instants],
        [1] * len(instants),
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _read(storage: Storage, path: str) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq  # noqa: PLC0415 - few writes come here

    file = pq.ParquetFile(io.BytesIO(storage.read(path)))
    for batch in file.iter_batches(_BATCH_ROWS, columns=_SCHEMA.names):
        yield pa.Table.from_batches([batch]).select(_SCHEMA.names).cast(_SCHEMA)


def _bytes_of(tables: Iterable[pa.Table]) -> bytes:
    import pyarrow.parquet as pq  # noqa: PLC0415 - few writes come here

    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink, _SCHEMA, compression="gzip", store_schema=False, write_page_checksum=True
    ) as writer:
        for table in tables:
            writer.write_table(table)
        avro = serde.avro_schema("HoodieLSMTimelineInstant")
        writer.add_key_value_metadata({"writer.model.name": "avro", "parquet.avro.schema": avro})
    return sink.getvalue()
