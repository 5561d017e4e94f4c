"""A process that writes to a table and dies before one of its changes of storage.

    python -m tests.helpers.killed_writer BASE OPERATION ROWS CHANGE OPTIONS

ROWS is a Parquet file, CHANGE the number of the change that is not made, OPTIONS JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pyhudi
from pyhudi.storage.storage import Storage

DIED = 9
"""The exit code of a writer that was killed."""
_CHANGES = ("put", "put_if_absent", "replace_version", "set_modified", "delete", "delete_dir")


def kill_writer(
    base: Path, operation: str, rows: pa.Table, change: int, options: Mapping[str, str]
) -> bool:
    """Start a writer and wait until it is done or dies; whether it died."""
    file = base.with_name("killed.parquet")
    pq.write_table(rows, file)
    arguments = [str(base), operation, str(file), str(change), json.dumps(dict(options))]
    command = [sys.executable, "-m", "tests.helpers.killed_writer", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode in (0, DIED), done.stderr
    return done.returncode == DIED


def main(base: str, operation: str, rows: str, change: str, options: str) -> None:
    """Write, and die before the given change."""
    _die_before(int(change))
    table = pyhudi.open_table(base, options=json.loads(options))
    getattr(table, operation)(pq.read_table(rows))


def _die_before(change: int) -> None:
    left = [change]

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os._exit(DIED)
            return method(*args, **more)

        return call

    for name in _CHANGES:
        setattr(Storage, name, counted(getattr(Storage, name)))


if __name__ == "__main__":
    main(*sys.argv[1:])
