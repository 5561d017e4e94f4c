"""Changes to columns: what becomes of tree, Avro schema and internal schema, and refusals."""

from __future__ import annotations

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.schema import alter_apply
from pyhudi.schema.alter_apply import Rules, may_become
from pyhudi.schema.alter_changes import (
    Add,
    Change,
    ChangeType,
    Comment,
    Drop,
    MakeNullable,
    Move,
    Position,
    Rename,
)
from pyhudi.schema.column_tree import ColumnTree
from tests.helpers.rows import by_id
from tests.helpers.table_builder import TableBuilder
from tests.helpers.tables import GoldenTables

pytestmark = pytest.mark.in_parts

LAST = Position()
PLACE = pa.struct([("a", pa.int32()), ("b", pa.string())])
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("n", pa.int32(), nullable=False),
        pa.field("place", PLACE),
        pa.field("spots", pa.list_(PLACE)),
        pa.field("named", pa.map_(pa.string(), PLACE)),
        pa.field("ts", pa.int64()),
    ]
)
RULES = Rules(frozenset({"id", "ts", "place.b"}), all_types=True, record="hoodie.t.t_record")


def tree(schema: pa.Schema = SCHEMA) -> ColumnTree:
    from pyhudi import _native

    avro = _native.avro_schema(schema, "t_record", "hoodie.t")
    return ColumnTree.of(avro, None, all_types=True)


def after(*changes: Change) -> ColumnTree:
    found = tree()
    for change in changes:
        found = alter_apply.apply(found, change, RULES)
    return found


def names(found: ColumnTree) -> list[str]:
    return [field["name"] for field in json.loads(found.avro())["fields"]]


def ids(found: ColumnTree) -> dict[str, int]:
    return {field["name"]: field["id"] for field in json.loads(found.internal(0))["fields"]}


def test_ids_are_given_level_by_level() -> None:
    document = json.loads(tree().internal(7))
    assert (document["version_id"], document["max_column_id"]) == (7, 14)
    assert ids(tree()) == {"id": 0, "n": 1, "place": 2, "spots": 3, "named": 4, "ts": 5}
    place, spots, named = (document["fields"][at]["type"] for at in (2, 3, 4))
    assert [field["id"] for field in place["fields"]] == [6, 7]
    assert (spots["element_id"], [one["id"] for one in spots["element"]["fields"]]) == (8, [9, 10])
    assert (named["key_id"], named["value_id"]) == (11, 12)
    assert [one["id"] for one in named["value"]["fields"]] == [13, 14]


def test_column_tree_round_trips() -> None:
    found = after(Rename("place.a", "aa"), Add("x", pa.decimal128(12, 2), LAST, "a doc"))
    again = ColumnTree.of(found.avro(), found.internal(3), all_types=True)
    assert (again.avro(), again.internal(3)) == (found.avro(), found.internal(3))
    assert again.added == 0


def test_golden_schemas_come_out_as_hudi_wrote_them(golden: GoldenTables) -> None:
    checked = 0
    for name in ("v6_mor_schema_on_read_nested", "v9_mor_schema_on_read_types"):
        table = pyhudi.open_table(str(golden.unpack(name)))
        for instant in table.state.timeline.commits:
            metadata = table.state.timeline.commit_metadata(instant)
            text = metadata.extra_metadata.get("latest_schema")
            if text is None or metadata.schema is None:
                continue
            found = ColumnTree.of(metadata.schema, text, all_types=name.startswith("v9"))
            assert found.internal(json.loads(text)["version_id"]) == text
            assert json.loads(found.avro()) == json.loads(metadata.schema)
            checked += 1
    assert checked > 20


def test_alter_adds_column_at_requested_position() -> None:
    assert names(after(Add("x", pa.int32(), LAST, None)))[-1] == "x"
    assert names(after(Add("x", pa.int32(), Position(first=True), None)))[0] == "x"
    assert names(after(Add("x", pa.int32(), Position(after="n"), None)))[2] == "x"
    assert names(after(Add("x", pa.int32(), Position(before="n"), None)))[1] == "x"
    found = json.loads(after(Add("spots.element.x", PLACE, Position(first=True), "why")).avro())
    first = found["fields"][3]["type"][1]["items"][1]["fields"][0]
    assert (first["name"], first["doc"], first["default"]) == ("x", "why", None)


