"""Findings of a check: none in intact tables of Hudi, and each type of planted damage."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pyhudi
from pyhudi import _native
from pyhudi.admin.check_findings import CheckResult
from pyhudi.admin.check_keys import FEW, MAX_EXAMPLES, KeyRules, compare, summarize
from pyhudi.clock import SystemClock
from pyhudi.config.actions import ROLLBACK
from pyhudi.config.lock_options import CONFLICT_RETRIES
from pyhudi.config.retention_options import KEEP_VERSIONS, CleanOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import CommitConflict
from pyhudi.metadata import commit_participant
from pyhudi.metadata.record_tasks import record_schema
from pyhudi.metadata.table_writer import groups_by_partition
from pyhudi.services import cleaning
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import instant_files
from pyhudi.txn.transaction import Transaction
from pyhudi.write.table_opening import open_for_change
from tests.helpers.metadata_table import metadata_table
from tests.helpers.table_builder import TableBuilder, numbered
from tests.helpers.tables import names, unpack
from tests.sim.crash import PEOPLE, Handle, people

pytestmark = pytest.mark.in_parts

LEFT_BY_HUDI = {
    # Deliberately twice: inserted without a look.
    "v6_cow_duplicates": {"duplicate_key"},
    "v9_cow_duplicates": {"duplicate_key"},
    # The writer was killed between the two commits.
    "v6_cow_inflight": {"metadata_commit_ahead"},
    "v6_mor_inflight": {"metadata_commit_ahead"},
    "v8_mor_inflight": {"metadata_commit_ahead"},
    "v9_mor_inflight": {"metadata_commit_ahead"},
    # Hudi's downgrade leaves a metadata table without some of its files.
    "v6_mor_downgraded_from_9": {"metadata_unreadable", "metadata_commit_ahead"},
    # Rollbacks of Hudi 0.15 list called-off log files with a size of 1, or under the table's name.
    "v6_mor_failed_rolled_back": {"metadata_size_differs"},
    "v6_mor_listing_rolled_back": {"metadata_extra_file", "unnamed_file"},
    # The rollback's files were put back, as a late task would leave them.
    "v6_mor_uncommitted_rolled_back": {"rolled_back_file", "unnamed_file"},
    "v9_mor_uncommitted_rolled_back": {"rolled_back_file"},
    # A restore leaves log files whose blocks count no more.
    "v6by14_mor_restore": {"unnamed_file"},
    # Statistics that were turned off again leave their folders.
    "v8_mor_secondary_index": {"metadata_partition_unlisted"},
    "v9_mor_secondary_index": {"metadata_partition_unlisted"},
}


@pytest.mark.parametrize("name", names())
def test_tables_of_hudi(name: str, tmp_path: Path) -> None:
    found = pyhudi.open_table(str(unpack(name, tmp_path))).check(deep=True)
    assert {one.kind for one in found} == LEFT_BY_HUDI.get(name, set()), str(found)
    assert found.ok == (not found) == (len(found) == 0)


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_tables_of_pyhudi(version: int, kind: Any, tmp_path: Path) -> None:
    table = TRIPS.make(tmp_path / "trips", version=version, kind=kind)
    table.insert(TRIPS.rows(range(9), v=1))
    table.upsert(TRIPS.rows(range(4, 12), v=2))
    table.delete_keys(TRIPS.rows([1, 2], v=0).select(["id", "city"]))
    table.bulk_insert(TRIPS.rows(range(20, 24), v=1))
    table.update("v = 2", {"v": "v + 1"})
    with pytest.raises(pyhudi.SchemaMismatch):
        table.upsert(pa.table({"id": ["x"], "city": ["a"], "v": ["text"]}))
    table.overwrite_partitions(TRIPS.rows([0, 3], v=5))
    table.delete_partitions(["b"])
    table.overwrite(TRIPS.rows(range(4), v=6))
    table.upsert(TRIPS.rows(range(2, 8), v=7))
    found = table.check(deep=True)
    assert found.ok, str(found)


TRIPS = TableBuilder(
    {
        "id": (pa.string(), numbered()),
        "city": (pa.string(), lambda number: ("a", "b", "c")[number % 3]),
        "v": (pa.int64(), 1),
    },
    partition_by="city",
    order_by="v",
)


# --- damage ---------------------------------------------------------------------------------------


class Damaged:
    """A copy of a golden table that is damaged step by step."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.base = base
        self.storage = Storage(str(base))
        self.config = TableConfig.load(self.storage, SystemClock())
        self._monkeypatch = monkeypatch

    def check(self, *, deep: bool = True, **options: Any) -> CheckResult:
        return pyhudi.open_table(str(self.base), **options).check(deep=deep)

    def first(self, pattern: str) -> Path:
        return min(self.base.glob(pattern))

    @property
    def record_builder(self) -> _native.MetadataRecorder:
        groups = groups_by_partition(metadata_table(self.storage), self.config.metadata_partitions)
        text = record_schema(self.config.version.metadata_schema)
        return _native.MetadataRecorder(text, {name: len(some) for name, some in groups.items()})

    def plant(self, rows: pa.RecordBatch) -> None:
        """One more delta commit of the metadata table, at the instant of its newest one."""
        table = TableSnapshot.open(self.storage, self.config, SystemClock())
        own = metadata_table(self.storage)
        with self._monkeypatch.context() as patch:
            patch.setattr(commit_participant, "derive_rows", lambda one: iter([one]))
            delta = commit_participant.DeltaCommit(table, own, table.generator.next())
            delta.write(LocalEngine(1), [rows])


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Damaged]:
    return lambda name: Damaged(unpack(name, tmp_path), monkeypatch)


