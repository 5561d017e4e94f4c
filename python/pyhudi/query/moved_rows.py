"""Pairs records that moved between file groups: a delete in one, an insert in another.

Inserts and deletes of single groups are spilled, and paired by key after all groups. Memory is
bounded: rows above the limit go to a local file, which is read once per bucket of keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.engine.spill import IN_MEMORY, Spill
from pyhudi.query.change_reader import LOCATION

_KEY = "key"

_SPILL = 4
"""A spill buffers this part of the memory before it writes."""

# Names that no data column has.
_KEY_COLUMN = "_hoodie_record_key"
_LOCATION_COLUMN = "_hoodie_partition_path"


def pair_moved_rows(rows: pa.RecordBatchReader, held_bytes: int) -> Iterator[pa.RecordBatch]:
    """Return the rows of `diff_task` over all groups, with moved records as updates or omitted.

    A record that is the same in another file group is not a change. held_bytes: approximate memory
    for spilled rows.
    """
    in_memory = min(held_bytes // _SPILL, IN_MEMORY)
    deleted, inserted = Spill(rows.schema, in_memory), Spill(rows.schema, in_memory)
    try:
        for batch in rows:
            yield from _of(batch, "u")
            for op, spill in (("d", deleted), ("i", inserted)):
                for part in _of(batch, op):
                    spill.add(part)
        if deleted.size and inserted.size:
            yield from _match_moved_rows(deleted, inserted, held_bytes)
        else:
            yield from deleted.read()
            yield from inserted.read()
    finally:
        rows.close()
        deleted.close()
        inserted.close()


def _of(batch: pa.RecordBatch, op: str) -> Sequence[pa.RecordBatch]:
    rows = batch.filter(pc.equal(batch["op"], op))
    return [rows] if rows.num_rows else []


def _match_moved_rows(deleted: Spill, inserted: Spill, held_bytes: int) -> Iterator[pa.RecordBatch]:
    images = pa.schema(list(deleted.schema.field("before").type))
    buckets = -(-(deleted.size + inserted.size) // held_bytes)
    for bucket in range(buckets):
        reader = _native.match_changes(
            _flat(deleted, "before", images),
            _flat(inserted, "after", images),
            schema=images,
            images=len(images),
            key_fields=[_KEY_COLUMN],
            place=_LOCATION_COLUMN,
            bucket=(bucket, buckets) if buckets > 1 else None,
        )
        for batch in reader:
            yield batch.append_column(LOCATION, pa.nulls(batch.num_rows, pa.string()))


def _flat(spill: Spill, side: str, images: pa.Schema) -> pa.RecordBatchReader:
    """Return the images of one side as columns, with key and location."""
    schema = pa.schema([*images, (_KEY_COLUMN, pa.string()), (_LOCATION_COLUMN, pa.string())])

    def batches() -> Iterable[pa.RecordBatch]:
        for batch in spill.read():
            columns = [*batch[side].flatten(), batch[_KEY], batch[LOCATION]]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return pa.RecordBatchReader.from_batches(schema, batches())