def test_alter_readded_name_is_new_column() -> None:
    found = after(Drop("named"), Add("named", PLACE, LAST, None))
    assert ids(found)["named"] == 15
    assert json.loads(found.internal(0))["max_column_id"] == 17


def test_renamed_and_moved_columns_keep_their_ids() -> None:
    found = after(Rename("n", "m"), Move("m", LAST), Rename("named.value.a", "z"))
    assert ids(found) == {"id": 0, "place": 2, "spots": 3, "named": 4, "ts": 5, "m": 1}
    assert after(Rename("n", "m"), Rename("m", "n")).root == tree().root


def test_types_docs_and_nulls() -> None:
    found = after(ChangeType("n", pa.int64()), Comment("n", "how many"), MakeNullable("n"))
    field = json.loads(found.avro())["fields"][1]
    assert field == {"name": "n", "type": ["null", "long"], "doc": "how many", "default": None}
    internal = json.loads(found.internal(0))["fields"][1]
    assert internal == {"id": 1, "name": "n", "optional": True, "type": "long", "doc": "how many"}
    assert "doc" not in json.loads(alter_apply.apply(found, Comment("n", None), RULES).avro())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (Rename("gone", "x"), "no column 'gone'"),
        (Rename("place.gone", "x"), "no column 'place.gone'"),
        (Rename("n.x", "y"), "no fields"),
        (Rename("n", "TS"), "already"),
        (Rename("n", "a.b"), "stays in its struct"),
        (Rename("n", "_hoodie_x"), "is not a valid column name"),
        (Rename("n", "a-b"), "named 'a-b'"),
        (Rename("n", ""), "is not a valid column name"),
        (Rename("spots.element.a", "1x"), "named 'spots.element.1x'"),
        (Rename("n", "_hoodie_is_deleted"), "would be deletes"),
        (Rename("n", "_pyhudi_base_row"), "are reserved"),
        (Add("_pyhudi_base_row", pa.int64(), LAST, None), "are reserved"),
        (Add("_hoodie_is_deleted", pa.int32(), LAST, None), "marks deleted rows"),
        (Rename("id", "x"), "keys, partitions or the ordering"),
        (Drop("place"), "keys, partitions or the ordering"),
        (ChangeType("ts", pa.string()), "keys, partitions or the ordering"),
        (Add("N", pa.int32(), LAST, None), "already"),
        (Add("x", pa.null(), LAST, None), "no type"),
        (Add("x", pa.int32(), Position(after="gone"), None), "no column 'gone'"),
        (Add("n.x", pa.int32(), LAST, None), "no fields"),
        (ChangeType("n", pa.bool_()), "int: it cannot become boolean"),
        (ChangeType("spots", pa.string()), "is nested"),
        (ChangeType("_hoodie_commit_time", pa.string()), "meta column of Hudi"),
        (Drop("_hoodie_commit_time"), "meta column of Hudi"),
    ],
)
def test_alter_raises_for_impossible_changes(change: Change, message: str) -> None:
    with pytest.raises(SchemaMismatch, match=message):
        after(change)


@pytest.mark.parametrize("all_types", [True, False])
def test_alter_keeps_unit_of_timestamp(*, all_types: bool) -> None:
    from pyhudi import _native

    schema = pa.schema([("at", pa.timestamp("ms", "UTC")), ("n", pa.int32())])
    found = ColumnTree.of(_native.avro_schema(schema, "r", "n"), None, all_types=all_types)
    rules = Rules(frozenset(), all_types=all_types, record="n.r")
    same = alter_apply.apply(found, ChangeType("at", pa.timestamp("ms", "UTC")), rules)
    assert same.root == found.root
    with pytest.raises(SchemaMismatch, match="timestamp-millis: it cannot become timestamp-micros"):
        alter_apply.apply(found, ChangeType("at", pa.timestamp("us", "UTC")), rules)


def test_alter_refuses_to_drop_last_column_or_field() -> None:
    rules = Rules(frozenset(), all_types=True, record="r")
    only = tree(pa.schema([("s", pa.struct([("x", pa.int32())]))]))
    for path in ("s", "s.x"):
        with pytest.raises(SchemaMismatch, match="last one"):
            alter_apply.apply(only, Drop(path), rules)


