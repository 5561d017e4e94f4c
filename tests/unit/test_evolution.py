from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.config.property_names import CREATE_SCHEMA
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.storage.storage import Storage
from tests.helpers.rows import by_id
from tests.helpers.table_builder import TableBuilder

INNER = pa.struct([("a", pa.int32())])
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("f", pa.float32()),
        ("s", INNER),
        ("items", pa.list_(INNER)),
        ("byname", pa.map_(pa.string(), INNER)),
    ]
)
FIRST: dict[str, Any] = {
    "id": "k1",
    "n": 1,
    "f": 1.5,
    "s": {"a": 1},
    "items": [{"a": 1}],
    "byname": [("x", {"a": 1})],
}
ROWS = pa.Table.from_pylist([FIRST, {**FIRST, "id": "k2"}], SCHEMA)
WIDE = pa.struct([("b", pa.string()), ("a", pa.int64())])
KINDS = [(version, kind) for version in (6, 8, 9) for kind in ("cow", "mor")]


TABLE = TableBuilder.of(SCHEMA, first=ROWS)


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_columns_are_added_and_widened_at_every_depth(
    tmp_path: Path, version: int, kind: Literal["cow", "mor"]
) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    wide = pa.schema(
        [
            ("extra", pa.struct([("t", pa.timestamp("us", "UTC"))])),
            ("byname", pa.map_(pa.string(), WIDE)),
            ("items", pa.list_(WIDE)),
            ("s", WIDE),
            ("f", pa.float64()),
            ("n", pa.int64()),
            ("id", pa.string()),
        ]
    )
    new = {
        "id": "k2",
        "n": 2**40,
        "f": 1e300,
        "s": {"b": "x", "a": 2**40},
        "items": [{"b": "y", "a": 2}, {"b": None, "a": None}],
        "byname": [("k", {"b": "z", "a": 3}), ("l", None)],
        "extra": None,
    }
    table.upsert(pa.Table.from_pylist([new], wide), schema_mode="merge")
    old, changed = by_id(pyhudi.open_table(tmp_path / "t").scan().to_arrow())
    assert old == {
        **FIRST,
        "s": {"a": 1, "b": None},
        "items": [{"a": 1, "b": None}],
        "byname": [("x", {"a": 1, "b": None})],
        "extra": None,
    }
    assert changed == new
    schema = pyhudi.open_table(str(tmp_path / "t")).schema
    assert schema.names == [*SCHEMA.names, "extra"]


LINE = {
    "type": "record",
    "name": "Line",
    "fields": [{"name": "no", "type": ["null", "int"], "default": None}],
}
NAMED: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "com.acme",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "main", "type": ["null", LINE], "default": None},
        {"name": "other", "type": ["null", "Line"], "default": None},
        {"name": "lines", "type": ["null", {"type": "array", "items": "Line"}], "default": None},
    ],
}
"""As Hudi's writers give it: one type in three places."""


@pytest.mark.parametrize(("version", "kind"), KINDS)
@pytest.mark.parametrize("has_ids", [False, True])
def test_fields_of_a_type_with_a_name_are_added_where_they_are_given(
    tmp_path: Path, version: int, kind: Literal["cow", "mor"], has_ids: bool
) -> None:
    line = pa.struct([("no", pa.int32())])
    columns = [("main", line), ("other", line), ("lines", pa.list_(line))]
    schema = pa.schema([("id", pa.string()), *columns])
    base = tmp_path / "t"
    TableBuilder.of(schema, version=version, kind=kind, metadata=False).make(base)
    storage, clock = Storage(str(base)), SystemClock()
    config = TableConfig.load(storage, clock)
    config.update(storage, {CREATE_SCHEMA: json.dumps(NAMED)}, clock)
    table = pyhudi.open_table(base)
    first = {"id": "a", "main": {"no": 1}, "other": {"no": 2}, "lines": [{"no": 3}]}
    table.upsert(pa.Table.from_pylist([first], schema))
    if has_ids:
        table.alter().move_column("lines", after="id").execute()
    wide = pa.struct([("no", pa.int64()), ("note", pa.string())])
    more = [("main", line), ("other", wide), ("lines", pa.list_(wide))]
    second: dict[str, Any] = {"id": "b", "main": {"no": 1}, "other": {"no": 1 << 40, "note": "x"}}
    second["lines"] = [{"no": 1 << 41, "note": "y"}]
    rows = pa.Table.from_pylist([second], pa.schema([("id", pa.string()), *more]))
    table.upsert(rows, schema_mode="merge")
    table = pyhudi.open_table(base)
    found = table.scan(["id", "main", "other", "lines"]).to_arrow().sort_by("id").to_pylist()
    assert found == [
        {**first, "other": {"no": 2, "note": None}, "lines": [{"no": 3, "note": None}]},
        second,
    ]
    assert json.loads(table.state.schema.avro)["name"] == "Order"


