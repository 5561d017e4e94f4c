"""Delete markers on columns of any type: writes tell deletes as readers do, or not at all."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.merge_mode import DELETE_FIELD
from pyhudi.errors import UnsupportedTableFeature
from tests.helpers.table_builder import TableBuilder, set_delete_marker

TOLD = [
    (pa.string(), "D", "I", "D"),
    (pa.float64(), 1.0, 0.0, "1.0"),
    (pa.float64(), 1e10, 1.0, "1.0E10"),
    (pa.float32(), 0.1, 1.0, "0.1"),
    (pa.int32(), 1, 0, "1"),
    (pa.bool_(), True, False, "true"),
]
NOT_TOLD = [
    (pa.date32(), datetime.date(2024, 1, 1), "19723"),
    (pa.timestamp("us", "UTC"), 0, "0"),
    (pa.decimal128(10, 2), decimal.Decimal("1.00"), "1.00"),
    (pa.binary(), b"D", "D"),
]


def made(base: Path, type_: pa.DataType, marker: str, version: int, kind: Any) -> TableBuilder:
    builder = TableBuilder(
        {"id": (pa.string(), str), "op": (type_, None), "ts": (pa.int64(), 1)},
        order_by="ts",
        version=version,
        kind=kind,
        metadata=False,
    )
    builder.make(base)
    set_delete_marker(base, "op", marker)
    return builder


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize(
    ("type_", "gone", "live", "marker"), TOLD, ids=[f"{case[0]} {case[3]}" for case in TOLD]
)
def test_delete_marker_matches_java_text(
    tmp_path: Path, type_: pa.DataType, gone: Any, live: Any, marker: str, version: int, kind: Any
) -> None:
    builder = made(tmp_path, type_, marker, version, kind)
    table = pyhudi.open_table(tmp_path)
    table.upsert(builder.rows(["a", "b"], op=live))
    table.upsert(builder.rows(["a", "new"], op=gone, ts=2))
    table.insert(builder.rows(["inserted"], op=gone, ts=2))
    table.insert(builder.rows(["null"], op=None))
    assert sorted(table.scan(["id"]).to_arrow()["id"].to_pylist()) == ["b", "null"]


@pytest.mark.parametrize(
    ("type_", "value", "marker"), NOT_TOLD, ids=[str(case[0]) for case in NOT_TOLD]
)
def test_delete_marker_refuses_engine_dependent_text(
    tmp_path: Path, type_: pa.DataType, value: Any, marker: str
) -> None:
    builder = made(tmp_path, type_, marker, 9, "cow")
    with pytest.raises(UnsupportedTableFeature, match=DELETE_FIELD):
        pyhudi.open_table(tmp_path).upsert(builder.rows(["a"], op=value))


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("field", ["s.op", "nope"])
def test_markers_in_what_is_no_column_are_refused(tmp_path: Path, field: str, version: int) -> None:
    """Hudi looks into structs, and fails where nothing has the name."""
    builder = TableBuilder(
        {"id": (pa.string(), str), "s": (pa.struct({"op": pa.string()}), {"op": "D"})},
        version=version,
        kind="mor",
        metadata=False,
    )
    table = builder.make(tmp_path)
    table.insert(builder.rows("ab"))
    table = set_delete_marker(tmp_path, field, "D")
    assert table.scan().count() == 2, "nothing is merged"
    with pytest.raises(UnsupportedTableFeature, match=f"{DELETE_FIELD} is {field}"):
        table.upsert(builder.rows("a"))


@pytest.mark.parametrize("field", ["s.op", "nope"])
def test_log_files_are_not_read_without_the_column_of_their_markers(
    tmp_path: Path, field: str
) -> None:
    builder = TableBuilder({"id": (pa.string(), str), "v": (pa.int64(), 1)}, kind="mor")
    table = builder.make(tmp_path)
    table.insert(builder.rows("ab"))
    table.upsert(builder.rows("a"))
    table = set_delete_marker(tmp_path, field, "D")
    with pytest.raises(UnsupportedTableFeature, match=f"{DELETE_FIELD} is {field}"):
        table.scan().to_arrow()
    with pytest.raises(UnsupportedTableFeature, match=f"{DELETE_FIELD} is {field}"):
        table.compact()
    assert table.scan(read_optimized=True).count() == 2
