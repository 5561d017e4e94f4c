"""Writing the LSM history: rows of instants into one new file, and the manifest that names it.

The form is that of `LSMTimelineWriter` (Hudi 1.2.0). Files are not merged into higher levels here.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.timeline import content

if TYPE_CHECKING:
    from pyhudi.storage import Storage

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


@dataclass(frozen=True)
class ArchivedInstant:
    """A completed instant as the history keeps it."""

    requested: str
    completed: str
    action: str
    """Of the completed file."""
    metadata: bytes | None
    """An Avro container, None for an empty file."""
    plan: bytes | None = None
    """The requested file's."""


def write_new_history(storage: Storage, folder: str, instants: Sequence[ArchivedInstant]) -> None:
    """Makes the history of a table that has none. Nothing is written without instants."""
    if not instants:
        return
    ordered = sorted(instants, key=lambda one: (one.requested, one.action))
    data = _file(ordered)
    name = f"{ordered[0].requested}_{ordered[-1].requested}_0.parquet"
    storage.put(f"{folder}/{name}", data)
    manifest = {"files": [{"fileName": name, "fileLen": len(data)}]}
    storage.put(f"{folder}/manifest_1", content.encode_json(manifest))
    storage.put(f"{folder}/_version_", b"1")


def _file(instants: Sequence[ArchivedInstant]) -> bytes:
    columns = [
        [one.requested for one in instants],
        [one.completed for one in instants],
        [one.action for one in instants],
        [one.metadata for one in instants],
        [one.plan for one in instants],
        [1] * len(instants),
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
    avro = content.avro_schema("HoodieLSMTimelineInstant")
    schema = _SCHEMA.with_metadata({"writer.model.name": "avro", "parquet.avro.schema": avro})
    sink = io.BytesIO()
    table = pa.Table.from_arrays(arrays, schema=schema)
    pq.write_table(table, sink, compression="gzip", store_schema=False)
    return sink.getvalue()
