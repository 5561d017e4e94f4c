"""Python objects as input: converted to the table's types, or an error that names the row."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.batches import read_batches
from pyhudi.input.conform import conform
from tests.helpers.table_builder import SMALL

NOON = dt.datetime(2024, 1, 1, 12)  # noqa: DTZ001 - local time is what is tested
UTC = dt.timezone.utc
LIKE = pa.schema(
    {
        "n": pa.int32(),
        "f": pa.float32(),
        "text": pa.string(),
        "raw": pa.binary(),
        "flag": pa.bool_(),
        "price": pa.decimal128(6, 2),
        "day": pa.date32(),
        "local": pa.timestamp("us"),
        "at": pa.timestamp("ms", "UTC"),
        "time": pa.time64("us"),
        "tags": pa.list_(pa.string()),
        "inner": pa.struct({"x": pa.int64(), "more": pa.list_(pa.struct({"y": pa.float64()}))}),
        "pairs": pa.map_(pa.string(), pa.int64()),
    }
)


def taken(data: Any, like: pa.Schema | None = LIKE, *, allow_missing_keys: bool = True) -> pa.Table:
    schema, batches = read_batches(data, like, allow_missing_keys=allow_missing_keys)
    return pa.Table.from_batches(batches, schema)


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("n", 5, 5),
        ("n", 5.0, 5),
        ("n", np.int64(5), 5),
        ("f", 1, 1.0),
        ("f", 0.1, float(np.float32(0.1))),
        ("f", float("inf"), float("inf")),
        ("text", "é", "é"),
        ("raw", bytearray(b"a"), b"a"),
        ("flag", False, False),
        ("price", Decimal("2.5"), Decimal("2.50")),
        ("price", 3, Decimal("3.00")),
        ("price", 0.1, Decimal("0.10")),
        ("price", np.float64(0.1), Decimal("0.10")),
        ("f", Decimal("0.1"), float(np.float32("0.1"))),
        ("day", dt.date(2024, 2, 29), dt.date(2024, 2, 29)),
        ("day", dt.datetime(2024, 2, 29), dt.date(2024, 2, 29)),  # noqa: DTZ001
        ("day", pd.Timestamp("2024-02-29"), dt.date(2024, 2, 29)),
        ("local", NOON, NOON),
        ("local", pd.Timestamp(NOON), NOON),
        ("at", NOON.replace(tzinfo=UTC), NOON.replace(tzinfo=UTC)),
        ("at", NOON.astimezone(dt.timezone(dt.timedelta(hours=2))), None),
        ("at", NOON, NOON.replace(tzinfo=UTC)),
        ("time", dt.time(1, 2), dt.time(1, 2)),
        ("tags", ("a", None), ["a", None]),
        ("tags", np.array(["a"]), ["a"]),
        ("inner", {"more": [{"y": Decimal("0.3")}]}, {"x": None, "more": [{"y": 0.3}]}),
        ("inner", {"x": 1}, {"x": 1, "more": None}),
        ("inner", {"more": [{"y": 1}, {}]}, {"x": None, "more": [{"y": 1.0}, {"y": None}]}),
        ("pairs", {"a": 1}, [("a", 1)]),
        ("pairs", [("a", 1)], [("a", 1)]),
    ],
)
def test_values_that_fit(name: str, value: Any, stored: Any) -> None:
    for rows in (taken([{name: None}, {name: value}]), taken({name: [None, value]})):
        assert rows.schema == pa.schema([LIKE.field(name)])
        if stored is None:
            stored = value.astimezone(UTC)
        assert rows.column(name).to_pylist() == [None, stored]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n", 1.5),
        ("n", float("nan")),
        ("n", 2**31),
        ("inner", {"x": 2.0**53}),
        ("n", 2**70),
        ("n", "5"),
        ("n", True),
        ("n", Decimal("1.5")),
        ("f", "x"),
        ("f", Decimal("0.123456789")),
        ("f", Decimal("NaN")),
        ("f", 1e39),
        ("f", 2**30 + 1),
        ("text", 5),
        ("text", b"a"),
        ("text", float("nan")),
        ("raw", "a"),
        ("flag", 1),
        ("flag", float("nan")),
        ("price", Decimal("0.005")),
        ("price", 100000),
        ("price", 0.005),
        ("price", float("nan")),
        ("price", "0.5"),
        ("day", NOON),
        ("day", dt.datetime(2024, 1, 1, tzinfo=UTC)),
        ("day", pd.Timestamp("2024-01-01 00:00:00.000000001")),
        ("day", "2024-01-01"),
        ("local", NOON.replace(tzinfo=UTC)),
        ("local", "2024-01-01"),
        ("local", dt.date(2024, 1, 1)),
        ("local", pd.Timestamp("2024-01-01 00:00:00.000000001")),
        ("at", NOON.replace(microsecond=1)),
        ("time", dt.time(1, tzinfo=UTC)),
        ("tags", "abc"),
        ("tags", ["a", 1]),
        ("tags", 5),
        ("inner", {"more": bytearray(b"a")}),
        ("inner", {"z": 1}),
        ("inner", {"more": [{"y": 1}, {"z": 1}]}),
        ("inner", {"x": 0.5}),
        ("inner", [1]),
        ("pairs", {"a": 0.5}),
        ("pairs", {1: 1}),
        ("pairs", 5),
        ("pairs", ""),
        ("pairs", b""),
    ],
)
@pytest.mark.parametrize("row", [0, 2, 6])
def test_input_objects_name_row_of_bad_value(name: str, value: Any, row: int) -> None:
    fitting = {"n": 1, "tags": ["a"], "inner": {"x": 1}}.get(name)
    values = [fitting] * 7
    values[row] = value
    values[6] = value
    for given in ([{name: each} for each in values], {name: values}):
        with pytest.raises(SchemaMismatch, match=rf"^row {row} does not fit column '{name}'"):
            taken(given)


def test_keys_that_are_missing_are_null_and_columns_are_in_order() -> None:
    rows = taken([{"text": "a"}, {"n": 1}, {}])
    assert rows.schema.names == ["n", "text"]
    assert rows.to_pylist() == [
        {"n": None, "text": "a"},
        {"n": 1, "text": None},
        {"n": None, "text": None},
    ]


def test_reals_of_a_column_may_be_of_several_sorts() -> None:
    values = [Decimal("0.1"), 1, None, 2**70, Decimal("1E+3")]
    rows = taken([{"f": value} for value in values], pa.schema({"f": pa.float64()}))
    assert rows.column("f").to_pylist() == [0.1, 1.0, None, 2.0**70, 1000.0]
    rows = taken([{"price": value} for value in (0.1, 1, None, 1e3)])
    assert rows.column("price").to_pylist() == [Decimal("0.10"), 1, None, 1000]


def test_bytes_are_no_list_of_numbers() -> None:
    numbers = pa.schema({"numbers": pa.list_(pa.int64())})
    for value in (b"ab", bytearray(b"ab"), memoryview(b"ab")):
        with pytest.raises(SchemaMismatch, match=r"row 0 .* a list was expected"):
            taken([{"numbers": value}], numbers)


@pytest.mark.parametrize("name", LIKE.names)
def test_input_objects_read_pandas_missing_as_null(name: str) -> None:
    for absent in (pd.NA, pd.NaT):
        assert taken([{name: None}, {name: absent}]).column(name).null_count == 2
        assert taken([{name: absent}], None).column(name).null_count == 1


def test_rows_of_a_data_frame_are_taken() -> None:
    frame = pd.DataFrame({"local": pd.Series([NOON, None]), "n": pd.array([1, None], "Int32")})
    rows = taken(frame.to_dict("records"))
    assert rows.to_pylist() == [{"n": 1, "local": NOON}, {"n": None, "local": None}]


def test_input_objects_nan_error_has_hint() -> None:
    for like in (LIKE, None):
        with pytest.raises(SchemaMismatch, match=r"row 1 does not fit column 'text'(.|\n)*None"):
            taken([{"text": "a"}, {"text": float("nan")}], like)


def test_input_objects_need_all_keys_where_missing_is_ambiguous() -> None:
    with pytest.raises(ConfigError, match="row 1 has no 'n', which other rows have"):
        taken([{"n": 1, "text": "a"}, {"text": "b"}], allow_missing_keys=False)
    assert taken([{"n": 1}, {"n": None}], allow_missing_keys=False).num_rows == 2


def test_without_a_table_types_come_from_the_values() -> None:
    rows = taken([{"b": 1, "a": "x"}, {"b": 2.5, "c": True}], None)
    assert rows.schema == pa.schema({"a": pa.string(), "b": pa.float64(), "c": pa.bool_()})
    with pytest.raises(SchemaMismatch, match="row 1 does not fit column 'a'"):
        taken([{"a": 1}, {"a": "x"}], None)
    with pytest.raises(ConfigError, match="no columns"):
        taken([], None)


FINE = pd.Timestamp("2024-01-01 00:00:00.000000001")
TOKYO = pd.Timestamp("2024-01-01", tz="Asia/Tokyo")


@pytest.mark.parametrize(
    "values",
    [
        [dt.date(2024, 1, 1), NOON],
        [NOON, dt.date(2024, 1, 1)],
        [pd.Timestamp(NOON), FINE],
        [np.datetime64("2024-01-01T00", "us"), np.datetime64(1, "ns")],
        [TOKYO, pd.Timestamp(NOON)],
        [pd.Timestamp(NOON), TOKYO],
        [dt.time(1), dt.time(1, tzinfo=UTC)],
        [b"a", "a"],
    ],
    ids=str,
)
def test_input_objects_do_not_coerce_values(values: list[Any]) -> None:
    columns = [values, [[each] for each in values], [{"x": each} for each in values]]
    for column in columns:
        series = pd.Series(column, dtype=object)
        forms = (
            [{"v": each} for each in column],
            {"v": column},
            {"v": series},
            {"v": series.to_numpy()},
            pd.DataFrame({"v": series}),
        )
        for rows in forms:
            with pytest.raises(SchemaMismatch, match=r"row [01] does not fit column 'v'"):
                taken(rows, None)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("day", NOON),
        ("local", FINE),
        ("local", TOKYO),
        ("at", NOON.replace(microsecond=1)),
        ("time", dt.time(1, tzinfo=UTC)),
        ("text", b"a"),
        ("raw", "a"),
        ("n", 2**70),
    ],
)
def test_objects_of_a_data_frame_are_looked_at_as_those_of_dicts(name: str, value: Any) -> None:
    frame = pd.DataFrame({name: pd.Series([None, value], dtype=object)})
    for rows in (frame, frame.to_dict("list"), {name: frame[name]}):
        with pytest.raises(SchemaMismatch, match=f"(row 1 does not fit )?column '{name}'"):
            _conformed(rows, pa.schema([LIKE.field(name)]))


def _conformed(rows: Any, schema: pa.Schema) -> pa.Table:
    return conform(taken(rows, schema), schema)


def test_input_objects_keep_times_apart(tmp_path: Path) -> None:
    schema = pa.schema({"at": pa.timestamp("us"), "v": pa.int64()})
    table = pyhudi.create_table(tmp_path / "t", schema, key="at")
    moments = pd.Series([FINE, FINE + pd.Timedelta(800, "ns")], dtype=object)
    with pytest.raises(SchemaMismatch, match=r"row 0 does not fit column 'at'.* nanoseconds"):
        table.upsert(pd.DataFrame({"at": moments, "v": [1, 2]}))
    with pytest.raises(SchemaMismatch, match="nanoseconds"):
        table.delete_keys(pd.DataFrame({"at": moments}))


@pytest.mark.parametrize(
    ("name", "value", "stored"),
    [
        ("day", np.datetime64("2024-01-01"), dt.date(2024, 1, 1)),
        ("day", np.datetime64("2024-01"), dt.date(2024, 1, 1)),
        ("local", np.datetime64("2024-01-01T12"), NOON),
        ("local", np.datetime64("2024-01-01T12", "ns"), NOON),
        ("local", np.datetime64("NaT"), None),
    ],
)
def test_times_of_numpy_are_taken_where_nothing_is_lost(name: str, value: Any, stored: Any) -> None:
    for like in (LIKE, None):
        assert taken([{name: value}], like).column(name).to_pylist() == [stored]
    with pytest.raises(SchemaMismatch, match="row 0 does not fit column"):
        taken([{name: np.datetime64(1, "ns")}])


def test_input_objects_refuse_single_row() -> None:
    for value in ("a", 1, None, {"x": 1}, NOON):
        with pytest.raises(ConfigError, match=r"column 'v' is one .*\n.*\[value\]"):
            taken({"v": value, "w": [1]})


def test_columns_of_arrays_keep_their_types() -> None:
    given = {"n": np.array([1, 2], "int16"), "text": pa.chunked_array([["a"], ["b"]])}
    assert taken(given).schema == pa.schema({"n": pa.int16(), "text": pa.string()})
    with pytest.raises(ConfigError, match="'n' has 2, 'text' has 1"):
        taken({"n": [1, 2], "text": ["a"]})
    with pytest.raises(SchemaMismatch, match="cannot be converted to Arrow"):
        taken({"n": object()})
    with pytest.raises(ConfigError, match="not a column name"):
        taken({5: [1]})


# --- by verbs -------------------------------------------------------------------------------------


@pytest.fixture
def table(tmp_path: Path) -> pyhudi.HudiTable:
    rows = [
        {"id": "a", "city": "lisbon", "fare": 1.5, "at": NOON.replace(tzinfo=UTC)},
        {"id": "b", "city": "osaka"},
    ]
    options = {"hoodie.metadata.enable": "false", **SMALL}
    return pyhudi.create_table(tmp_path / "t", rows, key="id", partition_by="city", options=options)


def ids(table: pyhudi.HudiTable) -> dict[str, Any]:
    rows = table.scan(columns=["id", "fare"]).to_arrow()
    return dict(zip(*rows.to_pydict().values(), strict=True))


def test_input_objects_accept_table_of_dicts(table: pyhudi.HudiTable) -> None:
    assert table.schema.field("fare").type == pa.float64()
    table.upsert([{"id": "a", "city": "lisbon", "fare": 2, "at": None}, {"id": "c", "city": "x"}])
    table.insert({"id": ["d"], "city": ["x"], "fare": [4], "at": [NOON]})
    assert ids(table) == {"a": 2.0, "b": None, "c": None, "d": 4.0}
    table.upsert([{"id": "b", "city": "osaka", "fare": 7}], partial=True)
    table.delete_keys([{"id": "a", "city": "lisbon"}])
    source = [{"id": "c", "city": "x", "fare": 1.0}]
    table.merge(source).when_matched_update({"fare": "source.fare + 1"}).execute()
    assert ids(table) == {"b": 7.0, "c": 2.0, "d": 4.0}
    assert table.upsert([]).rows_updated == 0


def test_operations_refuse_bad_objects(table: pyhudi.HudiTable) -> None:
    with pytest.raises(SchemaMismatch, match="the table has no column 'fair'"):
        table.upsert([{"id": "a", "city": "lisbon", "fare": 2, "at": None, "fair": 1}])
    with pytest.raises(SchemaMismatch, match="the input is missing the table's column 'at'"):
        table.upsert([{"id": "a", "city": "lisbon", "fare": 2}])
    with pytest.raises(ConfigError, match="row 1 has no 'fare'"):
        table.upsert(
            [{"id": "a", "city": "lisbon", "fare": 2}, {"id": "b", "city": "osaka"}], partial=True
        )
    with pytest.raises(ConfigError, match="row 1 has no 'city'"):
        table.delete_keys([{"id": "a", "city": "lisbon"}, {"id": "b"}])
    with pytest.raises(SchemaMismatch, match="row 1 does not fit column 'fare'"):
        table.upsert([{"id": "a", "fare": 1}, {"id": "b", "fare": "2"}], partial=True)
    assert ids(table) == {"a": 1.5, "b": None}


def test_rows_that_were_read_come_back(tmp_path: Path) -> None:
    """The column of a timestamp generator is read as text, and stored as a number."""
    rows = pa.table({"id": ["a", "b"], "ms": [1_700_000_000_000, 1_800_000_000_000]})
    options = {
        "hoodie.metadata.enable": "false",
        "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
        "hoodie.keygen.timebased.output.dateformat": "yyyy",
        **SMALL,
    }
    table = pyhudi.create_table(
        tmp_path / "t", rows, key="id", partition_by="ms:TIMESTAMP", options=options
    )
    before = table.scan().to_arrow().to_pylist()
    assert table.upsert(before).rows_updated == 2
    assert table.upsert([{"id": "a", "ms": 1_700_000_000_000}]).rows_updated == 1
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["a", "b"]
    assert table.scan().to_arrow().to_pylist() == before


def test_new_columns_of_dicts_widen_the_table_where_that_is_asked_for(
    table: pyhudi.HudiTable,
) -> None:
    table.upsert([{"id": "a", "city": "lisbon", "note": "new"}], schema_mode="merge")
    assert table.schema.field("note").type == pa.string()
    assert ids(table) == {"a": None, "b": None}


def nested(levels: int, *, in_dicts: bool) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value} if in_dicts else [value]
    return value


@pytest.mark.parametrize("in_dicts", [True, False])
@pytest.mark.parametrize("levels", [70, 200, 20_000])
def test_values_nested_too_deeply_are_refused(levels: int, *, in_dicts: bool) -> None:
    """pyarrow ended the process at 20,000 levels, and Python its calls at 1,000."""
    deep = nested(levels, in_dicts=in_dicts)
    array = np.empty(1, object)
    array[0] = deep
    for data in ([{"x": deep}], {"x": [deep]}, pd.DataFrame({"x": [deep]}), {"x": array}):
        with pytest.raises(UnsupportedTableFeature, match=r"column 'x' has .* nested"):
            taken(data, None)
    with pytest.raises(HudiError):
        taken([{"tags": deep}])


def test_values_that_hold_themselves_are_refused() -> None:
    ring: list[Any] = []
    ring += [ring, ring]
    with pytest.raises(UnsupportedTableFeature, match="column 'x'"):
        taken({"x": [ring]}, None)


def test_deep_literals_are_refused(tmp_path: Path) -> None:
    """Python's own text of such a list was the end of its calls."""
    table = pyhudi.create_table(tmp_path / "t", pa.table({"id": ["a"], "n": [1]}), key="id")
    deep = nested(3_000, in_dicts=False)
    for where in ([("n", "=", deep)], [("n", "in", deep)]):
        with pytest.raises(SchemaMismatch, match="too long to print"):
            table.scan(where=where).to_arrow()
    with pytest.raises(HudiError):
        table.update("id = 'a'", {"n": deep})
    expression = pc.field("n") == 1
    for number in range(1_000):
        expression |= pc.field("n") == number
    assert table.scan(where=expression).count() == 1
