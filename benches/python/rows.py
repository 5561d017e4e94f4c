"""The rows of the benchmarks, made of nothing but a number, and the sums that tell them apart.

A row follows from its place in a generation and the generation's seed, so that what a reader must
give is known without reading. Tables are made of them by `generate.py`.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

KEY = "id"
PARTITION = "city"
ORDERING = "ts"

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("ts", pa.int64()),
        ("rider", pa.string()),
        ("driver", pa.string()),
        ("fare", pa.float64()),
        ("begin_lat", pa.float64()),
        ("begin_lon", pa.float64()),
        ("distance", pa.int32()),
        ("paid", pa.bool_()),
        ("updated_at", pa.timestamp("us", tz="UTC")),
        ("note", pa.string()),
        ("city", pa.string()),
    ]
)

_CITIES = pa.array(["amsterdam", "bengaluru", "chennai", "denver"])
_SPREAD = 0x9E3779B97F4A7C15
"""2^64 by the golden ratio: its multiples are spread evenly, so that keys come in no order."""

_NUMBER_AT = {"id": 16, "_hoodie_record_key": 16, "rider": 6, "driver": 7, "note": 17}
"""Where the number in a text begins."""


def numbers(count: int) -> pa.UInt64Array:
    """0 to `count` - 1."""
    ones = pa.repeat(pa.scalar(1, pa.uint64()), count)
    return pc.subtract(pc.cumulative_sum(ones), pa.scalar(1, pa.uint64()))


def pick(count: int, share: float, seed: int) -> pa.UInt64Array:
    """About a share of the numbers below `count`, in no order."""
    chance = pc.random(count, initializer=seed)
    chosen = pc.indices_nonzero(pc.less(chance, share))
    return chosen.take(pc.sort_indices(chance.take(chosen)))


def make_rows(ids: pa.UInt64Array, ts: pa.Int64Array, seed: int) -> pa.Table:
    """The rows of one generation."""
    count = len(ids)
    draw = _Draw(count, seed)
    columns = {
        "id": keys(ids),
        "ts": ts,
        "rider": _text("rider-", draw.below(200_000)),
        "driver": _text("driver-", draw.below(50_000)),
        "fare": pc.multiply(draw.fraction(), 100.0),
        "begin_lat": draw.fraction(),
        "begin_lon": draw.fraction(),
        "distance": draw.below(100_000).cast(pa.int32()),
        "paid": pc.less(draw.fraction(), 0.5),
        "updated_at": pc.multiply(ts, 1000).cast(SCHEMA.field("updated_at").type),
        "note": _text("note text number ", draw.below(10**9)),
        "city": _CITIES.take(pc.bit_wise_and(ids, pa.scalar(3, pa.uint64()))),
    }
    return pa.table([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def keys(ids: pa.UInt64Array) -> pa.StringArray:
    """The record keys of ids: 28 characters that sort in another order than the ids."""
    spread = pc.shift_right(pc.multiply(ids, pa.scalar(_SPREAD, pa.uint64())), _u64(16))
    texts = (
        pc.utf8_lpad(part.cast(pa.string()), width, "0")
        for part, width in ((spread, 15), (ids, 12))
    )
    return pc.binary_join_element_wise(*texts, "-")


def late_or(now: int, late: int, share: float, count: int, seed: int) -> pa.Int64Array:
    """Event times: `late` for a share of the rows, else `now`."""
    is_late = pc.less(pc.random(count, initializer=seed), share)
    return pc.if_else(is_late, pa.scalar(late, pa.int64()), pa.scalar(now, pa.int64()))


def sums(batches: pa.Table | list[pa.RecordBatch]) -> dict[str, int]:
    """The number of rows and a sum a column, the same for the same rows in any order.

    Where there are keys, also sums of the values weighed by their rows' keys, which notice values
    in the wrong row. Hudi's own columns are left out, except for the key.
    """
    table = batches if isinstance(batches, pa.Table) else pa.Table.from_batches(batches)
    found = {"rows": table.num_rows}
    weights = _weights(table) if KEY in table.column_names else None
    for name in table.column_names:
        if name in SCHEMA.names or name in _NUMBER_AT:
            values = _as_numbers(table.column(name), name)
            found[name] = pc.sum(values).as_py()
            if weights is not None:
                found[f"{name} by key"] = pc.sum(pc.multiply(values, weights)).as_py()
    return found


def _weights(table: pa.Table) -> pa.ChunkedArray:
    ids = _as_numbers(table.column(KEY), KEY)
    return pc.add(pc.bit_wise_and(ids, _u64(1023)), _u64(1))


def _as_numbers(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Unsigned integers that are equal where the values are; sums of them may wrap."""
    if column.null_count:
        raise ValueError(f"{name} has {column.null_count} nulls where no row has one")
    if name in _NUMBER_AT:
        digits = pc.utf8_slice_codeunits(column.cast(pa.string()), _NUMBER_AT[name])
        return digits.cast(pa.uint64())
    if name == PARTITION:
        return pc.index_in(column.cast(pa.string()), _CITIES).cast(pa.uint64())
    if pa.types.is_floating(column.type):
        bits = [chunk.view(pa.uint64()) for chunk in column.chunks]
        return pa.chunked_array(bits, pa.uint64())
    return column.cast(pa.int64()).cast(pa.uint64())


class _Draw:
    """Random columns of one length; each call gives another one."""

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        self._seed = seed << 8

    def fraction(self) -> pa.DoubleArray:
        self._seed += 1
        return pc.random(self._count, initializer=self._seed)

    def below(self, limit: int) -> pa.UInt64Array:
        return pc.floor(pc.multiply(self.fraction(), float(limit))).cast(pa.uint64())


def _text(prefix: str, values: pa.UInt64Array) -> pa.StringArray:
    return pc.binary_join_element_wise(prefix, values.cast(pa.string()), "")


def _u64(value: int) -> pa.UInt64Scalar:
    return pa.scalar(value, pa.uint64())
