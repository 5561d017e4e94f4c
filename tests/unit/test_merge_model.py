"""Merging, beside a slow model, over random histories: see `tests/helpers/model.py`.

The same histories come each time. `make test-model-long` (PYHUDI_MODEL_EXAMPLES in the environment)
runs as many new ones as it is told.
"""

from __future__ import annotations

import operator
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyhudi import _native
from tests.helpers import log_bytes
from tests.helpers.core_files import write_base_file, write_log_files
from tests.helpers.histories import DEFAULTS, SCHEMA, Piece, Read, Slice, histories, reads
from tests.helpers.model import KEY, Block, Row, Rules, merge_slice, standing_blocks

AVRO = _native.avro_schema(SCHEMA, "record", "hoodie.model")
EXAMPLES = int(os.environ.get("PYHUDI_MODEL_EXAMPLES", "0"))
COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Files:
    """A slice on disk."""

    store: _native.Store
    base: str | None
    logs: Sequence[str]


def written_to(folder: str, one: Slice) -> Files:
    """The slice's files, as Hudi would leave them."""
    store = _native.Store(folder)
    base = None
    if one.base is not None:
        base = "base.parquet"
        table = pa.Table.from_pylist(list(one.base), SCHEMA)
        # Batches of two rows end row groups of two rows.
        batches = table.to_batches(max_chunksize=2)
        rows = pa.Table.from_batches(batches, SCHEMA)
        write_base_file(store, base, rows, avro_schema=AVRO, row_group_bytes=1)
    files: list[bytes] = []
    for piece in one.pieces:
        data = piece_bytes(store, piece, one)
        if piece.new_file or not files:
            files.append(data)
        else:
            files[-1] += data
    logs = [f".f_{number}.log" for number in range(len(files))]
    for path, data in zip(logs, files, strict=True):
        store.put(path, data)
    return Files(store, base, logs)


def piece_bytes(store: _native.Store, piece: Piece, one: Slice) -> bytes:
    block = piece.block
    if block.rolls_back is not None:
        return _native.rollback_block(block.instant, block.rolls_back)
    if piece.form == "native":
        return native_bytes(store, piece)
    data = b""
    if block.rows:
        names = list(block.rows[0])
        schema = pa.schema([SCHEMA.field(name) for name in names])
        header = headers(piece, one, [row[KEY] for row in block.rows], schema)
        if piece.form == "avro":
            data += log_bytes.avro_block(header, block.rows)
        else:
            rows = pa.Table.from_pylist(list(block.rows), schema)
            data += log_bytes.parquet_block(header, rows)
    if block.deletes:
        header = headers(piece, one, [delete.key for delete in block.deletes], SCHEMA)
        header.pop(log_bytes.IS_PARTIAL, None)
        records = [(delete.key, "", delete.ordering) for delete in block.deletes]
        data += log_bytes.delete_block(header, records)
    return data


def native_bytes(store: _native.Store, piece: Piece) -> bytes:
    block = piece.block
    path = ".written.log"
    rows = pa.Table.from_pylist(list(block.rows), SCHEMA) if block.rows else None
    keys = [delete.key for delete in block.deletes]
    gone = pa.table({"key": keys, "path": [""] * len(keys)}) if keys else None
    write_log_files(
        store,
        repeat(path).__next__,
        instant=block.instant,
        avro_schema=AVRO,
        rows=rows,
        delete_keys=gone,
    )
    data = store.read(path)
    store.delete(path)
    return data


def headers(piece: Piece, one: Slice, keys: Sequence[str], schema: pa.Schema) -> dict[int, str]:
    positions = base_instant = None
    if piece.positions != "none":
        at = {row[KEY]: number for number, row in enumerate(one.base or ())}
        rows = [at[key] for key in keys]
        if piece.positions == "too many":
            rows.append(max(rows) + 1)
        if piece.positions == "too few":
            rows.pop()
        positions = log_bytes.positions(rows)
        base_instant = "zzz" if piece.positions == "other base" else one.base_instant
    return log_bytes.headers(
        piece.block.instant,
        _native.avro_schema(schema, "record", "hoodie.model"),
        partial=piece.block.partial,
        compacted=piece.block.compacts,
        positions=positions,
        base_instant=base_instant,
    )


