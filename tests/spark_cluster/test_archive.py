"""Executors whose Python comes from an archive, as `docs/how-to/spark-packages.md` says."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from importlib import util
from pathlib import Path

import pytest

from tests.helpers.process_session import ProcessSession
from tests.spark_cluster.cluster_table import new_table
from tests.spark_cluster.standalone import SPARK_HOME, Cluster, settings_in, wait_for

pytestmark = pytest.mark.timeout(600)

JOB = Path(__file__).with_name("archive_job.py")
NEEDED = ("pyhudi", "pyarrow", "numpy", "sqlglot")
"""What `pip install pyhudi` installs."""


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A virtual environment, packed as `venv-pack` packs it: the interpreter is a link."""
    environment = tmp_path / "env"
    base_python = Path(sys.base_prefix) / "bin/python3"
    subprocess.run([base_python, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    for name in NEEDED:
        found = util.find_spec(name)
        assert found is not None
        assert found.origin is not None
        folder = Path(found.origin).parent
        shutil.copytree(folder, packages / name)
        if (libraries := folder.with_name(f"{name}.libs")).exists():
            shutil.copytree(libraries, packages / libraries.name)
    path = tmp_path / "environment.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        for entry in environment.iterdir():
            tar.add(entry, entry.name)
    shutil.rmtree(environment)
    return path


def test_executors_run_python_of_archive(cluster: Cluster, archive: Path, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    settings = settings_in(tmp_path)
    # The executors have no other packages.
    del settings["spark.executorEnv.PYTHONPATH"]
    options = [part for item in settings.items() for part in ("--conf", "=".join(item))]
    submit = [str(SPARK_HOME / "bin/spark-submit"), "--master", cluster.url, *options]
    environment = {
        "SPARK_HOME": str(SPARK_HOME),
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYSPARK_PYTHON": "./environment/bin/python",
    }
    driver = ProcessSession(
        [*submit, "--archives", f"{archive}#environment", str(JOB), str(table.base)],
        tmp_path / "log",
        environment=environment,
    )
    try:
        wait_for(lambda: driver.has_ended, "end of the driver", 400)
    finally:
        driver.kill()
    assert driver.return_code == 0, driver.log.read_text()[-4000:]
    cluster.wait_until_idle()
    table.expect(0, 1000, 2)
    table.check_with_next_write()
