"""What change queries and diffs plan, refuse and give in other forms than Hudi's."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.api.changes import diff_rows
from pyhudi.api.outputs import stream
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import (
    ConfigError,
    CorruptTable,
    HistoryUnavailable,
    SchemaMismatch,
    UnsupportedTableFeature,
)
from pyhudi.query.change_reader import change_task, diff_task, pair_moved_rows
from pyhudi.query.row_pairing import bucket_count
from pyhudi.testing import comparable_rows
from tests.helpers.appended_logs import appended_to, begun_in_a_log
from tests.helpers.pending_compaction import request_compaction
from tests.helpers.table_builder import TableBuilder
from tests.helpers.tables import GoldenTables, unpack
from tests.unit.test_archiving_operation import OPTIONS

COW = "v6_cow_cdc_op_key_only"
MOR = "v9_mor_cdc_data_before_after"
MOVED = "v8_mor_global_simple"


def open_golden(golden: GoldenTables, name: str) -> HudiTable:
    return pyhudi.open_table(golden.unpack(name))


def instants(table: HudiTable) -> list[str]:
    return [one.requested for one in table.state.timeline.commits]


@pytest.mark.parametrize(
    ("name", "cases"),
    [
        (COW, {"base_file_insert": 3, "as_is": 5}),
        (MOR, {"base_file_insert": 6, "log_file": 5}),
    ],
)
def test_changes_plan_shows_source_of_changes(
    name: str, cases: dict[str, int], golden: GoldenTables
) -> None:
    table = open_golden(golden, name)
    plan = table.changes().plan()
    counts = plan.group_by("case").aggregate([("case", "count")]).to_pylist()
    assert {one["case"]: one["case_count"] for one in counts} == cases
    assert list(dict.fromkeys(plan["instant"].to_pylist())) == instants(table)
    assert all((Path(table.uri) / path).exists() for row in plan["files"] for path in row.as_py())


@pytest.mark.parametrize("name", [COW, MOR])
def test_change_tasks_travel_by_pickle(name: str, golden: GoldenTables) -> None:
    changes = open_golden(golden, name).changes()
    tasks = pickle.loads(pickle.dumps(changes.tasks))
    batches = [batch for task in tasks for batch in change_task(task)]
    assert comparable_rows(pa.Table.from_batches(batches, changes.schema)) == comparable_rows(
        changes
    )


@pytest.mark.parametrize("images", ["struct", "json"])
def test_changes_accept_filter_and_limit(images: Any, golden: GoldenTables) -> None:
    table = open_golden(golden, COW)
    deleted = table.changes(where="op = 'd'", images=images).to_arrow()
    assert deleted["op"].to_pylist() == ["d", "d"]
    assert table.changes(limit=5, images=images).to_arrow().num_rows == 5
    assert table.changes(limit=0, images=images).count() == 0


def test_changes_filter_applies_to_images(golden: GoldenTables) -> None:
    table = open_golden(golden, COW)
    found = table.changes(where="before.city = 'osaka' AND op = 'd'").to_arrow()
    assert {row["id"] for row in found["before"].to_pylist()} == {"k004", "k007"}


def test_changes_outputs_return_same_rows(golden: GoldenTables) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("polars")
    changes = open_golden(golden, COW).changes(images="json")
    assert (
        comparable_rows(changes.to_reader())
        == comparable_rows(changes)
        == comparable_rows(changes.to_polars())
    )
    assert changes.count() == len(changes.to_pandas()) == len(comparable_rows(changes))
    with duckdb.connect() as connection:
        changes.to_duckdb(connection, "changes")
        assert connection.sql("SELECT count(*) FROM changes").fetchall() == [(changes.count(),)]


def test_changes_are_equal_with_one_thread(golden: GoldenTables) -> None:
    base = golden.unpack(MOR)
    single = pyhudi.open_table(base, engine=LocalEngine(1))
    assert comparable_rows(single.changes()) == comparable_rows(pyhudi.open_table(base).changes())


@pytest.mark.parametrize("moment", [None, "000", "earliest"])
def test_changes_range_may_be_open(moment: str | None, golden: GoldenTables) -> None:
    table = open_golden(golden, COW)
    assert table.changes(moment).count() == table.changes("20000101000000000").count() == 23
    assert table.changes(end=instants(table)[0]).count() == 12
    assert table.changes(instants(table)[-1]).count() == 0


def test_changes_refuse_table_without_change_capture(golden: GoldenTables) -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.cdc\.enabled") as raised:
        open_golden(golden, "v9_cow_nonpart").changes()
    assert "diff" in raised.value.hint


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"images": "text"}, ConfigError),
        ({"limit": -1}, ConfigError),
        ({"start": "yesterday"}, ConfigError),
        ({"start": "20231301000000"}, ConfigError),
        ({"end": "earliest"}, ConfigError),
        ({"start": "2024-02-01", "end": "2024-01-01"}, ConfigError),
        ({"end": "2000-01-01"}, HistoryUnavailable),
        ({"where": "opp = 'd'"}, SchemaMismatch),
    ],
)
def test_wrong_arguments_are_told_at_once(
    arguments: dict[str, Any], error: type[Exception], golden: GoldenTables
) -> None:
    with pytest.raises(error):
        open_golden(golden, COW).changes(**arguments)


def valued(v: int) -> pa.Table:
    return pa.table({"id": ["a", "b"], "v": [v, v]})


def captured(base: Path, version: int, kind: Any) -> HudiTable:
    return pyhudi.create_table(
        base, valued(1), key="id", type=kind, version=version,
        options={"hoodie.table.cdc.enabled": "true"},
    )  # fmt: skip


def with_property(base: Path, line: str) -> HudiTable:
    """A table whose properties say one thing more; the checksum covers name and database only."""
    path = base / ".hoodie" / "hoodie.properties"
    path.write_text(path.read_text() + line + "\n")
    return pyhudi.open_table(base)


@pytest.mark.parametrize("name", ["v6_cow_archived", "v9_cow_archived"])
def test_changes_raise_if_range_reaches_archive(name: str, tmp_path: Path) -> None:
    table = with_property(unpack(name, tmp_path), "hoodie.table.cdc.enabled=true")
    with pytest.raises(HistoryUnavailable, match="archived"):
        table.changes().to_arrow()


@pytest.mark.parametrize("version", [6, 9])
def test_commits_that_are_archived_and_active_are_there(version: int, tmp_path: Path) -> None:
    table = captured(tmp_path / "t", version, "cow")
    table = pyhudi.open_table(table.uri, options=OPTIONS)
    for v in range(2, 7):
        table.upsert(valued(v))
    folder = tmp_path / "t" / table.config.layout.folder
    shutil.copytree(folder, tmp_path / "before")
    expected = comparable_rows(table.changes())
    assert table.archive(min_commits=2, max_commits=3).instants
    with pytest.raises(HistoryUnavailable, match="archived"):
        table.changes().to_arrow()
    # As archiving leaves it that died before it removed them.
    shutil.copytree(tmp_path / "before", folder, dirs_exist_ok=True)
    again = pyhudi.open_table(table.uri)
    assert len(again.state.timeline.archive.commits()) > 2
    assert comparable_rows(again.changes()) == expected


def test_changes_raise_for_hollow_commit(tmp_path: Path) -> None:
    table = captured(tmp_path / "t", 6, "cow")
    first = instants(table)[-1]
    hollow = table.upsert(valued(2)).instant
    table.upsert(valued(3))
    done = tmp_path / "t" / ".hoodie" / f"{hollow}.commit"
    done.rename(tmp_path / "aside")
    table.refresh()
    for start, end in ((None, None), (first, None), (None, hollow)):
        with pytest.raises(HistoryUnavailable, match=f"the write {hollow}") as raised:
            table.changes(start, end).to_arrow()
        assert "Wait until it is done or rolled back" in raised.value.hint
        assert (end == hollow) != (f"end the range before {hollow}" in raised.value.hint)
    assert table.changes(None, first).to_arrow()["op"].to_pylist() == ["i", "i"]
    (tmp_path / "aside").rename(done)
    assert table.refresh().changes(first).count() == 4


@pytest.mark.parametrize("version", [6, 8, 9])
def test_changes_read_table_that_was_copy_on_write(version: int, tmp_path: Path) -> None:
    table = captured(tmp_path / "t", version, "cow")
    table.upsert(valued(2))
    before = comparable_rows(table.changes())
    assert len(before) == 4
    properties = tmp_path / "t" / ".hoodie" / "hoodie.properties"
    text = properties.read_text().replace("type=COPY_ON_WRITE", "type=MERGE_ON_READ")
    properties.write_text(text)
    table = pyhudi.open_table(table.uri)
    assert table.config.is_merge_on_read
    assert comparable_rows(table.changes()) == before
    table.upsert(valued(3))
    table.compact()
    assert table.changes().to_arrow()["op"].to_pylist() == ["i", "i", "u", "u", "u", "u"]


def test_changes_name_rewritten_file_without_change_log(tmp_path: Path) -> None:
    table = with_property(unpack("v9_cow_nonpart", tmp_path), "hoodie.table.cdc.enabled=true")
    with pytest.raises(HistoryUnavailable, match=r"\.parquet was written") as raised:
        table.changes().to_arrow()
    assert "diff" in raised.value.hint


MARKED = TableBuilder(
    {
        "id": (pa.string(), str),
        "v": (pa.int64(), 1),
        "_hoodie_is_deleted": (pa.bool_(), False),
    },
    version=6,
    kind="mor",
    metadata=False,
    options={"hoodie.table.cdc.enabled": "true"},
)


def appended(base: Path) -> HudiTable:
    """Three commits, the last two in one log file: a, b and c; a and b get 2; a gets 3, b goes."""
    table = MARKED.make(base)
    for keys, v, gone in (("abc", 1, ""), ("ab", 2, ""), ("ab", 3, "b")):
        rows = MARKED.rows(keys, v=v, _hoodie_is_deleted=lambda key, gone=gone: key in gone)
        table.upsert(rows)
        table = appended_to(table)
    assert len(list(base.glob(".*.log.*"))) == 1
    return table


def told(table: HudiTable, start: int | None = None, end: int | None = None) -> list[Any]:
    """The changes between two commits by their number: op, key, and values before and after."""
    commits = table.state.timeline.commits
    times = [one.completed if table.version > 6 else one.requested for one in commits]
    bounds = [None if at is None else times[at] for at in (start, end)]
    found = table.changes(*bounds).to_arrow().to_pylist()
    images = [(row["op"], row["before"] or {}, row["after"] or {}) for row in found]
    rows = [(op, (old or new)["id"], old.get("v"), new.get("v")) for op, old, new in images]
    return sorted(rows, key=str)


def upgraded(table: HudiTable, version: Any) -> HudiTable:
    if version > table.version:
        table.upgrade(version)
    return pyhudi.open_table(table.uri)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_commits_that_share_a_log_file_have_each_its_own_changes(
    version: Any, tmp_path: Path
) -> None:
    """Also of a table that was upgraded since, where else a log file holds one commit."""
    table = upgraded(appended(tmp_path / "t"), version)
    changes: list[list[Any]] = [
        [("i", "a", None, 1), ("i", "b", None, 1), ("i", "c", None, 1)],
        [("u", "a", 1, 2), ("u", "b", 1, 2)],
        [("d", "b", 2, None), ("u", "a", 2, 3)],
    ]
    assert [told(table, start, end) for start, end in ((None, 0), (0, 1), (1, 2))] == changes
    assert told(table, None, 2) == sorted(chain(*changes), key=str)


@pytest.mark.parametrize("version", [6, 8, 9])
def test_commits_that_share_the_log_file_that_one_began_have_each_its_own_changes(
    version: Any, tmp_path: Path
) -> None:
    table = upgraded(begun_in_a_log(appended(tmp_path / "t")), version)
    assert told(table, None, 0) == [("i", "a", None, 2), ("i", "b", None, 2)]
    assert told(table, 0, 1) == [("d", "b", 2, None), ("u", "a", 2, 3)]


def _older_base(base: Path, table: HudiTable) -> Path:
    first = instants(table)[0]
    return next(iter(base.glob(f"osaka/*_{first}.parquet")))


def _change_log(base: Path, _: HudiTable) -> Path:
    return next(iter(base.glob("osaka/.*.cdc")))


def test_changes_name_log_file_without_slice(tmp_path: Path) -> None:
    table = with_property(unpack("v9_mor_bucket", tmp_path), "hoodie.table.cdc.enabled=true")
    with pytest.raises(HistoryUnavailable, match=r"\.log\..* was written"):
        table.changes().to_arrow()


@pytest.mark.parametrize("chosen", [_older_base, _change_log])
def test_changes_name_cleaned_file(
    chosen: Callable[[Path, HudiTable], Path], tmp_path: Path
) -> None:
    base = unpack(COW, tmp_path)
    table = pyhudi.open_table(base)
    gone = chosen(base, table)
    gone.unlink()
    with pytest.raises(HistoryUnavailable, match="is missing") as raised:
        table.changes(instants(table)[0]).to_arrow()
    assert gone.name.strip(".").split("_")[0] in str(raised.value)


def test_changes_name_damaged_change_log(tmp_path: Path) -> None:
    base = unpack(COW, tmp_path)
    log = next(iter(base.glob("quito/.*.cdc")))
    data = log.read_bytes()
    log.write_bytes(data[:-60] + b"\xff" * 30 + data[-30:])
    with pytest.raises(CorruptTable) as raised:
        pyhudi.open_table(base).changes().to_arrow()
    assert raised.value.file == f"quito/{log.name}"


def test_diff_reads_only_changed_groups(golden: GoldenTables) -> None:
    table = open_golden(golden, COW)
    times = instants(table)
    assert [len(table.diff(a, b).tasks) for a, b in pairwise(times)] == [
        3,
        1,
        1,
    ]
    assert table.diff(times[0], times[0]).tasks == []
    assert table.diff(times[0], times[0]).to_arrow().schema == table.diff(*times[:2]).schema


def test_diff_compares_only_keys_of_newer_logs(golden: GoldenTables) -> None:
    table = open_golden(golden, MOR)
    times = instants(table)
    tasks = [task for task in table.diff(times[1], times[2]).tasks if task.before]
    assert [len(task.touched_logs or ()) for task in tasks] == [1]


@pytest.mark.parametrize("version", [6, 8, 9])
def test_logs_beside_a_pending_compaction_are_compared(tmp_path: Path, version: int) -> None:
    made = {"id": ["a", "b"], "v": [1, 1], "ts": [1, 1]}
    table = pyhudi.create_table(
        tmp_path / "t", pa.table(made), key="id", order_by="ts", type="mor", version=version
    )
    request_compaction(table)
    times = [
        table.upsert(pa.table({"id": ["a"], "v": [value], "ts": [value]})).instant
        for value in (2, 3, 4)
    ]
    for value, (one, other) in enumerate(pairwise(times), 2):
        (found,) = table.diff(one, other).to_arrow().to_pylist()
        assert (found["before"]["v"], found["after"]["v"]) == (value, value + 1)


def test_diff_shows_partition_move_as_one_update(golden: GoldenTables) -> None:
    table = open_golden(golden, MOVED)
    times = instants(table)
    found = table.diff(times[0], times[-1]).to_arrow().to_pylist()
    moved = [row for row in found if "city" in (row["changed"] or ())]
    assert moved
    assert all(row["before"]["city"] != row["after"]["city"] for row in moved)


@pytest.mark.parametrize("name", ["v9_cow_by_ts_double", "v9_cow_by_ts_instant"])
def test_partition_values_are_those_of_a_scan(golden: GoldenTables, name: str) -> None:
    """As Spark prints them, which is not as Arrow does."""
    table = open_golden(golden, name)
    times = instants(table)
    after = [row["after"] for row in table.diff(times[0], times[-1]).to_arrow().to_pylist()]
    shown = {row["id"]: row["at"] for row in table.scan().to_arrow().to_pylist()}
    assert after
    assert [row["at"] for row in after] == [shown[row["id"]] for row in after]


def test_diff_tasks_travel_by_pickle(golden: GoldenTables) -> None:
    table = open_golden(golden, MOR)
    diff = table.diff(*instants(table)[1:3])
    tasks = pickle.loads(pickle.dumps(diff.tasks))
    found = [batch for task in tasks for batch in diff_task(task)]
    assert sum(batch.num_rows for batch in found) == diff.count()


@pytest.mark.parametrize("name", [COW, MOVED, "v9_cow_clustering"])
def test_diff_compares_in_parts_above_memory_limit(name: str, golden: GoldenTables) -> None:
    table = open_golden(golden, name)
    times = instants(table)
    whole = table.diff(times[0], times[-1])
    parts = replace(whole, buffer_bytes=100_000)
    assert len(parts.tasks) >= len(whole.tasks) > 0
    assert comparable_rows(parts) == comparable_rows(whole)


def test_moves_are_paired_in_parts_too(golden: GoldenTables) -> None:
    table = open_golden(golden, MOVED)
    times = instants(table)
    diff = table.diff(times[0], times[-1])
    whole = stream(diff.engine, diff_task, diff.tasks, diff_rows(diff.after), "")
    parts = stream(diff.engine, diff_task, diff.tasks, diff_rows(diff.after), "")
    found = [
        pa.Table.from_batches(pair_moved_rows(one, held))
        for one, held in ((whole, 1 << 30), (parts, 1000))
    ]
    assert len({tuple(comparable_rows(one.drop_columns("place"))) for one in found}) == 1


@pytest.mark.parametrize(("held", "count"), [(0, 1), (1, 1), (32, 1), (33, 2), (320, 10)])
def test_buckets_are_as_many_as_needed(held: int, count: int) -> None:
    assert bucket_count(held, 8 * 32) == count


@pytest.mark.parametrize("moment", ["yesterday", "2024", ""])
def test_diff_refuses_invalid_time_immediately(moment: str, golden: GoldenTables) -> None:
    with pytest.raises(ConfigError):
        open_golden(golden, COW).diff(moment, "20990101000000000")


def test_diff_raises_for_time_before_timeline(golden: GoldenTables) -> None:
    with pytest.raises(HistoryUnavailable):
        open_golden(golden, "v9_cow_archived").diff("20000101000000000", "20990101000000000")


def test_rows_without_key_cannot_be_compared(golden: GoldenTables) -> None:
    table = open_golden(golden, "v9_cow_nonpart")
    table._loaded = 0, replace(table.state, config=without_keys(table))
    with pytest.raises(UnsupportedTableFeature, match=r"hoodie\.table\.recordkey\.fields"):
        _ = table.diff(instants(table)[0], instants(table)[-1]).tasks


def without_keys(table: HudiTable) -> Any:
    """The table's configuration without meta columns and key fields."""
    properties = {**table.config.properties, "hoodie.populate.meta.fields": "false"}
    properties.pop("hoodie.table.recordkey.fields")
    return replace(table.config, properties=properties)


def test_changes_refuse_engine_without_streams(golden: GoldenTables, tmp_path: Path) -> None:
    class Frames(LocalEngine):
        def scan(self, *_: Any, **__: Any) -> Any:
            return object()

    base = tmp_path / "table"
    shutil.copytree(golden.unpack(COW), base)
    with pytest.raises(ConfigError, match="Arrow streams"):
        pyhudi.open_table(base, engine=Frames()).changes().to_arrow()