TABLES = ["v6_cow_record_index", "v6_mor_part_avro", "v8_mor_part_avro", "v9_mor_record_index"]


@pytest.mark.parametrize("name", TABLES)
def test_check_finds_missing_file(damaged: Callable[[str], Damaged], name: str) -> None:
    table = damaged(name)
    newest = max(table.base.glob("*/*.parquet"), key=lambda path: path.name.split("_")[2])
    newest.unlink()
    found = {(one.kind, one.item) for one in table.check(deep=False).errors}
    assert found == {("missing_file", newest.name), ("metadata_extra_file", newest.name)}


@pytest.mark.parametrize("name", TABLES)
def test_check_finds_truncated_file(damaged: Callable[[str], Damaged], name: str) -> None:
    table = damaged(name)
    file = table.first("*/*.parquet")
    file.write_bytes(file.read_bytes()[:-100])
    kinds = {one.kind for one in table.check(deep=False)}
    assert kinds == {"size_differs", "metadata_size_differs"}
    assert ("damaged_file", file.name) in {(one.kind, one.item) for one in table.check().errors}


def test_check_finds_damaged_log_block(damaged: Callable[[str], Damaged]) -> None:
    table = damaged("v9_mor_part_avro")
    log = table.first("*/.*.log.*[0-9]")
    log.write_bytes(log.read_bytes()[:-9])
    found = {one.kind for one in table.check() if one.item == log.name}
    assert {"size_differs", "damaged_block"} <= found


@pytest.mark.parametrize("name", TABLES)
def test_check_finds_unnamed_file(damaged: Callable[[str], Damaged], name: str) -> None:
    table = damaged(name)
    file = table.first("*/*.parquet")
    file_id, token, instant = file.stem.split("_")
    later = file.with_name(f"{file_id}_{token}_29990101000000000.parquet")
    shutil.copy(file, later)
    found = list(table.check(deep=False))
    assert [(one.kind, one.severity, one.item) for one in found] == [
        ("unnamed_file", "warning", later.name)
    ]
    same = file.with_name(f"{file_id}_9-9-9_{instant}.parquet")
    later.rename(same)
    found = list(table.check(deep=False).errors)
    assert [(one.kind, one.item) for one in found] == [
        ("metadata_missing_file", same.name),
        ("unnamed_file", same.name),
    ]


@pytest.mark.parametrize("part", ["city", None])
def test_check_ignores_table_inside_table(tmp_path: Path, part: str | None) -> None:
    rows = pa.table({"id": ["a", "b"], "city": ["x", "y"]})
    outer = pyhudi.create_table(
        tmp_path, rows, key="id", partition_by=part, options={"hoodie.metadata.enable": "false"}
    )
    # One with a metadata table, whose base files are HFiles, and one without.
    inner = [
        pyhudi.create_table(
            tmp_path / name, rows, key="id", partition_by=part,
            options={"hoodie.metadata.enable": name},
        )
        for name in ("true", "false")
    ]  # fmt: skip
    assert outer.check(repair=True).ok
    assert [table.refresh().count() for table in inner] == [2, 2]
    assert pyhudi.open_table(tmp_path).count() == 2
    assert pyhudi.open_table(tmp_path).rebuild_metadata() is not None
    assert pyhudi.open_table(tmp_path).count() == 2