def test_missing_columns_and_fields_are_null(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    few = pa.table({"id": ["k3", "k4"], "items": pa.array([None, [{"a": 7}]])})
    few = few.append_column("s", pa.array([{"q": 1}, None], pa.struct([("q", pa.int32())])))
    table.insert(few, schema_mode="merge")
    third, fourth = by_id(pyhudi.open_table(tmp_path / "t").scan().to_arrow())[2:]
    empty = {"n": None, "f": None, "byname": None}
    assert third == {"id": "k3", **empty, "s": {"a": None, "q": 1}, "items": None}
    assert fourth == {"id": "k4", **empty, "s": None, "items": [{"a": 7}]}


def test_sliced_nested_columns_keep_their_values(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    whole = pa.table(
        {
            "id": ["a", "b", "c"],
            "items": pa.array([[{"a": 1}], None, [{"a": 2}, {"a": 3}]], pa.list_(INNER)),
            "byname": pa.array(
                [[("x", {"a": 1})], None, [("y", {"a": 2})]], pa.map_(pa.string(), INNER)
            ),
        }
    )
    table.insert(whole.slice(1), schema_mode="merge")
    b, c = by_id(pyhudi.open_table(tmp_path / "t").scan().to_arrow())[:2]
    assert (b["items"], b["byname"]) == (None, None)
    assert (c["items"], c["byname"]) == ([{"a": 2}, {"a": 3}], [("y", {"a": 2})])


def required(data_type: pa.DataType) -> pa.StructType:
    return pa.struct([pa.field("a", data_type, nullable=False), ("b", pa.string())])


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_null_structs_with_required_fields_are_written_back(tmp_path: Path, kind: Any) -> None:
    """Arrow took nulls below a null struct for values of the required field."""
    one = required(pa.int32())
    schema = pa.schema(
        [
            ("id", pa.string()),
            ("s", one),
            ("l", pa.list_(one)),
            ("m", pa.map_(pa.string(), one)),
            ("n", required(one)),
        ]
    )
    full = {"a": 1, "b": "x"}
    rows = [
        {"id": "a", "s": full, "l": [full, full], "m": [("k", full), ("none", None)]},
        {"id": "b", "s": None, "l": [], "m": [], "n": {"a": full, "b": None}},
        {"id": "c", "s": None, "l": None, "m": None, "n": None},
    ]
    first = pa.Table.from_pylist(rows, schema=schema)
    table = pyhudi.create_table(tmp_path / "t", first, key="id", type=kind)
    modes: tuple[Literal["merge"], Literal["strict"]] = ("merge", "strict")
    for mode in modes:
        for data in (table.scan().to_arrow(), table.scan().to_arrow().slice(1)):
            table.upsert(data, schema_mode=mode)
            assert by_id(table.scan().to_arrow()) == by_id(first)
    holes = table.scan().to_arrow().to_pylist()
    holes[0]["s"] = {"a": None, "b": "x"}
    hollow = pa.Table.from_pylist(holes, schema=table.scan().to_arrow().schema)
    for mode in modes:
        with pytest.raises(SchemaMismatch, match=r"s\.a has nulls"):
            table.upsert(hollow, schema_mode=mode)
    table.upsert(
        pa.table({"id": ["c"], "s": pa.nulls(1, pa.struct([("b", pa.string())]))}),
        schema_mode="merge",
    )
    with pytest.raises(SchemaMismatch, match=r"s\.a"):
        table.upsert(pa.table({"id": ["c"], "s": [{"b": "x"}]}), schema_mode="merge")


def test_strict_stays_the_default(tmp_path: Path) -> None:
    with pytest.raises(SchemaMismatch, match="extra"):
        TABLE.make(tmp_path / "t").insert(pa.table({"id": ["k3"], "extra": [1]}))
    with pytest.raises(ConfigError, match="schema_mode"):
        TABLE.make(tmp_path / "other").insert(pa.table({"id": ["k3"]}), schema_mode="loose")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("n", pa.array(["x"])),
        ("f", pa.array([True])),
        ("s", pa.array([{"a": "x"}])),
        ("nothing", pa.nulls(1)),
        ("ID", pa.array(["x"])),
    ],
)
def test_schema_mismatch_names_column_and_writes_nothing(
    tmp_path: Path, column: str, values: pa.Array[Any]
) -> None:
    table = TABLE.make(tmp_path / "t")
    before = by_id(pyhudi.open_table(tmp_path / "t").scan().to_arrow())
    data = pa.table({"id": ["k1"], column: values})
    with pytest.raises(SchemaMismatch, match=column):
        table.upsert(data, schema_mode="merge")
    assert by_id(pyhudi.open_table(tmp_path / "t").scan().to_arrow()) == before


