"""Making secondary indexes, expression indexes and record indexes by data partition."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, UnsupportedTableFeature
from tests.helpers.metadata_records import stored_records
from tests.helpers.metadata_table import metadata_table
from tests.helpers.table_builder import SMALL, TableBuilder, numbered
from tests.helpers.tables import unpack

Kind = Literal["cow", "mor"]


TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "city": (pa.string(), lambda number: ("oslo", "lima")[number % 2]),
        "name": (pa.string(), lambda number: f"N{number}"),
        "ts": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="ts",
    options=SMALL,
)


def make(base: Path, version: int = 9, kind: Kind = "cow") -> HudiTable:
    made = TABLE.make(base, version=version, kind=kind, metadata=False)
    table = pyhudi.open_table(made.uri, options=SMALL)
    table.insert(TABLE.rows(range(6)))
    table.upsert(TABLE.rows([0, 1, 8], name="Upd", ts=2))
    table.delete_keys(TABLE.rows([2]).select(["id", "city"]))
    return table


def found(table: HudiTable, name: str) -> list[str]:
    """Keys of the rows with that name, by the metadata table and without it: they agree."""
    answers = []
    for flag in ("true", "false"):
        opened = pyhudi.open_table(table.uri, options={"hoodie.metadata.enable": flag})
        read = opened.scan(columns=["id"], where=pc.field("name") == name).to_arrow()
        answers.append(sorted(read["id"].to_pylist()))
    assert answers[0] == answers[1]
    return answers[0]


def definitions(table: HudiTable) -> dict[str, Any]:
    text = table.storage.read(".hoodie/.index_defs/index.json")
    defined: dict[str, Any] = json.loads(text)["indexDefinitions"]
    return defined


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [8, 9])
def test_secondary_index(tmp_path: Path, version: int, kind: Kind) -> None:
    table = make(tmp_path / "t", version, kind)
    with pytest.raises(ConfigError, match="needs a record index"):
        table.create_index("secondary_index", ["name"], name="by_name")
    table.create_index("record_index")
    # Rows were inserted without an index: only then it is known that no key is there twice.
    table.overwrite(table.scan().to_arrow())
    made = table.create_index("secondary_index", ["name"], name="by_name")
    assert made == ("files", "record_index", "secondary_index_by_name")
    assert found(table, "Upd") == ["k0", "k1", "k8"]
    assert "secondary_index_by_name" in str(table.scan(where="name = 'none'").explain())
    table.upsert(TABLE.rows([1, 9], name="Upd", ts=3))
    table.upsert(TABLE.rows([0], name="other", ts=3))
    assert found(table, "Upd") == ["k1", "k8", "k9"]
    assert table.rebuild_metadata() == made
    assert table.check().ok
    assert found(table, "Upd") == ["k1", "k8", "k9"]
    assert table.drop_index("by_name") == ("secondary_index_by_name",)
    assert "secondary_index_by_name" not in definitions(table)


def test_definitions_are_hudis(tmp_path: Path) -> None:
    """Hudi 1.0.2 stores no version of an index; 1.2.0 stores V1 in a table of version 8."""
    for version, index_version in ((8, "V1"), (9, "V2")):
        name = f"v{version}_mor_secondary_index"
        table = pyhudi.open_table(unpack(name, tmp_path))
        hudis = definitions(table)
        table.drop_index("idx_name")
        table.create_index("secondary_index", ["name"], name="idx_name")
        hudis["secondary_index_idx_name"].setdefault("version", index_version)
        assert definitions(table) == hudis
        assert hudis["secondary_index_idx_name"]["version"] == index_version


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_record_index_by_data_partition(tmp_path: Path, kind: Kind) -> None:
    table = make(tmp_path / "t", 9, kind)
    assert table.create_index("record_index", partitioned=True) == ("files", "record_index")
    assert definitions(table)["record_index"]["indexOptions"] == {"isPartitioned": "true"}
    names = {one.name for one in metadata_table(table.storage).storage.list_dir("record_index")[1]}
    opened = [name for name in names if ".log.1_0-0-0" in name]
    assert sorted(name.split("_")[0] for name in opened) == [
        ".record-index-lima-0000-0",
        ".record-index-oslo-0000-0",
    ]
    result = table.upsert(TABLE.rows([0, 3, 10], name="Again", ts=4))
    assert (result.rows_updated, result.rows_inserted) == (2, 1)
    assert table.check().ok
    assert table.rebuild_metadata() == ("files", "record_index")
    assert definitions(table)["record_index"]["indexOptions"] == {"isPartitioned": "true"}
    assert found(table, "Again") == ["k0", "k10", "k3"]
    with pytest.raises(ConfigError, match="needs a record index over the whole"):
        table.create_index("secondary_index", ["name"], name="by_name")


def test_new_table_has_partitioned_record_index(tmp_path: Path) -> None:
    options = {"hoodie.metadata.record.level.index.enable": "true"}
    table = TABLE.make(tmp_path / "t", order_by=None, options=options)
    assert definitions(table)["record_index"]["indexOptions"] == {"isPartitioned": "true"}
    table.upsert(TABLE.rows([1, 2]))
    result = table.upsert(TABLE.rows([2, 3], name="Upd", ts=2))
    assert (result.rows_updated, result.rows_inserted) == (1, 1)


EXPRESSIONS: list[tuple[str, str, str, dict[str, str]]] = [
    ("column_stats", "from_unixtime", "ts", {"format": "yyyy-MM-dd"}),
    ("column_stats", "lower", "name", {}),
    ("bloom_filters", "lower", "name", {"numentries": "100"}),
    ("bloom_filters", "identity", "name", {"filtertype": "SIMPLE", "numentries": "100"}),
]


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [8, 9])
def test_expression_indexes(tmp_path: Path, version: int, kind: Kind) -> None:
    table = make(tmp_path / "t", version, kind)
    chosen = [one for one in EXPRESSIONS if kind == "cow" or one[0] == "column_stats"]
    made = [f"expr_index_e{number}" for number in range(len(chosen))]
    for name, (form, function, column, options) in zip(made, chosen, strict=True):
        short = name.removeprefix("expr_index_")
        table.create_index(form, [column], name=short, function=function, options=options)
    assert table.config.metadata_partitions == (*made, "files")
    table.upsert(TABLE.rows([3, 9], name="Ünique", ts=3))
    table.upsert(TABLE.rows([4, 11], name="Last", ts=4))
    assert found(table, "Upd") == ["k0", "k1", "k8"]
    assert found(table, "Ünique") == ["k3", "k9"]
    assert found(table, "Last") == ["k11", "k4"]
    assert found(table, "None") == []
    told = str(table.scan(where="name = 'None'").explain())
    assert "expr_index_e1" in told or "expr_index_e2" in told
    assert table.rebuild_metadata() == (*made, "files")
    assert found(table, "Ünique") == ["k3", "k9"]
    for name in made:
        assert table.drop_index(name) == (name,)
    assert found(table, "Last") == ["k11", "k4"]


def test_bloom_filter_expression_index_raises_for_merge_on_read(tmp_path: Path) -> None:
    table = make(tmp_path / "t", 9, "mor")
    with pytest.raises(UnsupportedTableFeature, match="log file"):
        table.create_index("bloom_filters", ["name"], name="x", function="lower")
    assert table.config.metadata_partitions == ()


def test_filters_are_hudis(tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack("v9_cow_expression_index", tmp_path))
    folder = tmp_path / "v9_cow_expression_index/.hoodie/metadata/expr_index_idx_low"
    hudis, defined = dict(stored_records(folder)), definitions(table)
    table.drop_index("idx_low")
    table.create_index("bloom_filters", ["name"], name="idx_low", function="lower")
    made = dict(stored_records(folder))
    assert made.keys() == hudis.keys()
    for record in (*hudis.values(), *made.values()):
        record["BloomFilterMetadata"].pop("timestamp")
    others = [one["BloomFilterMetadata"] for key, one in made.items() if one != hudis[key]]
    # One of the files has names beyond ASCII.
    assert len(made) == 3
    assert [set(base64.b64decode(one["bloomFilter"])[100:]) for one in others] == [{255}]
    assert definitions(table) == defined


def test_bounds_are_hudis_but_wide_enough_for_any_zone(tmp_path: Path) -> None:
    for version in (8, 9):
        name = f"v{version}_cow_expression_index"
        table = pyhudi.open_table(unpack(name, tmp_path))
        folder = tmp_path / name / ".hoodie/metadata/expr_index_idx_day"
        hudis, defined = dict(stored_records(folder)), definitions(table)
        defined["expr_index_idx_day"].setdefault("version", "V1")  # 1.0.2 stores none.
        table.drop_index("idx_day")
        day = {"format": "yyyy-MM-dd"}
        table.create_index(
            "column_stats", ["ts"], name="idx_day", function="from_unixtime", options=day
        )
        assert definitions(table) == defined
        made = dict(stored_records(folder))
        assert made.keys() <= hudis.keys()
        assert len(made) == 6
        for key, record in made.items():
            ours, theirs = record["ColumnStatsMetadata"], hudis[key]["ColumnStatsMetadata"]
            low, high = (
                {one: stats.pop(one)["value"] for one in ("minValue", "maxValue")}
                for stats in (ours, theirs)
            )
            assert (low["minValue"], high["maxValue"]) < (high["minValue"], low["maxValue"])
            if record["type"] == 3:
                assert ours == theirs


@pytest.mark.parametrize(
    ("kind", "columns", "how", "problem"),
    [
        ("secondary_index", ["name"], {}, "needs a name"),
        ("secondary_index", ["name"], {"name": "../x"}, "needs a name"),
        ("secondary_index", ["name", "city"], {"name": "x"}, "expected one column"),
        ("secondary_index", ["name"], {"name": "x", "function": "lower"}, "takes no function"),
        ("record_index", [], {"name": "x"}, "neither a name nor options"),
        ("bloom_filters", [], {"partitioned": True}, "cannot be partitioned"),
        ("column_stats", [], {"name": "x", "function": "lower"}, "expected one column"),
    ],
)
def test_invalid_index_requests_raise(
    tmp_path: Path, kind: str, columns: list[str], how: dict[str, Any], problem: str
) -> None:
    table = make(tmp_path / "t")
    with pytest.raises(ConfigError, match=problem):
        table.create_index(kind, columns, **how)
    assert table.config.metadata_partitions == ()


@pytest.mark.parametrize(
    ("version", "kind", "columns", "how", "said"),
    [
        (6, "secondary_index", ["name"], {"name": "x"}, "version 6"),
        (8, "record_index", [], {"partitioned": True}, "version 8"),
        (8, "column_stats", ["name"], {"name": "x", "function": "reverse"}, "reverse over string"),
        (8, "bloom_filters", ["ts"], {"name": "x", "function": "from_unixtime"}, "from_unixtime"),
        (
            8,
            "bloom_filters",
            ["name"],
            {"name": "x", "function": "lower", "options": {"fpp": "2"}},
            "its fpp is 2",
        ),
    ],
)
def test_unsupported_index_raises(
    tmp_path: Path, version: int, kind: str, columns: list[str], how: dict[str, Any], said: str
) -> None:
    table = make(tmp_path / "t", version)
    with pytest.raises(UnsupportedTableFeature, match=said):
        table.create_index(kind, columns, **how)
    assert table.config.metadata_partitions == ()


@pytest.mark.parametrize("name", ["v8_cow_expression_index", "v9_cow_expression_index"])
def test_indexes_of_hudi_are_kept_up(tmp_path: Path, name: str) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    stored = table.scan().to_arrow()
    changed = stored.slice(0, 3)
    times = [1_900_000_000, 1_900_090_000, 1_999_999_999]
    for column, values in (("ts", times), ("name", ["NEW"] * 3)):
        at, kind = stored.schema.get_field_index(column), stored.schema.field(column).type
        changed = changed.set_column(at, column, pa.array(values, kind))
    table.upsert(changed)
    everything = table.scan().to_arrow()
    for second in everything["ts"].to_pylist():
        read = table.scan(where=pc.field("ts") == second).to_arrow()
        assert read.num_rows == everything["ts"].to_pylist().count(second)
    if "expr_index_idx_low" in table.config.metadata_partitions:
        assert found(table, "NEW") == sorted(changed["id"].to_pylist())
    told = str(table.scan(where="ts = 1900045000").explain())
    assert "expr_index_idx_day" in told or "column_stats" in told


def test_index_over_unknown_function_raises_before_writing(
    tmp_path: Path,
) -> None:
    base = tmp_path / "v8_cow_expression_index"
    table = pyhudi.open_table(unpack(base.name, tmp_path))
    path = base / ".hoodie/.index_defs/index.json"
    path.write_text(path.read_text().replace('"from_unixtime"', '"regexp_extract"'))
    before = {one: one.stat().st_mtime_ns for one in base.rglob("*")}
    with pytest.raises(UnsupportedTableFeature, match=r"expr_index_idx_day: .*regexp_extract"):
        table.upsert(table.scan().to_arrow())
    assert {one: one.stat().st_mtime_ns for one in base.rglob("*")} == before
    assert table.drop_index("idx_day") == ("expr_index_idx_day",)
    table.upsert(table.scan().to_arrow())