def test_check_finds_partition_listings_skip(damaged: Callable[[str], Damaged]) -> None:
    table = damaged("v9_cow_clean_commits")
    lost = table.first("*/.hoodie_partition_metadata")
    lost.unlink()
    found = table.check(deep=False)
    assert ("no_partition_metadata", lost.parent.name) in {
        (one.kind, one.partition) for one in found.errors
    }


@pytest.mark.parametrize("name", TABLES)
def test_check_finds_commit_missing_in_metadata_table(
    damaged: Callable[[str], Damaged], name: str
) -> None:
    table = damaged(name)
    own = metadata_table(table.storage)
    newest = own.timeline.commits[-1]
    instant_files.remove(
        own.config.layout, own.storage, newest.requested, newest.action, newest.state
    )
    found = {(one.kind, one.item) for one in table.check(deep=False).errors}
    assert ("metadata_commit_missing", newest.requested) in found
    assert "metadata_unreadable" in {kind for kind, _ in found}


@pytest.mark.parametrize("version", [6, 9])
def test_check_ignores_files_of_pending_clean(version: int, tmp_path: Path) -> None:
    table = TRIPS.make(tmp_path / "trips", version=version, kind="cow")
    for v in (1, 2, 3):
        table.upsert(TRIPS.rows(range(9), v=v))
    table.delete_partitions(["b"])
    opened = open_for_change(Handle(table.storage), SystemClock())
    action, plan = cleaning._schedule(opened, CleanOptions(policy=KEEP_VERSIONS, versions=1))
    assert action is not None
    assert not table.refresh().check(deep=True)
    paths = [f"{partition}/{name}" for partition, names in plan.files.items() for name in names]
    table.storage.delete(paths[0])
    assert not table.refresh().check(deep=True)
    table.storage.delete_all(paths)
    table.storage.delete_dir("b")
    assert not table.refresh().check(deep=True)
    table.clean()
    assert not table.refresh().check(deep=True)


