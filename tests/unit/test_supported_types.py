"""Each Arrow type is taken without a change of values, or refused by name with what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.batches import read_batches
from tests.helpers.type_cases import CASES, LACKING, columns

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "types.md"
PLAIN = {"hoodie.metadata.enable": "false"}
Kind = Literal["cow", "mor"]


def made(base: Path, given: Any, kind: Kind = "cow", **options: str) -> pyhudi.HudiTable:
    return pyhudi.create_table(
        base, given, key="id", type=kind, index="simple", options={**PLAIN, **options}
    )


def check(table: pyhudi.HudiTable) -> None:
    rows = table.refresh().scan().to_arrow().sort_by("id")
    assert {name: rows.schema.field(name).type for name in CASES} == {
        name: case.back for name, case in CASES.items()
    }
    for name, case in CASES.items():
        assert rows[name].to_pylist() == case.values, name


@pytest.mark.parametrize("blocks", ["avro", "parquet"])
def test_values_are_the_same_in_log_files(tmp_path: Path, blocks: str) -> None:
    given = columns()
    table = made(
        tmp_path / "t", given.schema, "mor", **{"hoodie.logfile.data.block.format": blocks}
    )
    assert table.scan().to_arrow().num_rows == 0
    table.insert(given.set_column(0, "id", pa.array(["k2", "k0", "k1"])))
    table.upsert(given)
    assert list(tmp_path.glob("t/.*.log.*"))
    check(table)
    table.compact()
    check(table)


def test_values_are_the_same_in_base_files(tmp_path: Path) -> None:
    given = columns()
    table = made(tmp_path / "t", given)
    check(table)
    table.upsert(given.slice(1, 1))
    check(table)
    table.merge(given).when_matched_update_all().when_not_matched_insert_all().execute()
    check(table)


def test_schema_merge_widens_table(tmp_path: Path) -> None:
    given = columns()
    table = made(tmp_path / "t", given.select(["id"]), "mor")
    table.upsert(given, schema_mode="merge")
    check(table)


def short(avro: Any) -> str:
    """An Avro type as the page has it."""
    kind = next(branch for branch in avro if branch != "null") if isinstance(avro, list) else avro
    if isinstance(kind, str):
        return kind
    logical = kind.get("logicalType")
    return f"{kind['type']}, {logical}" if logical else str(kind["type"])


def test_avro_types_match_documentation(tmp_path: Path) -> None:
    table = made(tmp_path / "t", columns().schema)
    properties = table.config.create_schema
    fields = {field["name"]: field["type"] for field in json.loads(properties or "")["fields"]}
    for name, case in CASES.items():
        told = "string" if case.avro == "that of its values" else case.avro
        assert short(fields[name]) == told, name


def told(heading: str) -> list[list[str]]:
    """The cells of the table below a heading of the page."""
    text = PAGE.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    cells = [[cell.strip().strip("`") for cell in line.strip("| ").split(" | ")] for line in lines]
    return [row for row in cells[1:] if not set(row[0]) <= set("-| ")]


def family(kind: pa.DataType) -> str:
    """A type's name without its parts and units."""
    if pa.types.is_fixed_size_binary(kind):
        return "fixed_size_binary"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}{', tz' if kind.tz else ''}]"
    if pa.types.is_time(kind):
        return str(kind)
    return re.split(r"[<(\[]", str(kind).replace("halffloat", "float16"))[0]


def test_types_page_lists_accepted_types() -> None:
    rows = {(family(case.given.type), case.avro, family(case.back)) for case in CASES.values()}
    page = {(given, avro, back) for given, avro, back in told("Arrow types")}
    one = {
        (given, avro, "that of its values" if given == "dictionary" else back)
        for given, avro, back in rows
    }
    assert page == one


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("name", LACKING)
def test_other_types_are_refused_before_there_is_a_table(
    tmp_path: Path, name: str, kind: Kind
) -> None:
    lacking, hint = LACKING[name]
    nested = pa.list_(pa.struct([("deep", lacking)]))
    for given, path in ((lacking, "'odd'"), (nested, "'odd.element.deep'")):
        schema = pa.schema([("id", pa.string()), ("odd", given)])
        with pytest.raises(UnsupportedTableFeature, match=path) as refused:
            made(tmp_path / "t", schema, kind)
        assert hint in refused.value.hint
        assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("name", [name for name in LACKING if name != "null"])