def test_alter_refuses_two_positions() -> None:
    with pytest.raises(ConfigError, match="cannot be combined"):
        after(Move("n", Position(first=True, after="ts")))


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("int", "long", True),
        ("long", "int", False),
        ("float", "double", True),
        ("double", "float", False),
        ("string", "date", True),
        ("string", "int", False),
        ("date", "string", True),
        ("boolean", "string", False),
        ("decimal(10, 2)", "decimal(12, 2)", True),
        ("decimal(10, 2)", "decimal(12, 5)", False),
        ("decimal(10, 2)", "decimal(13, 5)", True),
        ("decimal(10, 2)", "string", True),
        ("int", "decimal(10, 0)", True),
    ],
)
def test_alter_widens_only_compatible_types(old: str, new: str, *, allowed: bool) -> None:
    assert may_become(old, new) is allowed


def test_column_tree_raises_for_types_missing_in_older_versions() -> None:
    schema = pa.schema([("at", pa.timestamp("us"))])
    assert '"local-timestamp-micros"' in tree(schema).internal(0)
    from pyhudi import _native

    avro = _native.avro_schema(schema, "r", "n")
    with pytest.raises(UnsupportedTableFeature, match="local-timestamp-micros"):
        ColumnTree.of(avro, None, all_types=False)


def test_alter_writes_shared_named_type_once() -> None:
    x = {"name": "x", "type": ["null", "int"], "default": None}
    inner = {"type": "record", "name": "p", "namespace": "q", "fields": [x]}
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": ["null", "q.p"], "default": None}]
    avro = json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": fields})
    found = ColumnTree.of(avro, None, all_types=True)
    assert json.loads(found.avro()) == json.loads(avro)
    rules = Rules(frozenset(), all_types=True, record="n.r")
    changed = json.loads(alter_apply.apply(found, Rename("a.x", "y"), rules).avro())
    assert changed["fields"][0]["type"]["fields"][0]["name"] == "y"
    other = changed["fields"][1]["type"][1]
    assert (other["name"], other["namespace"], other["fields"][0]["name"]) == ("b", "n.r", "x")


# --- tables ---------------------------------------------------------------------------------------


TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "n": (pa.int32(), " abc".index),
        "note": (pa.string(), lambda key: {"a": "x", "b": "y", "c": "z"}[key]),
        "ts": (pa.int64(), 1),
    },
    order_by="ts",
    first="abc",
)


def made(base: Path, **axes: Any) -> Any:
    """Rows a, b and c, the second written once more."""
    table = TABLE.make(base, **axes)
    table.upsert(TABLE.rows("b"))
    return table


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_altered_table_accepts_every_operation(
    tmp_path: Path, kind: Literal["cow", "mor"], version: int
) -> None:
    made(tmp_path / "t", kind=kind, version=version)
    table = pyhudi.open_table(tmp_path / "t", options={"hoodie.clean.automatic": False})
    table.alter().rename_column("note", "text").drop_column("n").execute()
    table.alter().add_column("n", pa.string(), after="id").rename_column("text", "note2").execute()
    assert table.schema.names == ["id", "n", "note2", "ts"]
    table.upsert(pa.table({"id": ["a"], "n": ["new"], "note2": ["u"], "ts": [2]}))
    table.upsert(pa.table({"id": ["b"], "n": ["part"], "ts": [2]}), partial=True)
    table.update("id = 'c'", {"note2": "note2 || '!'", "ts": "ts + 1"})
    assert [(row["n"], row["note2"]) for row in by_id(table.scan().to_arrow())] == [
        ("new", "u"),
        ("part", "y"),
        (None, "z!"),
    ]
    table.alter().rename_column("note2", "note").execute()
    assert [row["note"] for row in by_id(table.scan().to_arrow())] == ["u", "y", "z!"]
    table.insert(pa.table({"id": ["d"], "ts": [1], "new": [True]}), schema_mode="merge")
    source = pa.table({"id": ["a", "d"], "note": ["merged", "gone"]})
    merge = table.merge(source).when_matched_delete(where="source.note = 'gone'")
    merge.when_matched_update({"note": "source.note", "ts": 9}).execute()
    table.delete("note = 'y'")
    table.delete_keys(pa.table({"id": ["c"]}))
    assert by_id(table.scan().to_arrow()) == [
        {"id": "a", "n": "new", "note": "merged", "ts": 9, "new": None}
    ]
    past = table.scan(as_of=table.state.timeline.commits[1].requested).to_arrow()
    assert past.column_names == ["id", "n", "note", "ts"]
    table.overwrite(pa.table({"id": ["z"], "n": ["1"], "note": ["2"], "ts": [1], "new": [False]}))
    table.alter().drop_column("new").execute()
    assert by_id(table.scan().to_arrow()) == [{"id": "z", "n": "1", "note": "2", "ts": 1}]


