"""Several changes as one commit: `HudiTable.transaction`."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from functools import partial
from operator import methodcaller
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.write.assigned_rows import AssignedLocalRows
from pyhudi.write.staged_changes import StagedChanges
from tests.helpers.table_builder import SMALL, Kind, TableBuilder

COLUMNS: dict[str, tuple[pa.DataType, Any]] = {
    "id": (pa.string(), str),
    "day": (pa.string(), "mon"),
    "ts": (pa.int64(), 1),
    "v": (pa.int64(), 0),
}
TABLE = TableBuilder(COLUMNS, partition_by="day", options=SMALL)
_NON_DEFAULTS = "org.apache.hudi.common.model.OverwriteNonDefaultsWithLatestAvroPayload"
KEYS = [f"k{number}" for number in range(12)]
LAYOUTS: dict[str, dict[str, Any]] = {
    "record index": {},
    "record index, version 8": {"version": 8},
    "record index, by event time": {"order_by": "ts"},
    "version 6": {"version": 6, "metadata": False},
    "simple": {"index": "SIMPLE", "metadata": False},
    "simple, by event time": {"index": "SIMPLE", "metadata": False, "order_by": "ts"},
    "global simple": {"index": "GLOBAL_SIMPLE", "metadata": False},
    "bloom, version 6, by event time": {
        "index": "BLOOM",
        "metadata": False,
        "version": 6,
        "order_by": "ts",
    },
    "buckets": {"index": "BUCKET", "metadata": False},
    "buckets, by event time": {"index": "BUCKET", "order_by": "ts"},
    "moves": {"options": {**SMALL, "hoodie.record.index.update.partition.path": "true"}},
}


def make_rows(
    names: list[str], v: list[int], ts: int = 1, days: list[str] | None = None
) -> pa.Table:
    columns = {"id": names, "day": days or [*map(_day, names)], "ts": [ts] * len(names), "v": v}
    return pa.table(columns, schema=TABLE.schema)


def contents(table: pyhudi.HudiTable) -> list[dict[str, Any]]:
    rows = table.refresh().scan().to_arrow().to_pylist()
    return sorted(rows, key=lambda row: (row["id"], row["day"]))


def count_commits(table: pyhudi.HudiTable) -> int:
    return len(table.refresh().history())


CLAUSES: dict[str, dict[str, Any]] = {
    "when_matched_delete": {"where": "source.v % 3 = 0 OR target.v > 50"},
    "when_matched_update": {"values": {"v": "target.v + source.v"}, "where": "source.v % 3 = 1"},
    "when_matched_update_all": {},
    "when_not_matched_insert": {
        "values": {"id": "id", "day": "day", "ts": "ts", "v": "-source.v"},
        "where": "v % 2 = 0",
    },
    "when_not_matched_insert_all": {},
    "when_not_matched_by_source_update": {"values": {"v": "v + 1"}, "where": "id < 'k4'"},
    "when_not_matched_by_source_delete": {"where": "v % 5 = 0"},
}


def merge(rows: pa.Table, clauses: list[str], target: Any) -> None:
    """Merge rows into a table or a transaction."""
    builder = target.merge(rows)
    for name in clauses:
        builder = getattr(builder, name)(**CLAUSES[name])
    builder.execute()


def statements(rng: random.Random, ts: int, *, moves: bool) -> list[Callable[[Any], Any]]:
    """Some random changes, as functions of a table or a transaction."""
    changes: list[Callable[[Any], Any]] = []
    for step in range(rng.randint(1, 5)):
        kind = rng.choice(["upsert", "upsert", "delete", "update", "delete_keys", "merge"])
        names = rng.sample(KEYS, rng.randint(1, 4))
        low, value = rng.randrange(12), rng.randrange(100)
        if kind == "upsert":
            days = [rng.choice(["mon", "tue"]) if moves else _day(name) for name in names]
            rows = make_rows(names, [*range(value, value + len(names))], ts + step, days)
            changes.append(methodcaller("upsert", rows))
        elif kind == "merge":
            days = [rng.choice(["mon", "tue"]) if moves else _day(name) for name in names]
            rows = make_rows(names, [*range(value, value + len(names))], ts + step, days)
            changes.append(partial(merge, rows, rng.sample([*CLAUSES], rng.randint(1, 5))))
        elif kind == "delete":
            where = rng.choice([f"id >= 'k{low}'", f"v > {value}", "day = 'tue'"])
            changes.append(methodcaller("delete", where))
        elif kind == "update":
            where = rng.choice([f"id >= 'k{low}'", f"v < {value}", f"ts >= {ts + 1}"])
            changes.append(methodcaller("update", where, {"v": "v + 1"}))
        else:
            changes.append(methodcaller("delete_keys", names))
    return changes


def _day(name: str) -> str:
    return ["mon", "tue"][int(name[1:]) % 2]


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_transaction_equals_commits_one_after_the_other(
    tmp_path: Path, layout: str, kind: Kind
) -> None:
    for seed in range(int(os.environ.get("PYHUDI_SEEDS", "1"))):
        rng = random.Random(f"{layout} {kind} {seed}")
        first = make_rows(KEYS[:8], [*range(8)])
        alone, together = (
            TABLE.make(tmp_path / f"{name}{seed}", kind=kind, first=first, **LAYOUTS[layout])
            for name in ("alone", "together")
        )
        for ts in (10, 20, 30):
            changes = statements(rng, ts, moves=layout == "moves")
            for change in changes:
                change(alone)
            commits = count_commits(together)
            with together.transaction() as tx:
                for change in changes:
                    change(tx)
            assert contents(together) == contents(alone), (seed, len(changes))
            assert count_commits(together) - commits == int(tx.result.committed)
        assert not together.check(deep=True).findings


@pytest.fixture
def table(tmp_path: Path) -> pyhudi.HudiTable:
    return TABLE.make(tmp_path / "t", first=make_rows(KEYS[:4], [0, 1, 2, 3]), metadata=False)


def values(table: pyhudi.HudiTable) -> dict[str, int]:
    return {row["id"]: row["v"] for row in contents(table)}


def test_transaction_replaces_part_of_a_table(table: pyhudi.HudiTable) -> None:
    with table.transaction(commit_metadata={"job": "nightly"}) as tx:
        tx.delete("day = 'mon'")
        tx.upsert(make_rows(["k2", "k4"], [20, 40]))
        tx.insert(make_rows(["k0"], [100]))
    assert values(table) == {"k0": 100, "k1": 1, "k2": 20, "k3": 3, "k4": 40}
    assert tx.result.committed
    commit = table.history().to_pylist()[0]
    assert commit["instant"] == tx.result.instant
    assert dict(commit["metadata"])["job"] == "nightly"


def test_transaction_writes_nothing_after_an_error_in_its_block(table: pyhudi.HudiTable) -> None:
    def write() -> None:
        with table.transaction() as tx:
            tx.delete("true")
            raise KeyError("a bug")

    commits = count_commits(table)
    with pytest.raises(KeyError):
        write()
    assert count_commits(table) == commits
    assert len(values(table)) == 4


def test_transaction_checks_arguments_at_the_call(table: pyhudi.HudiTable) -> None:
    with table.transaction() as tx:
        with pytest.raises(SchemaMismatch, match="no column 'colour'"):
            tx.delete("colour = 'red'")
        with pytest.raises(SchemaMismatch):
            tx.update("true", {"colour": "'red'"})
        with pytest.raises(SchemaMismatch, match=r"or use update\(\), which keeps"):
            tx.upsert([{"id": "a", "day": "mon"}])
        with pytest.raises(SchemaMismatch, match=r"Use table\.alter\(\) to add it"):
            tx.upsert([{"id": "a", "day": "mon", "ts": 1, "v": 1, "w": 1}])
        with pytest.raises(SchemaMismatch):
            tx.delete_keys([{"day": "mon"}])
        with pytest.raises(ConfigError, match="'id' cannot be set"):
            tx.update("true", {"id": "'a'"})
    assert not tx.result.committed
    assert len(values(table)) == 4


def test_transaction_without_changes_is_no_delete(table: pyhudi.HudiTable) -> None:
    with table.transaction(commit_metadata={"job": "nightly"}):
        pass
    with table.transaction() as tx:
        tx.delete("id = 'k1'")
    operations = table.history(2).column("operation").to_pylist()
    assert operations == ["DELETE", "UPSERT"]


def test_transaction_runs_again_after_a_conflict(table: pyhudi.HudiTable) -> None:
    other = pyhudi.open_table(table.uri)
    with table.transaction() as tx:
        tx.update("v >= 2", {"v": "v * 10"})
        tx.upsert(make_rows(["k9"], [9]))
        other.update("id = 'k1'", {"v": 7})
    assert values(table) == {"k0": 0, "k1": 70, "k2": 20, "k3": 30, "k9": 9}


def test_transaction_conflicts_with_rows_that_its_filter_matches(
    table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer adds such rows after the rows were read: the transaction runs again."""
    other = pyhudi.open_table(table.uri)
    assign = StagedChanges.assign
    attempts: list[int] = []

    def assign_after_other(changes: StagedChanges) -> AssignedLocalRows:
        if not attempts:
            other.upsert(make_rows(["k7"], [70]))
        attempts.append(1)
        return assign(changes)

    monkeypatch.setattr(StagedChanges, "assign", assign_after_other)
    with table.transaction() as tx:
        tx.delete("v >= 50")
        tx.upsert(make_rows(["k8"], [8]))
    assert len(attempts) == 2
    assert values(table) == {"k0": 0, "k1": 1, "k2": 2, "k3": 3, "k8": 8}


