"""The history of a table, and what writers have their commits say."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, CorruptTable
from pyhudi.timeline import CommitMetadata, Timeline
from pyhudi.txn.conflicts import check_idempotency
from tests.helpers.tables import unpack
from tests.unit.memory_storage import MemoryStorage
from tests.unit.test_savepoints import made, people


@pytest.mark.parametrize("version", [6, 9])
def test_history_tells_who_did_what(version: int, tmp_path: Path) -> None:
    table = made(tmp_path / "t", version)
    table.upsert(people(range(5), 3), commit_metadata={"job": "j-1", "batch": "7"})
    table.delete("id = 'k0'", commit_metadata={"job": "j-2"})
    last = table.savepoint("kept")
    rows = table.history().to_pylist()
    assert [row["action"] for row in rows[:2]] == ["savepoint", "deltacommit"]
    assert [row["instant"] for row in rows] == sorted((r["instant"] for r in rows), reverse=True)
    assert rows[0]["metadata"] == [("comment", "kept"), ("saved_by", "pyhudi")]
    deleted, upserted = rows[1:3]
    assert deleted["instant"] == last
    assert ("job", "j-2") in deleted["metadata"]
    assert (deleted["operation"], deleted["rows_deleted"]) == ("DELETE", 1)
    assert {("job", "j-1"), ("batch", "7")} <= set(upserted["metadata"])
    assert "schema" not in dict(upserted["metadata"])
    counts = [upserted[name] for name in ("rows_inserted", "rows_updated", "rows_deleted")]
    assert (upserted["operation"], counts) == ("UPSERT", [1, 4, 0])
    assert upserted["bytes"] > 0
    assert upserted["files"] >= 2
    assert table.history(limit=2).to_pylist() == rows[:2]
    assert table.history(limit=0).num_rows == 0
    assert table.history(since=upserted["instant"]).to_pylist() == rows[:2]


@pytest.mark.parametrize("version", [6, 9])
def test_history_counts_no_rows_of_services(version: int, tmp_path: Path) -> None:
    """Their stats count the rows of the files that they wrote."""
    table = made(tmp_path / "t", version)
    table.upsert(people(range(5), 3))
    table.compact()
    table.cluster()
    names = ("rows_inserted", "rows_updated", "rows_deleted")
    for rows in (table.history(), table.inspect.commits()):
        counts = {row["operation"]: [row[name] for name in names] for row in rows.to_pylist()}
        assert counts["COMPACT"] == counts["CLUSTER"] == [None] * 3
        assert None not in counts["UPSERT"]


@pytest.mark.parametrize("name", ["v9_mor_archived", "v6_cow_archived"])
def test_history_goes_back_into_the_archive(name: str, tmp_path: Path) -> None:
    table = pyhudi.open_table(unpack(name, tmp_path))
    active, whole = table.history(), table.history(archived=True)
    assert whole.slice(0, active.num_rows).equals(active)
    older = whole.slice(active.num_rows).to_pylist()
    assert older
    assert all(row["operation"] for row in older if row["action"].endswith("commit"))
    middle = older[len(older) // 2]["instant"]
    bounded = table.history(archived=True, since=middle).to_pylist()
    assert [row["instant"] for row in bounded] == [
        row["instant"] for row in whole.to_pylist() if row["instant"] > middle
    ]


def test_history_tells_what_was_taken_back(tmp_path: Path) -> None:
    rows = pyhudi.open_table(unpack("v9_mor_rollback", tmp_path)).history().to_pylist()
    assert any(row["rolled_back"] for row in rows if row["action"] == "rollback")
    (tmp_path / "r").mkdir()
    restored = pyhudi.open_table(unpack("v9_mor_restore", tmp_path / "r")).history().to_pylist()
    assert [len(row["rolled_back"]) for row in restored if row["action"] == "restore"] == [2]


def test_history_has_commit_metadata_of_every_operation(tmp_path: Path) -> None:
    table = made(tmp_path / "t", kind="cow")
    data = people(range(2), 9)

    def said(word: str) -> dict[str, str]:
        return {"by": word}

    table.insert(people(range(10, 12), 1), commit_metadata=said("insert"))
    table.bulk_insert(people(range(20, 22), 1), commit_metadata=said("bulk_insert"))
    table.delete_keys(data.select(["id", "city"]), commit_metadata=said("delete_keys"))
    table.update("id = 'k3'", {"v": "v + 1"}, commit_metadata=said("update"))
    table.merge(data, commit_metadata=said("merge")).when_not_matched_insert_all().execute()
    table.overwrite_partitions(data.slice(0, 1), commit_metadata=said("overwrite_partitions"))
    table.delete_partitions(["rome"], commit_metadata=said("delete_partitions"))
    table.overwrite(data, commit_metadata=said("overwrite"))
    table.alter(commit_metadata=said("alter")).add_column("w", pa.int64()).execute()
    told = [dict(row["metadata"] or ()).get("by") for row in table.history().to_pylist()]
    assert [word for word in told if word] == [
        "alter",
        "overwrite",
        "delete_partitions",
        "overwrite_partitions",
        "merge",
        "update",
        "delete_keys",
        "bulk_insert",
        "insert",
    ]


def test_commit_metadata_makes_commit_without_rows(tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    assert not table.upsert(people(range(1), 1).slice(1)).committed
    assert table.upsert(people(range(1), 1).slice(1), commit_metadata={"offset": "12"}).committed
    assert ("offset", "12") in table.history(limit=1).to_pylist()[0]["metadata"]


_STREAMS = "_hudi_streaming_sink_checkpoint"


@pytest.mark.parametrize(
    "wrong",
    [
        {"schema": "x"},
        {"n": 1},
        {1: "x"},
        "text",
        {"": "x"},
        {_STREAMS: "x"},
        {_STREAMS: "[]"},
        {_STREAMS: '{"s": "x"}'},
    ],
)
def test_bad_commit_metadata_is_refused(wrong: object, tmp_path: Path) -> None:
    table = made(tmp_path / "t")
    before = table.history().num_rows
    with pytest.raises(ConfigError, match="commit_metadata"):
        table.upsert(people(range(1), 5), commit_metadata=wrong)  # type: ignore[arg-type]
    assert table.refresh().history().num_rows == before


@pytest.mark.parametrize("theirs", ["x", "[" * 100_000, "[]", '{"mine": "x"}', '{"mine": 1e999}'])
def test_stream_metadata_of_other_writers_is_checked(theirs: str) -> None:
    name = "20260101000000000.commit"
    content = json.dumps({"extraMetadata": {_STREAMS: theirs}}).encode()
    config = TableConfig({"hoodie.table.name": "t", "hoodie.table.version": "6"})
    timeline = Timeline.load(MemoryStorage({f".hoodie/{name}": content}), config)
    mine = CommitMetadata(extra_metadata={_STREAMS: '{"mine": "7"}'})
    with pytest.raises(CorruptTable, match=name):
        check_idempotency(timeline, mine)
    check_idempotency(timeline, CommitMetadata())