def test_schema_history_has_each_version_once(tmp_path: Path) -> None:
    table = made(tmp_path / "t", version=6)
    first = table.alter().rename_column("note", "text").execute()
    table.upsert(pa.table({"id": ["a"], "n": [1], "text": ["t"], "ts": [2]}))
    second = table.upsert(pa.table({"id": ["a"], "ts": [3], "x": [1]}), schema_mode="merge")
    files = sorted((tmp_path / "t" / ".hoodie" / ".schema").glob("*.schemacommit"))
    assert len(files) == 3
    versions = [one["version_id"] for one in json.loads(files[-1].read_text())["schemas"]]
    assert versions == [int(second.instant), int(first.instant), 0]


def written_schemas(table: Any) -> list[str]:
    """What commits, base files and log blocks say."""
    state = table.refresh().state
    found = []
    for commit in state.timeline.commits:
        metadata = state.timeline.commit_metadata(commit)
        found.append(metadata.schema)
        for path in filter(None, (stat.path for stat in metadata.write_stats)):
            if path.endswith(".parquet"):
                found.append(_native.base_file_schema(state.storage.native, path)[0])
            else:
                blocks = _native.log_blocks(state.storage.native, path)
                found += [block["header"].get("SCHEMA") for block in blocks]
    return [text for text in found if text]


def full_names(avro: Any, space: str = "") -> list[str]:
    """Of the types that a schema defines."""
    if isinstance(avro, list):
        return [name for branch in avro for name in full_names(branch, space)]
    if not isinstance(avro, dict):
        return []
    inner = [avro.get("items"), avro.get("values")]
    if avro["type"] not in ("record", "fixed", "enum"):
        return full_names(inner, space)
    space = avro.get("namespace", space)
    fields = [field["type"] for field in avro.get("fields", ())]
    return [f"{space}.{avro['name']}", *full_names(fields, space)]


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("merge", [False, True])
def test_altered_schema_gives_types_unique_names(
    tmp_path: Path, merge: bool, kind: Literal["cow", "mor"], version: int
) -> None:
    """Hudi could not read any of it."""
    old, new = pa.struct([("x", pa.int32())]), pa.struct([("d", pa.decimal128(5, 2))])
    columns = {"id": pa.string(), "s": old, "d": pa.decimal128(5, 2)}
    schema = pa.schema(list(columns.items()))
    first = {"id": "a", "s": {"x": 1}, "d": Decimal("1.10")}
    rows = pa.Table.from_pylist([first], schema)
    table = TableBuilder.of(schema, first=rows, kind=kind, version=version).make(tmp_path / "t")
    changes = table.alter().rename_column("s", "t").rename_column("d", "e")
    if not merge:
        changes.add_column("s", new).add_column("d", pa.decimal128(12, 4))
    changes.execute()
    given = {"id": columns["id"], "t": old, "e": columns["d"], "s": new}
    wide = pa.schema([*given.items(), ("d", pa.decimal128(12, 4))])
    later = {"id": "a", "t": {"x": 2}, "e": Decimal("2.20"), "s": {"d": Decimal("3.30")}}
    later["d"] = Decimal("44.4000")
    table.upsert(pa.Table.from_pylist([later], wide), schema_mode="merge")
    table.alter().rename_column("s", "u").add_column("s", pa.struct([("y", old)])).execute()
    table.upsert(
        pa.Table.from_pylist([{"id": "b"}], pa.schema([("id", pa.string())])), schema_mode="merge"
    )
    for text in written_schemas(table):
        names = full_names(json.loads(text))
        assert len(set(names)) == len(names), text
    found = by_id(pyhudi.open_table(table.uri).scan(["id", "t", "e", "u", "d", "s"]).to_arrow())
    assert found[0] == {**{("u" if n == "s" else n): v for n, v in later.items()}, "s": None}


