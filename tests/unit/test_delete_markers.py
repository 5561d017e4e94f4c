"""Delete markers on columns of any type: writes tell deletes as readers do, or not at all."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.merge_mode import DELETE_FIELD, DELETE_MARKER, MERGE_PROPERTY
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.storage.storage import Storage
from tests.helpers.table_builder import TableBuilder

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
    prefix = MERGE_PROPERTY if version == 9 else ""
    properties = {prefix + DELETE_FIELD: "op", prefix + DELETE_MARKER: marker}
    storage, clock = Storage(str(base)), SystemClock()
    TableConfig.load(storage, clock).updated(storage, properties, clock)
    return builder


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize(
    ("type_", "gone", "live", "marker"), TOLD, ids=[f"{case[0]} {case[3]}" for case in TOLD]
)
def test_a_marker_is_what_java_prints(
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
def test_what_engines_do_not_print_alike_is_refused(
    tmp_path: Path, type_: pa.DataType, value: Any, marker: str
) -> None:
    builder = made(tmp_path, type_, marker, 9, "cow")
    with pytest.raises(UnsupportedTableFeature, match=DELETE_FIELD):
        pyhudi.open_table(tmp_path).upsert(builder.rows(["a"], op=value))
