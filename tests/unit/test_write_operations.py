"""Write operations other than upsert, insert and delete_keys: the rows after each."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.clock import SystemClock
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.errors import CommitConflict, ConfigError, SchemaMismatch
from pyhudi.schema import key_generator
from pyhudi.timeline import Timeline
from pyhudi.timeline.serde import decode, encode_container
from tests.helpers.table_builder import SMALL, TableBuilder

pytestmark = pytest.mark.in_parts

EVERY_TABLE = pytest.mark.parametrize(
    ("version", "kind"), [(v, k) for v in (6, 8, 9) for k in ("cow", "mor")]
)


TABLE = TableBuilder(
    {
        "id": (pa.string(), str),
        "part": (pa.string(), lambda key: "x" if key < "n" else "y"),
        "v": (pa.int64(), 1),
        "ts": (pa.int64(), 10),
    },
    partition_by="part",
    order_by="ts",
    options=SMALL,
    first="abyz",
)


def values(table: HudiTable) -> dict[str, int]:
    found = table.scan(columns=["id", "v"]).to_arrow().to_pylist()
    assert len({row["id"] for row in found}) == len(found)
    return {row["id"]: row["v"] for row in found}


def metadata_of(table: HudiTable, instant: str) -> Any:
    timeline = Timeline.load(table.storage, table.config)
    (found,) = (one for one in timeline.commits if one.requested == instant)
    return found.action, timeline.commit_metadata(found)


# --- bulk insert ----------------------------------------------------------------------------------


def ids_by_file(table: HudiTable) -> list[list[str]]:
    found = table.scan(columns=["id", "_hoodie_file_name"]).to_arrow()
    by_file = found.group_by("_hoodie_file_name", use_threads=False).aggregate([("id", "list")])
    return [one["id_list"] for one in by_file.to_pylist()]


def test_bulk_insert_sorts(tmp_path: Path) -> None:
    for sort, columns, wanted in (
        ("none", (), ["c", "d", "b", "a"]),
        ("global", (), ["a", "b", "c", "d"]),
        ("partition", (), ["a", "b", "c", "d"]),
        ("global", ("v", "id"), ["a", "d", "b", "c"]),
    ):
        TABLE.make(tmp_path / f"{sort}{len(columns)}").delete("true")
        table = pyhudi.open_table(tmp_path / f"{sort}{len(columns)}")
        given = pa.concat_tables(
            [TABLE.rows("c", v=2), TABLE.rows("d", v=1), TABLE.rows("b", v=2), TABLE.rows("a", v=1)]
        )
        result = table.bulk_insert(given, sort=sort, sort_columns=columns)  # type: ignore[arg-type]
        assert (result.operation, result.rows_inserted, result.files_written) == (
            "BULK_INSERT",
            4,
            1,
        )
        assert ids_by_file(table) == [wanted]


def test_bulk_insert_rolls_files_over(tmp_path: Path) -> None:
    options = {**SMALL, "hoodie.parquet.max.file.size": 100_000}
    table = TABLE.make(tmp_path / "t", options=options)
    count = 30_000
    given = pa.table(
        {
            "id": [f"k{n * 7919 % count:06}" for n in range(count)],
            "part": ["x"] * count,
            "v": range(count),
            "ts": range(count),
        }
    )
    result = table.bulk_insert(given, sort="global")
    assert result.files_written > 2
    sizes = table.scan().plan().filter(pc.field("partition") == "x").column("base_size")
    assert max(sizes.to_pylist()) < 200_000
    files = [ids for ids in ids_by_file(table) if len(ids) > 3]
    ranges = sorted((min(ids), max(ids)) for ids in files)
    assert all(a[1] < b[0] for a, b in pairwise(ranges))


def test_invalid_sort_raises(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    wrong: list[dict[str, Any]] = [
        {"sort": "up"},
        {"sort": "global", "sort_columns": ["nothing"]},
        {"sort_columns": ["v"]},
        {"sort": "global", "sort_columns": "v"},
        {"memory_limit": 10},
    ]
    for arguments in wrong:
        with pytest.raises(ConfigError):
            table.bulk_insert(TABLE.rows("q", v=1), **arguments)
    assert len(Timeline.load(table.storage, table.config).commits) == 1


# --- duplicates among the data --------------------------------------------------------------------


def test_combine_option_drops_duplicates(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    for verb in ("insert", "bulk_insert", "overwrite"):
        for combined in (False, True):
            options = {**SMALL, "hoodie.combine.before.insert": combined}
            table = pyhudi.open_table(tmp_path / "t", options=options)
            given = pa.concat_tables(
                [TABLE.rows("q", v=1, ts=5), TABLE.rows("q", v=2, ts=9), TABLE.rows("q", v=3, ts=7)]
            )
            assert getattr(table, verb)(given).rows_inserted == (1 if combined else 3)
    assert values(table) == {"q": 2}


@EVERY_TABLE
def test_combine_option_keeps_duplicates_of_upserts_and_deletes(
    tmp_path: Path, version: int, kind: str
) -> None:
    TABLE.make(tmp_path / "t", version=version, kind=kind)
    options = {f"hoodie.combine.before.{verb}": "false" for verb in ("upsert", "delete")}
    table = pyhudi.open_table(tmp_path / "t", options={**SMALL, **options})
    table.delete("true")
    table.upsert(
        pa.concat_tables(
            [TABLE.rows("q", v=1, ts=5), TABLE.rows("q", v=2, ts=9), TABLE.rows("q", v=3, ts=7)]
        )
    )
    found = table.scan(columns=["v"]).to_arrow()["v"].to_pylist()
    assert sorted(found) == ([1, 2, 3] if kind == "mor" else [2])
    table.overwrite(TABLE.rows("q", v=1))
    result = table.delete_keys(TABLE.rows("qq", v=1).select(["id", "part"]))
    assert result.rows_deleted == (2 if kind == "mor" else 1)
    assert values(table) == {}


@EVERY_TABLE
def test_insert_option_merges_with_rows_of_same_key(
    tmp_path: Path, version: int, kind: str
) -> None:
    TABLE.make(tmp_path / "t", version=version, kind=kind)
    options = {**SMALL, "hoodie.merge.allow.duplicate.on.inserts": "false"}
    table = pyhudi.open_table(tmp_path / "t", options=options)
    result = table.insert(TABLE.rows("ac", v=5))
    assert (result.rows_inserted, result.rows_updated) == (1, 1)
    assert values(table) == {"a": 5, "b": 1, "c": 5, "y": 1, "z": 1}


def test_switches_are_true_or_false(tmp_path: Path) -> None:
    TABLE.make(tmp_path / "t")
    with pytest.raises(ConfigError, match=r"combine\.before\.upsert"):
        pyhudi.open_table(tmp_path / "t", options={"hoodie.combine.before.upsert": "maybe"})


# --- by a filter ----------------------------------------------------------------------------------


@EVERY_TABLE
def test_update_and_delete_by_a_filter(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    table.upsert(TABLE.rows("by", v=2))
    result = table.update("v = 2 OR id = 'a'", {"v": "v * 10", "ts": 10})
    assert (result.operation, result.rows_updated, result.rows_inserted) == ("UPSERT", 3, 0)
    assert values(table) == {"a": 10, "b": 20, "y": 20, "z": 1}
    result = table.delete([("v", ">", 5), ("part", "=", "x")])
    assert (result.operation, result.rows_deleted) == ("DELETE", 2)
    assert values(table) == {"y": 20, "z": 1}
    assert table.delete("id = 'nobody'").files_written == 0
    assert table.update("id = 'nobody'", {"v": 1}).files_written == 0
    assert table.update(pc.field("v") == 1, {"v": pc.field("v") + 7}).rows_updated == 1
    assert values(table) == {"y": 20, "z": 8}


STAYS = {"hoodie.index.type": "GLOBAL_SIMPLE", "hoodie.simple.index.update.partition.path": "false"}
TIMES = {
    "hoodie.table.keygenerator.type": "TIMESTAMP",
    "hoodie.keygen.timebased.timestamp.type": "EPOCHMILLISECONDS",
    "hoodie.keygen.timebased.output.dateformat": "yyyy-MM-dd",
    "hoodie.keygen.timebased.timezone": "UTC",
}


def check_finds_as_a_scan(table: HudiTable, where: str, found: list[str]) -> None:
    """Updates come first: what they leave is deleted."""
    every = set(values(table))
    assert sorted(table.scan(where=where).to_arrow()["id"].to_pylist()) == found
    assert table.update(where, {"v": 99}).rows_updated == len(found)
    assert sorted(key for key, v in values(table).items() if v == 99) == found
    table.delete(where)
    assert sorted(every - set(values(table))) == found


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("part = 'x'", ["a"]),
        ("part = 'y'", ["b"]),
        ("part = 'y' AND v = 10", []),
        ("COALESCE(part, 'none') = 'y'", ["b"]),
        ("part = ''", []),
        ("part IS NULL", ["c", "d"]),
    ],
)
def test_filters_take_partition_values_from_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, where: str, found: list[str]
) -> None:
    """Others are stored for a row that stays in its old partition, and for Hudi's empty texts."""
    monkeypatch.setattr(key_generator, "_check_not_null_path", lambda *_: None)
    first = TABLE.rows("abcd", part={"a": "x", "b": "y", "c": ""}.get)
    TABLE.make(tmp_path / "t", kind=kind, first=first)
    table = pyhudi.open_table(tmp_path / "t", options=STAYS)
    table.upsert(TABLE.rows("a", part="y", v=10))
    check_finds_as_a_scan(table, where, found)