@pytest.mark.parametrize("mode", ["strict", "merge"])
@pytest.mark.parametrize("names", [["a", "a"], ["a", "b", "b"]])
def test_repeated_field_is_refused(
    tmp_path: Path, mode: Literal["strict", "merge"], names: list[str]
) -> None:
    table = TABLE.make(tmp_path / "t")
    before = by_id(table.scan().to_arrow())
    fields = [pa.field(name, pa.int32()) for name in names]
    values = [pa.array([at], pa.int32()) for at in range(len(names))]
    twice = pa.StructArray.from_arrays(values, fields=fields)
    data = ROWS.slice(0, 1).set_column(3, "s", twice)
    with pytest.raises(SchemaMismatch, match=r"'?s\.[ab]"):
        table.upsert(data, schema_mode=mode)
    assert by_id(pyhudi.open_table(tmp_path / "t").scan().to_arrow()) == before


@pytest.mark.parametrize("kind", ["secondary_index", "column_stats"])
def test_indexed_column_keeps_type(tmp_path: Path, kind: str) -> None:
    rows = pa.table({"id": ["a"], "n": pa.array([1], pa.int32())})
    table = pyhudi.create_table(str(tmp_path / "t"), rows, key="id", type="mor")
    function = "identity" if kind == "column_stats" else None
    table.create_index(kind, ["n"], name="over", function=function)
    name = "secondary_index_over" if kind == "secondary_index" else "expr_index_over"
    wide = pa.table({"id": ["a"], "n": pa.array([2], pa.float64())})
    changes: tuple[Callable[[], object], ...] = (
        lambda: table.upsert(wide, schema_mode="merge"),
        lambda: table.alter().change_type("n", pa.float64()).execute(),
        lambda: table.alter().rename_column("n", "m").execute(),
    )
    for change in changes:
        with pytest.raises(SchemaMismatch, match="'n'") as refused:
            change()
        assert f'drop_index("{name}")' in refused.value.hint
    table.upsert(rows, schema_mode="merge")
    table.drop_index(name)
    table.upsert(wide, schema_mode="merge")
    assert table.refresh().schema.field("n").type == pa.float64()


@pytest.mark.parametrize("role", ["key", "partition_by", "order_by"])
def test_key_partition_and_ordering_columns_do_not_change(tmp_path: Path, role: str) -> None:
    rows = pa.table({"id": ["a"], "n": pa.array([1], pa.int32())})
    roles: dict[str, Any] = {"key": "id", role: "n"}
    table = pyhudi.create_table(str(tmp_path / "t"), rows, **roles)
    wide = pa.table({"id": ["a"], "n": pa.array([2], pa.int64())})
    with pytest.raises(SchemaMismatch, match="'n'"):
        table.upsert(wide, schema_mode="merge")


def test_narrower_data_keep_the_table_as_it_is(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "n": pa.array([2**40], pa.int64())})
    table = pyhudi.create_table(str(tmp_path / "t"), rows, key="id")
    table.upsert(pa.table({"id": ["b"], "n": pa.array([1], pa.int8())}), schema_mode="merge")
    assert table.schema.field("n").type == pa.int64()
    assert [row["n"] for row in by_id(pyhudi.open_table(tmp_path / "t").scan().to_arrow())] == [
        2**40,
        1,
    ]


def test_decimals_of_more_digits_go_in_after_the_change_that_the_hint_names(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("d", pa.decimal128(5, 2))])
    table = pyhudi.create_table(tmp_path / "t", schema, key="id")
    wide = pa.table({"id": ["a"], "d": pa.array([Decimal("123456.789")], pa.decimal128(9, 3))})
    with pytest.raises(SchemaMismatch, match="'d'") as caught:
        table.upsert(wide, schema_mode="merge")
    assert "table.alter().change_type('d', 'decimal(9,3)').execute()" in caught.value.hint
    table.alter().change_type("d", "decimal(9,3)").execute()
    table.upsert(wide, schema_mode="merge")
    assert table.scan().to_arrow()["d"].to_pylist() == [Decimal("123456.789")]