@pytest.mark.parametrize("version", [6, 9])
def test_rolled_back_columns_stay_removed_after_archive(tmp_path: Path, version: int) -> None:
    """Hudi's rollbacks and restores leave the history file."""
    table = TABLE.make(tmp_path / "t", version=version, metadata=False)
    first = table.state.timeline.commits[0].requested
    table.savepoint(instant=first)
    taken_back = table.alter().drop_column("n").add_column("n", pa.string()).execute().instant
    folder = tmp_path / "t" / ".hoodie" / ".schema"
    left = {file.name: file.read_bytes() for file in folder.iterdir()}
    if version == 6:
        table.upsert(pa.table({"id": ["w"], "note": [""], "ts": [1], "n": ["0"]}))
    table.restore(first)
    table.delete_savepoint(first)
    for name, data in left.items():
        (folder / name).write_bytes(data)
    table = pyhudi.open_table(tmp_path / "t", options=FEW_COMMITS)
    for _ in range(6):
        table.insert(TABLE.rows("c", n=7))
    table.clean()
    table.archive()
    table = pyhudi.open_table(tmp_path / "t")
    assert table.state.timeline.is_before_start(taken_back)
    assert [row["n"] for row in by_id(table.scan(where="id < 'c'").to_arrow())] == [1, 2]
    assert table.state.schema.history is None
    table.alter().rename_column("n", "m").execute()
    assert by_id(table.scan(where="id = 'a'").to_arrow())[0]["m"] == 1