def test_other_types_are_refused_as_new_columns(tmp_path: Path, name: str) -> None:
    lacking, hint = LACKING[name]
    table = made(tmp_path / "t", pa.table({"id": ["a"]}))
    rows = pa.table({"id": ["b"], "odd": pa.nulls(1, lacking)})
    with pytest.raises(UnsupportedTableFeature, match="'odd'") as refused:
        table.upsert(rows, schema_mode="merge")
    assert hint in refused.value.hint
    assert table.refresh().scan().count() == 1


def test_types_page_lists_refused_types() -> None:
    page = " ".join(cell for row in told("Unsupported types") for cell in row)
    for name, (kind, _) in LACKING.items():
        word = {"interval": "interval"}.get(name, family(kind))
        assert word in page, name


OUT_OF_RANGE = [
    (pa.array([2**31], pa.int64()), pa.int32(), "2147483648"),
    (pa.array([-(2**31) - 1], pa.int64()), pa.int16(), "-2147483649"),
    (pa.array([2**31], pa.uint32()), pa.int32(), "2147483648"),
    (pa.array([2**63], pa.uint64()), pa.int64(), "9223372036854775808"),
    (pa.array([1001], pa.timestamp("ns")), pa.timestamp("us"), "1970-01-01 00:00:00.000001001"),
    (pa.array([1001], pa.time64("ns")), pa.time64("us"), "1001"),
    (pa.array([1001], pa.time64("us")), pa.time32("ms"), "datetime.time(0, 0, 0, 1001)"),
    (pa.array([1], pa.date64()), pa.date32(), "1 as date64"),
    (pa.array([2**62], pa.timestamp("s")), pa.timestamp("us"), "4611686018427387904"),
    (pa.array(["123.45"]).cast(pa.decimal128(5, 2)), pa.decimal128(5, 1), "123.45"),
    (pa.array([[2**31]], pa.list_view(pa.int64())), pa.list_(pa.int32()), "2147483648"),
    (pa.array([0.1], pa.float64()), pa.float32(), "0.1"),
]


@pytest.mark.parametrize(("given", "wanted", "value"), OUT_OF_RANGE, ids=str)
def test_type_mismatch_names_column(
    tmp_path: Path, given: pa.Array[Any], wanted: pa.DataType, value: str
) -> None:
    table = made(tmp_path / "t", pa.schema([("id", pa.string()), ("c", wanted)]))
    for write in (table.insert, table.upsert, table.bulk_insert):
        with pytest.raises(SchemaMismatch, match="column 'c'") as refused:
            write(pa.table({"id": ["a"], "c": given}))
        assert value in str(refused.value)
        assert refused.value.hint
    assert table.inspect.timeline().num_rows == 0


def test_decimal_and_float_make_same_key_ordering_and_partition(tmp_path: Path) -> None:
    rows = pa.table({"id": [0.3], "at": [0.3], "city": [0.3], "n": [1]})
    table = pyhudi.create_table(
        tmp_path / "t", rows, key="id", order_by="at", partition_by="city", type="mor"
    )
    tenths = pa.array([Decimal("0.3")], pa.decimal128(2, 1))
    given = pa.table({"id": tenths, "at": tenths, "city": tenths, "n": [2]})
    verbs: list[Callable[[], pyhudi.WriteResult]] = [
        lambda: table.upsert(given),
        lambda: table.upsert(given.to_pylist()),
        lambda: table.merge(given).when_matched_update_all().execute(),
        lambda: table.update("true", {"at": Decimal("0.3")}),
    ]
    for verb in verbs:
        assert verb().rows_updated == 1
        assert table.scan().to_arrow().to_pylist() == [{"id": 0.3, "at": 0.3, "city": 0.3, "n": 2}]
    assert table.upsert(rows).rows_updated == 1
    assert table.scan().to_arrow().equals(rows)
    assert table.delete_keys(given.select(["id", "city"])).rows_deleted == 1


