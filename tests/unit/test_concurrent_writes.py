"""Two concurrent writers: the result equals that of one write after the other."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock, parse_instant
from pyhudi.config.actions import REPLACE_COMMIT
from pyhudi.engine.local import LocalEngine
from pyhudi.errors import CommitConflict, CorruptTable, UnsupportedTableFeature
from pyhudi.index import record_index
from pyhudi.metadata.commit_participant import MetadataParticipant
from pyhudi.query.dml_scan import plan_select
from pyhudi.slices import markers
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import Commit
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import instant_files
from pyhudi.txn.heartbeat import Heartbeat, path_of
from pyhudi.txn.lock_manager import TableLockManager
from pyhudi.txn.result import WriteResult
from pyhudi.txn.transaction import Transaction
from pyhudi.write import idempotency, upsert
from pyhudi.write.table_opening import Handle
from pyhudi.write.write_context import WriteContext
from tests.helpers.pairwise import pairwise
from tests.helpers.pending_compaction import request_compaction

pytestmark = pytest.mark.in_parts

Rows = dict[str, tuple[str, int]]
Verb = Callable[[pyhudi.HudiTable, int], WriteResult]
Effect = Callable[[Rows, int], Rows]

START: Rows = {"a": ("rome", 0), "b": ("oslo", 0), "c": ("rome", 0), "d": ("oslo", 0)}


def rows_of(given: Rows) -> pa.Table:
    ids = list(given)
    return pa.table(
        {
            "id": ids,
            "city": [given[i][0] for i in ids],
            "v": pa.array([given[i][1] for i in ids], pa.int32()),
        }
    )


def upserted(value: int) -> Rows:
    return {"a": ("rome", value), "new": ("oslo", value), "b": ("oslo", value)}


def merged(rows: Rows, value: int) -> Rows:
    brought = {"c": ("rome", value), "new": ("oslo", value)}
    return {**rows, **{k: r for k, r in brought.items() if k not in rows or rows[k][1] < 5}}


def put_merged(table: pyhudi.HudiTable, value: int) -> WriteResult:
    source = rows_of({"c": ("rome", value), "new": ("oslo", value)})
    merge = table.merge(source).when_matched_update({"v": "source.v"}, where="v < 5")
    return merge.when_not_matched_insert_all().execute()


VERBS: dict[str, tuple[Verb, Effect]] = {
    "upsert": (
        lambda table, value: table.upsert(rows_of(upserted(value))),
        lambda rows, value: {**rows, **upserted(value)},
    ),
    "insert": (
        lambda table, value: table.insert(rows_of({f"i{value}": ("rome", value)})),
        lambda rows, value: {**rows, f"i{value}": ("rome", value)},
    ),
    "bulk_insert": (
        lambda table, value: table.bulk_insert(rows_of({f"i{value}": ("oslo", value)})),
        lambda rows, value: {**rows, f"i{value}": ("oslo", value)},
    ),
    "delete_keys": (
        lambda table, _: table.delete_keys(rows_of({"a": ("rome", 0), "new": ("oslo", 0)})),
        lambda rows, _: {k: row for k, row in rows.items() if k not in ("a", "new")},
    ),
    "delete": (
        lambda table, _: table.delete("v > 2"),
        lambda rows, _: {k: row for k, row in rows.items() if row[1] <= 2},
    ),
    "update": (
        lambda table, value: table.update("city = 'oslo' AND v < 8", {"v": f"v + {value}"}),
        lambda rows, value: {
            k: (c, v + value) if c == "oslo" and v < 8 else (c, v) for k, (c, v) in rows.items()
        },
    ),
    "merge": (put_merged, merged),
    "overwrite_partitions": (
        lambda table, value: table.overwrite_partitions(rows_of({"o": ("oslo", value)})),
        lambda rows, value: {
            **{k: row for k, row in rows.items() if row[0] != "oslo"},
            "o": ("oslo", value),
        },
    ),
    "overwrite": (
        lambda table, value: table.overwrite(rows_of({"w": ("rome", value)})),
        lambda _, value: {"w": ("rome", value)},
    ),
    "delete_partitions": (
        lambda table, _: table.delete_partitions(["rome"]),
        lambda rows, _: {k: row for k, row in rows.items() if row[0] != "rome"},
    ),
}
KINDS: dict[str, tuple[int, Literal["cow", "mor"], dict[str, str]]] = {
    "v9-cow-record-index": (9, "cow", {}),
    "v9-mor-record-index": (9, "mor", {}),
    "v9-mor-bucket": (
        9,
        "mor",
        {"hoodie.index.type": "BUCKET", "hoodie.bucket.index.num.buckets": "3"},
    ),
    "v8-mor-bloom": (8, "mor", {"hoodie.index.type": "BLOOM"}),
    "v6-cow-simple": (6, "cow", {"hoodie.index.type": "SIMPLE"}),
    "v6-mor-global": (6, "mor", {"hoodie.index.type": "GLOBAL_SIMPLE"}),
}


def make(base: Path, kind: str, **options: str) -> pyhudi.HudiTable:
    version, type_, more = KINDS[kind]
    given = {"hoodie.index.bloom.num_entries": "64", "hoodie.parquet.small.file.limit": "0"}
    table = pyhudi.create_table(
        base,
        rows_of(START).schema,
        key="id",
        partition_by="city",
        type=type_,
        version=version,
        options={**given, **more, **options},
    )
    table.upsert(rows_of(START))
    return table


def read(table: pyhudi.HudiTable) -> Rows:
    rows = pyhudi.open_table(table.uri).scan().to_arrow().to_pylist()
    found = {row["id"]: (row["city"], row["v"]) for row in rows}
    assert len(found) == len(rows), rows
    return found


def meeting(monkeypatch: pytest.MonkeyPatch, *others: Callable[[], object]) -> list[int]:
    """Has others write, one in each of the next writes, once that has made its plan."""
    left: Iterator[Callable[[], object]] = iter(others)
    enter = Transaction.__enter__
    begun: list[int] = []
    busy: list[bool] = []

    def entered(self: Transaction) -> Transaction:
        if not busy:
            begun.append(1)
            busy.append(True)
            for other in itertools.islice(left, 1):
                other()
            busy.clear()
        return enter(self)

    monkeypatch.setattr(Transaction, "__enter__", entered)
    return begun


@pytest.mark.parametrize(("kind", "mine", "other"), pairwise(list(KINDS), list(VERBS), list(VERBS)))
def test_conflicting_write_is_retried_on_new_snapshot(
    kind: str, mine: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "table", kind)
    second = pyhudi.open_table(table.uri, options=table.options)
    meeting(monkeypatch, lambda: VERBS[other][0](second, 7))
    result = VERBS[mine][0](table, 3)
    expected = VERBS[other][1](START, 7)
    # What found nothing to do has done so before the other came.
    if result.committed:
        expected = VERBS[mine][1](expected, 3)
    assert read(table) == expected
    assert not pyhudi.open_table(table.uri).check(deep=True).findings


@pytest.mark.parametrize("kind", ["v9-cow-record-index", "v8-mor-bloom", "v6-cow-simple"])
def test_upsert_finds_key_added_and_clustered_concurrently(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file group that got the key is replaced when the write looks the key up again."""
    table = make(tmp_path / "table", kind)
    second = pyhudi.open_table(table.uri, options=table.options)

    def others() -> None:
        second.insert(rows_of({"new": ("oslo", 7)}))
        second.cluster()
        assert "replacecommit" in second.inspect.timeline()["action"].to_pylist()

    meeting(monkeypatch, others)
    table.upsert(rows_of({"new": ("oslo", 8)}))
    assert read(table) == {**START, "new": ("oslo", 8)}


