"""Bounds of floating numbers in footers, as readers have them that know only the type's order."""

from __future__ import annotations

import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pyhudi

NAN = float("nan")
Bounds = tuple[float, float] | None


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize(
    ("numbers", "bounds"),
    [
        ([1.5, None, 9.0], (1.5, 9.0)),
        ([1.5, NAN], None),
        ([NAN, NAN, None], None),
        ([0.0], (-0.0, 0.0)),
        ([-0.0], (-0.0, 0.0)),
        ([None], None),
    ],
)
def test_footer_bounds_of_floats_depend_on_type(
    tmp_path: Path, kind: pa.DataType, numbers: list[float | None], bounds: Bounds
) -> None:
    schema = pa.schema([("id", pa.string()), ("f", kind), ("inner", pa.struct([("f", kind)]))])
    table = pyhudi.create_table(tmp_path, schema, key="id")
    rows = [{"id": str(at), "f": one, "inner": {"f": one}} for at, one in enumerate(numbers)]
    table.upsert(pa.Table.from_pylist(rows, schema))
    [path] = tmp_path.glob("*.parquet")
    group = pq.read_metadata(path).row_group(0)
    columns = {group.column(at).path_in_schema: group.column(at) for at in range(group.num_columns)}
    for name in ("f", "inner.f"):
        known = columns[name].statistics
        assert known.null_count == numbers.count(None)
        assert _bits((known.min, known.max) if known.has_min_max else None) == _bits(bounds)


def _bits(bounds: Bounds) -> bytes | None:
    return None if bounds is None else struct.pack("<2d", *bounds)
