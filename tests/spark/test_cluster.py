"""Two executors in processes of their own, beside the driver's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa

import pyhudi

JOB = Path(__file__).with_name("cluster_job.py")


def test_upsert_with_executors_in_other_processes(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
    base = tmp_path / "table"
    pyhudi.create_table(base, schema, key="id", partition_by="part", order_by="v", type="mor")
    run = subprocess.run(
        [sys.executable, JOB, str(base)], capture_output=True, text=True, timeout=280, check=False
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert pyhudi.open_table(base).scan().count() == 4000