@pytest.mark.parametrize("kind", list(KINDS))
def test_delete_keys_without_partitions_sees_concurrent_rows(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "table", kind)
    second = pyhudi.open_table(table.uri, options=table.options)
    begun = meeting(monkeypatch, lambda: second.upsert(rows_of({"new": ("oslo", 7)})))
    table.delete_keys(pa.table({"id": ["a", "new"]}))
    assert len(begun) == 2
    assert read(table) == {key: row for key, row in START.items() if key != "a"}


RINGS = {"hoodie.index.bucket.engine": "CONSISTENT_HASHING", **dict.fromkeys(
    ("hoodie.bucket.index.min.num.buckets", "hoodie.bucket.index.max.num.buckets"), "64"
)}  # fmt: skip


@pytest.mark.parametrize("more", [{}, RINGS], ids=["numbers", "rings"])
def test_delete_keys_sees_concurrently_created_bucket(
    more: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(
        tmp_path / "table", "v9-mor-bucket", **{"hoodie.bucket.index.num.buckets": "64", **more}
    )
    second = pyhudi.open_table(table.uri, options=table.options)
    new = rows_of({f"n{number}": ("oslo", number) for number in range(9)})
    begun = meeting(monkeypatch, lambda: second.upsert(new))
    table.delete_keys(pa.concat_tables([new, rows_of({"a": ("rome", 0)})]))
    assert len(begun) == 2
    assert read(table) == {key: row for key, row in START.items() if key != "a"}


@pytest.mark.parametrize("kind", ["v9-cow-record-index", "v6-cow-simple"])
def test_write_retries_if_clean_removes_planned_files(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "table", kind)
    second = pyhudi.open_table(table.uri, options=table.options)

    def others() -> None:
        second.upsert(rows_of({"a": ("rome", 7)}))
        second.upsert(rows_of({"a": ("rome", 8)}))
        assert second.clean(retain=1).files_removed

    begun = meeting(monkeypatch, others)
    table.upsert(rows_of({"c": ("rome", 3)}))
    # Two by the others, and its own that is made again.
    assert len(begun) == 2
    assert read(table) == {**START, "a": ("rome", 8), "c": ("rome", 3)}


COMPACTS = {"hoodie.compact.inline.max.delta.commits": 1}


def before_listing(monkeypatch: pytest.MonkeyPatch, others: Callable[[], object]) -> None:
    """Has others at work once, after a write has read the timeline and before it lists files."""
    view = WriteContext.view

    def listed(self: WriteContext, partitions: Any, **more: Any) -> Any:
        monkeypatch.setattr(WriteContext, "view", view)
        others()
        return view(self, partitions, **more)

    monkeypatch.setattr(WriteContext, "view", listed)


@pytest.mark.parametrize(
    "verb", ["upsert", "delete_keys", "merge", "insert", "update", "overwrite"]
)
@pytest.mark.parametrize("kind", list(KINDS))
def test_write_retries_if_clean_runs_before_listing(
    kind: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file group that is no longer listed looks like one that never existed."""
    table = make(tmp_path / "table", kind)
    second = pyhudi.open_table(table.uri, options={**table.options, **COMPACTS})
    theirs = {"a": ("rome", 4), "c": ("rome", 4), "b": ("oslo", 4)}

    def others() -> None:
        for _ in range(2):
            second.upsert(rows_of(theirs))
            if KINDS[kind][1] == "mor":
                second.compact()
        second.upsert(rows_of({"d": ("oslo", 4)}))
        assert second.clean(retain=1).files_removed

    before_listing(monkeypatch, others)
    VERBS[verb][0](table, 3)
    assert read(table) == VERBS[verb][1]({**START, **theirs, "d": ("oslo", 4)}, 3)
    assert not pyhudi.open_table(table.uri).check(deep=True).findings


@pytest.mark.parametrize(
    "verb", ["upsert", "delete_keys", "merge", "overwrite", "delete_partitions"]
)
@pytest.mark.parametrize("service", ["compact", "cluster"])
@pytest.mark.parametrize("kind", ["v9-mor-record-index", "v8-mor-bloom", "v6-mor-global"])
def test_write_retries_if_service_and_clean_run_before_listing(
    kind: str, service: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No row of the partition has changed since the timeline was read."""
    table = make(tmp_path / "table", kind)
    table.upsert(rows_of({"a": ("rome", 1)}))
    second = pyhudi.open_table(table.uri, options={**table.options, **COMPACTS})

    def others() -> None:
        if service == "compact":
            second.compact()
        else:
            second.cluster()
        for value in (4, 5):
            second.upsert(rows_of({"e": ("lima", value)}))
        assert second.clean(retain=1).files_removed

    before_listing(monkeypatch, others)
    VERBS[verb][0](table, 3)
    assert read(table) == VERBS[verb][1]({**START, "a": ("rome", 1), "e": ("lima", 5)}, 3)
    assert not pyhudi.open_table(table.uri).check(deep=True).findings


@pytest.mark.parametrize("verb", ["update", "delete"])
@pytest.mark.parametrize("kind", ["v9-cow-record-index", "v6-cow-simple"])
def test_update_retries_if_clean_runs_before_plan(
    kind: str, verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "table", kind)
    second = pyhudi.open_table(table.uri, options=table.options)

    def planned(*given: Any) -> Any:
        monkeypatch.setattr("pyhudi.write.update_delete.plan_select", plan_select)
        for value in (4, 5):
            second.upsert(rows_of({"b": ("oslo", value)}))
        assert second.clean(retain=1).files_removed
        return plan_select(*given)

    monkeypatch.setattr("pyhudi.write.update_delete.plan_select", planned)
    VERBS[verb][0](table, 3)
    assert read(table) == VERBS[verb][1]({**START, "b": ("oslo", 5)}, 3)


@pytest.mark.parametrize("kind", ["v9-cow-record-index", "v9-mor-record-index"])
def test_write_retries_if_record_index_was_compacted(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names a file group of then, and is not damaged: there is no warning, and another try."""
    table = make(tmp_path / "table", kind)
    compacts = {**table.options, "hoodie.metadata.compact.max.delta.commits": 1}
    second = pyhudi.open_table(table.uri, options=compacts)
    look_up = record_index._tag_by_index
    tries: list[int] = []

    def looked_up(*given: Any, **more: Any) -> Any:
        tries.append(1)
        if len(tries) == 1:
            for value in (4, 5):
                second.upsert(rows_of({"new": ("lima", value)}))
        return look_up(*given, **more)

    monkeypatch.setattr(record_index, "_tag_by_index", looked_up)
    table.upsert(rows_of({"new": ("lima", 6)}))
    # Two of the others.
    assert len(tries) == 4
    assert read(table) == {**START, "new": ("lima", 6)}


def adds(table: pyhudi.HudiTable, name: str) -> Callable[[], object]:
    """Another writer that changes `a`."""
    return lambda: pyhudi.open_table(table.uri, options=table.options).upsert(
        rows_of({"a": ("rome", ord(name))})
    )


class TestRetries:
    def test_repeatedly_conflicting_write_succeeds(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        retries = {"hoodie.write.num.retries.on.conflict.failures": 3}
        mine = pyhudi.open_table(table.uri, options={**table.options, **retries})
        begun = meeting(monkeypatch, *(adds(table, name) for name in "xyz"))
        mine.upsert(rows_of({"a": ("rome", 1)}))
        assert len(begun) == 4
        assert read(table)["a"] == ("rome", 1)

    def test_last_retry_holds_lock(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        held: list[bool] = []
        begin = Transaction.start

        def start(self: Transaction, profile: Any) -> None:
            held.append(self._table.lock_manager.is_held)
            if len(held) < 3:
                raise CommitConflict("no", retry=True)
            begin(self, profile)

        monkeypatch.setattr(Transaction, "start", start)
        retries = {"hoodie.write.num.retries.on.conflict.failures": 2}
        pyhudi.open_table(table.uri, options={**table.options, **retries}).upsert(
            rows_of({"a": ("rome", 1)})
        )
        assert held == [False, False, True]

    def test_conflict_error_names_other_writer(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        never = {"hoodie.write.num.retries.on.conflict.failures": 0}
        mine = pyhudi.open_table(table.uri, options={**table.options, **never})
        meeting(monkeypatch, adds(table, "x"))
        with pytest.raises(CommitConflict, match=r"\d{17}\.commit .* changed file group") as told:
            mine.upsert(rows_of({"a": ("rome", 1)}))
        assert told.value.retry
        assert read(table)["a"] == ("rome", ord("x"))
        assert not pyhudi.open_table(table.uri).check(deep=True).findings

    @pytest.mark.parametrize("megabytes", [0, 40])
    @pytest.mark.slow
    def test_retried_stream_is_replayed(
        self, megabytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        count = megabytes * 40_000 + 10
        keys = pa.array([f"s{n:07}" for n in range(count)])
        batch = pa.record_batch(
            {
                "id": keys,
                "city": pa.repeat(pa.scalar("rome"), count),
                "v": pa.repeat(pa.scalar(1, pa.int32()), count),
            }
        )
        batches = [batch.slice(at, 50_000) for at in range(0, count, 50_000)]
        stream = pa.RecordBatchReader.from_batches(batch.schema, iter(batches))
        first = {"s0000000": ("rome", 9)}
        meeting(
            monkeypatch,
            lambda: pyhudi.open_table(table.uri, options=table.options).upsert(rows_of(first)),
        )
        result = table.upsert(stream)
        assert (result.rows_inserted, result.rows_updated) == (count - 1, 1)
        assert table.scan().count() == count + len(START)

    def test_insert_does_not_conflict_with_added_keys(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = make(tmp_path / "table", "v9-mor-record-index")
        begun = meeting(monkeypatch, adds(table, "x"))
        table.insert(rows_of({"i": ("rome", 1)}))
        assert len(begun) == 1

    def test_other_partitions_are_no_conflict(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        begun = meeting(monkeypatch, adds(table, "x"))
        table.upsert(rows_of({"b": ("oslo", 1), "other": ("oslo", 1)}))
        assert len(begun) == 1

    def test_other_partitions_with_column_ids_are_no_conflict(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each commit adds a version of the columns there, which changes none."""
        table = make(tmp_path / "table", "v9-cow-record-index")
        table.drop_index("partition_stats")
        table.alter().rename_column("v", "w").execute()
        table.alter().rename_column("w", "v").execute()
        assert table.state.schema.history
        begun = meeting(monkeypatch, adds(table, "x"))
        table.upsert(rows_of({"b": ("oslo", 1), "other": ("oslo", 1)}))
        assert len(begun) == 1
        assert table.refresh().check().ok


def test_concurrently_added_columns_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "table", "v9-cow-record-index")
    wide = rows_of({"b": ("oslo", 2)}).append_column("extra", pa.array(["x"]))
    second = pyhudi.open_table(table.uri, options=table.options)
    meeting(monkeypatch, lambda: second.upsert(wide, schema_mode="merge"))
    other = rows_of({"e": ("rome", 2)}).append_column("more", pa.array([1.5]))
    table.upsert(other, schema_mode="merge")
    assert table.schema.names == ["id", "city", "v", "extra", "more"]


def test_write_retries_after_concurrent_schema_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "table", "v9-cow-record-index")
    second = pyhudi.open_table(table.uri, options=table.options)
    meeting(monkeypatch, lambda: second.upsert(rows_of({"e": ("rome", 2)})))
    table.alter().add_column("tip", pa.float64()).execute()
    meeting(monkeypatch, lambda: second.alter().add_column("tax", pa.float64()).execute())
    table.upsert(rows_of({"f": ("rome", 2)}), schema_mode="merge")
    assert table.schema.names == ["id", "city", "v", "tip", "tax"]
    assert set(read(table)) == {*START, "e", "f"}


def test_write_maintains_concurrently_built_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "table", "v9-cow-record-index")
    second = pyhudi.open_table(table.uri, options=table.options)
    meeting(monkeypatch, lambda: second.create_index("bloom_filters"))
    table.upsert(rows_of({"f": ("rome", 2)}))
    assert "bloom_filters" in table.config.metadata_partitions
    assert not pyhudi.open_table(table.uri).check(deep=True).findings


