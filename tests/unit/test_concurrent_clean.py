"""A scan names the clean that deleted its files; any other missing file is damage."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from pyhudi.config.actions import CLEAN
from pyhudi.errors import HistoryUnavailable, MissingFile
from pyhudi.index import key_reader
from pyhudi.txn.transaction import Transaction
from tests.unit.test_savepoints import made, people, timeline_of

LISTED = {"hoodie.metadata.enable": False}


@pytest.mark.parametrize("version", [6, 9])
def test_scan_reports_concurrent_clean(tmp_path: Path, version: int) -> None:
    table = made(tmp_path / "t", version, "cow")
    first = table.inspect.commits()["requested"][0].as_py()
    scan, then = table.scan(), pyhudi.open_table(table.uri, as_of=first)
    other = pyhudi.open_table(table.uri, options={"hoodie.clean.automatic": False})
    for v in range(3, 6):
        other.upsert(people(range(4), v))
    assert scan.to_arrow().num_rows == 4
    other.clean(retain=1)
    with pytest.raises(HistoryUnavailable, match=r"clean .* removed files of the snapshot"):
        scan.to_arrow()
    with pytest.raises(HistoryUnavailable):
        then.scan().to_arrow()
    assert table.refresh().scan().to_arrow().num_rows == 4


def cleaned_and_archived(table: pyhudi.HudiTable) -> None:
    """What others do beside somebody slow; no clean of theirs is on the timeline any more."""
    how = {"hoodie.clean.automatic": False, "hoodie.archive.automatic": False}
    other = pyhudi.open_table(table.uri, options={**LISTED, **how})
    for v in range(3, 6):
        other.upsert(people(range(4), v))
    other.clean(retain=1)
    for v in range(6, 11):
        other.upsert(people(range(4), v))
    other.archive(min_commits=2, max_commits=3)
    assert not timeline_of(Path(table.uri)).filter_completed(CLEAN)


@pytest.fixture
def slow(tmp_path: Path) -> pyhudi.HudiTable:
    """A table of somebody slow, of a version whose cleans are archived with what else there is."""
    table = pyhudi.create_table(
        tmp_path / "t", people(range(4), 1), key="id", order_by="v", options=LISTED
    )
    table.upsert(people(range(2), 2))
    return table.refresh()


def test_scan_reports_archived_concurrent_clean(slow: pyhudi.HudiTable) -> None:
    reader = slow.scan().to_reader()
    cleaned_and_archived(slow)
    with pytest.raises(HistoryUnavailable, match=r"clean .* removed files of the snapshot"):
        reader.read_all()


def test_write_retries_after_archived_concurrent_clean(
    slow: pyhudi.HudiTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other writers cannot know which files a writer needs before it has an instant."""
    enter, others = Transaction.__enter__, [cleaned_and_archived]

    def slowly(self: Transaction) -> Transaction:
        if others:
            others.pop()(slow)
        return enter(self)

    monkeypatch.setattr(Transaction, "__enter__", slowly)
    assert slow.upsert(people(range(4), 20)).rows_updated == 4
    assert not others
    assert slow.refresh().scan(where="v = 20").count() == 4


def test_scan_reports_missing_file_as_damage(tmp_path: Path) -> None:
    table = made(tmp_path / "t", 9, "cow")
    scan = table.scan()
    scan.plan()
    for file in (tmp_path / "t" / "rome").glob("*.parquet"):
        file.unlink()
    with pytest.raises(MissingFile):
        scan.to_arrow()


def withdrawn(base: Path) -> Iterator[pyhudi.HudiTable]:
    """A table of version 6 beside a writer whose log file is there, then is not."""
    table = pyhudi.create_table(
        base, people(range(4), 1), key="id", order_by="v", type="mor", version=6, options=LISTED
    )
    table.upsert(people(range(1, 2), 2))
    (log,) = base.glob(".*.log.*")
    begun = log.with_name(log.name.rpartition(".")[0] + ".2_9-9-9")
    begun.write_bytes(log.read_bytes())
    yield table.refresh()
    begun.unlink()


def test_scan_retries_after_concurrent_write_is_withdrawn(tmp_path: Path) -> None:
    beside = withdrawn(tmp_path / "t")
    table = next(beside)
    reader = table.scan().to_reader()
    next(beside, None)
    with pytest.raises(HistoryUnavailable, match="a write that did not complete removed"):
        reader.read_all()
    assert table.refresh().scan().to_arrow().num_rows == 4


def test_write_retries_after_concurrent_write_is_withdrawn(tmp_path: Path) -> None:
    beside = withdrawn(tmp_path / "t")
    table = next(beside)
    keys_of = key_reader.KeySource.keys_of

    def once_gone(*args: Any, **named: Any) -> Any:
        next(beside, None)
        return keys_of(*args, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_reader.KeySource, "keys_of", once_gone)
        assert table.upsert(people(range(1, 2), 3)).rows_updated == 1
    assert table.scan(where="v = 3").count() == 1