def test_transaction_insert_fails_for_existing_keys(table: pyhudi.HudiTable) -> None:
    for fill in (lambda tx: tx, lambda tx: tx.upsert(make_rows(["k5"], [5]))):

        def write(fill: Callable[[Any], None] = fill) -> None:
            with table.transaction() as tx:
                fill(tx)
                tx.insert(make_rows(["k5", "k3"], [5, 3]))

        with pytest.raises(SchemaMismatch, match="inserts the key"):
            write()
    with table.transaction() as tx:
        tx.delete_keys(["k3"])
        tx.insert(make_rows(["k5", "k3"], [5, 30]))
    assert values(table) == {"k0": 0, "k1": 1, "k2": 2, "k3": 30, "k5": 5}


def test_transaction_refuses_a_new_row_that_would_lose_to_the_deleted_one(tmp_path: Path) -> None:
    table = TABLE.make(
        tmp_path / "t", first=make_rows(["k0"], [1], ts=5), order_by="ts", metadata=False
    )

    def write(ts: int) -> None:
        with table.transaction() as tx:
            tx.delete("true")
            tx.upsert(make_rows(["k0"], [2], ts=ts))

    with pytest.raises(SchemaMismatch, match="smaller value of ts"):
        write(4)
    assert values(table) == {"k0": 1}
    write(5)
    assert values(table) == {"k0": 2}


