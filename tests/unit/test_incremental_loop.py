"""Readers that follow a table: each commit's rows come once, and none are lost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable
from pyhudi.config.actions import COMMIT_ACTIONS
from pyhudi.errors import HistoryUnavailable
from pyhudi.txn.result import WriteResult
from pyhudi.txn.transaction import Transaction
from tests.helpers.table_builder import SMALL, TableBuilder

pytestmark = pytest.mark.in_parts

COMMIT_TIME = "_hoodie_commit_time"
KINDS: list[tuple[int, Literal["cow", "mor"]]] = [
    *((version, "cow") for version in (6, 8, 9)),
    *((version, "mor") for version in (6, 8, 9)),
]
ROWS = TableBuilder(
    {"id": (pa.string(), str), "city": (pa.string(), "rome"), "v": (pa.int64(), 0)},
    partition_by="city",
    options={
        **SMALL,
        "hoodie.parquet.small.file.limit": "0",
        "hoodie.archive.automatic": "false",
        "hoodie.clean.automatic": "false",
    },
)


class Writer:
    """Writes rows, and keeps what each commit wrote."""

    def __init__(self, table: HudiTable) -> None:
        self.table = table
        self.written: list[tuple[WriteResult, list[str]]] = []
        self._numbers = itertools.count()

    def write(self, *keys: str, city: str = "rome") -> WriteResult:
        """Upserts a new key and some of before."""
        ids = [f"k{next(self._numbers)}", *keys]
        table = pyhudi.open_table(self.table.uri, options=self.table.options)
        result = table.upsert(ROWS.rows(ids, v=len(self.written), city=city))
        self.written.append((result, ids))
        return result

    def write_late(
        self, monkeypatch: pytest.MonkeyPatch, city: str, meanwhile: Callable[[], object]
    ) -> None:
        """A write that is requested before what happens meanwhile, and completed after it.

        In a partition of its own, so that there is no conflict.
        """
        commit = Transaction.commit

        def committed(self: Transaction, *given: Any) -> str:
            with monkeypatch.context() as patch:
                patch.setattr(Transaction, "commit", commit)
                meanwhile()
            return commit(self, *given)

        with monkeypatch.context() as patch:
            patch.setattr(Transaction, "commit", committed)
            self.write(city=city)

    def archive(self) -> None:
        """Archives what was before the first clustering."""
        self.write()
        soon = {
            "hoodie.clean.commits.retained": "1",
            "hoodie.metadata.compact.max.delta.commits": "1",
        }
        table = pyhudi.open_table(self.table.uri, options={**self.table.options, **soon})
        assert len(table.archive(min_commits=2, max_commits=3).instants) > 3

    @property
    def rows(self) -> Counter[tuple[str, str]]:
        """Commit and key of each row that was written."""
        return Counter((result.instant, key) for result, ids in self.written for key in ids)

    @property
    def in_order(self) -> list[tuple[WriteResult, list[str]]]:
        """The writes in the order of the table's ranges."""
        by_completion = self.table.version >= 8
        return sorted(
            self.written,
            key=lambda each: each[0].completion if by_completion else each[0].instant,
        )


class Follower:
    """Reads what is new, as the first page of the documentation has it."""

    def __init__(self, uri: str, *, changes: bool = False) -> None:
        self.uri = uri
        self.changes = changes
        self.start: str | None = None
        self.rows: Counter[tuple[str, str]] = Counter()

    def read(self) -> None:
        table = pyhudi.open_table(self.uri)
        if self.changes:
            changed: Any = table.changes(start=self.start)
            found = [(row["ts_ms"], row["after"]["id"]) for row in changed.to_arrow().to_pylist()]
        else:
            changed = table.incremental(start=self.start, columns=[COMMIT_TIME, "id"])
            found = [(row[COMMIT_TIME], row["id"]) for row in changed.to_arrow().to_pylist()]
        self.rows.update(found)
        self.start = changed.position


def history_of_a_table(
    base: Path, monkeypatch: pytest.MonkeyPatch, read: Callable[[], object], **axes: Any
) -> Writer:
    """Commits of all kinds; `read` is called whenever one is complete."""
    writer = Writer(ROWS.make(base, **axes))

    def write(*keys: str) -> None:
        writer.write(*keys)
        read()

    def wait_for_late() -> None:
        """Below version 8 readers wait for the write that is late."""
        writer.write()
        if writer.table.version >= 8:
            read()
        else:
            with pytest.raises(HistoryUnavailable, match="incomplete"):
                read()

    read()
    write()
    write("k0")
    writer.write_late(monkeypatch, "oslo", wait_for_late)
    read()
    # One late write begins before another, and is complete after it.
    writer.write_late(
        monkeypatch,
        "oslo",
        lambda: writer.write_late(monkeypatch, "lima", lambda: writer.write("k1")),
    )
    read()
    table = pyhudi.open_table(base, options=writer.table.options)
    assert table.cluster(execute=False).scheduled
    write()
    assert table.cluster(schedule=False).instants
    read()
    if table.type == "mor":
        table.compact()
        read()
    write("k0", "k1")
    writer.write_late(monkeypatch, "lima", lambda: pyhudi.open_table(base).cluster())
    read()
    write()
    return writer


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_incremental_loop_reads_each_commit_once(
    version: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = Follower(str(tmp_path / "t"))
    writer = history_of_a_table(
        tmp_path / "t", monkeypatch, follower.read, version=version, kind=kind
    )
    assert follower.rows == writer.rows
    # Commits that are archived before they are followed by others count as read.
    writer.archive()
    follower.read()
    follower.read()
    assert follower.rows == writer.rows


@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_changes_loop_reads_each_commit_once(
    version: int, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    follower = Follower(str(tmp_path / "t"), changes=True)
    captured = {"hoodie.table.cdc.enabled": "true"}
    writer = history_of_a_table(
        tmp_path / "t", monkeypatch, follower.read, version=version, kind=kind, options=captured
    )
    assert follower.rows == writer.rows


@pytest.mark.parametrize("archived", [False, True])
@pytest.mark.parametrize(("version", "kind"), KINDS)
def test_either_time_of_a_commit_bounds_a_range(
    version: int, kind: str, archived: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From each commit to the next one there are the rows of that one, whichever times are given.

    Among them are those that results tell, and those of the history.
    """
    writer = history_of_a_table(
        tmp_path / "t", monkeypatch, Follower(str(tmp_path / "t")).read, version=version, kind=kind
    )
    if archived:
        writer.archive()
    table = pyhudi.open_table(tmp_path / "t")
    shown = {
        row["instant"]: row["completed"]
        for row in table.history(archived=True).to_pylist()
        if row["action"] in COMMIT_ACTIONS
    }
    times = [(result.instant, result.completion) for result, _ in writer.in_order]
    assert all(shown[requested] == completed for requested, completed in times)
    assert (times == sorted(times)) == (version < 8), "some are complete out of order"
    for before, (result, ids) in zip([("", ""), *times[:-1]], writer.in_order, strict=True):
        for start, end in itertools.product(
            dict.fromkeys(before), (result.instant, result.completion)
        ):
            scan = table.incremental(start or None, end, columns=[COMMIT_TIME, "id"])
            rows = [(row[COMMIT_TIME], row["id"]) for row in scan.to_arrow().to_pylist()]
            assert sorted(rows) == sorted((result.instant, key) for key in ids), (start, end)