@pytest.mark.parametrize("version", [6, 9])
def test_write_retries_after_concurrent_compaction_plan(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to version 6 the log file would belong to the slice before the new base file."""
    kind = {6: "v6-mor-global", 9: "v9-mor-record-index"}[version]
    table = make(tmp_path / "table", kind)
    table.upsert(rows_of({"a": ("rome", 1)}))
    begun = meeting(monkeypatch, lambda: request_compaction(table))
    table.upsert(rows_of({"a": ("rome", 2)}))
    assert len(begun) == (2 if version == 6 else 1)
    assert read(table)["a"] == ("rome", 2)


class TestOnce:
    @pytest.mark.parametrize("version", [6, 8, 9])
    def test_commit_id_writes_once(self, version: int, tmp_path: Path) -> None:
        kind = {6: "v6-mor-global", 8: "v8-mor-bloom", 9: "v9-cow-record-index"}[version]
        table = make(tmp_path / "table", kind)
        first = table.insert(rows_of({"e": ("rome", 1)}), commit_id="job/1")
        table.upsert(rows_of({"e": ("rome", 2)}))
        again = pyhudi.open_table(table.uri).insert(rows_of({"e": ("rome", 1)}), commit_id="job/1")
        assert (again.instant, again.rows_inserted) == (first.instant, 1)
        assert (first.was_written_before, again.was_written_before) == (False, True)
        assert read(table)["e"] == ("rome", 2)
        assert not table.insert(rows_of({"f": ("rome", 1)}), commit_id="job/2").was_written_before

    def test_commit_id_of_concurrent_commit_is_detected(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        second = pyhudi.open_table(table.uri, options=table.options)
        rows = rows_of({"e": ("rome", 1)})
        meeting(monkeypatch, lambda: second.bulk_insert(rows, commit_id="job/1"))
        assert table.bulk_insert(rows, commit_id="job/1").was_written_before
        assert len(read(table)) == len(START) + 1

    def test_commit_id_committed_before_begin_is_detected(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It has looked already."""
        table = make(tmp_path / "table", "v9-cow-record-index")
        second = pyhudi.open_table(table.uri, options=table.options)
        rows, looked = rows_of({"e": ("rome", 1)}), idempotency.find_commit_by_id

        def overtaken(*given: Any, **named: Any) -> Any:
            monkeypatch.setattr(idempotency, "find_commit_by_id", looked)
            found = looked(*given, **named)
            second.bulk_insert(rows, commit_id="job/1")
            return found

        monkeypatch.setattr(idempotency, "find_commit_by_id", overtaken)
        assert table.bulk_insert(rows, commit_id="job/1").was_written_before
        assert len(read(table)) == len(START) + 1

    def test_commit_id_of_empty_write_is_remembered(self, tmp_path: Path) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        assert table.delete("v > 5", commit_id="job/1").committed
        table.upsert(rows_of({"a": ("rome", 9)}))
        assert table.delete("v > 5", commit_id="job/1").was_written_before
        assert read(table)["a"] == ("rome", 9)

    def test_empty_commit_id_means_none(self, tmp_path: Path) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        with pytest.raises(pyhudi.ConfigError, match="commit_id"):
            table.upsert(rows_of({"e": ("rome", 1)}), commit_id="")


class TestEarlyDetection:
    def test_later_write_aborts_before_writing_files(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        early = "hoodie.write.concurrency.early.conflict.detection.enable"
        retries = "hoodie.write.num.retries.on.conflict.failures"
        table = make(tmp_path / "table", "v9-cow-record-index")
        mine = pyhudi.open_table(table.uri, options={**table.options, early: True, retries: 0})
        told: list[str] = []

        def meet() -> None:
            with pytest.raises(CommitConflict, match="is changing file group") as raised:
                mine.upsert(rows_of({"a": ("rome", 2)}))
            told.append(str(raised.value))

        commit = Transaction.commit

        def late(self: Transaction, *given: Any, **how: Any) -> str:
            if not told:
                meet()
            return commit(self, *given, **how)

        monkeypatch.setattr(Transaction, "commit", late)
        table.upsert(rows_of({"a": ("rome", 1)}))
        assert told
        assert read(table)["a"] == ("rome", 1)


class TestOtherLocks:
    @pytest.mark.parametrize("file", [".hoodie/lock", ".hoodie/.aux/lock"])
    def test_foreign_lock_file_stops_write(self, file: str, tmp_path: Path) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        table.storage.put(file, b"")
        with pytest.raises(UnsupportedTableFeature, match=r"lock\.provider.*" + file):
            table.upsert(rows_of({"a": ("rome", 1)}))
        assert read(table) == START
        named = {"hoodie.write.lock.provider": "StorageBasedLockProvider"}
        pyhudi.open_table(table.uri, options={**table.options, **named}).upsert(
            rows_of({"a": ("rome", 1)})
        )

    def test_heartbeat_of_hudi_stops_write(self, tmp_path: Path) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        instant = "29990101000000000"
        table.storage.put(f".hoodie/timeline/{instant}.commit.requested", b"")
        table.storage.put(f".hoodie/.heartbeat/{instant}", b"")
        with pytest.raises(UnsupportedTableFeature, match=f"active at instant {instant}"):
            table.upsert(rows_of({"a": ("rome", 1)}))

    def test_concurrent_commits_reveal_unknown_lock(self, tmp_path: Path) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        timeline = Path(table.uri) / ".hoodie" / "timeline"
        done = next(timeline.glob("*.commit"))
        requested, completed = done.stem.split("_")
        between = str(int(requested) + 1)
        for state in (".commit.requested", ".inflight"):
            content = (timeline / f"{requested}{state}").read_bytes()
            (timeline / f"{between}{state}").write_bytes(content)
        (timeline / f"{between}_{int(completed) + 1}.commit").write_bytes(done.read_bytes())
        (timeline.parent / ".locks" / "table_lock.json").unlink()
        with pytest.raises(UnsupportedTableFeature, match="ran concurrently"):
            table.upsert(rows_of({"a": ("rome", 1)}))

    @pytest.mark.parametrize("name", ["1.commit", "99999999999999999_99999999999999999.commit"])
    def test_invalid_instant_names_its_file(self, name: str, tmp_path: Path) -> None:
        table = make(tmp_path / "table", "v9-cow-record-index")
        path = f".hoodie/timeline/{name}"
        table.storage.put(path, b"")
        with pytest.raises(CorruptTable, match=path) as error:
            table.upsert(rows_of({"a": ("rome", 1)}))
        assert error.value.file == path


def test_single_writer_takes_no_lock(tmp_path: Path) -> None:
    alone = {"hoodie.write.concurrency.mode": "single_writer"}
    table = make(tmp_path / "table", "v9-cow-record-index", **alone)
    assert not (tmp_path / "table/.hoodie/.locks").exists()
    assert read(table) == START


def test_unknown_concurrency_mode_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"concurrency\.mode.*sometimes"):
        make(tmp_path / "table", "v9-mor-bucket", **{"hoodie.write.concurrency.mode": "sometimes"})


def test_lock_of_failed_process_is_taken_immediately(tmp_path: Path) -> None:
    table = make(tmp_path / "table", "v9-cow-record-index")
    child = os.fork()
    if child == 0:
        other = pyhudi.open_table(table.uri, options=table.options)
        setattr(TableLockManager, "check_held", lambda _: os._exit(0))  # noqa: B010 - this process is to die
        other.upsert(rows_of({"a": ("rome", 5)}))
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    began = time.monotonic()
    table.upsert(rows_of({"a": ("rome", 1)}))
    assert time.monotonic() - began < 20
    assert read(table)["a"] == ("rome", 1)


class TestNonBlocking:
    MODE = "hoodie.write.concurrency.mode"
    OPTIONS: ClassVar[dict[str, str]] = {
        MODE: "NON_BLOCKING_CONCURRENCY_CONTROL",
        "hoodie.index.type": "BUCKET",
        "hoodie.bucket.index.num.buckets": "2",
    }

    def make(self, base: Path, version: int = 9, kind: str = "mor", **options: str) -> Any:
        return pyhudi.create_table(
            base, rows_of(START).schema, key="id", partition_by="city", type=kind,  # type: ignore[arg-type]
            version=version, options={**self.OPTIONS, **options},
        )  # fmt: skip

    @pytest.mark.parametrize("version", [8, 9])
    def test_non_blocking_writes_do_not_conflict(
        self, version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Both begin the same buckets, and write to the same keys."""
        table = self.make(tmp_path / "table", version)
        second = pyhudi.open_table(table.uri, options=table.options)
        both = {**START, "e": ("rome", 1)}
        begun = meeting(monkeypatch, lambda: second.upsert(rows_of({**both, "x": ("oslo", 5)})))
        table.upsert(rows_of({**both, "y": ("oslo", 6)}))
        assert len(begun) == 1
        assert read(table) == {**both, "x": ("oslo", 5), "y": ("oslo", 6)}
        begun = meeting(monkeypatch, lambda: second.upsert(rows_of({"a": ("rome", 7)})))
        table.delete_keys(rows_of({"b": ("oslo", 0), "e": ("rome", 0)}))
        assert len(begun) == 1
        assert read(table)["a"] == ("rome", 7)
        assert not {"b", "e"} & read(table).keys()
        assert not pyhudi.open_table(table.uri).check(deep=True).findings
        ids = {stat["file_id"][8:] for stat in table.inspect.files().to_pylist()}
        assert ids == {"-0000-0000-0000-000000000000-0"}

    def test_non_blocking_delete_applies_to_future_bucket(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other request came first, and is complete last."""
        more = {"hoodie.bucket.index.num.buckets": "64", "hoodie.metadata.enable": "false"}
        table = self.make(tmp_path / "table", 9, "mor", **more)
        second = pyhudi.open_table(table.uri, options=table.options)
        table.upsert(rows_of(START))
        new = rows_of({f"n{number}": ("oslo", number) for number in range(9)})
        commit = Transaction.commit
        met: list[int] = []

        def late(self: Transaction, *given: Any, **how: Any) -> str:
            met.append(1)
            if len(met) == 1:
                second.delete_keys(new)
            return commit(self, *given, **how)

        monkeypatch.setattr(Transaction, "commit", late)
        table.upsert(new)
        assert len(met) == 2
        assert read(table) == START
        assert not pyhudi.open_table(table.uri).check(deep=True).findings

    def test_non_blocking_later_request_wins(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """As Hudi reads it: not the one that was complete last."""
        table = self.make(tmp_path / "table", 9, "mor", **{"hoodie.metadata.enable": "false"})
        second = pyhudi.open_table(table.uri, options=table.options)
        table.upsert(rows_of(START))
        commit = Transaction.commit
        met: list[int] = []

        def late(self: Transaction, *given: Any, **how: Any) -> str:
            if not met:
                met.append(1)
                second.upsert(rows_of({"a": ("rome", 2)}))
            return commit(self, *given, **how)

        monkeypatch.setattr(Transaction, "commit", late)
        table.upsert(rows_of({"a": ("rome", 1)}))
        assert read(table)["a"] == ("rome", 2)

    @pytest.mark.parametrize(
        "verb", [*sorted(set(VERBS) - {"upsert", "insert", "delete_keys"}), "partial"]
    )
    def test_non_blocking_refuses_read_modify_write(self, verb: str, tmp_path: Path) -> None:
        table = self.make(tmp_path / "table")
        table.upsert(rows_of(START))
        some = rows_of({"a": ("rome", 1)}).drop_columns(["v"])
        deed = VERBS[verb][0] if verb in VERBS else partial(pyhudi.HudiTable.upsert, partial=True)
        with pytest.raises(UnsupportedTableFeature, match=self.MODE):
            deed(table, 3 if verb in VERBS else some)
        with pytest.raises(UnsupportedTableFeature, match="delete_keys without partition"):
            table.delete_keys(pa.table({"id": ["a"]}))
        assert read(table) == START

    @pytest.mark.parametrize(
        ("version", "kind", "options"),
        [
            (6, "mor", {}),
            (9, "cow", {}),
            (9, "mor", {"hoodie.index.type": "SIMPLE"}),
            (9, "mor", {"hoodie.index.bucket.engine": "CONSISTENT_HASHING"}),
        ],
    )
    def test_non_blocking_raises_for_unsupported_tables(
        self, version: int, kind: str, options: dict[str, str], tmp_path: Path
    ) -> None:
        table = self.make(tmp_path / "table", version, kind, **options)
        with pytest.raises(UnsupportedTableFeature, match=self.MODE):
            table.upsert(rows_of(START))


def test_stalled_writer_retries_after_its_files_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(tmp_path / "table", "v9-cow-record-index")
    keep_step = MetadataParticipant.before_complete
    taken: list[str] = []

    def stood_still(
        self: MetadataParticipant, data: TableSnapshot, commit: Commit
    ) -> Mapping[str, str]:
        if not taken:
            late = property(lambda beat: commit.instant in beat._path)  # noqa: SLF001
            monkeypatch.setattr(Heartbeat, "is_late", late)
            taken.extend(commit.metadata.paths)
            for path in taken:
                data.storage.delete(path)
        return keep_step(self, data, commit)

    monkeypatch.setattr(MetadataParticipant, "before_complete", stood_still)
    table.upsert(rows_of({"a": ("rome", 5)}))
    assert read(table) == {**START, "a": ("rome", 5)}
    assert taken


class _LaggingClock(SystemClock):
    """The clock of a machine that lags behind, once it shows the time of an instant."""

    instant = ""

    def now_ms(self) -> int:
        return parse_instant(self.instant, "UTC") if self.instant else super().now_ms()


def test_writer_with_lagging_clock_keeps_heartbeat_of_active_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it other writers would roll the active write back, or accept its zombie commit."""
    table = make(tmp_path, "v9-cow-record-index")
    enter, start = Transaction.__enter__, Transaction.start
    clock, beats = _LaggingClock(), list[bytes]()

    def enter_late(lagging: Transaction) -> Transaction:
        def start_late(active: Transaction, profile: Any) -> None:
            monkeypatch.undo()
            beat = tmp_path / path_of(active.instant)
            beats.append(beat.read_bytes())
            clock.instant = active.instant
            enter(lagging)
            assert lagging.instant > active.instant
            beats.append(beat.read_bytes())
            start(active, profile)

        monkeypatch.undo()
        monkeypatch.setattr(Transaction, "start", start_late)
        pyhudi.open_table(tmp_path).upsert(rows_of({"a": ("rome", 5)}))
        return lagging

    monkeypatch.setattr(Transaction, "__enter__", enter_late)
    handle = Handle(Storage(str(tmp_path)), LocalEngine(1), table.options)
    upsert.upsert(handle, rows_of({"b": ("oslo", 6)}), clock=clock)
    assert beats[0] == beats[1]
    assert read(table) == {**START, "a": ("rome", 5), "b": ("oslo", 6)}


def test_delete_retries_if_file_group_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its commit came late, and was taken back (seed 26003469, under odds)."""
    table = make(tmp_path, "v6-cow-simple")
    table.upsert(rows_of({"x": ("lima", 7)}))
    groups = WriteContext.groups

    def without_it(context: WriteContext, partitions: Any) -> Any:
        monkeypatch.undo()
        for file in tmp_path.glob("lima/*"):
            file.unlink()
        table.rollback(table.refresh().state.timeline.commits[-1].requested)
        return groups(context, partitions)

    monkeypatch.setattr(WriteContext, "groups", without_it)
    pyhudi.open_table(tmp_path).delete("v > 2")
    assert read(table) == START


@pytest.mark.parametrize("kind", ["v9-cow-record-index", "v6-mor-global"])
def test_rollback_keeps_files_of_write_with_same_instant(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both writes have their markers in one directory."""
    table = make(tmp_path / "table", kind)
    start = Transaction.start
    theirs: list[Path] = []

    def meeting(self: Transaction, profile: Any) -> None:
        start(self, profile)
        layout, storage = table.config.layout, table.storage
        instant_files.request(layout, storage, self.instant, REPLACE_COMMIT)
        instant_files.start(layout, storage, self.instant, REPLACE_COMMIT)
        file = f"theirs-0_0-1-0_{self.instant}.parquet"
        markers.create(storage, self.instant, markers.Marker("rome", file, "CREATE"))
        storage.put(f"rome/{file}", b"half")
        theirs.append(tmp_path / "table/rome" / file)

    monkeypatch.setattr(Transaction, "start", meeting)
    alone = pyhudi.open_table(
        table.uri, options={**table.options, "hoodie.write.num.retries.on.conflict.failures": 0}
    )
    before = {path.name for path in (tmp_path / "table").glob("[ro]*/*")}
    with pytest.raises(CommitConflict, match="has the same time as the"):
        alone.upsert(rows_of({"a": ("rome", 5), "new": ("oslo", 5)}))
    left = {path.name for path in (tmp_path / "table").glob("[ro]*/*")}
    assert left - before == {theirs[0].name}
    assert list((tmp_path / "table/.hoodie/.temp").rglob(f"{theirs[0].name}.marker.CREATE"))
    assert read(table) == START
