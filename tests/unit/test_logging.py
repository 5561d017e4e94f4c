"""What a program hears through `logging`, and that data without rows make no commit to hear of."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.clock import SystemClock
from pyhudi.errors import PartitionChangeWarning, retryable_conflict
from pyhudi.storage.storage import Storage
from pyhudi.txn.locks.storage_lock import StorageLock
from pyhudi.write.conflict_retries import retry_on_conflict

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
NONE = SCHEMA.empty_table()
VALUES = {"id": "id", "part": "part", "v": "v"}
OPTIONS: dict[str, Any] = {"hoodie.metadata.enable": False}


def rows(*ids: str, part: str = "x") -> pa.Table:
    return pa.table({"id": ids, "part": [part] * len(ids), "v": [1] * len(ids)}, SCHEMA)


def made(base: Path, given: Any = SCHEMA, **more: Any) -> pyhudi.HudiTable:
    options = {**OPTIONS, **more.pop("options", {})}
    return pyhudi.create_table(base, given, key="id", partition_by="part", options=options, **more)


def said(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    found = [r for r in caplog.records if r.name == "pyhudi" and r.levelno == level]
    return [record.getMessage() for record in found]


def test_commit_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "pyhudi")
    table = made(tmp_path)
    assert said(caplog, logging.INFO) == []
    result = table.upsert(rows("a", "b"))
    (line,) = said(caplog, logging.INFO)
    assert line.startswith(
        f"{tmp_path}: committed <WriteResult UPSERT {result.instant}: 2 inserted"
    )
    caplog.clear()
    assert not table.delete("id = 'nobody'").committed
    assert said(caplog, logging.INFO) == []


def test_services_after_a_commit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options = {"hoodie.compact.inline": True, "hoodie.compact.inline.max.delta.commits": 1}
    table = made(tmp_path, rows("a"), type="mor", options=options)
    caplog.set_level(logging.INFO, "pyhudi")
    result = table.upsert(rows("a"))
    lines = [line for line in said(caplog, logging.INFO) if "compaction after" in line]
    assert len(lines) == 1
    assert lines[0].startswith(f"{tmp_path}: compaction after {result.instant}: <ServiceResult")


def test_warning_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = made(tmp_path, options={"hoodie.metadata.enable": True})
    table.insert(rows("a"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        table.upsert(rows("a", part="y"))
    (told,) = (each for each in caught if each.category is PartitionChangeWarning)
    assert said(caplog, logging.WARNING) == [str(told.message)]
    assert "1 row kept the partition" in str(told.message)
    assert told.filename == __file__, "the line that called the verb"


def test_conflict_retry_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "pyhudi")
    tries = []

    def verb(*_: Any) -> int:
        tries.append(1)
        if len(tries) < 3:
            raise retryable_conflict("another was faster")
        return len(tries)

    assert retry_on_conflict(made(tmp_path), None, verb) == 3
    lines = [line for line in said(caplog, logging.DEBUG) if "conflict, retry" in line]
    assert [("retry 2" in line, "retry 3" in line) for line in lines] == [
        (True, False),
        (False, True),
    ]
    assert all("another was faster" in line for line in lines)


def test_lock_wait_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    table = made(tmp_path)
    caplog.set_level(logging.DEBUG, "pyhudi")
    lock = StorageLock(Storage(str(tmp_path)), SystemClock(), validity_ms=60_000, renew_ms=6_000)
    assert lock.acquire(1000)
    waits = threading.Event()
    handler = logging.Handler()
    handler.emit = lambda record: waits.set() if "lock is held" in record.getMessage() else None  # type: ignore[method-assign]
    logger = logging.getLogger("pyhudi")
    logger.addHandler(handler)
    writer = threading.Thread(target=table.insert, args=(rows("a"),))
    try:
        writer.start()
        assert waits.wait(20)
    finally:
        lock.release()
        writer.join()
        logger.removeHandler(handler)
    assert table.refresh().count() == 1


def test_logging_is_silent_without_handler(tmp_path: Path) -> None:
    code = (
        "import warnings, pyhudi, logging; warnings.simplefilter('ignore');"
        "from pyhudi.config.log import warn; warn('heard');"
        "assert logging.getLogger('pyhudi').level == logging.NOTSET"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


VERBS: dict[str, Callable[[pyhudi.HudiTable], pyhudi.WriteResult]] = {
    "upsert": lambda t: t.upsert(NONE),
    "partial": lambda t: t.upsert(NONE.drop_columns(["v"]), partial=True),
    "stream": lambda t: t.upsert(NONE.to_reader()),
    "insert": lambda t: t.insert(NONE),
    "bulk_insert": lambda t: t.bulk_insert(NONE),
    "sorted": lambda t: t.bulk_insert(NONE, sort="global"),
    "overwrite_partitions": lambda t: t.overwrite_partitions(NONE),
    "delete_keys": lambda t: t.delete_keys(NONE.select(["id"])),
    "unknown key": lambda t: t.delete_keys(pa.table({"id": ["nobody"]})),
    "delete": lambda t: t.delete("v > 7"),
    "update": lambda t: t.update("v > 7", {"v": 1}),
    "merge": lambda t: t.merge(NONE).when_not_matched_insert(VALUES).execute(),
    "when matched": lambda t: t.merge(rows("q")).when_matched_delete().execute(),
}


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_empty_write_logs_no_commit(
    tmp_path: Path, kind: Any, verb: Callable[[pyhudi.HudiTable], pyhudi.WriteResult]
) -> None:
    table = made(tmp_path, rows("a"), type=kind)
    before = table.inspect.timeline()
    result = verb(table)
    assert (result.committed, result.instant) == (False, "")
    assert table.refresh().inspect.timeline().equals(before)


def test_data_without_rows_make_a_table_without_commit(tmp_path: Path) -> None:
    table = made(tmp_path, NONE)
    assert table.inspect.timeline().num_rows == 0
    assert not table.overwrite(NONE).committed
    table.insert(rows("a"))
    assert table.overwrite(NONE).file_groups_replaced == 1
    assert table.count() == 0
