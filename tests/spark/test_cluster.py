"""Two executors in processes of their own, beside the driver's."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib import util
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi

JOB = Path(__file__).with_name("cluster_job.py")
NEEDED = ("pyhudi", "pyarrow", "numpy", "sqlglot")
"""By an executor, beside what Spark brings: what `pip install pyhudi` installs."""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """The packages of a virtual environment, packed as `docs/how-to/spark-write.md` says."""
    packed = tmp_path / "packages.tar"
    with tarfile.open(packed, "w") as tar:  # Hadoop refuses one with an entry "./"
        for name in NEEDED:
            found = util.find_spec(name)
            assert found is not None
            assert found.origin is not None
            folder = Path(found.origin).parent
            tar.add(folder, name)
            if (libraries := folder.with_name(f"{name}.libs")).exists():
                tar.add(libraries, libraries.name)
    return packed


def test_upsert_with_executors_in_other_processes(tmp_path: Path) -> None:
    _run_job(tmp_path / "table")


def test_executors_with_packages_from_an_archive(tmp_path: Path, packages: Path) -> None:
    _run_job(tmp_path / "table", str(packages))


def _run_job(base: Path, *arguments: str) -> None:
    schema = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
    pyhudi.create_table(base, schema, key="id", partition_by="part", order_by="v", type="mor")
    run = subprocess.run(
        [sys.executable, JOB, str(base), *arguments],
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    assert pyhudi.open_table(base).scan().count() == 4000
