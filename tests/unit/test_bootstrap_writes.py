"""Writing to bootstrapped tables that Apache Hudi made: each verb, over skeletons and log files."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import CLUSTERING
from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.slices.bootstrap import INDEX_FILE, SKELETON_INSTANT
from tests.helpers.tables import unpack
from tests.unit.test_bootstrap import set_property, source_files

TABLES = (
    "v6_cow_bootstrap_metadata",
    "v9_cow_bootstrap_metadata",
    "v9_cow_bootstrap_row_groups",
    "v6_mor_bootstrap_compacted",
    "v8_mor_bootstrap_metadata",
    "v9_mor_bootstrap_compacted",
    "v9_mor_bootstrap_mixed",
    "v9_mor_bootstrap_typed",
)
KEPT = {"hoodie.parquet.small.file.limit": "0"}
"""Skeletons that no row goes to stay."""

Row = dict[str, Any]


@dataclass
class Written:
    """A golden table and what its rows are to be."""

    base: Path
    rows: dict[str, Row]
    schema: pa.Schema

    @property
    def table(self) -> HudiTable:
        return pyhudi.open_table(str(self.base), options=KEPT)

    @property
    def kept(self) -> list[Row]:
        """The rows whose slice is on a skeleton, by key."""
        tasks = [task for task in self.table.scan().tasks if task.slice.base]
        partitions = {t.slice.partition for t in tasks if t.slice.base and t.slice.base.source}
        rows = self.table.scan(meta_fields=True).to_arrow().to_pylist()
        ids = [row["id"] for row in rows if row["_hoodie_partition_path"] in partitions]
        return [self.rows[one] for one in sorted(ids)]

    def data(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, self.schema)

    @property
    def first(self) -> list[Row]:
        """Rows to be changed: those on skeletons, while there are some."""
        return self.kept or [self.rows[one] for one in sorted(self.rows)]

    def takes(self, rows: list[Row]) -> pa.Table:
        """The rows, which the table is to have."""
        self.rows |= {row["id"]: row for row in rows}
        return self.data(rows)

    def loses(self, rows: list[Row]) -> pa.Table:
        for row in rows:
            del self.rows[row["id"]]
        return self.data(rows)

    def check(self) -> None:
        found = self.table.scan().to_arrow().to_pylist()
        assert {row["id"]: row for row in found} == self.rows
        assert len(found) == len(self.rows)
        checked = self.table.check(deep=True)
        assert not checked.findings, str(checked)


@dataclass
class Damaged(Written):
    """As it was before its source was damaged."""

    before: list[Row]

    @property
    def kept(self) -> list[Row]:
        return self.before

    def check(self) -> None:
        """Not while it is so."""


@pytest.fixture(params=TABLES)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Written:
    return opened(request.param, tmp_path)


def opened(name: str, folder: Path) -> Written:
    base = unpack(name, folder)
    rows = pyhudi.open_table(str(base)).scan().to_arrow()
    return Written(base, {row["id"]: row for row in rows.to_pylist()}, rows.schema)


def changed(rows: list[Row]) -> list[Row]:
    return [{**row, "name": "changed", "ts": 1_000_000} for row in rows]


def upsert(one: Written) -> None:
    first = one.first
    new = {**first[0], "id": f"new{len(one.rows)}"}
    one.table.upsert(one.takes([*changed(first[:3]), new]))


def insert(one: Written) -> None:
    one.table.insert(one.takes([{**one.kept[0], "id": "new"}]))


def bulk_insert(one: Written) -> None:
    one.table.bulk_insert(one.takes([{**one.kept[0], "id": "new"}]))


def delete_keys(one: Written) -> None:
    one.table.delete_keys(one.loses(one.first[:3]).select(["id"]))


def delete(one: Written) -> None:
    last = one.kept[2]["id"]
    one.loses([row for row in one.rows.copy().values() if row["id"] <= last])
    one.table.delete(pc.field("id") <= last)


def update(one: Written) -> None:
    last = one.kept[2]["id"]
    one.takes([{**row, "name": "x"} for row in one.rows.values() if row["id"] <= last])
    one.table.update(pc.field("id") <= last, {"name": "'x'"})


def merge(one: Written) -> None:
    new = {**one.kept[0], "id": "new"}
    given = one.takes([*changed(one.kept[:2]), new])
    one.table.merge(given).when_matched_update_all().when_not_matched_insert_all().execute()


def overwrite(one: Written) -> None:
    first = one.kept[0]
    keys = list(one.table.config.partition_fields)
    alike = [row for row in one.rows.values() if all(row[key] == first[key] for key in keys)]
    one.loses(alike)
    one.table.overwrite_partitions(one.takes(changed([first])))


def cluster(one: Written) -> None:
    assert one.table.cluster(sort_by=["name"]).files_written
    assert not any(task.slice.base.source for task in one.table.scan().tasks if task.slice.base)


def join(one: Written) -> None:
    one.table.cluster()


def compact(one: Written) -> None:
    upsert(one)
    one.table.compact()
    one.check()
    upsert(one)


VERBS = (
    upsert, insert, bulk_insert, delete_keys, delete, update, merge, overwrite, cluster, join,
    compact,
)  # fmt: skip


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.__name__)
def test_bootstrapped_table_accepts_every_operation(
    written: Written, verb: Callable[[Written], None]
) -> None:
    if verb is compact and written.table.type == "cow":
        verb = upsert
    written.check()
    verb(written)
    written.check()


@pytest.mark.parametrize("index", ["SIMPLE", "BLOOM", "GLOBAL_SIMPLE", "GLOBAL_BLOOM"])
def test_indexes_find_keys_of_skeleton_files(index: str, tmp_path: Path) -> None:
    one = opened("v8_mor_bootstrap_metadata", tmp_path)
    table = pyhudi.open_table(str(one.base), options={**KEPT, "hoodie.index.type": index})
    table.upsert(one.takes(changed(one.kept[:3])))
    one.check()


def test_partition_move_reads_row_of_source_file(tmp_path: Path) -> None:
    one = opened("v9_cow_bootstrap_metadata", tmp_path)
    options = {
        "hoodie.index.type": "GLOBAL_SIMPLE",
        "hoodie.simple.index.update.partition.path": "true",
    }
    table = pyhudi.open_table(str(one.base), options={**KEPT, **options})
    first, second = one.kept[:2]
    moved = {**first, "city": "porto", "ts": 1_000_000}
    late = {**second, "city": "porto", "name": "late", "ts": 1}
    table.upsert(one.data([moved, late]))
    one.rows |= {first["id"]: moved}
    one.check()


@pytest.mark.parametrize(
    "name",
    ["v6_cow_bootstrap_metadata", "v8_mor_bootstrap_metadata", "v9_cow_bootstrap_metadata"],
)
def test_changes_tell_what_the_source_had(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    set_property(one.base, "hoodie.table.cdc.enabled", "true")
    set_property(one.base, "hoodie.table.cdc.supplemental.logging.mode", "data_before_after")
    first, second = one.kept[0], one.kept[-1]
    last = one.table.state.timeline.last_commit
    assert last is not None
    one.table.upsert(one.takes(changed([first])))
    one.table.delete_keys(one.loses([second]).select(["id"]))
    since = last.completed if one.table.version >= 8 else last.requested
    changes = one.table.changes(since).to_arrow().select(["op", "before", "after"]).to_pylist()
    assert changes == [
        {"op": "u", "before": first, "after": changed([first])[0]},
        {"op": "d", "before": second, "after": None},
    ]
    one.check()


@pytest.mark.parametrize(
    "name",
    ["v6_mor_bootstrap_compacted", "v8_mor_bootstrap_metadata", "v9_cow_bootstrap_metadata"],
)
def test_columns_that_were_altered_are_found_in_the_source(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    row = one.kept[0]
    one.table.alter().add_column("extra", pa.string()).rename_column("name", "called").execute()

    def altered(old: Row, **new: Any) -> Row:
        kept = {key: value for key, value in old.items() if key != "name"}
        return {**kept, "called": old["name"], "extra": None, **new}

    one.rows = {key: altered(old) for key, old in one.rows.items()}
    one.schema = one.table.scan().to_arrow().schema
    one.check()
    one.table.upsert(one.takes([altered(row, called="new", extra="e", ts=1_000_000)]))
    one.check()
    one.table.cluster(sort_by=["called"])
    one.check()


@pytest.mark.parametrize("name", ["v6_mor_bootstrap_compacted", "v8_mor_bootstrap_metadata"])
def test_log_files_on_a_skeleton_are_merged(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    for ts in range(1_000_000, 1_000_004):
        one.table.upsert(one.takes([{**one.kept[0], "name": f"at {ts}", "ts": ts}]))
    assert one.table.log_compact(min_log_files=2).files_written
    one.check()
    one.table.compact()
    one.check()


def test_bloom_filters_are_those_of_skeletons(tmp_path: Path) -> None:
    one = opened("v9_mor_bootstrap_compacted", tmp_path)
    one.table.create_index("bloom_filters")
    table = pyhudi.open_table(str(one.base), options={**KEPT, "hoodie.index.type": "BLOOM"})
    table.upsert(one.takes(changed(one.kept[:2])))
    one.check()


def test_expression_index_uses_source_values(tmp_path: Path) -> None:
    one = opened("v9_mor_bootstrap_mixed", tmp_path)
    one.table.create_index("column_stats", ["name"], name="upper", function="upper")
    for row in one.rows.values():
        where = pc.utf8_upper(pc.field("name")) == row["name"].upper()
        assert row["id"] in one.table.scan(where=where).to_arrow()["id"].to_pylist()
    one.check()


@pytest.mark.parametrize("name", ["v6_cow_bootstrap_metadata", "v8_mor_bootstrap_metadata"])
def test_rewrite_stores_partition_values_of_path(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    one.table.cluster(sort_by=["name"])
    cities: dict[str, str] = {}
    for task in one.table.scan().tasks:
        assert task.slice.base is not None
        stored = pq.ParquetFile(one.base / task.slice.base.path).read(["id", "city"])
        cities.update(zip(*stored.to_pydict().values(), strict=True))
    assert cities == {row["id"]: row["city"] for row in one.rows.values()}


def test_rewrite_copies_no_row_group_of_skeletons(tmp_path: Path) -> None:
    one = opened("v9_cow_bootstrap_row_groups", tmp_path)
    one.table.upsert(one.takes(changed(one.kept[-1:])))
    (task,) = one.table.scan().tasks
    assert task.slice.base is not None
    assert task.slice.base.source is None
    assert "name" in pq.ParquetFile(one.base / task.slice.base.path).schema_arrow.names
    one.check()


def test_plans_name_the_source(tmp_path: Path) -> None:
    one = opened("v8_mor_bootstrap_metadata", tmp_path)
    sources = {str(path) for path in source_files(one.base)}
    one.table.compact(execute=False)
    (compaction,) = one.table.state.timeline.pending_compactions
    operations = one.table.state.timeline.plan(compaction) or {}
    named = {found["bootstrapFilePath"] for found in operations["operations"]}
    assert named
    assert named <= sources
    one.table.compact(schedule=False)
    one.check()
    again = opened("v9_cow_bootstrap_metadata", tmp_path)
    sources = {str(path) for path in source_files(again.base)}
    again.table.cluster(sort_by=["name"], execute=False)
    (clustering,) = again.table.state.timeline.pending(CLUSTERING)
    plan = again.table.state.timeline.plan(clustering) or {}
    named = set()
    for group in plan["clusteringPlan"]["inputGroups"]:
        named |= {found["bootstrapFilePath"] for found in group["slices"]}
    assert named - {""}
    assert named - {""} <= sources
    again.table.cluster(schedule=False)
    again.check()


@pytest.mark.parametrize("name", ["v6_mor_bootstrap_compacted", "v9_cow_bootstrap_metadata"])
def test_clean_deletes_skeletons_and_keeps_sources(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    before = source_files(one.base)
    cluster(one)
    one.table.clean(policy="KEEP_LATEST_FILE_VERSIONS", retain=1)
    skeletons = [*one.base.rglob(f"*_{SKELETON_INSTANT}.parquet")]
    assert skeletons == []
    assert source_files(one.base) == before
    one.check()


@pytest.mark.parametrize("name", ["v6_cow_bootstrap_metadata", "v9_mor_bootstrap_compacted"])
def test_restore_brings_skeletons_back(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    saved, rows = one.table.savepoint(), dict(one.rows)
    upsert(one)
    delete_keys(one)
    one.table.restore(saved)
    one.rows = rows
    one.check()
    upsert(one)
    one.check()


@pytest.mark.parametrize("version", [8, 9])
def test_statistics_tell_of_the_rows_of_skeletons(version: int, tmp_path: Path) -> None:
    name = {8: "v8_mor_bootstrap_metadata", 9: "v9_mor_bootstrap_mixed"}[version]
    one = opened(name, tmp_path)
    one.table.create_index("column_stats")
    stats = one.table.inspect.metadata("column_stats", column="n").to_pylist()
    of_skeletons = [row for row in stats if f"_{SKELETON_INSTANT}." in row["file_name"]]
    assert of_skeletons
    assert all(row["max"] is not None and row["null_count"] == 0 for row in of_skeletons)
    cities = one.table.inspect.metadata("column_stats", column="city").to_pylist()
    told = {row["min"] for row in cities if f"_{SKELETON_INSTANT}." in row["file_name"]}
    assert told
    assert told <= {row["city"] for row in one.rows.values()}
    one.check()
    for verb in (upsert, delete_keys, compact):
        verb(one)
        one.check()
        for row in one.rows.values():
            found = one.table.scan(where=f"n = {row['n']}").to_arrow()["id"].to_pylist()
            assert row["id"] in found


def test_record_index_is_refused_with_bootstrap_files(tmp_path: Path) -> None:
    one = opened("v8_mor_bootstrap_metadata", tmp_path)
    with pytest.raises(UnsupportedTableFeature, match="whose instant is not a time"):
        one.table.create_index("record_index")
    assert "record_index" not in one.table.config.metadata_partitions
    one.check()
    cluster(one)
    one.table.create_index("record_index")
    upsert(one)
    one.check()


def test_partitions_of_the_bootstrap_do_not_expire(tmp_path: Path) -> None:
    one = opened("v9_cow_bootstrap_metadata", tmp_path)
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.bootstrap\.base\.path"):
        one.table.expire_partitions(days=1)
    one.check()


@pytest.mark.parametrize("name", ["v6_cow_bootstrap_metadata", "v9_mor_bootstrap_mixed"])
def test_rollback_refuses_bootstrap_commit(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    commits = one.table.inspect.commits()["requested"].to_pylist()
    written = [commit for commit in commits if not commit.startswith("0")]
    for commit in reversed(written):
        one.table.rollback(commit)
    one.rows = {row["id"]: row for row in one.table.scan().to_arrow().to_pylist()}
    last = commits[len(commits) - len(written) - 1]
    with pytest.raises(UnsupportedTableFeature, match="is the bootstrap"):
        one.table.rollback(last)
    if last != SKELETON_INSTANT:
        with pytest.raises(UnsupportedTableFeature, match="is the bootstrap"):
            one.table.restore(SKELETON_INSTANT)
    one.check()
    upsert(one)
    one.check()


@pytest.mark.parametrize("name", ["v6_cow_bootstrap_metadata", "v9_cow_bootstrap_metadata"])
def test_recovery_ignores_pending_bootstrap(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    files = set((one.base / ".hoodie").rglob(f"{SKELETON_INSTANT}*"))
    done = [path for path in files if path.suffix == ".commit"]
    for path in done:
        path.unlink()
    data = one.data(list(one.rows.values())[:1])
    with pytest.raises(UnsupportedTableFeature, match=r"the bootstrap .* is pending"):
        one.table.upsert(data)
    assert files - {*done} == {*(one.base / ".hoodie").rglob(f"{SKELETON_INSTANT}*")}


def test_keys_that_are_not_stored_are_refused(tmp_path: Path) -> None:
    one = opened("v9_cow_bootstrap_row_groups", tmp_path)
    set_property(one.base, "hoodie.populate.meta.fields", "false")
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.populate\.meta\.fields is false"):
        one.table.upsert(one.data(list(one.rows.values())[:1]))


def test_bootstrap_refuses_partition_column_missing_in_path(tmp_path: Path) -> None:
    one = opened("v9_cow_bootstrap_metadata", tmp_path)
    before, row = sorted(one.base.rglob("*.parquet")), one.kept[0]
    set_property(one.base, "hoodie.table.keygenerator.type", "TIMESTAMP")
    with pytest.raises(UnsupportedTableFeature, match="key generator"):
        one.table.delete_keys(one.data([row]).select(["id"]))
    with pytest.raises(UnsupportedTableFeature, match="has no partition column city"):
        one.table.cluster(sort_by=["name"])
    set_property(one.base, "hoodie.table.keygenerator.type", "SIMPLE")
    one.check()
    assert not one.table.state.timeline.pending()
    assert sorted(one.base.rglob("*.parquet")) == before


DAMAGES = {
    "gone": lambda path: path.unlink(),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:-100]),
    "other rows": lambda path: pq.write_table(pa.table({"id": ["k000"] * 1000}), path),
    "no file": lambda path: path.write_bytes(b"no Parquet at all"),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("verb", [upsert, delete, update, cluster, compact])
def test_damaged_source_raises_and_loses_nothing(
    verb: Callable[[Written], None], damage: str, tmp_path: Path
) -> None:
    name = "v8_mor_bootstrap_metadata" if verb is compact else "v9_cow_bootstrap_metadata"
    one = opened(name, tmp_path)
    sources = source_files(one.base)
    whole = {path: path.read_bytes() for path in sources}
    kept, rows = one.kept, dict(one.rows)
    for path in sources:
        DAMAGES[damage](path)
    damaged = Damaged(one.base, one.rows, one.schema, kept)
    with pytest.raises((CorruptTable, FileNotFoundError)):
        verb(damaged)
    for path, data in whole.items():
        path.write_bytes(data)
    one.rows = {row["id"]: row for row in one.table.scan().to_arrow().to_pylist()}
    # Log files are appended without a look at the source.
    assert one.rows == rows or verb is compact
    assert not one.table.state.timeline.pending("commit", "replacecommit")
    one.check()
    verb(one)
    one.check()


def test_folders_that_are_not_those_of_the_keys_are_refused(tmp_path: Path) -> None:
    one = opened("v9_mor_bootstrap_not_hive", tmp_path)
    with pytest.raises(UnsupportedTableFeature, match=r"hive_style_partitioning is false"):
        one.table.upsert(one.data(changed(one.kept[:1])))
    assert not one.table.state.timeline.pending()
    set_property(one.base, "hoodie.datasource.write.hive_style_partitioning", "true")
    upsert(one)
    one.check()
    (one.base / "no partition").mkdir()
    delete_keys(one)
    one.check()


def test_missing_bootstrap_index_stops_write_before_start(tmp_path: Path) -> None:
    one = opened("v8_mor_bootstrap_metadata", tmp_path)
    data = one.data(changed(one.kept[:1]))
    index = one.base / INDEX_FILE
    shutil.move(index, tmp_path / "index")
    with pytest.raises(CorruptTable, match="hfile is missing"):
        one.table.upsert(data)
    shutil.move(tmp_path / "index", index)
    assert not one.table.state.timeline.pending()
    one.check()


@pytest.mark.parametrize("damage", DAMAGES)
def test_check_names_missing_or_damaged_source(damage: str, tmp_path: Path) -> None:
    one = opened("v9_cow_bootstrap_metadata", tmp_path)
    for path in source_files(one.base):
        DAMAGES[damage](path)
    found = one.table.check(deep=True).findings
    kind = "missing_source" if damage == "gone" else "damaged_file"
    assert {finding.kind for finding in found} == {kind}
    assert all(finding.severity == "error" and ".source/" in str(finding) for finding in found)


@pytest.mark.parametrize("name", ["v6_cow_bootstrap_metadata", "v6_mor_bootstrap_compacted"])
def test_up_and_down_again(name: str, tmp_path: Path) -> None:
    one = opened(name, tmp_path)
    for version in (8, 9):
        one.table.upgrade(version)
        one.check()
        upsert(one)
        one.check()
    one.table.downgrade(6)
    one.check()
    delete_keys(one)
    one.check()