def merge_b(older: pa.RecordBatch, newer: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.Array]:
    """A user's merger: the sum of `b`, and a delete where that is 3."""
    total = pc.add(older["b"], newer["b"])
    merged = newer.set_column(newer.schema.get_field_index("b"), "b", total)
    return merged, pc.fill_null(pc.equal(total, 3), fill_value=False)


def field_rules(rules: Rules) -> _native.FieldRules:
    defaults = pa.RecordBatch.from_pylist(
        [DEFAULTS], pa.schema([SCHEMA.field(name) for name in DEFAULTS])
    )
    return _native.FieldRules(
        rules.fill,
        marker=rules.marker,
        defaults=defaults if rules.defaults else None,
        newest_meta=rules.newest_meta,
        deletes_always_win=rules.deletes_always_win,
        sequence_ordering=rules.sequence,
        merger=merge_b if rules.merger else None,
        merger_columns=SCHEMA.names if rules.merger else [],
    )


def read(
    files: Files, one: Slice, rules: Rules, how: Read, incoming: Block | None = None
) -> tuple[list[Row], _native.MergeStats]:
    field, marker = rules.delete_marker or (None, None)
    filters = [
        (column, comparison, pa.array(literals, SCHEMA.field(column).type))
        for column, comparison, literals in how.filters
    ]
    reader, stats = _native.read_slice(
        files.store,
        base=files.base,
        logs=files.logs,
        schema=SCHEMA,
        columns=how.columns,
        merge_mode="EVENT_TIME_ORDERING" if rules.event_time else "COMMIT_TIME_ORDERING",
        ordering_fields=[name for name, _ in rules.ordering],
        delete_field=field,
        delete_marker=marker,
        max_instant=one.seen.max_instant,
        valid_instants=None if one.seen.valid is None else list(one.seen.valid),
        timeline_start=one.seen.timeline_start,
        drops_repeated=True,
        filters=filters,
        batch_rows=how.batch_rows,
        base_instant=one.base_instant if how.by_position else None,
        field_rules=field_rules(rules),
        memory_limit=how.memory_limit,
        null_ordering_loses=rules.null_ordering_loses,
        incoming=pa.Table.from_pylist(list(incoming.rows), SCHEMA) if incoming else None,
        delete_keys=pa.array([d.key for d in incoming.deletes], pa.string()) if incoming else None,
    )
    batches = list(reader)
    # Incoming rows keep the batches they came in.
    most = how.batch_rows if incoming is None else max(how.batch_rows, len(incoming.rows))
    assert all(batch.num_rows <= most for batch in batches)
    return [row for batch in batches for row in batch.to_pylist()], stats


def passes(row: Row, how: Read) -> bool:
    def one(column: str, comparison: str, literals: Sequence[Any]) -> bool:
        value = row[column]
        if value is None or comparison in {"=", "in"}:
            return value in literals
        if isinstance(value, str):
            return COMPARE[comparison](value.encode(), literals[0].encode())
        return COMPARE[comparison](value, literals[0])

    return all(one(*conjunct) for conjunct in how.filters)


def counted(rows: Sequence[Row], how: Read) -> Counter[str]:
    """Rows have no order; those that the filter is about, with the columns asked for."""
    wanted = (row for row in rows if passes(row, how))
    return Counter(" ".join(f"{name}={row[name]}" for name in how.columns) for row in wanted)


@settings(
    max_examples=EXAMPLES or 150,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(histories(), st.lists(reads(), min_size=2, max_size=2))
@pytest.mark.slow
def test_merging_agrees_with_the_model(history: tuple[Rules, list[Slice]], how: list[Read]) -> None:
    rules, slices = history
    for one in slices:
        wanted = merge_slice(one.base or (), one.blocks, rules, one.seen)
        with tempfile.TemporaryDirectory() as folder:
            files = written_to(folder, one)
            for way in [Read(), *how]:
                found, stats = read(files, one, rules, way)
                assert counted(found, way) == counted(wanted, way)
                if one.all_positions:
                    counts = bool(standing_blocks(one.blocks, one.seen))
                    assert stats.by_position == (way.by_position and counts)
            if one.incoming is not None:
                updated_agrees(files, one, replace(rules, null_ordering_loses=True), how[0])


def updated_agrees(files: Files, one: Slice, rules: Rules, way: Read) -> None:
    """A copy-on-write update of the slice."""
    found, _ = read(files, one, rules, way, one.incoming)
    wanted = merge_slice(one.base or (), one.blocks, rules, one.seen, one.incoming)
    assert counted(found, way) == counted(wanted, way)
