"""Drivers that are killed in each phase of a commit, and the next driver's write."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import pytest

import pyhudi
from tests.helpers.process_session import ProcessSession
from tests.spark_cluster.cluster_table import new_table, rows_of
from tests.spark_cluster.pausing import Pause
from tests.spark_cluster.standalone import Cluster, session_of, wait_for

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize(
    ("phase", "type_", "version"),
    [
        ("requested", "cow", 6),
        ("tasks", "cow", 9),
        ("metadata table", "mor", 9),
    ],
)
def test_next_driver_recovers(
    phase: str,
    type_: Literal["cow", "mor"],
    version: Literal[6, 9],
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path, type_, version)
    pause = Pause(tmp_path / "control")
    pause.folder.mkdir()
    command = [sys.executable, "-m", "tests.spark_cluster.killed_driver"]
    arguments = [str(table.base), cluster.url, str(tmp_path), phase]
    driver = ProcessSession([*command, *arguments], tmp_path / "log")
    try:
        wait_for(lambda: pause.pid or driver.has_ended, "paused driver or task")
        assert pause.pid, driver.log.read_text()[-4000:]
    finally:
        driver.kill()
        pause.end()
    table.check_rows()
    cluster.wait_until_idle()
    with session_of(cluster) as spark:
        pyhudi.open_table(table.base).upsert(rows_of(spark, 250, 350, 4))
        table.expect(250, 350, 4)
    assert not pyhudi.open_table(table.base).state.timeline.pending()
    table.check_with_next_write()