def test_update_keeps_stored_partition_values(tmp_path: Path) -> None:
    TABLE.make(tmp_path / "t", first=TABLE.rows("a"))
    table = pyhudi.open_table(tmp_path / "t", options=STAYS)
    table.upsert(TABLE.rows("a", part="y"))
    table.update("part = 'x'", {"v": "CASE WHEN part = 'y' THEN 5 END"})
    file = table.scan(columns=["_hoodie_file_name"]).to_arrow()[0][0].as_py()
    assert pq.read_table(tmp_path / "t" / "x" / file, columns=["part", "v"]).to_pylist() == [
        {"part": "y", "v": 5}
    ]


@pytest.mark.parametrize("where", ["part IS NULL", "COALESCE(part, 'none') = ''"])
def test_filters_take_partition_values_from_paths_where_no_keys_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(key_generator, "_check_not_null_path", lambda *_: None)
    first = TABLE.rows("cd", part={"c": ""}.get)
    options = {"hoodie.populate.meta.fields": "false"}
    table = TABLE.make(tmp_path / "t", first=first, options=options)
    check_finds_as_a_scan(table, where, ["c", "d"] if "NULL" in where else [])


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("part > '10'", ["a"]),
        ("part < '10'", []),
        ("part LIKE '1%'", ["b"]),
        ("part IS NULL", ["c"]),
    ],
)
def test_filters_take_times_of_partitions_as_text(
    tmp_path: Path, kind: str, where: str, found: list[str]
) -> None:
    timed = replace(TABLE, columns={**TABLE.columns, "part": (pa.int64(), 9)})
    first = timed.rows("abc", part={"a": 9, "b": 10}.get)
    table = timed.make(tmp_path / "t", kind=kind, first=first, options=TIMES)
    check_finds_as_a_scan(table, where, found)
    with pytest.raises(SchemaMismatch):
        table.delete("part = 9")


