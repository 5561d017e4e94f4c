"""Processes that get no more threads: they work without, or raise `StorageError`."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import StorageError

_PROGRAM = """
import sys
import pyarrow as pa
import pyhudi

ids = [f"k{at}" for at in range(3000)]
rows = pa.table({"id": ids, "p": [key[-1] for key in ids], "v": list(range(3000))})
table = pyhudi.create_table(sys.argv[1], rows, key="id", partition_by="p", type="mor")
table.upsert(rows.slice(0, 100))
table.compact()
assert table.scan(where="id = 'k7'").count() == 1
assert table.scan().count() == 3000
assert not table.check(deep=True).findings
given = {"access_key_id": "a", "secret_access_key": "b", "region": "r", "allow_http": "true"}
given["endpoint_url"] = "http://127.0.0.1:1"
try:
    pyhudi.open_table("s3://bucket/table", storage_options=given)
except pyhudi.StorageError as error:
    assert "thread" in str(error) and "ulimit -u" in error.hint, error
else:
    raise AssertionError("threads were to be had")
"""


def test_core_without_threads_works_or_raises_storage_error(tmp_path: Path) -> None:
    """A stack of that size is refused by the system, as the thread is where there are too many."""
    env = {**os.environ, "RUST_MIN_STACK": str(1 << 46)}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, str(tmp_path / "t")],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "PanicException" not in done.stderr


def test_python_thread_that_cannot_start_is_a_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = pa.table({"id": ["a", "b"], "p": ["x", "y"]})
    table = pyhudi.create_table(tmp_path / "t", rows, key="id", partition_by="p")

    def refuse(_: threading.Thread) -> NoReturn:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for call in (lambda: table.upsert(rows), table.scan().to_arrow):
            with pytest.raises(StorageError, match="more threads") as caught:
                call()
            assert "ulimit -u" in caught.value.hint
    table.refresh().upsert(rows)
    assert table.scan().count() == 2
