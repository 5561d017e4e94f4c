"""Tables with very many partitions, or very many log files in a file slice.

`make test-machines` takes 100,000 of each, or other numbers, and prints the figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

PARTITIONS = int(os.environ.get("PYHUDI_PARTITIONS", "3000"))
LOG_FILES = int(os.environ.get("PYHUDI_LOG_FILES", "2000"))


def run(kind: str, folder: Path, count: int) -> dict[str, dict[str, Any]]:
    command = [sys.executable, "-m", "tests.machines.large_process", kind, str(folder), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    sys.stderr.write(done.stdout)
    assert done.returncode == 0, done.stderr
    return {step["step"]: step for step in map(json.loads, done.stdout.splitlines())}


@pytest.mark.timeout(0)
def test_many_partitions_are_read_and_written(tmp_path: Path) -> None:
    steps = run("partitions", tmp_path / "t", PARTITIONS)
    assert steps["count one partition by listing"]["result"] == 1
    assert steps["count one partition"]["result"] == 1
    assert steps["count all"]["result"] == PARTITIONS + 2
    # Counting a million partitions takes 3.7 GiB.
    assert steps["count all"]["peak_mib"] < 400 + PARTITIONS * 10 // 1024


@pytest.mark.timeout(0)
def test_many_log_files_need_few_open_files(tmp_path: Path) -> None:
    """The process may open 128 files at a time."""
    steps = run("logs", tmp_path / "t", LOG_FILES)
    assert (steps["count"]["result"], steps["scan"]["result"]) == (100, 100)
    assert steps["count changed rows"]["result"] == 10
    assert steps["count after compaction"]["result"] == 10
    assert steps["count of rows of the upsert"]["result"] == 5
    assert steps["count of rows of the upsert"]["peak_mib"] < 400 + LOG_FILES * 10 // 1024
