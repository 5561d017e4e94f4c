"""Merge rules by column: each rule with each type and null, and the writes that they allow."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.column_rules import MERGE_RULES, RULES_STRATEGY
from pyhudi.config.merge_mode import MERGE_MODE, STRATEGY_ID
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from tests.helpers.table_builder import Kind, TableBuilder

NAN = float("nan")
DAY = datetime.date(2024, 2, 29)
NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.timezone.utc)
HOUR = datetime.timedelta(hours=1)
STRINGS = pa.list_(pa.string())

COUNTERS = TableBuilder(
    {
        "id": (pa.string(), str),
        "clicks": (pa.int64(), 1),
        "seen": (pa.timestamp("us", "UTC"), None),
        "tags": (STRINGS, None),
        "name": (pa.string(), None),
        "ts": (pa.int64(), 0),
    },
    options={"hoodie.metadata.enable": "false"},
)
RULES = {"clicks": "sum", "seen": "max", "tags": "union"}
KINDS: list[Kind] = ["cow", "mor"]


def made(base: Path, kind: Kind = "mor", **more: Any) -> pyhudi.HudiTable:
    return COUNTERS.make(base / "t", kind=kind, **{"merge_rules": RULES, **more})


def rows_of(table: pyhudi.HudiTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_arrow().sort_by("id").to_pylist()
    return rows


def clicks(table: pyhudi.HudiTable) -> dict[str, int]:
    return {row["id"]: row["clicks"] for row in rows_of(table)}


CASES: list[tuple[str, pa.DataType, Any, Any, Any]] = [
    ("sum", pa.int32(), 1, 2, 3),
    ("sum", pa.int64(), 2**40, -1, 2**40 - 1),
    ("sum", pa.float32(), 0.5, 0.25, 0.75),
    ("sum", pa.float64(), 0.5, 0.25, 0.75),
    ("sum", pa.decimal128(6, 2), Decimal("1.25"), Decimal("-2.50"), Decimal("-1.25")),
    ("max", pa.int64(), 5, 3, 5),
    ("min", pa.int64(), 5, 3, 3),
    ("max", pa.float64(), NAN, 3.0, NAN),
    ("min", pa.float64(), NAN, 3.0, 3.0),
    ("max", pa.decimal128(6, 2), Decimal("1.25"), Decimal("2.50"), Decimal("2.50")),
    ("max", pa.string(), "b", "ä", "ä"),
    ("min", pa.string(), "Z", "a", "Z"),
    ("max", pa.binary(), b"\x7f", b"\x80", b"\x80"),
    ("max", pa.bool_(), True, False, True),
    ("min", pa.date32(), DAY, DAY + datetime.timedelta(1), DAY),
    ("max", pa.timestamp("us", "UTC"), NOON, NOON - HOUR, NOON),
    ("min", pa.timestamp("ms", "UTC"), NOON, NOON - HOUR, NOON - HOUR),
    ("first", pa.string(), "old", "new", "old"),
    ("first", STRINGS, ["old"], [], ["old"]),
    ("last_non_null", pa.string(), "old", "new", "new"),
    ("last_non_null", pa.struct([("x", pa.int64())]), {"x": 1}, {"x": None}, {"x": None}),
    ("append", STRINGS, ["a", "b"], ["b"], ["a", "b", "b"]),
    (
        "append",
        pa.list_(pa.struct([("x", pa.int64())])),
        [{"x": 1}],
        [{"x": 1}],
        [{"x": 1}, {"x": 1}],
    ),
    ("union", STRINGS, ["b", "a"], ["c", "a"], ["b", "a", "c"]),
    ("union", pa.list_(pa.int64()), [2, 1], [3, 1], [2, 1, 3]),
    ("union", pa.list_(pa.date32()), [DAY], [DAY], [DAY]),
]


@pytest.mark.parametrize(("rule", "kind", "older", "newer", "both"), CASES)
def test_rules_combine_their_types_and_ignore_nulls(
    tmp_path: Path, rule: Any, kind: pa.DataType, older: Any, newer: Any, both: Any
) -> None:
    """In a base file that is rewritten, in log files, in a new base file, and within one batch."""
    schema = pa.schema([("id", pa.string()), ("v", kind)])
    pairs = [(older, newer), (older, None), (None, newer), (None, None)]
    wanted = pa.array([both, older, newer, None], kind)
    ids = ["0", "1", "2", "3"]
    old, new = (
        pa.table({"id": ids, "v": pa.array([pair[side] for pair in pairs], kind)}, schema)
        for side in (0, 1)
    )
    make = partial(pyhudi.create_table, key="id", merge_rules={"v": rule})
    cow, mor = (make(tmp_path / table_type, old, type=table_type) for table_type in KINDS)
    for table in (cow, mor):
        table.upsert(new)
        assert _same(table.to_arrow(), wanted)
    mor.compact()
    assert _same(mor.to_arrow(), wanted)
    batch = make(tmp_path / "batch", schema)
    batch.upsert(pa.concat_tables([old, new]))
    assert _same(batch.to_arrow(), wanted)


def _same(rows: pa.Table, wanted: pa.Array[Any]) -> bool:
    # A NaN equals no number, its text does.
    values = rows.sort_by("id")["v"]
    assert values.type == wanted.type
    return str(values.to_pylist()) == str(wanted.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_undeclared_columns_come_from_the_record_that_wins(tmp_path: Path, kind: Kind) -> None:
    """A late record adds its clicks, but its name loses."""
    table = made(tmp_path, kind, order_by="ts")
    for ts, name in [(5, "new"), (3, "late")]:
        table.upsert(COUNTERS.rows(["a"], ts=ts, name=name))
    (row,) = rows_of(table)
    assert (row["clicks"], row["name"], row["ts"]) == (2, "new", 5)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_after_a_delete_start_over(tmp_path: Path, kind: Kind) -> None:
    """Whatever the ordering value of the later row."""
    table = made(tmp_path, kind, order_by="ts")
    table.upsert(COUNTERS.rows(["a", "b"], ts=9, clicks=7))
    table.delete("id = 'a'")
    table.upsert(COUNTERS.rows(["a"], ts=1, clicks=2))
    table.upsert(COUNTERS.rows(["a"], ts=1, clicks=3))
    assert clicks(table) == {"a": 5, "b": 7}
    if kind == "mor":
        assert table.log_compact(min_log_files=2).instants
        assert clicks(table) == {"a": 5, "b": 7}
        table.compact()
        assert clicks(table) == {"a": 5, "b": 7}


def test_large_merge_spills_deletes_before_rows(tmp_path: Path) -> None:
    """Records beyond the memory limit come back from disk in their order."""
    ids = [f"{number:05}" for number in range(3000)]
    table = made(tmp_path, first=COUNTERS.rows(ids, name="x" * 100))
    for _ in range(3):
        table.upsert(COUNTERS.rows(ids, name="y" * 100))
    table.delete("id < '01000'")
    table.upsert(COUNTERS.rows(ids))
    expected = {key: 1 if key < "01000" else 5 for key in ids}
    assert clicks(table) == expected
    table.compact(memory_limit=2**20)
    assert clicks(table) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_partial_upsert_leaves_missing_columns_unchanged(tmp_path: Path, kind: Kind) -> None:
    table = made(tmp_path, kind, first=COUNTERS.rows(["a"], clicks=3, tags=["x"]))
    table.upsert({"id": ["a", "b"], "name": ["A", "B"]}, partial=True)
    table.upsert({"id": ["a"], "clicks": [4]}, partial=True)
    a, b = rows_of(table)
    assert (a["clicks"], a["tags"], a["name"]) == (7, ["x"], "A")
    assert (b["clicks"], b["tags"], b["name"]) == (None, None, "B")


@pytest.mark.parametrize("kind", KINDS)
def test_update_and_merge_set_only_columns_without_rule(tmp_path: Path, kind: Kind) -> None:
    table = made(tmp_path, kind, first=COUNTERS.rows(["a", "b"], clicks=3, tags=lambda key: [key]))
    table.update("id = 'a'", {"name": "'A'"})
    source = COUNTERS.rows(["b", "c"], name="S", clicks=9)
    merge = table.merge(source).when_matched_update({"name": "source.name"})
    merge.when_not_matched_insert_all().execute()
    found = [(row["clicks"], row["tags"], row["name"]) for row in rows_of(table)]
    assert found == [(3, ["a"], "A"), (3, ["b"], "S"), (9, None, "S")]
    with pytest.raises(UnsupportedTableFeature, match="clicks:sum"):
        table.update("id = 'a'", {"clicks": "5"})
    with pytest.raises(UnsupportedTableFeature, match="clicks:sum"):
        table.merge(source).when_matched_update_all().execute()
    assert len(rows_of(table)) == 3


def test_rows_after_a_delete_in_one_write_raise(tmp_path: Path) -> None:
    """The row that is left would be combined with the stored row, which the delete removes."""
    schema = COUNTERS.schema.append(pa.field("_hoodie_is_deleted", pa.bool_()))
    for kind in KINDS:
        table = pyhudi.create_table(tmp_path / kind, schema, key="id", type=kind, merge_rules=RULES)

        def rows(*deleted: bool) -> pa.Table:
            data = COUNTERS.rows(["a"] * len(deleted))
            return data.append_column("_hoodie_is_deleted", pa.array(deleted))

        table.upsert(rows(False))
        with pytest.raises(UnsupportedTableFeature, match="delete the key 'a'"):
            table.upsert(rows(True, False))
        table.upsert(rows(False, True))
        assert rows_of(table) == []
        table.upsert(rows(False))
        assert clicks(table) == {"a": 1}


@pytest.mark.parametrize("kind", KINDS)
def test_sum_overflow_names_column_and_key(tmp_path: Path, kind: Kind) -> None:
    table = made(
        tmp_path, kind, first=COUNTERS.rows(["a", "b"], clicks={"a": 1, "b": 2**63 - 1}.get)
    )
    overflow = pytest.raises(SchemaMismatch, match='column "clicks" of key "b"')
    if kind == "cow":
        with overflow:
            table.upsert(COUNTERS.rows(["a", "b"]))
        assert clicks(table) == {"a": 1, "b": 2**63 - 1}
        return
    # The commit is complete: other columns can be read, and a delete removes the key.
    table.upsert(COUNTERS.rows(["a", "b"]))
    with overflow:
        table.to_arrow()
    assert table.scan(columns=["id"]).to_arrow().num_rows == 2
    table.delete_keys(["b"])
    assert clicks(table) == {"a": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_get_and_filters_use_merged_values(tmp_path: Path, kind: Kind) -> None:
    """A filter on a combined column sees no value of a single file."""
    table = made(tmp_path, kind, first=COUNTERS.rows(["a", "b"], clicks=3))
    table.upsert(COUNTERS.rows(["a"], clicks=4))
    assert table.get(["a"])["clicks"].to_pylist() == [7]
    assert table.scan(where="clicks = 7").to_arrow()["id"].to_pylist() == ["a"]
    assert table.scan(where="clicks < 4").to_arrow()["id"].to_pylist() == ["b"]
    assert table.scan(columns=["clicks"]).to_arrow()["clicks"].to_pylist() in ([7, 3], [3, 7])


@pytest.mark.parametrize("cdc", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_changes_and_incremental_show_merged_rows(tmp_path: Path, kind: Kind, cdc: bool) -> None:
    options = {"hoodie.table.cdc.enabled": cdc}
    table = made(tmp_path, kind, order_by="ts", options=options)
    table.upsert(COUNTERS.rows(["a", "b"], ts=5, clicks=3))
    since = table.inspect.commits()["requested"].to_pylist()[-1]
    table.upsert(COUNTERS.rows(["a"], ts=1, clicks=4))
    last = table.inspect.commits()["requested"].to_pylist()[-1]
    changes = table.changes(since) if cdc else table.diff(since, last)
    (change,) = changes.to_arrow().to_pylist()
    assert (change["before"]["clicks"], change["after"]["clicks"]) == (3, 7)
    (row,) = table.incremental(since).to_arrow().to_pylist()
    assert (row["id"], row["clicks"], row["ts"]) == ("a", 7, 5)


def test_group_writer_combines_batches_in_order(tmp_path: Path) -> None:
    table = made(tmp_path, merge_rules={"tags": "append"})
    with table.writer(max_seconds=0.2) as writer:
        futures = [writer.upsert(COUNTERS.rows(["a"], tags=[tag])) for tag in "abcd"]
        assert len({future.result().instant for future in futures}) == 1
    assert rows_of(table)[0]["tags"] == ["a", "b", "c", "d"]


def test_rolled_back_and_restored_commits_do_not_count(tmp_path: Path) -> None:
    table = made(tmp_path, first=COUNTERS.rows(["a"]))
    table.upsert(COUNTERS.rows(["a"]))
    kept = table.inspect.commits()["requested"].to_pylist()[-1]
    table.savepoint(kept)
    table.upsert(COUNTERS.rows(["a"]))
    assert clicks(table) == {"a": 3}
    table.restore(kept)
    assert clicks(table) == {"a": 2}
    table.upsert(COUNTERS.rows(["a"]))
    assert clicks(table) == {"a": 3}


@pytest.mark.parametrize("version", [8, 9])
def test_properties_keep_the_rules(tmp_path: Path, version: int) -> None:
    """A reader needs no registration, and a change of version keeps the rules."""
    table = made(tmp_path, version=version, first=COUNTERS.rows(["a"]))
    properties = table.config.properties
    payload = "pyhudi.ColumnRules(clicks:sum,seen:max,tags:union)"
    assert properties["hoodie.compaction.payload.class"] == payload
    assert (properties[MERGE_MODE], properties[STRATEGY_ID]) == ("CUSTOM", RULES_STRATEGY)
    table = pyhudi.open_table(table.uri)
    table.upsert(COUNTERS.rows(["a"]))
    if version == 9:
        table.downgrade(8)
    else:
        table.upgrade(9)
    table.upsert(COUNTERS.rows(["a"]))
    assert clicks(pyhudi.open_table(table.uri)) == {"a": 3}
    with pytest.raises(UnsupportedTableFeature, match=MERGE_RULES):
        table.downgrade(6)


def test_version_6_refuses_rules(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableFeature, match=MERGE_RULES) as error:
        made(tmp_path, version=6)
    assert "8 or 9" in str(error.value)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"clicks": "product"}, "clicks:product"),
        ({"click": "sum"}, "'click'"),
        ({"id": "max"}, "id:max"),
        ({"ts": "max"}, "ts:max"),
        ({"name": "sum"}, "name:sum"),
        ({"name": "append"}, "name:append"),
        ({"tags": "max"}, "tags:max"),
        ({"clicks": "union"}, "clicks:union"),
    ],
)
def test_create_raises_for_rules_that_columns_cannot_have(
    tmp_path: Path, rules: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        made(tmp_path, order_by="ts", merge_rules=rules)
    assert not (tmp_path / "t" / ".hoodie").exists()


def test_create_raises_for_other_merge_settings(tmp_path: Path) -> None:
    for name, value in [
        (MERGE_MODE, "COMMIT_TIME_ORDERING"),
        ("hoodie.compaction.payload.class", "org.apache.hudi.common.model.AWSDmsAvroPayload"),
        ("hoodie.table.partial.update.mode", "IGNORE_DEFAULTS"),
    ]:
        with pytest.raises(ConfigError, match=MERGE_RULES):
            made(tmp_path, options={name: value})
    required = pa.schema([("id", pa.string()), pa.field("n", pa.int64(), nullable=False)])
    with pytest.raises(ConfigError, match="cannot be null"):
        pyhudi.create_table(tmp_path / "r", required, key="id", merge_rules={"n": "sum"})


def test_create_takes_rules_as_option(tmp_path: Path) -> None:
    """As Spark SQL and the command line pass them."""
    options = {MERGE_RULES: " clicks:SUM , tags:append"}
    table = made(tmp_path, merge_rules=None, options=options)
    assert table.config.merge.column_rules == (("clicks", "sum"), ("tags", "append"))
    with pytest.raises(ConfigError, match=MERGE_RULES):
        made(tmp_path / "u", merge_rules=None, options={MERGE_RULES: "clicks"})


def test_ignore_mode_compares_rules(tmp_path: Path) -> None:
    made(tmp_path)
    assert made(tmp_path, mode="ignore").config.merge.column_rules
    with pytest.raises(ConfigError, match=MERGE_RULES):
        made(tmp_path, mode="ignore", merge_rules={"clicks": "max"})


def test_unknown_rule_in_a_table_raises(tmp_path: Path) -> None:
    """A newer pyhudi may have rules that this one cannot guess."""
    table = made(tmp_path, "cow")
    path = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    text = path.read_text().replace("clicks\\:sum", "clicks\\:median")
    path.write_text(
        "\n".join(line for line in text.splitlines() if "hoodie.table.checksum" not in line)
    )
    with pytest.raises(UnsupportedTableFeature, match="clicks:median"):
        pyhudi.open_table(table.uri).upsert(COUNTERS.rows(["a"]))


def test_alter_keeps_columns_with_rules(tmp_path: Path) -> None:
    """A rename would lose the rule, and a string has no sum; a wider number has."""
    schema = pa.schema([("id", pa.string()), ("n", pa.int32()), ("v", pa.string())])
    table = pyhudi.create_table(tmp_path / "t", schema, key="id", merge_rules={"n": "sum"})
    table.upsert(pa.table({"id": ["a"], "n": [2**31 - 1], "v": ["x"]}, schema))
    changes: list[Callable[[Any], Any]] = [
        lambda alter: alter.rename_column("n", "m"),
        lambda alter: alter.drop_column("n"),
        lambda alter: alter.change_type("n", pa.string()),
    ]
    for change in changes:
        with pytest.raises(UnsupportedTableFeature, match="n:sum"):
            change(table.alter()).execute()
    table.alter().change_type("n", pa.int64()).rename_column("v", "w").execute()
    table.upsert({"id": ["a"], "n": [1], "w": ["y"]})
    assert rows_of(table) == [{"id": "a", "n": 2**31, "w": "y"}]


def test_index_that_moves_rows_refuses_rules(tmp_path: Path) -> None:
    """A row in its new partition would not have the values of the old one."""
    options = {"hoodie.record.index.update.partition.path": "true"}
    schema = COUNTERS.schema
    table = pyhudi.create_table(
        tmp_path / "t", schema, key="id", partition_by="name", merge_rules=RULES
    )
    table.upsert(COUNTERS.rows(["a"], name="p"))
    with pytest.warns(pyhudi.errors.PartitionChangeWarning):
        table.upsert(COUNTERS.rows(["a"], name="q"))
    assert clicks(table) == {"a": 2}
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.index\.type"):
        pyhudi.open_table(table.uri, options=options).upsert(COUNTERS.rows(["a"], name="q"))