def test_filter_on_renamed_column_finds_rows_of_older_files(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    table.alter().rename_column("n", "m").rename_column("note", "n").execute()
    assert table.scan(where="n = 'z'").to_arrow()["m"].to_pylist() == [3]
    assert table.scan(where="m > 2").to_arrow()["id"].to_pylist() == ["c"]


def planned(base: Path, service: str, version: int, **axes: Any) -> tuple[Any, str]:
    """A table with a plan of a service that waits, and the plan's instant."""
    few = {"hoodie.log.compaction.blocks.threshold": "2"}
    table = TABLE.make(base, kind="mor", version=version, options={**few, **axes}, metadata=False)
    for count in range(6):
        table.upsert(TABLE.rows("b", n=10 + count, ts=2 + count))
    (instant,) = getattr(table, service)(execute=False).scheduled
    return table, instant


SERVICES = ["compact", "cluster", "log_compact"]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("service", SERVICES)
def test_plan_executes_with_columns_of_its_time(tmp_path: Path, service: str, version: int) -> None:
    table, instant = planned(tmp_path / "t", service, version)
    table.alter().rename_column("n", "m").drop_column("note").execute()
    table.alter().add_column("n", pa.string(), after="id").execute()
    before = by_id(table.scan().to_arrow())
    assert [row["m"] for row in before] == [1, 15, 3]
    assert getattr(table, service)(schedule=False).instants == (instant,)
    assert table.refresh().schema.names == ["id", "n", "m", "ts"]
    assert by_id(table.scan().to_arrow()) == before
    past = by_id(table.scan(as_of=instant).to_arrow())
    assert [(row["n"], row["note"]) for row in past] == [(1, "x"), (15, "y"), (3, "z")]
    table.upsert(pa.table({"id": ["a"], "n": ["new"], "m": [2], "ts": [9]}))
    table.compact()
    found = by_id(pyhudi.open_table(table.uri).scan().to_arrow())
    assert [(row["n"], row["m"]) for row in found] == [("new", 2), (None, 15), (None, 3)]
    assert table.check(deep=True).findings == ()


FEW_COMMITS = {
    "hoodie.keep.min.commits": "2",
    "hoodie.keep.max.commits": "3",
    "hoodie.clean.commits.retained": "1",
    "hoodie.parquet.small.file.limit": "0",
}


@pytest.mark.parametrize("version", [6, 9])
@pytest.mark.parametrize("service", ["compact", "cluster"])
def test_archived_plan_reads_with_same_columns(tmp_path: Path, service: str, version: int) -> None:
    TABLE.make(tmp_path / "t", version=version, kind="mor", metadata=False).alter().rename_column(
        "note", "text"
    ).execute()
    table = pyhudi.open_table(tmp_path / "t", options=FEW_COMMITS)
    table.upsert(TABLE.rows("b", n=7).rename_columns(["id", "n", "text", "ts"]))
    (instant,) = getattr(table, service)(execute=False).scheduled
    table.alter().rename_column("n", "m").execute()
    getattr(table, service)(schedule=False)
    before = by_id(table.scan().to_arrow())
    for _ in range(6):
        table.insert(pa.table({"id": ["d"], "m": [1], "text": [""], "ts": [1]}))
    table.clean()
    table.archive()
    table = pyhudi.open_table(tmp_path / "t")
    assert table.state.timeline.is_before_start(instant)
    assert by_id(table.scan(where="id < 'd'").to_arrow()) == before


@pytest.mark.parametrize("version", [6, 8, 9])
def test_plan_keeps_types_widened_since(tmp_path: Path, version: int) -> None:
    table, instant = planned(tmp_path / "t", "compact", version)
    row = pa.table({"id": ["c"], "n": [1 << 40], "note": ["w"], "ts": [9]})
    table.upsert(row, schema_mode="merge")
    table.compact(schedule=False)
    assert table.scan().to_arrow().sort_by("id")["n"].to_pylist() == [1, 15, 1 << 40]
    assert table.scan(as_of=instant).to_arrow().sort_by("id")["n"].to_pylist() == [1, 15, 3]
    if version == 6:
        table.savepoint(instant=instant)
        table.restore(instant)
        found = pyhudi.open_table(table.uri).scan().to_arrow().sort_by("id")["n"]
        assert (found.type, found.to_pylist()) == (pa.int32(), [1, 15, 3])


@pytest.mark.parametrize("version", [8, 9])
def test_indexes_stay_in_sync_with_plan_older_than_column(tmp_path: Path, version: int) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", version=version)
    table.upsert(TABLE.rows("b", n=7))
    table.compact(execute=False)
    late = TABLE.rows("c", n=8).append_column("late", pa.array(["l"]))
    table.upsert(late, schema_mode="merge")
    table.create_index("secondary_index", ["late"], name="by_late")
    table.compact(schedule=False)
    assert table.check(deep=True).findings == ()
    assert table.scan(where="late = 'l'").to_arrow()["n"].to_pylist() == [8]
    assert table.scan(where="n = 7").to_arrow()["id"].to_pylist() == ["b"]


@pytest.mark.parametrize("version", [8, 9])
def test_statistics_stay_in_sync_with_plan_older_than_rename(tmp_path: Path, version: int) -> None:
    table = TABLE.make(tmp_path / "t", kind="mor", version=version)
    table.upsert(TABLE.rows("b", n=7))
    table.compact(execute=False)
    table.alter().rename_column("n", "m").rename_column("note", "n").execute()
    table.compact(schedule=False)
    assert table.scan(where="m = 7").to_arrow()["id"].to_pylist() == ["b"]
    assert table.scan(where="n = 'z'").to_arrow()["id"].to_pylist() == ["c"]
    assert table.check(deep=True).findings == ()


@pytest.mark.parametrize("version", [8, 9])
def test_struct_may_reuse_name_of_column_with_statistics(tmp_path: Path, version: int) -> None:
    rows = pa.table({"id": ["a", "b"], "b": ["x", "y"], "c": [1, 2]})
    table = pyhudi.create_table(tmp_path / "t", rows.schema, key="id", version=version)
    table.upsert(rows)
    table.alter().drop_column("b").execute()
    table.alter().add_column("b", pa.struct([("n", pa.int32())])).execute()
    table = pyhudi.open_table(table.uri)
    given = pa.table({"id": ["a"], "c": [3], "b": [{"n": 7}]}, schema=table.schema)
    table.upsert(given)
    found = table.scan(["id", "c", "b"]).to_arrow().sort_by("id").to_pylist()
    assert found == [{"id": "a", "c": 3, "b": {"n": 7}}, {"id": "b", "c": 2, "b": None}]
    assert table.scan(where="c = 3").to_arrow().num_rows == 1
    assert table.check(deep=True).findings == ()


def test_types_may_be_text_as_in_sql(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a"], "v": pa.array([1], pa.int32())})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id")
    change = table.alter().change_type("v", "string").add_column("p", "decimal(10, 2)")
    change.add_column("tags", "array<struct<a: timestamp_ntz>>").execute()
    schema = table.refresh().schema
    assert schema.field("v").type == pa.string()
    assert schema.field("p").type == pa.decimal128(10, 2)
    assert schema.field("tags").type.value_type.field("a").type == pa.timestamp("us")
    for wrong in ("", "nonsense", "decimal(50)", "int int"):
        with pytest.raises(ConfigError):
            table.alter().add_column("w", wrong)


def test_alter_reports_unknown_name_before_index_conflict(tmp_path: Path) -> None:
    table = made(tmp_path / "t", partition_by="id", key="n")
    assert "partition_stats" in table.config.metadata_partitions
    with pytest.raises(SchemaMismatch, match="no column 'typo'"):
        table.alter().rename_column("typo", "x").execute()
    with pytest.raises(UnsupportedTableFeature, match="partition_stats"):
        table.alter().rename_column("note", "x").execute()


@pytest.mark.parametrize("concurrently", [False, True])
def test_altered_table_has_no_partition_statistics(tmp_path: Path, concurrently: bool) -> None:
    """No write could maintain them: a build of other partitions omits them with a warning."""
    table = made(tmp_path / "t", partition_by="id", key="n")
    table.drop_index("partition_stats")
    table.alter().rename_column("note", "text").execute()
    rows = TABLE.rows("b").rename_columns(table.schema.names)
    table.drop_index("column_stats")
    table.create_index("column_stats", concurrently=concurrently)
    table.upsert(rows)
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.schema\.on\.read\.enable"):
        table.create_index("partition_stats", concurrently=concurrently)
    table.drop_index("files")
    table.rebuild_metadata()
    table.upsert(rows)
    options = {"hoodie.metadata.enable": True}
    pyhudi.open_table(table.uri, options=options).upsert(rows)
    table.refresh()
    assert "column_stats" in table.config.metadata_partitions
    assert "partition_stats" not in table.config.metadata_partitions
    options["hoodie.metadata.index.partition.stats.enable"] = True
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.schema\.on\.read\.enable"):
        pyhudi.open_table(table.uri, options=options).upsert(rows)


def test_alter_refuses_unsupported_changes(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    with pytest.raises(ConfigError, match=r"alter\(\) has no changes"):
        table.alter().execute()
    with pytest.raises(SchemaMismatch, match="do not change the table's columns"):
        table.alter().move_column("ts").execute()
    with pytest.raises(SchemaMismatch, match="keys, partitions or the ordering use it"):
        table.alter().drop_column("ts").execute()
    before = len(table.state.timeline.commits)
    assert before == len(pyhudi.open_table(tmp_path / "t").state.timeline.commits)
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    properties.write_text(properties.read_text() + "\nhoodie.table.cdc.enabled=true\n")
    with pytest.raises(UnsupportedTableFeature, match=r"cdc\.enabled"):
        pyhudi.open_table(tmp_path / "t").alter().drop_column("n").execute()


def test_alter_raises_for_columns_without_ids(tmp_path: Path) -> None:
    table = made(tmp_path / "t", version=6)
    table.alter().rename_column("note", "text").execute()
    table.upsert(pa.table({"id": ["a"], "ts": [3], "x": [1]}), schema_mode="merge")
    newest = max((tmp_path / "t" / ".hoodie").glob("*.commit"))
    document = json.loads(newest.read_text())
    del document["extraMetadata"]["latest_schema"]
    newest.write_text(json.dumps(document))
    for file in (tmp_path / "t" / ".hoodie" / ".schema").glob(f"{newest.name[:17]}*"):
        file.unlink()
    with pytest.raises(UnsupportedTableFeature, match=r"schema\.on\.read"):
        pyhudi.open_table(tmp_path / "t").delete("id = 'a'")


@pytest.mark.parametrize(
    "name",
    [
        "v6_cow_schema_on_read_types",
        "v6_mor_schema_on_read_nested",
        "v9_cow_schema_on_read",
        "v9_cow_schema_on_read_nested",
        "v9_mor_schema_on_read_nested",
        "v9_mor_schema_on_read_types",
    ],
)
def test_write_to_table_altered_by_hudi_changes_no_other_row(
    golden: GoldenTables, name: str, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    shutil.copytree(golden.unpack(name), base)
    table = pyhudi.open_table(str(base))
    before = by_id(table.scan().to_arrow())
    assert table.delete(f"id = '{before[0]['id']}'").rows_deleted == 1
    table.update(f"id = '{before[1]['id']}'", {"ts": "ts + 100"})
    before[1]["ts"] += 100
    assert [str(row) for row in by_id(table.scan().to_arrow())] == [str(row) for row in before[1:]]
    table.alter().add_column("later", pa.int32(), first=True).execute()
    assert [str(row) for row in by_id(table.scan().to_arrow())] == [
        str({"later": None, **row}) for row in before[1:]
    ]