def test_update_sets_float_from_decimal_column(tmp_path: Path) -> None:
    dec = pa.array([Decimal("0.3"), Decimal("353.34")], pa.decimal128(9, 2))
    rows = pa.table({"id": [1, 2], "dec": dec, "f": [0.0, 0.0]})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id")
    table.update("true", {"f": "dec"})
    assert sorted(table.scan().to_arrow()["f"].to_pylist()) == [0.3, 353.34]
    table.update("true", {"dec": 0.1})
    assert table.scan().to_arrow()["dec"].to_pylist() == [Decimal("0.10")] * 2


def test_times_of_any_unit_fit_a_column_of_times(tmp_path: Path) -> None:
    table = made(tmp_path / "t", pa.schema([("id", pa.string()), ("c", pa.time32("ms"))]))
    for key, unit in (("a", "us"), ("b", "ns")):
        parts = {"us": 1000, "ns": 1_000_000}[unit]
        table.insert(pa.table({"id": [key], "c": pa.array([5 * parts], pa.time64(unit))}))
    assert table.scan().to_arrow()["c"].cast(pa.int32()).to_pylist() == [5, 5]


@pytest.mark.parametrize("cls", [pa.ListViewArray, pa.LargeListViewArray])
def test_views_may_have_their_elements_anywhere(cls: Any) -> None:
    words = pa.array(["a", "b", "c", "d", "e"]).dictionary_encode()
    gaps = pa.array([False, False, True, False])
    view = cls.from_arrays([3, 0, 0, 1], [2, 1, 0, 2], words, mask=gaps)
    wanted = [["d", "e"], ["a"], None, ["b", "c"]]
    for start, length in ((0, 4), (1, 3), (2, 1), (0, 1)):
        part = view.slice(start, length)
        _, batches = read_batches(pa.table({"c": part}))
        (batch,) = batches
        batch.validate(full=True)
        assert batch["c"].to_pylist() == wanted[start : start + length]


# --- names ----------------------------------------------------------------------------------------

NAMES = [
    ("a.b", "'a_b'"),
    ("a b", "'a_b'"),
    ("a-b", "'a_b'"),
    ("a🙂", "'a_'"),
    ("x²", "'x_'"),
    ("a\u0301", "'a_'"),
    ("", "'column'"),
    ("1a", "'_1a'"),
    ("a`b", "'a_b'"),
]


@pytest.mark.parametrize(("name", "near"), NAMES)
def test_names_that_schemas_lack_are_refused(tmp_path: Path, name: str, near: str) -> None:
    deep = pa.struct([(name, pa.int32())])
    for column, kind in ((name, pa.int32()), ("top", deep), ("top", pa.list_(deep))):
        schema = pa.schema([("id", pa.string()), (column, kind)])
        with pytest.raises(SchemaMismatch, match=f"{re.escape(name)}'") as refused:
            made(tmp_path / "t", schema)
        assert near in refused.value.hint
        assert not (tmp_path / "t").exists()
    table = made(tmp_path / "t", pa.table({"id": ["a"]}))
    with pytest.raises(SchemaMismatch, match=f"{re.escape(name)}'"):
        table.upsert(pa.table({"id": ["a"], name: [1]}), schema_mode="merge")


@pytest.mark.parametrize("kind", [pa.int32(), pa.struct([("x", pa.int8()), ("X", pa.int8())])])
def test_names_that_differ_in_case_alone_are_refused(tmp_path: Path, kind: pa.DataType) -> None:
    other = "C" if kind == pa.int32() else "d"
    schema = pa.schema([("id", pa.string()), ("c", kind), (other, pa.int32())])
    with pytest.raises(SchemaMismatch, match="only in case"):
        made(tmp_path / "t", schema)