def test_transaction_is_written_once_by_its_commit_id(table: pyhudi.HudiTable) -> None:
    for is_second in (False, True):
        with table.transaction(commit_id="job 1") as tx:
            tx.update("true", {"v": "v + 1"})
        assert tx.result.was_written_before is is_second
    assert values(table) == {"k0": 1, "k1": 2, "k2": 3, "k3": 4}


def test_transaction_reads_a_stream_once(table: pyhudi.HudiTable) -> None:
    rows = make_rows(["k8"], [8])
    with table.transaction() as tx:
        tx.upsert(pa.RecordBatchReader.from_batches(rows.schema, rows.to_batches()))
        tx.update("id = 'k8'", {"v": "v + 1"})
    assert values(table)["k8"] == 9


def test_transaction_cannot_change_a_row_twice_with_a_merge_by_column(tmp_path: Path) -> None:
    payload = {"hoodie.compaction.payload.class": _NON_DEFAULTS}
    table = TABLE.make(
        tmp_path / "t",
        first=make_rows(["k0", "k1"], [0, 1]),
        metadata=False,
        version=6,
        kind="mor",
        options={**SMALL, **payload},
    )
    with table.transaction() as tx:
        tx.delete("id = 'k1'")
        tx.upsert(make_rows(["k0"], [10]))
    assert values(table) == {"k0": 10}

    def write() -> None:
        with table.transaction() as tx:
            tx.upsert(make_rows(["k0"], [20]))
            tx.upsert(make_rows(["k0"], [30]))

    with pytest.raises(UnsupportedTableFeature, match="cannot use a row that it wrote"):
        write()
    assert values(table) == {"k0": 10}


def test_transaction_refuses_filters_on_values_that_written_rows_do_not_have(
    table: pyhudi.HudiTable,
) -> None:
    def write() -> None:
        with table.transaction() as tx:
            tx.upsert(make_rows(["k8"], [8]))
            tx.delete("_hoodie_commit_time > '0'")

    with pytest.raises(UnsupportedTableFeature, match="_hoodie_commit_time"):
        write()


def test_transaction_refuses_duplicates_of_a_key(tmp_path: Path) -> None:
    table = TABLE.make(tmp_path / "t", metadata=False, index="SIMPLE")
    table.bulk_insert(make_rows(["k0", "k0", "k2"], [1, 2, 3]))

    def write(change: Callable[[Any], Any]) -> None:
        with table.transaction() as tx:
            change(tx)

    for change in (
        lambda tx: tx.delete("v = 1"),
        lambda tx: tx.update("v = 1", {"v": 5}),
    ):
        with pytest.raises(SchemaMismatch, match="duplicates of the key 'k0'"):
            write(change)
    write(lambda tx: tx.update("id = 'k2'", {"v": 5}))
    assert sorted(row["v"] for row in contents(table)) == [1, 2, 5]


