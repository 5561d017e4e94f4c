"""What works on a classic session works through Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyspark
import pytest

import pyhudi

JOB = Path(__file__).with_name("connect_job.py")

pytestmark = pytest.mark.skipif(
    pyspark.__version__.startswith("3."), reason="the environment of PySpark 3.5 is without Connect"
)


def test_reading_and_writing(tmp_path: Path) -> None:
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
    base = tmp_path / "table"
    pyhudi.create_table(base, schema, key="id", partition_by="part", order_by="v")
    run = subprocess.run(
        [sys.executable, JOB, str(base)], capture_output=True, text=True, timeout=280, check=False
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert pyhudi.open_table(base).scan().count() == 30