@pytest.mark.parametrize(
    "name", ["_HOODIE_RECORD_KEY", "_Hoodie_Commit_Time", "_hoodie_Is_Deleted"]
)
def test_names_of_hudis_own_columns_in_other_letters_are_refused(tmp_path: Path, name: str) -> None:
    rows = pa.table({"id": ["a"], name: [True]})
    with pytest.raises(SchemaMismatch, match="meta column of Hudi"):
        made(tmp_path / "t", rows)
    table = made(tmp_path / "t", pa.table({"id": ["a"]}))
    with pytest.raises(SchemaMismatch, match="meta column of Hudi"):
        table.upsert(rows, schema_mode="merge")


@pytest.mark.parametrize("wrapped", [lambda kind: pa.struct([("a", kind)]), pa.list_])
def test_thirty_types_can_be_in_one_another_and_no_more(tmp_path: Path, wrapped: Any) -> None:
    kind: pa.DataType = pa.int64()
    for _ in range(30):
        kind = wrapped(kind)
    options = {"parquet.avro.write-old-list-structure": "false"}
    rows = pa.table({"id": ["a"], "x": pa.nulls(1, kind)})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id", options=options)
    assert table.scan().to_arrow()["x"].to_pylist() == [None]
    for depth in (1, 30, 900):
        for _ in range(depth):
            kind = wrapped(kind)
        with pytest.raises(UnsupportedTableFeature, match=r"'x' has more than .* nested"):
            made(tmp_path / "deep", pa.schema([("id", pa.string()), ("x", kind)]))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("_hoodie_commit_time", pa.int64()),
        ("_hoodie_operation", pa.string()),
        ("_hoodie_is_deleted", pa.string()),
        ("_pyhudi_base_row", pa.int64()),
    ],
)
def test_names_that_are_reserved_are_refused(tmp_path: Path, name: str, kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.string()), (name, kind)])
    for given in (schema, schema.empty_table()):
        with pytest.raises(SchemaMismatch, match=name) as refused:
            made(tmp_path / "t", given)
        assert "ename it" in refused.value.hint
    table = made(tmp_path / "t", pa.table({"id": ["a"]}))
    rows = pa.table({"id": ["b"], name: pa.nulls(1, kind)})
    with pytest.raises(SchemaMismatch, match=name):
        table.upsert(rows, schema_mode="merge")
    assert table.refresh().scan().count() == 1


def said_of_creation(base: Path, old: str, new: str) -> None:
    """Has the table's schema of its creation say something else."""
    path = base / ".hoodie" / "hoodie.properties"
    old, new = (text.replace(":", r"\:") for text in (old, new))
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_reserved_column_name_makes_table_read_only(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "x_base_row": [1]})
    made(tmp_path / "t", rows.schema, "mor")
    said_of_creation(tmp_path / "t", '"x_base_row"', '"_pyhudi_base_row"')
    table = pyhudi.open_table(tmp_path / "t")
    assert table.schema.names == ["id", "_pyhudi_base_row"]
    with pytest.raises(UnsupportedTableFeature, match="_pyhudi_base_row"):
        table.insert(rows.rename_columns(["id", "_pyhudi_base_row"]))


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_enum_accepts_its_symbols_only(tmp_path: Path, kind: Kind) -> None:
    base = tmp_path / "t"
    schema = pa.schema([("id", pa.string()), ("grade", pa.string()), ("other", pa.string())])
    made(base, schema, kind)
    grade = '{"type":"enum","name":"grade","symbols":["A","B"]}'
    text = '{"name":"grade","type":["null",%s],"default":null}'
    said_of_creation(base, text % '"string"', text % grade)
    other = '{"name":"other","type":["null",%s],"default":null}'
    said_of_creation(base, other % '"string"', other % '"hoodie.t.grade"')
    table = pyhudi.open_table(base, options={**PLAIN, "hoodie.index.type": "SIMPLE"})
    first = pa.table({"id": ["a"], "grade": ["A"], "other": pa.nulls(1, pa.string())})
    table.insert(first)
    for name, at in (("grade", 1), ("other", 2)):
        odd = first.set_column(at, name, pa.array(["Q"]))
        for write in (table.insert, table.upsert, table.bulk_insert):
            with pytest.raises(SchemaMismatch, match=f"'{name}' is an enum.* 'Q'") as refused:
                write(odd)
            assert "A, B" in refused.value.hint
        with pytest.raises(SchemaMismatch, match="no symbol 'Q'"):
            table.update("id = 'a'", {name: "'Q'"})
    assert table.refresh().scan().to_arrow().to_pylist() == first.to_pylist()


