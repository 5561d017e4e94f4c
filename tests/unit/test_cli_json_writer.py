"""JSON text of Arrow columns: what Python's own parser reads from it, beside Arrow's values."""

from __future__ import annotations

import datetime
import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.cli.json_writer import cell_text, flat, json_column, json_lines

TEXTS = ["", "plain", 'a "b" \\ c', "\x00\x1f\x7f\n\t", "\u00e9\u4e2d\U0001f600", None]
SAME = {
    "texts": pa.array(TEXTS, pa.string()),
    "large": pa.array(TEXTS, pa.large_string()),
    "words": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "numbers": pa.array([0, -(2**63), 2**63 - 1, None], pa.int64()),
    "small": pa.array([0, 255, None], pa.uint8()),
    "floats": pa.array([0.0, -1.5, 1e300, 5e-324, 0.1, None], pa.float64()),
    "flags": pa.array([True, None, False]),
    "nothing": pa.nulls(2),
    "lists": pa.array([["a", None], [], None, ["b"]], pa.list_(pa.string())),
    "wide": pa.array([[1], None], pa.large_list(pa.int32())),
    "fixed": pa.array([[1, 2], [3, None]], pa.list_(pa.int32(), 2)),
    "nested": pa.array([[[1], None], [[]]], pa.list_(pa.list_(pa.int32()))),
    "structs": pa.array([{"a": 1, 'b "': "x"}, None, {"a": None, 'b "': None}]),
    "deep": pa.array([[{"a": [1]}, None], None], pa.list_(pa.struct([("a", pa.list_(pa.int8()))]))),
    "empty": pa.array([{}, None], pa.struct([])),
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("cut", [0, 1])
def test_json_says_what_the_column_says(name: str, cut: int) -> None:
    column = SAME[name].slice(cut)
    assert [json.loads(text) for text in json_column(column).to_pylist()] == column.to_pylist()


@pytest.mark.parametrize("cut", [0, 1])
def test_maps_with_text_for_keys_are_objects(cut: int) -> None:
    maps: list[Any] = [[("a", 1), ('"', None)], None, [], [("b", 2)]]
    column = pa.array(maps, pa.map_(pa.string(), pa.int32())).slice(cut)
    told = [json.loads(text) for text in json_column(column).to_pylist()]
    assert told == [None if each is None else dict(each) for each in maps[cut:]]
    others = pa.array([[(1, "x"), (2, None)], []], pa.map_(pa.int32(), pa.string()))
    assert json_column(others).to_pylist() == ['[[1,"x"],[2,null]]', "[]"]


def test_json_writes_unsupported_types_as_text() -> None:
    at = datetime.datetime(2026, 1, 2, 3, 4, 5, 600, tzinfo=datetime.timezone.utc)
    columns = [
        (pa.array([Decimal("-1.50"), None], pa.decimal128(10, 2)), ["-1.50", None]),
        (pa.array([at], pa.timestamp("us", "UTC")), ["2026-01-02T03:04:05.000600Z"]),
        (pa.array([at.replace(tzinfo=None)], pa.timestamp("ms")), ["2026-01-02T03:04:05.000"]),
        (pa.array([at.date(), None]), ["2026-01-02", None]),
        (pa.array([at.time()], pa.time64("us")), ["03:04:05.000600"]),
        (pa.array([b"\xff\x00", None, b""], pa.binary()), ["/wA=", None, ""]),
        (pa.array([b"\xff\x00"], pa.binary(2)), ["/wA="]),
        (pa.array([math.nan, math.inf, -math.inf]), ["NaN", "Infinity", "-Infinity"]),
    ]
    for column, wanted in columns:
        assert [json.loads(text) for text in json_column(column).to_pylist()] == wanted


def test_rows_are_lines() -> None:
    batch = pa.record_batch({'a "': [1, None], "b": [["x\ny"], None]})
    text = json_lines(batch)
    assert text.endswith("\n")
    assert [json.loads(line) for line in text.splitlines()] == batch.to_pylist()
    assert json_lines(batch.select([])) == "{}\n{}\n"


def test_lines_of_a_file_have_nested_values_as_json() -> None:
    assert flat(SAME["lists"]).to_pylist() == ['["a",null]', "[]", None, '["b"]']
    assert flat(SAME["numbers"]).equals(SAME["numbers"])
    assert flat(SAME["words"]).to_pylist() == ["a", None, "b", "a"]


def test_cells_are_short() -> None:
    names = pa.chunked_array([pa.array([["a", "b"], None])])
    assert list(cell_text(names)) == ["a, b", ""]
    long = pa.chunked_array([pa.array([{"text": "x" * 500}])])
    assert len(cell_text(long)[0]) < 200
    assert list(cell_text(pa.chunked_array([pa.array([1.5, None])]))) == ["1.5", ""]