def test_transaction_merges_into_rows_that_it_wrote(table: pyhudi.HudiTable) -> None:
    with table.transaction() as tx:
        tx.delete("id = 'k0'")
        tx.upsert(make_rows(["k1", "k4"], [10, 40]))
        merging = tx.merge(make_rows(["k0", "k2", "k4"], [100, 200, 400]), on="id")
        merging = merging.when_matched_update({"v": "target.v + source.v"})
        merging = merging.when_not_matched_insert_all()
        merging.when_not_matched_by_source_delete(where="v = 10").execute()
        tx.update("v = 440", {"v": "v + 1"})
    assert values(table) == {"k0": 100, "k2": 202, "k3": 3, "k4": 441}
    assert len(table.history()) == 2


def test_transaction_merges_an_empty_list(table: pyhudi.HudiTable) -> None:
    with table.transaction() as tx:
        merging = tx.merge([]).when_matched_update({"v": "source.other"})
        merging.when_not_matched_by_source_delete(where="v < 2").execute()
    assert values(table) == {"k2": 2, "k3": 3}


def test_transaction_refuses_a_merge_that_is_not_executed(table: pyhudi.HudiTable) -> None:
    def write() -> None:
        with table.transaction() as tx:
            tx.delete("true")
            tx.merge(make_rows(["k0"], [9])).when_matched_update_all()

    with pytest.raises(ConfigError, match="was not executed"):
        write()
    assert len(values(table)) == 4


def test_transaction_checks_a_merge_at_the_call(table: pyhudi.HudiTable) -> None:
    rows = make_rows(["k0"], [9])
    with pytest.raises(ConfigError, match="not open"):
        table.transaction().merge(rows)
    with table.transaction() as tx:
        with pytest.raises(ConfigError, match="on is"):
            tx.merge(rows, on="day")
        with pytest.raises(ConfigError, match="no clause"):
            tx.merge(rows).execute()
        with pytest.raises(SchemaMismatch, match="colour"):
            tx.merge(rows).when_matched_update({"v": "source.colour"}).execute()
        with pytest.raises(SchemaMismatch, match="several rows of one key"):
            tx.merge(pa.concat_tables([rows, rows])).when_matched_update_all().execute()
        tx.merge(rows).when_matched_update_all().execute()
    assert values(table)["k0"] == 9


@pytest.mark.parametrize("change", ["added", "changed"])
def test_transaction_conflicts_with_rows_that_its_merge_matches(
    table: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """Another writer adds a key of the source, or changes a row that no clause has changed."""
    other = pyhudi.open_table(table.uri)
    assign = StagedChanges.assign
    attempts: list[int] = []

    def assign_after_other(changes: StagedChanges) -> AssignedLocalRows:
        if not attempts:
            other.upsert(make_rows(["k6" if change == "added" else "k2"], [70]))
        attempts.append(1)
        return assign(changes)

    monkeypatch.setattr(StagedChanges, "assign", assign_after_other)
    with table.transaction() as tx:
        merging = tx.merge(make_rows(["k2", "k6"], [1, 1]))
        merging.when_matched_update({"v": "target.v + 1"}, where="target.v > 50").execute()
        tx.upsert(make_rows(["k9"], [9]))
    assert len(attempts) == 2
    matched = "k6" if change == "added" else "k2"
    assert values(table)[matched] == 71


@pytest.mark.parametrize("name", ["overwrite", "overwrite_partitions", "delete_partitions"])
def test_transaction_refuses_to_replace_file_groups(table: pyhudi.HudiTable, name: str) -> None:
    with table.transaction() as tx:
        with pytest.raises(UnsupportedTableFeature, match=f"{name} cannot be part") as error:
            getattr(tx, name)
        assert "outside the transaction" in error.value.hint
        with pytest.raises(AttributeError, match="'truncate'"):
            getattr(tx, "truncate")  # noqa: B009 - mypy knows the methods
    assert hasattr(table, name)


def test_transaction_has_one_block(table: pyhudi.HudiTable) -> None:
    tx = table.transaction()
    with pytest.raises(ConfigError, match="not open"):
        tx.delete("true")
    with pytest.raises(ConfigError, match="not committed"):
        _ = tx.result
    with tx:
        tx.delete("id = 'k0'")
    with pytest.raises(ConfigError, match="not open"):
        tx.delete("true")
    with pytest.raises(ConfigError, match="one `with` block"), tx:
        pass
    assert len(values(table)) == 3