NESTED_ENUMS: list[tuple[str, pa.DataType, Any, Any]] = [
    ("x.grade", pa.struct([("grade", pa.string())]), {"grade": "A"}, {"grade": "Q"}),
    ("x.element", pa.list_(pa.string()), ["A", "B"], ["A", "Q"]),
    ("x.value", pa.map_(pa.string(), pa.string()), [("k", "A"), ("l", None)], [("k", "Q")]),
    (
        "x.element.in.grade",
        pa.list_(pa.struct([("in", pa.struct([("grade", pa.string())]))])),
        [{"in": {"grade": "A"}}, {"in": None}],
        [{"in": {"grade": "Q"}}],
    ),
]


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(("path", "data_type", "good", "bad"), NESTED_ENUMS)
def test_nested_enum_takes_its_symbols_alone(
    tmp_path: Path, kind: Kind, path: str, data_type: pa.DataType, good: object, bad: object
) -> None:
    """Hudi cannot read a base file with another text there."""
    schema = pa.schema([("id", pa.string()), ("x", data_type)])
    base = tmp_path / "t"
    made(base, schema, kind)
    file = base / ".hoodie" / "hoodie.properties"
    enum = r'{"type"\:"enum","name"\:"g","symbols"\:["A","B"]}'
    begin, column = file.read_text().split(r'"name"\:"x"', 1)
    column = column.replace('"string"', enum, 1)
    file.write_text(rf'{begin}"name"\:"x"{column}')
    table = pyhudi.open_table(base, options={**PLAIN, "hoodie.index.type": "SIMPLE"})
    rows = pa.Table.from_pylist([{"id": "a", "x": good}, {"id": "b", "x": None}], schema=schema)
    table.insert(rows)
    odd = pa.Table.from_pylist([{"id": "b", "x": good}, {"id": "c", "x": bad}], schema=schema)
    for write in (table.insert, table.upsert, table.bulk_insert):
        with pytest.raises(SchemaMismatch, match=f"'{path}' is an enum.* 'Q'"):
            write(odd)
    assert table.refresh().scan().to_arrow().to_pylist() == rows.to_pylist()


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_missing_column_reads_null_despite_default(tmp_path: Path, kind: Kind) -> None:
    base = tmp_path / "t"
    given = {**PLAIN, "hoodie.index.type": "SIMPLE"}
    rows = pa.table({"id": ["a", "b"], "n": [1, 2]})
    table = pyhudi.create_table(base, rows, key="id", type=kind, version=6, options=given)
    table.upsert(rows.slice(0, 1))
    added = '{"name":"y","type":"int","default":7}'
    for path in base.glob(".hoodie/*commit"):
        metadata = json.loads(path.read_text())
        schema = json.loads(metadata["extraMetadata"]["schema"])
        schema["fields"].append(json.loads(added))
        metadata["extraMetadata"]["schema"] = json.dumps(schema)
        path.write_text(json.dumps(metadata))
    found = pyhudi.open_table(base)
    assert found.schema.field("y") == pa.field("y", pa.int32())
    rows_now = found.scan().to_arrow().sort_by("id").to_pylist()
    assert rows_now == [{"id": "a", "n": 1, "y": None}, {"id": "b", "n": 2, "y": None}]


def test_other_odd_names_are_taken(tmp_path: Path) -> None:
    given = pa.table(
        {"id": ["a"], "_hoodie_x": [1], "_": [2], "_1": [3], "größe": [4], "日本": [5]}
    )
    table = made(tmp_path / "t", given, "mor")
    table.upsert(given)
    assert table.refresh().scan(where="日本 = 5").to_arrow().to_pylist() == given.to_pylist()