def test_check_accepts_log_files_of_archived_rollback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to version 6 they stay in their slice as long as it exists."""
    table = PEOPLE.make(tmp_path, version=6, kind="mor")
    for _ in range(2):
        table.upsert(people(range(2), 1, 1))

    def conflicts(*_: object) -> None:
        raise CommitConflict("another one was faster")

    never = pyhudi.open_table(tmp_path, options={CONFLICT_RETRIES: "0"})
    for _ in range(4):
        with monkeypatch.context() as patch:
            patch.setattr(Transaction, "_check_before_publish", conflicts)
            with pytest.raises(CommitConflict):
                never.upsert(people([0], 2, 2))
    assert [file.name for file in tmp_path.rglob("*_1-0-1")]
    for _ in range(3):
        table.upsert(people([2], 3, 3))
    table.archive(min_commits=1, max_commits=2)
    timeline = table.refresh().state.timeline
    assert [one for one in timeline.archive.instants() if one.action == ROLLBACK]
    assert table.check(deep=True).findings == ()


def test_check_finds_metadata_table_ahead(damaged: Callable[[str], Damaged]) -> None:
    table = damaged("v9_mor_part_avro")
    table.plant(table.record_builder.files([("lisbon", "ghost.parquet", 5, False)]))
    found = {(one.kind, one.severity) for one in table.check(deep=False)}
    assert found == {("metadata_commit_ahead", "error"), ("metadata_extra_file", "error")}


def test_partitions_of_the_metadata_table(damaged: Callable[[str], Damaged]) -> None:
    table = damaged("v9_mor_part_avro")
    folder = table.base / ".hoodie" / "metadata"
    (folder / "column_stats").rename(folder / "unheard")
    (folder / "empty").mkdir()
    found = {(one.kind, one.item) for one in table.check(deep=False)}
    assert ("metadata_partition_missing", "column_stats") in found
    assert ("metadata_partition_unlisted", "unheard") in found
    assert ("metadata_partition_unlisted", "empty") not in found


@pytest.mark.parametrize("name", TABLES)
def test_check_finds_wrong_file_listing(damaged: Callable[[str], Damaged], name: str) -> None:
    table = damaged(name)
    files = list(table.base.glob("*/*.parquet"))
    gone, grown = sorted(files)[:2]
    table.plant(
        table.record_builder.files(
            [
                (gone.parent.name, gone.name, 0, True),
                (grown.parent.name, grown.name, 10**9, False),
                ("atlantis", "ghost.parquet", 5, False),
                ("__all_partitions__", "atlantis", 0, False),
            ]
        )
    )
    found = {(one.kind, one.item) for one in table.check(deep=False).errors}
    assert found - {one for one in found if one[0] == "metadata_commit_ahead"} == {
        ("metadata_missing_file", gone.name),
        ("metadata_size_differs", grown.name),
        ("metadata_extra_file", "ghost.parquet"),
        ("metadata_extra_partition", "files"),
    }


@pytest.mark.parametrize("name", ["v6_cow_record_index", "v9_mor_record_index"])
def test_check_finds_wrong_record_index(damaged: Callable[[str], Damaged], name: str) -> None:
    table = damaged(name)
    keys = _keys(table)
    wrong, missing = keys[:2]
    table.plant(
        table.record_builder.locations(
            "lisbon",
            "no-such-group",
            5,
            added=pa.array([wrong, "extra"]),
            removed=pa.array([missing]),
        )
    )
    found = {(one.kind, one.item) for one in table.check() if one.kind.startswith("record_index")}
    assert found == {
        ("record_index_wrong", wrong),
        ("record_index_missing", missing),
        ("record_index_extra", "extra"),
    }


def test_check_finds_index_entry_in_wrong_group(
    damaged: Callable[[str], Damaged],
) -> None:
    table = damaged("v9_mor_record_index")
    key = _keys(table)[0]
    row = table.record_builder.locations(
        "x", "y", 5, added=pa.array([key]), removed=pa.array([], pa.string())
    )
    home = row.column("route").to_pylist()[0]
    other = "record_index/0" if home != "record_index/0" else "record_index/1"
    table.plant(row.set_column(0, row.schema.field(0), pa.array([other])))
    found = {(one.kind, one.item) for one in table.check().errors}
    assert ("record_index_misplaced", key) in found


def _keys(table: Damaged) -> list[str]:
    rows = pyhudi.open_table(str(table.base)).scan(columns=["_hoodie_record_key"]).to_arrow()
    return sorted(rows.column(0).to_pylist())


def test_check_finds_wrong_statistics(damaged: Callable[[str], Damaged]) -> None:
    table = damaged("v8_cow_event_time")
    read = {one.base.path for one in _slices(table) if one.base}
    file = table.base / min(read)
    rows = pq.read_table(file)
    kept = rows.schema.metadata
    index = rows.schema.get_field_index("id")
    high = pc.binary_join_element_wise(pa.array(["zzz"] * rows.num_rows), rows["id"], "")
    rows = rows.set_column(index, rows.schema.field("id"), high)
    pq.write_table(rows.replace_schema_metadata(kept), file)
    found = {(one.kind, one.item) for one in table.check().errors}
    assert ("statistics_too_narrow", f"id of {file.name}") in found
    assert ("partition_statistics_too_narrow", "id") in found


def test_check_accepts_exact_bounds_of_long_strings(tmp_path: Path) -> None:
    """A compacted file's footer cuts the bound, which the partition has whole from the log file."""

    def rows(keys: list[str], notes: list[str | None]) -> pa.Table:
        columns = {"id": keys, "ts": [1] * len(keys), "p": ["a"] * len(keys)}
        return pa.table({**columns, "note": pa.array(notes, pa.string())})

    table = pyhudi.create_table(
        tmp_path / "t",
        rows(["1", "2"], ["plain", None]),
        key="id",
        partition_by="p",
        order_by="ts",
        type="mor",
        options={
            "hoodie.metadata.index.column.stats.enable": "true",
            "hoodie.metadata.index.partition.stats.enable": "true",
        },
    )
    table.upsert(rows(["1"], ["x" * 300]))
    table.compact(execute=False)
    table.upsert(rows(["2"], ["plain"]))
    table.compact(schedule=False)
    found = table.check(deep=True)
    assert not found.findings, str(found)


def _slices(table: Damaged) -> Any:
    from pyhudi.slices.file_system_view import FileSystemView

    state = pyhudi.open_table(str(table.base)).state
    return FileSystemView(state.storage, state.config, state.timeline).slices()


@pytest.mark.parametrize("name", ["v6_cow_all_stats", "v9_cow_all_stats"])
def test_check_finds_missing_statistics(damaged: Callable[[str], Damaged], name: str) -> None:
    table = damaged(name)
    one = next(one for one in _slices(table) if one.base)
    rows = table.record_builder.file_facts(
        table.storage.native,
        one.partition,
        [(one.base.path, False, None)],
        columns=pa.schema([("id", pa.string())]),
        value_types=False,
        partition_stats=False,
        bloom_filters=True,
        instant="1",
    )
    nothing = pa.nulls(rows.num_rows, pa.binary())
    table.plant(rows.set_column(2, rows.schema.field(2), nothing))
    found = {(one.kind, one.item) for one in table.check()}
    assert ("bloom_filter_missing", one.base.name) in found
    assert ("statistics_missing", f"id of {one.base.name}") in found