def test_update_loses_with_older_ordering_value(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    table.update("true", {"v": 9, "ts": 5})
    assert set(values(table).values()) == {1}
    table.update("true", {"v": 9})
    assert set(values(table).values()) == {9}


def test_invalid_updates_raise_before_writing(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    for changes, error in (
        ({}, ConfigError),
        ({"id": "'q'"}, ConfigError),
        ({"part": "'x'"}, ConfigError),
        ({"nothing": 1}, SchemaMismatch),
        ({"v": "'text'"}, SchemaMismatch),
        ({"v": "nothing + 1"}, SchemaMismatch),
        ({"v": "v ->"}, ConfigError),
    ):
        with pytest.raises(error):
            table.update("true", changes)
    with pytest.raises(ConfigError):
        table.update(None, {"v": 1})
    with pytest.raises(SchemaMismatch):
        table.delete("nothing = 1")
    assert len(Timeline.load(table.storage, table.config).commits) == 1


# --- taking file groups away ----------------------------------------------------------------------


@EVERY_TABLE
def test_overwrite_replaces_file_groups(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    before = table.scan().plan()
    result = table.overwrite_partitions(TABLE.rows("cd", v=2))
    assert (result.operation, result.file_groups_replaced) == ("INSERT_OVERWRITE", 1)
    assert values(table) == {"c": 2, "d": 2, "y": 1, "z": 1}
    action, metadata = metadata_of(table, result.instant)
    assert action == "replacecommit"
    (old,) = before.filter(pc.field("partition") == "x").column("file_id").to_pylist()
    assert metadata.partition_to_replace_file_ids == {"x": (old,)}
    requested = table.storage.read(
        f"{table.config.timeline_path}/{result.instant}.replacecommit.requested"
    )
    assert (decode(requested, "requested") or {})["clusteringPlan"] is None

    result = table.overwrite(TABLE.rows("e", v=3))
    assert (result.operation, result.file_groups_replaced) == ("INSERT_OVERWRITE_TABLE", 2)
    assert values(table) == {"e": 3}
    assert values(pyhudi.open_table(tmp_path / "t", as_of=before_instant(table, 1))) == {
        "c": 2, "d": 2, "y": 1, "z": 1,
    }  # fmt: skip
    assert table.upsert(TABLE.rows("ey", v=4)).rows_updated == 1
    assert values(table) == {"e": 4, "y": 4}
    assert table.overwrite(TABLE.rows("", v=1)).files_written == 0
    assert values(table) == {}


def before_instant(table: HudiTable, steps: int) -> str:
    return Timeline.load(table.storage, table.config).commits[-1 - steps].requested


@EVERY_TABLE
def test_delete_partitions(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    result = table.delete_partitions(["x", "absent"])
    assert (result.operation, result.file_groups_replaced) == ("DELETE_PARTITION", 1)
    _, metadata = metadata_of(table, result.instant)
    assert set(metadata.partition_to_replace_file_ids) == {"x", "absent"} - (
        set() if version == 6 else {"absent"}
    )
    assert values(table) == {"y": 1, "z": 1}
    table.upsert(TABLE.rows("ab", v=2))
    assert table.delete_partitions([{"part": "y"}]).file_groups_replaced == 1
    assert values(table) == {"a": 2, "b": 2}
    assert table.delete_partitions("part > 'w' AND part < 'y'").file_groups_replaced == 1
    assert values(table) == {}


def test_partitions_are_named_by_exactly_their_columns(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    all_wrong: list[Any] = [[], [{"v": 1}], [{}], "v = 1", 5]
    for wrong in all_wrong:
        with pytest.raises(ConfigError):
            table.delete_partitions(wrong)
    flat = TABLE.make(tmp_path / "flat", partition_by=None)
    with pytest.raises(ConfigError, match="no partitions"):
        flat.delete_partitions(["x"])


def test_delete_partitions_refuses_bare_path(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    for path in ("2024-01-02", "x", "part=x", "x/y"):
        with pytest.raises((ConfigError, SchemaMismatch)) as raised:
            table.delete_partitions(path)
        assert f"[{path!r}]" in raised.value.hint


def test_partitions_are_named_by_values_of_one_column(tmp_path: Path) -> None:
    days = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
    rows = pa.table({"id": ["a", "b", "c"], "day": days, "n": [1, 2, 3]})
    for column, first in (("day", days[0]), ("n", 1)):
        table = pyhudi.create_table(tmp_path / column, rows, key="id", partition_by=column)
        assert table.delete_partitions([first]).file_groups_replaced == 1
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == ["b", "c"]
    noon = datetime.datetime(2024, 1, 2, 12)  # noqa: DTZ001
    with pytest.raises(SchemaMismatch, match="'day' is date32"):
        pyhudi.open_table(tmp_path / "day").delete_partitions([noon])
    both = pyhudi.create_table(tmp_path / "both", rows, key="id", partition_by=["day", "n"])
    with pytest.raises(ConfigError, match="does not name a partition") as raised:
        both.delete_partitions(days)
    assert "exactly day, n" in raised.value.hint


def test_keys_of_one_column_are_values_alone(tmp_path: Path) -> None:
    import numpy as np  # noqa: PLC0415 - one test's
    import pandas as pd  # noqa: PLC0415 - likewise

    table = TABLE.make(tmp_path / "t")
    for keys in (["a", "nobody"], pd.Series(["b"]), np.array(["y"]), pa.array(["nobody"])):
        table.delete_keys(keys)
    assert values(table) == {"z": 1}


def test_partitions_by_a_field_of_a_struct(tmp_path: Path) -> None:
    at = pa.array([{"city": "x"}, {"city": "y"}])
    rows = pa.table({"id": ["a", "b"], "at": at})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id", partition_by="at.city")
    with pytest.raises(ConfigError, match=r"'at\.city', a field of a struct"):
        table.delete_partitions("at.city = 'x'")
    table.delete_partitions([{"at.city": "x"}])
    assert table.scan().to_arrow()["id"].to_pylist() == ["b"]


# --- merge ----------------------------------------------------------------------------------------


@EVERY_TABLE
def test_merge_clause_by_clause(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind)
    table.delete_keys(TABLE.rows("z", v=1).select(["id", "part"]))
    source = pa.table(
        {"id": list("abyqrz"), "part": list("xxyyyy"), "plus": [5, 50, 500, 7, 70, 9]}
    )
    values_of_new = {"id": "id", "part": "part", "v": "-plus", "ts": 20}
    merge = (
        table.merge(source, on=["id"])
        .when_matched_delete(where="source.plus = 50")
        .when_matched_update({"v": "target.v + plus"}, where="plus < 100")
        .when_not_matched_insert(values_of_new, where="plus < 10")
    )
    result = merge.execute()
    assert (result.rows_inserted + result.rows_updated, result.rows_deleted) == (3, 1)
    assert values(table) == {"a": 6, "y": 1, "q": -7, "z": -9}
    again = (
        table.merge(TABLE.rows("ad", v=3, ts=20))
        .when_matched_update_all()
        .when_not_matched_insert_all()
    )
    again.execute()
    assert values(table) == {"a": 3, "d": 3, "y": 1, "q": -7, "z": -9}


def test_invalid_merges_raise(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    with pytest.raises(ConfigError, match="record key"):
        table.merge(TABLE.rows("a", v=1), on=["v"])
    with pytest.raises(ConfigError, match="no clause"):
        table.merge(TABLE.rows("a", v=1)).execute()
    with pytest.raises(SchemaMismatch, match="several rows"):
        table.merge(TABLE.rows("aa", v=1)).when_matched_delete().execute()
    with pytest.raises(SchemaMismatch, match="part"):
        table.merge(pa.table({"id": ["a"]})).when_matched_delete().execute()
    with pytest.raises(ConfigError):
        table.merge(TABLE.rows("a", v=1)).when_matched_update({"id": "'q'"}).execute()
    with pytest.raises(SchemaMismatch):
        table.merge(TABLE.rows("a", v=1)).when_matched_update({"v": "source.w"}).execute()
    for where in ("source.v", "source.id", "'no'", "1", pc.field("source.v")):
        with pytest.raises(SchemaMismatch, match="expected a boolean"):
            table.merge(TABLE.rows("a", v=1)).when_matched_delete(where=where).execute()
    wrong = {"id": "'q'", "part": "part", "v": 1, "ts": 1}
    with pytest.raises(ConfigError, match="other keys"):
        table.merge(TABLE.rows("m", v=1)).when_not_matched_insert(wrong).execute()
    assert len(Timeline.load(table.storage, table.config).commits) == 1


def test_merge_without_rows_makes_no_commit(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    clauses = table.merge([]).when_matched_update({"v": "source.w"}, where="source.w > 1")
    result = clauses.when_matched_delete().when_not_matched_insert_all().execute()
    assert (result.committed, result.rows_in) == (False, 0)
    assert len(Timeline.load(table.storage, table.config).commits) == 1


WHO = pa.struct({"id": pa.string(), "x": pa.int64()})


def people(keys: str, x: int = 1) -> pa.Table:
    who = pa.array([{"id": key, "x": x} for key in keys], WHO)
    return pa.table({"id": list(keys), "who": who, "v": [x] * len(keys)})


def by_who(table: HudiTable) -> dict[str, tuple[int, int]]:
    found = table.scan(["_hoodie_record_key", "who", "v"]).to_arrow().to_pylist()
    assert all(row["_hoodie_record_key"] == row["who"]["id"] for row in found)
    return {row["who"]["id"]: (row["who"]["x"], row["v"]) for row in found}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_merge_matches_keys_in_structs(tmp_path: Path, kind: Any) -> None:
    table = pyhudi.create_table(tmp_path, people("ab"), key="who.id", type=kind)
    table.merge(people("b", 2)).when_matched_update({"v": "source.v + who.x"}).execute()
    assert by_who(table) == {"a": (1, 1), "b": (1, 3)}
    merge = table.merge(people("bc", 5)).when_matched_update_all().when_not_matched_insert_all()
    assert merge.execute().rows_inserted == 1
    assert by_who(table) == {"a": (1, 1), "b": (5, 5), "c": (5, 5)}
    table.merge(people("ad", 7)).when_matched_delete(where="source.who.x = 7").execute()
    assert by_who(table) == {"b": (5, 5), "c": (5, 5)}
    with pytest.raises(SchemaMismatch, match=r"does not have the column 'who\.id'"):
        table.merge(pa.table({"who.id": ["b"]})).when_matched_delete().execute()


def test_update_refuses_struct_around_key(tmp_path: Path) -> None:
    by_key = pyhudi.create_table(tmp_path / "key", people("ab"), key="who.id")
    parted = pyhudi.create_table(tmp_path / "path", people("ab"), key="id", partition_by="who.id")
    for table in (by_key, parted):
        with pytest.raises(ConfigError, match="'who' cannot be set: it holds part"):
            table.update("true", {"who": {"id": "z", "x": 9}})
        with pytest.raises(ConfigError, match="'who' cannot be set"):
            table.merge(people("a", 2)).when_matched_update({"who": "source.who"}).execute()
    with pytest.raises(ConfigError, match="'who' cannot be set"):
        parted.merge(people("a", 2)).when_matched_update_all().execute()
    by_key.update("true", {"v": "who.x + 1"})
    assert by_who(by_key) == {"a": (1, 2), "b": (1, 2)}


# --- what a write tells ---------------------------------------------------------------------------


def test_results_contain_bytes_read_and_duration(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    read = table.scan(where="part = 'x'").plan().column("base_size").to_pylist()
    result = table.upsert(TABLE.rows("a", v=2))
    assert result.bytes_read == sum(read)
    assert result.bytes_written > 0
    assert result.duration_ms >= 0


def test_metrics_contain_work_by_stage(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    result = table.upsert(TABLE.rows("by", v=2))
    by_stage = {metrics.stage: metrics for metrics in result.metrics}
    assert list(by_stage)[-2:] == ["write files", "write metadata"]
    written = by_stage["write files"]
    assert (written.tasks, written.files_written) == (2, result.files_written)
    assert written.bytes_written == result.bytes_written
    assert written.rows_written == 4  # the rows of both files, with those that stayed the same
    assert by_stage["write metadata"].files_written > 0
    table.upsert(TABLE.rows("by", v=3))
    cleaned = {metrics.stage: metrics for metrics in table.clean(retain=1).metrics}
    assert cleaned.keys() == {"delete files", "write metadata"}
    assert cleaned["delete files"].files_written == 0


def test_metrics_contain_services_after_the_commit(tmp_path: Path) -> None:
    options = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "2"}
    table = TABLE.make(tmp_path / "t", kind="mor", options=options)
    results = [table.upsert(TABLE.rows("by", v=version)) for version in (2, 3)]
    services = [
        metrics
        for result in results
        for metrics in result.metrics
        if metrics.stage.startswith("table services: ")
    ]
    assert [metrics.stage for metrics in services] == [
        "table services: compact files",
        "table services: write metadata",
    ]
    assert (services[0].files_written, services[0].rows_written) == (2, 4)


def test_progress_reports_each_step(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    steps: list[pyhudi.Step] = []
    table.upsert(TABLE.rows("by", v=2), progress=steps.append)
    written = [step for step in steps if step.label == "write files"]
    assert [(step.finished, step.total) for step in written] == [(0, 2), (1, 2), (2, 2)]
    table.upsert(TABLE.rows("by", v=3), progress=True)
    assert values(table) == {"a": 1, "b": 3, "y": 3, "z": 1}


@EVERY_TABLE
def test_ctrl_c_leaves_a_clean_table(tmp_path: Path, version: int, kind: str) -> None:
    table = TABLE.make(tmp_path / "t", version=version, kind=kind, engine=pyhudi.LocalEngine(2))
    before = values(table)

    def interrupt(step: pyhudi.Step) -> None:
        if step.label.startswith("write") and step.finished:
            raise KeyboardInterrupt

    for verb in (table.upsert, table.bulk_insert, table.overwrite):
        with pytest.raises(KeyboardInterrupt):
            verb(TABLE.rows("bcyz", v=2), progress=interrupt)
        timeline = Timeline.load(table.storage, table.config)
        assert [one.action for one in timeline.commits] == [timeline.commits[0].action]
        assert not timeline.pending()
        assert not table.storage.list(f"{META_FOLDER}/.temp")
        assert values(table.refresh()) == before
        assert table.scan().plan().num_rows == 2
    table.upsert(TABLE.rows("b", v=3))
    assert values(table)["b"] == 3


def test_delete_keeps_groups_of_pending_clustering(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t")
    plan = {
        "operationType": "CLUSTER",
        "clusteringPlan": {
            "inputGroups": [
                {
                    "slices": [
                        {"fileId": file_id, "partitionPath": "x"}
                        for file_id in table.scan(where="part = 'x'").plan()["file_id"].to_pylist()
                    ]
                }
            ]
        },
    }
    content = encode_container("HoodieRequestedReplaceMetadata", plan, SystemClock())
    name = f"{table.config.timeline_path}/20990101000000000.clustering.requested"
    table.storage.put(name, content)
    for verb in (table.overwrite, table.overwrite_partitions):
        with pytest.raises(CommitConflict, match="clustering"):
            verb(TABLE.rows("c", v=1))
    assert table.overwrite_partitions(TABLE.rows("z", v=5)).file_groups_replaced == 1


# --- values that do not fit -----------------------------------------------------------------------

NARROW = pa.schema(
    [("id", pa.string()), ("n", pa.int64()), ("f", pa.float32()), ("d", pa.date32())]
)
"""A table of these columns cannot hold everything that comes in wider ones."""


def wide(key: str = "a", values: Mapping[str, Any] | None = None) -> pa.Table:
    columns = {"id": pa.array([key]), "n": pa.array([1]), "f": pa.array([0.5]), "d": pa.nulls(1)}
    return pa.table({**columns, **{name: pa.array([one]) for name, one in (values or {}).items()}})


LOST: dict[str, Any] = {"n": 1.5, "f": 0.1}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_operations_never_change_values_to_fit(tmp_path: Path, kind: Any) -> None:
    table = pyhudi.create_table(tmp_path, NARROW, key="id", type=kind)
    table.insert(wide())
    before = table.scan().to_arrow()
    for name, value in LOST.items():
        told = pytest.raises(SchemaMismatch, match=f"'{name}' .* {value}")
        rows = wide("a", {name: value})
        for verb in (table.upsert, table.insert, table.bulk_insert, table.overwrite):
            with told:
                verb(rows)
        with told:
            table.upsert(rows.select(["id", name]), partial=True)
        for merge in (
            table.merge(rows).when_matched_update_all(),
            table.merge(rows).when_matched_update({name: f"source.{name}"}),
            table.merge(wide("b", {name: value})).when_not_matched_insert_all(),
        ):
            with told:
                merge.execute()
    noon = datetime.datetime.combine(datetime.date(2024, 5, 1), datetime.time(12))
    for changes in ({"n": 1.5}, {"f": 1e300}, {"d": noon}, {"n": "f"}, {"f": "n * 1e300"}):
        with pytest.raises(SchemaMismatch, match=next(iter(changes))):
            table.update("true", changes)
        with pytest.raises(SchemaMismatch, match=next(iter(changes))):
            table.merge(wide()).when_matched_update(changes).execute()
    assert table.scan().to_arrow() == before
    table.update("true", {"n": 3.0, "f": 0.1})
    (row,) = table.scan(columns=["n", "f"]).to_arrow().to_pylist()
    assert row == {"n": 3, "f": pytest.approx(0.1)}


def test_keys_that_do_not_fit_delete_nothing(tmp_path: Path) -> None:
    table = pyhudi.create_table(tmp_path, pa.table({"k": [1, 2]}), key="k")
    with pytest.raises(SchemaMismatch, match=r"'k' .* 1\.5"):
        table.delete_keys(pa.table({"k": [1.5]}))
    assert table.delete_keys(pa.table({"k": [1.0]})).rows_deleted == 1
