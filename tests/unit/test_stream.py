"""Streams of commits: each commit comes once, in order, and a consumer goes on where it was."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable, StreamBatch
from pyhudi.errors import (
    ConfigError,
    ConsumerConflict,
    HistoryUnavailable,
    StorageError,
    TableNotFound,
    UnsupportedTableFeature,
)
from pyhudi.storage.storage import Storage
from pyhudi.txn.transaction import Transaction
from tests.helpers.table_builder import SMALL, TableBuilder

pytestmark = pytest.mark.in_parts

COMMIT_TIME = "_hoodie_commit_time"
KINDS: list[tuple[int, Literal["cow", "mor"]]] = [
    (version, kind) for version in (6, 8, 9) for kind in ("cow", "mor")
]
ROWS = TableBuilder(
    {"id": (pa.string(), str), "city": (pa.string(), "rome"), "v": (pa.int64(), 0)},
    partition_by="city",
    options={
        **SMALL,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.archive.automatic": "false",
        "hoodie.clean.automatic": "false",
        "hoodie.compact.inline": "false",
    },
    metadata=False,
)
CDC = {"hoodie.table.cdc.enabled": "true"}


def ids(batch: StreamBatch) -> list[str]:
    return sorted(batch.to_arrow()["id"].to_pylist())


def drain(table: HudiTable, start: Any = None, **arguments: Any) -> list[StreamBatch]:
    return list(table.stream(start, wait=False, **arguments))


def read_all(table: HudiTable, **arguments: Any) -> list[list[str]]:
    return [ids(batch) for batch in drain(table, "earliest", **arguments)]


def write_late(
    table: HudiTable, rows: pa.Table, before: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write that is requested before something happens, and completes after it."""
    commit = Transaction.commit

    def commit_late(self: Transaction, *arguments: Any) -> str:
        with monkeypatch.context() as patch:
            patch.setattr(Transaction, "commit", commit)
            before()
        return commit(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Transaction, "commit", commit_late)
        pyhudi.open_table(table.uri, options=table.options).upsert(rows)


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_stream_returns_rows_of_table_then_each_commit(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    table = ROWS.make(tmp_path / "t", version=version, kind=kind)
    table.upsert(ROWS.rows(["a", "b"]))
    table.upsert(ROWS.rows(["b"], v=1))
    stream = table.stream(poll=0.01)
    first = next(stream)
    assert first.instants == ()
    assert sorted(first.to_arrow()["v"].to_pylist()) == [0, 1]
    results = [table.upsert(ROWS.rows([name], v=2)) for name in ("a", "c")]
    table.delete_keys([{"id": "b", "city": "rome"}])
    if kind == "mor":
        table.compact()
    table.cluster()
    table.clean(retain=20)
    results.append(table.upsert(ROWS.rows(["d"], v=3)))
    batches = [next(stream) for _ in results]
    assert [batch.instants for batch in batches] == [(result.instant,) for result in results]
    assert [ids(batch) for batch in batches] == [["a"], ["c"], ["d"]]
    assert [batch.count() for batch in batches] == [1, 1, 1]
    assert batches[-1].position == stream.position
    assert not drain(table, batches[-1].position)
    # A position is a bound of ranges, too.
    rest = table.incremental(batches[0].position, batches[1].position, columns=["id"])
    assert rest.to_arrow()["id"].to_pylist() == ["c"]


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_stream_of_changes_has_both_images(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    table = ROWS.make(tmp_path / "t", version=version, kind=kind, options=CDC)
    table.upsert(ROWS.rows(["a", "b"]))
    stream = table.stream(changes=True, poll=0.01)
    first = next(stream).to_arrow().to_pylist()
    assert [(row["op"], row["before"], row["after"]["id"]) for row in first] == [
        ("i", None, "a"),
        ("i", None, "b"),
    ]
    table.upsert(ROWS.rows(["b"], v=1))
    table.cluster()
    table.delete_keys([{"id": "a", "city": "rome"}])
    update, delete = next(stream), next(stream)
    (row,) = update.to_arrow().to_pylist()
    assert (row["op"], row["before"]["v"], row["after"]["v"]) == ("u", 0, 1)
    (row,) = delete.to_arrow().to_pylist()
    assert (row["op"], row["before"]["id"], row["after"]) == ("d", "a", None)
    expected = table.changes("earliest").to_arrow()
    batches = drain(table, "earliest", changes=True)
    assert pa.concat_tables(batch.to_arrow() for batch in batches).equals(expected)


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_stream_from_earliest_reads_archived_commits(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    table = ROWS.make(tmp_path / "t", version=version, kind=kind)
    for number in range(6):
        table.upsert(ROWS.rows([f"k{number}"]))
    table.clean(retain=1)
    assert table.archive(min_commits=2, max_commits=3).instants
    assert read_all(table) == [[f"k{number}"] for number in range(6)]
    assert not drain(table, "latest")
    instants = [row["instant"] for row in table.history(archived=True).to_pylist()]
    commits = [each for each in reversed(instants) if drain(table, "earliest")]
    assert [ids(batch) for batch in drain(table, commits[1])] == [[f"k{n}"] for n in range(2, 6)]


@pytest.mark.parametrize("version", [8, 9])
def test_stream_returns_late_commit_in_its_turn(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ROWS.make(tmp_path / "t", version=version, kind="mor")
    table.upsert(ROWS.rows(["a"]))
    # A stream begins with its first batch.
    stream = table.stream(table.incremental().position, poll=0.01)
    batches = []

    def read() -> None:
        pyhudi.open_table(table.uri).upsert(ROWS.rows(["b"], city="oslo"))
        batches.append(next(stream))

    write_late(table, ROWS.rows(["late"], city="lima"), read, monkeypatch)
    batches.append(next(stream))
    assert [ids(batch) for batch in batches] == [["b"], ["late"]]
    assert batches[0].instants > batches[1].instants


def test_stream_below_version_8_waits_for_pending_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Completed commits behind it come after it, also in the first batch of a stream."""
    table = ROWS.make(tmp_path / "t", version=6, kind="mor")
    table.upsert(ROWS.rows(["a"]))
    position = table.incremental().position
    streams = []

    def read() -> None:
        current = pyhudi.open_table(table.uri)
        current.upsert(ROWS.rows(["b"], city="oslo"))
        assert not drain(current, position)
        streams.append(current.stream(poll=0.01))
        assert ids(next(streams[0])) == ["a"]

    write_late(table, ROWS.rows(["late"], city="lima"), read, monkeypatch)
    assert [ids(batch) for batch in drain(table, position)] == [["late"], ["b"]]
    assert [ids(next(streams[0])) for _ in range(2)] == [["late"], ["b"]]


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_shards_divide_file_groups(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    table = ROWS.make(tmp_path / "t", version=version, kind=kind, options=CDC)
    for city in ("rome", "oslo", "lima", "bonn"):
        table.upsert(ROWS.rows([f"{city}{number}" for number in range(2)], city=city))
    table.cluster()
    table.upsert(ROWS.rows(["rome0", "bonn1"], v=1, city=lambda name: name[:4]))
    for changes in (False, True):
        whole = drain(table, "earliest", changes=changes)
        # File groups have random names: in 16 shards they are hardly ever in the same one.
        parts = [drain(table, "earliest", shard=(n, 16), changes=changes) for n in range(16)]
        assert sum(part != [] for part in parts) > 1
        expected, rows = (
            Counter(str(row) for batch in batches for row in batch.to_arrow().to_pylist())
            for batches in (whole, [batch for part in parts for batch in part])
        )
        assert rows == expected
        assert rows.total() == 10


def test_shards_of_consumer_begin_together(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a"]))
    first = table.stream("latest", consumer="c", shard=(0, 2), wait=False)
    assert not list(first)
    for number in range(4):
        table.upsert(ROWS.rows([f"k{number}"]))
    rows = [
        row
        for number in range(2)
        for batch in drain(table, "latest", consumer="c", shard=(number, 2))
        for row in ids(batch)
    ]
    assert sorted(rows) == ["k0", "k1", "k2", "k3"]
    for number in range(2):
        for batch in drain(table, "latest", consumer="c", shard=(number, 2)):
            batch.commit()
    with pytest.raises(ConfigError, match="has 2 shards, not 1"):
        drain(table, consumer="c")
    assert not [b for n in range(2) for b in drain(table, "latest", consumer="c", shard=(n, 2))]
    stored = table.consumers().to_pylist()
    assert [(row["shard"], row["shards"]) for row in stored] == [(0, 2), (1, 2)]


@pytest.mark.parametrize("version", [6, 9])
def test_consumer_goes_on_at_its_position(version: int, tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t", version=version)
    for name in "abc":
        table.upsert(ROWS.rows([name]))
    batches = table.stream("earliest", consumer="c", wait=False)
    first, second = next(batches), next(batches)
    first.commit()
    # The second batch was not committed, so it comes again; a later commit includes it.
    assert [ids(batch) for batch in drain(table, consumer="c")] == [["b"], ["c"]]
    third = next(batches)
    third.commit()
    second.commit()
    third.commit()
    assert not drain(table, consumer="c")
    (stored,) = table.consumers().to_pylist()
    assert (stored["consumer"], stored["position"]) == ("c", third.position)
    table.upsert(ROWS.rows(["d"]))
    # The stored position wins over `start`.
    assert [ids(batch) for batch in drain(table, "earliest", consumer="c")] == [["d"]]
    table.reset_consumer("c", first.position)
    assert [ids(batch) for batch in drain(table, consumer="c")] == [["b"], ["c"], ["d"]]
    table.reset_consumer("c", "latest")
    assert not drain(table, consumer="c")
    table.reset_consumer("c", "earliest")
    assert len(drain(table, consumer="c")) == 4
    table.delete_consumer("c")
    assert not table.consumers().num_rows
    (batch,) = drain(table, consumer="c")
    assert ids(batch) == ["a", "b", "c", "d"]


def test_consumer_that_begins_at_latest_loses_no_commit(tmp_path: Path) -> None:
    """The position is stored as the stream begins: the process may end before the first batch."""
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a"]))
    assert not drain(table, "latest", consumer="c")
    table.upsert(ROWS.rows(["b"]))
    assert [ids(batch) for batch in drain(table, "latest", consumer="c")] == [["b"]]


def test_second_stream_of_consumer_cannot_commit(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a"]))
    table.upsert(ROWS.rows(["b"]))
    for start in (None, "earliest"):
        first, second = (
            next(pyhudi.open_table(table.uri).stream(start, consumer=str(start), wait=False))
            for _ in "12"
        )
        first.commit()
        for _ in range(2):
            with pytest.raises(ConsumerConflict, match="another process"):
                second.commit()
        first.commit()
    stream = table.stream(consumer="earliest", wait=False)
    batch = next(stream)
    table.delete_consumer("earliest")
    with pytest.raises(ConsumerConflict, match="is deleted"):
        batch.commit()


COMPETITOR = """
import sys, pyhudi
for turn in range(200):
    stream = pyhudi.open_table(sys.argv[1]).stream("earliest", consumer="c", wait=False)
    try:
        for batch in stream:
            batch.commit()
            print(*batch.instants)
    except pyhudi.ConsumerConflict:
        continue
    break
"""


@pytest.mark.parametrize("answer", [StorageError("timeout"), None])
def test_commit_is_stored_although_its_response_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: StorageError | None
) -> None:
    """A client may also repeat the request, and find the file that it has written itself."""
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a"]))
    table.upsert(ROWS.rows(["b"]))
    replace_version = Storage.replace_version

    def lose(self: Storage, *arguments: Any, **kwargs: Any) -> None:
        replace_version(self, *arguments, **kwargs)
        if answer is not None:
            raise answer

    for batch in table.stream("earliest", consumer="c", wait=False):
        with monkeypatch.context() as patch:
            patch.setattr(Storage, "replace_version", lose)
            batch.commit()
        assert table.consumers()["position"].to_pylist() == [batch.position]
        batch.commit()


@pytest.mark.slow
def test_processes_with_one_consumer_commit_each_batch_once(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    results = [table.upsert(ROWS.rows([f"k{number}"])) for number in range(8)]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", COMPETITOR, table.uri], stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=300)[0].split() for process in processes]
    assert all(process.returncode == 0 for process in processes)
    committed = [instant for output in outputs for instant in output]
    assert sorted(committed) == [result.instant for result in results]
    assert not drain(table, consumer="c")


def test_stream_of_empty_table_begins_with_first_commit(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    for start in (None, "latest", "earliest"):
        assert not drain(table, start, consumer=f"c-{start}")
    streams = [table.stream(start, poll=0.01) for start in (None, "earliest")]
    table.upsert(ROWS.rows(["a"]))
    table.upsert(ROWS.rows(["b"]))
    assert [ids(next(streams[1])) for _ in range(2)] == [["a"], ["b"]]
    assert [ids(batch) for batch in drain(table, consumer="c-latest")] == [["a"], ["b"]]


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_stream_raises_if_files_are_cleaned(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    table = ROWS.make(tmp_path / "t", version=version, kind=kind)
    results = [table.upsert(ROWS.rows(["a", f"k{number}"], v=number)) for number in range(4)]
    if kind == "mor":
        table.compact()
    results.append(table.upsert(ROWS.rows(["a"], v=9)))
    table.clean(retain=1)
    batches: list[StreamBatch] = []
    stream = table.stream("earliest", consumer="c", wait=False)
    with pytest.raises(HistoryUnavailable, match="the stream misses") as raised:
        batches.extend(stream)
    message = str(raised.value)
    named = message.split("misses")[1].split("Hint", maxsplit=1)[0]
    missed = [result.instant for result in results if result.instant in named]
    assert missed
    assert "reset_consumer" in message
    assert "fallback_full_scan=True" in message
    skip = message.split("reset_consumer(name, '")[1][:17]
    table.reset_consumer("c", skip)
    later = drain(table, consumer="c")
    read = [instant for batch in [*batches, *later] for instant in batch.instants]
    assert sorted([*read, *missed]) == [result.instant for result in results]
    # Rows that are still current come with their commit.
    current = drain(table, "earliest", fallback_full_scan=True, meta_fields=True)
    rows = [row for batch in current for row in batch.to_arrow().to_pylist()]
    assert all(row in rows for row in table.scan(meta_fields=True).to_arrow().to_pylist())
    assert [batch.instants for batch in current] == [(result.instant,) for result in results]


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_stream_goes_on_after_restore(
    version: int, kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    table = ROWS.make(tmp_path / "t", version=version, kind=kind)
    keep = table.upsert(ROWS.rows(["a"]))
    table.upsert(ROWS.rows(["b"]))
    table.upsert(ROWS.rows(["c"]))
    stream = table.stream("earliest", consumer="c", poll=0.01)
    read = [next(stream), next(stream)]
    read[-1].commit()
    # The stream has loaded the table with the commit of c, which it has not returned yet.
    table.savepoint(instant=keep.instant)
    table.restore(keep.instant)
    table.upsert(ROWS.rows(["d"]))
    batch = next(stream)
    assert ids(batch) == ["d"]
    assert [ids(each) for each in drain(table, consumer="c")] == [["d"]]
    batch.commit()
    assert not drain(table, consumer="c")


def test_stream_ends_when_it_is_closed(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a"]))
    stream = table.stream(poll="1h")
    batches: list[StreamBatch] = []
    thread = threading.Thread(target=lambda: batches.extend(stream))
    thread.start()
    while not batches:
        time.sleep(0.001)
    stream.close()
    thread.join(10)
    assert not thread.is_alive()
    assert ids(batches[0]) == ["a"]
    assert not list(stream)
    with table.stream() as other:
        next(other)
    assert not list(other)
    stream = table.stream()
    stream.close()
    assert not list(stream)


def test_waiting_stream_lists_the_timeline_once_a_poll(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a"]))
    stream = table.stream("latest", poll=0.001)
    calls: Counter[str] = Counter()
    paths: set[str] = set()

    def watch(name: str) -> None:
        own = getattr(Storage, name)

        def call(self: Storage, *arguments: Any, **kwargs: Any) -> Any:
            calls[name] += 1
            paths.update(arguments[:1])
            if calls["list_dir"] > 50:
                stream.close()
            return own(self, *arguments, **kwargs)

        monkeypatch.setattr(Storage, name, call)

    assert not drain(table, "latest")
    for name in ("read", "read_version", "list", "list_dir", "head"):
        watch(name)
    assert not list(stream)
    polls = calls["list_dir"] - 10
    assert polls > 30
    assert calls.total() - calls["list_dir"] < 5, calls
    assert ".hoodie/timeline" in paths


def test_stream_tries_again_after_an_exception(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a"]))
    stream = table.stream("earliest", poll=0.01)
    assert ids(next(stream)) == ["a"]
    for name, error in (("b", StorageError("503")), ("c", KeyboardInterrupt())):
        table.upsert(ROWS.rows([name]))
        for method in ("list_dir", "read"):

            def fail(*_: Any, error: BaseException = error) -> None:
                raise error

            with monkeypatch.context() as patch:
                patch.setattr(Storage, method, fail)
                with pytest.raises(type(error)):
                    next(stream)
        assert ids(next(stream)) == [name]


def test_stream_goes_on_after_interruption_of_a_wait(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    stream = table.stream("latest", poll="1s")
    interruption = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    interruption.start()
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    interruption.join()
    table.upsert(ROWS.rows(["b"]))
    assert ids(next(stream)) == ["b"]


def test_stream_arguments_are_checked(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    result = table.upsert(ROWS.rows(["a"]))
    for arguments, message in (
        ({"poll": "soon"}, "poll is 'soon'"),
        ({"poll": 0}, "poll is 0"),
        ({"poll": True}, "poll is True"),
        ({"poll": float("nan")}, "poll is nan"),
        ({"start": "whenever"}, "'whenever' is not a time"),
        ({"start": "lastest"}, "Did you mean 'latest'"),
        ({"start": "earlist"}, "Did you mean 'earliest'"),
        ({"consumer": ""}, "is not a name"),
        ({"consumer": "../x"}, "is not a name"),
        ({"consumer": ".x"}, "is not a name"),
        ({"consumer": "x."}, "is not a name"),
        ({"consumer": "a/b"}, "is not a name"),
        ({"consumer": "x" * 101}, "is not a name"),
        ({"consumer": 5}, "must be a string"),
        ({"shard": 3, "start": "earliest"}, "shard is 3; it must be a pair"),
        ({"shard": ("0", 2), "start": "earliest"}, "shard is '0'"),
        ({"shard": (2, 2), "start": "earliest"}, "no shard 2 of 2"),
        ({"shard": (0, 2)}, "must begin at the same commit"),
        ({"shard": (0, 2), "start": "latest"}, "must begin at the same commit"),
        ({"shard": (0, 2), "start": "earliest", "fallback_full_scan": True}, "with shard"),
        ({"columns": ["nope"]}, "nope"),
        ({"where": "nope = 1"}, "nope"),
        ({"wait": "no"}, "must be True or False"),
    ):
        with pytest.raises((ConfigError, pyhudi.SchemaMismatch), match=message):
            table.stream(**arguments)
    with pytest.raises(UnsupportedTableFeature, match="cdc"):
        table.stream(changes=True)
    changing = ROWS.make(tmp_path / "cdc", options=CDC)
    for arguments in ({"columns": ["id"]}, {"meta_fields": True}, {"fallback_full_scan": True}):
        with pytest.raises(ConfigError):
            changing.stream(changes=True, **arguments)
    earlier = pyhudi.open_table(table.uri, as_of=result.instant)
    with pytest.raises(ConfigError, match="opened as of"):
        earlier.stream()
    with pytest.raises(ConfigError, match="no consumer"):
        next(table.stream()).commit()
    for call in (table.delete_consumer, lambda name: table.reset_consumer(name, "latest")):
        with pytest.raises(ConfigError, match="no consumer 'x'"):
            call("x")


def test_stream_selects_columns_and_rows(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a", "b"], v="_ab".index))
    table.upsert(ROWS.rows(["c"], v=1))
    for start in (None, "earliest"):
        batches = drain(table, start, columns=["id"], where="v = 2", meta_fields=True)
        rows = pa.concat_tables(batch.to_arrow() for batch in batches)
        assert rows["id"].to_pylist() == ["b"]
        assert COMMIT_TIME in rows.column_names
        assert "v" not in rows.column_names


def test_stream_raises_if_table_is_dropped(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t")
    table.upsert(ROWS.rows(["a"]))
    stream = table.stream(consumer="c", poll=0.01)
    next(stream).commit()
    pyhudi.drop_table(table.uri)
    with pytest.raises(TableNotFound):
        next(stream)
    assert not (tmp_path / "t" / ".hoodie" / ".pyhudi").exists()
    again = ROWS.make(tmp_path / "t")
    assert not again.consumers().num_rows


def test_stream_refuses_position_of_another_order(tmp_path: Path) -> None:
    """Times of version 6 do not order commits as those of version 8 do."""
    table = ROWS.make(tmp_path / "t", version=6)
    table.upsert(ROWS.rows(["a"]))
    stream = table.stream("earliest", consumer="c", poll=0.01)
    batch = next(stream)
    batch.commit()
    table.upgrade(8)
    with pytest.raises(ConfigError, match="is a requested time"):
        next(stream)
    with pytest.raises(ConfigError, match="is a requested time"):
        drain(table, consumer="c")
    table.reset_consumer("c", batch.position)
    table.upsert(ROWS.rows(["b"]))
    assert [ids(each) for each in drain(table, consumer="c")] == [["b"]]


def test_services_and_checks_ignore_consumers(tmp_path: Path) -> None:
    table = ROWS.make(tmp_path / "t", version=6, metadata=True, kind="mor")
    table.upsert(ROWS.rows(["a"]))
    next(table.stream(consumer="c")).commit()
    file = tmp_path / "t" / ".hoodie" / ".pyhudi" / "consumers" / "c" / "position.json"
    content = file.read_bytes()
    for number in range(4):
        table.upsert(ROWS.rows(["a"], v=number))
    table.compact()
    table.cluster()
    table.clean(retain=1)
    table.archive(min_commits=2, max_commits=3)
    assert not table.check(deep=True, repair=True).findings
    table.upgrade(9)
    table.rebuild_metadata()
    table.downgrade(8)
    assert not table.check(deep=True).findings
    assert file.read_bytes() == content