def test_check_reports_duplicate_keys_of_global_index(damaged: Callable[[str], Damaged]) -> None:
    table = damaged("v9_cow_duplicates")
    found = table.check(options={"hoodie.index.type": "GLOBAL_SIMPLE"})
    assert {(one.kind, one.severity) for one in found} == {("duplicate_key", "error")}


# --- the result -----------------------------------------------------------------------------------


def doubled(count: int, *, files: int) -> pa.Table:
    """Keys that are in two partitions each, in so many file groups."""
    keys = [f"k{n:03}" for n in range(count)]
    return pa.table(
        {
            "route": ["0"] * count * 2,
            "key": keys * 2,
            "partition": ["p"] * count + ["q"] * count,
            "file_id": [f"f{n % files:03}" for n in range(count)] * 2,
            "indexed": [False] * count * 2,
            "misplaced": [False] * count * 2,
            "column_is_null": [False] * count * 2,
        }
    )


def test_findings_of_one_kind_are_counted_beyond_a_number() -> None:
    count = MAX_EXAMPLES + 5
    rows, once = doubled(count, files=count), KeyRules(one_table=True, index=False)
    found = summarize(compare(once, "0", rows, Attempt(0, 0, 0)))
    assert len(found) == MAX_EXAMPLES + 1
    assert found[-1].found == "5 more of this kind"
    assert compare(KeyRules(one_table=False, index=False), "0", rows, Attempt(0, 0, 0)) == []


def test_findings_of_keys_at_one_place_are_summed_up() -> None:
    once, attempt = KeyRules(one_table=True, index=False), Attempt(0, 0, 0)
    few = summarize(compare(once, "0", doubled(FEW, files=1), attempt))
    assert [found.item for found in few] == [f"k{n:03}" for n in range(FEW)]
    rows = doubled(FEW * 2, files=2)
    parts = [found for _ in range(3) for found in compare(once, "0", rows, attempt)]
    assert [found.item for found in summarize(parts)] == [
        f"{3 * FEW} keys, such as k000",
        f"{3 * FEW} keys, such as k001",
    ]


def test_check_sums_up_keys_of_lost_base_file(tmp_path: Path) -> None:
    rows = pa.table({"id": [f"k{n}" for n in range(500)], "v": [1] * 500})
    table = pyhudi.create_table(tmp_path, rows, key="id")
    (base,) = tmp_path.glob("*.parquet")
    base.unlink()
    found = {finding.kind: finding for finding in table.check(deep=True)}
    assert found["missing_file"].item == base.name
    assert "500 keys, such as k" in found["record_index_extra"].item
    assert len(table.check(deep=True)) == 3


@pytest.mark.parametrize("version", [6, 9])
def test_flipped_byte_of_the_record_index_is_a_finding(tmp_path: Path, version: int) -> None:
    rows = pa.table({"id": [f"k{n}" for n in range(50)], "v": [1] * 50})
    table = pyhudi.create_table(
        tmp_path,
        rows,
        key="id",
        version=version,
        options={"hoodie.metadata.compact.max.delta.commits": "1"},
    )
    table.upsert(rows.slice(0, 1))
    table.insert(rows.slice(0, 1))
    files = tmp_path.glob(".hoodie/metadata/record_index/*.hfile")
    path = max(files, key=lambda file: file.stat().st_size)
    data = bytearray(path.read_bytes())
    data[3] ^= 1
    path.write_bytes(data)
    found = {(finding.kind, finding.item) for finding in table.check(deep=True)}
    assert ("damaged_file", "record_index") in found
    # Whatever else there is to say is said.
    assert ("duplicate_key", "k0") in found


def test_check_result_renders_as_text_and_table(damaged: Callable[[str], Damaged]) -> None:
    table = damaged("v9_cow_clean_commits")
    clean = table.check(deep=False)
    assert str(clean).endswith("no difference")
    assert clean.to_arrow().num_rows == 0
    table.first("*/*.parquet").unlink()
    found = table.check(deep=False)
    assert found
    assert not found.ok
    assert "error: missing_file" in str(found)
    assert found.to_arrow().column("kind").to_pylist() == [one.kind for one in found]
