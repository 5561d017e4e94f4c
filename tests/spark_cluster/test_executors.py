"""Executors that are lost while they write files of a commit."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import pytest
from pyspark.sql import SparkSession

import pyhudi
from tests.spark_cluster.cluster_table import ClusterTable, new_table, rows_of
from tests.spark_cluster.pausing import Pause, PausingEngine, Point
from tests.spark_cluster.standalone import Cluster, executor_of, session_of, wait_for

pytestmark = pytest.mark.timeout(900)

HANGING = {
    "spark.executor.heartbeatInterval": "1s",
    "spark.network.timeout": "20s",
    "spark.network.timeoutInterval": "1s",
}
"""An executor counts as lost after 20 seconds without a heartbeat."""
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.1",
}


@contextmanager
def paused_upsert(spark: SparkSession, table: ClusterTable, point: Point) -> Iterator[Pause]:
    """Start an upsert, yield once one of its tasks has paused, and wait for the upsert's end.

    The task stays paused at the end, unless the block lets it go on.
    """
    folder = table.base.with_name("control")
    folder.mkdir()
    pause = Pause(folder)
    handle = pyhudi.open_table(table.base, engine=PausingEngine(spark, pause, point))
    with ThreadPoolExecutor(1) as pool:
        upsert = pool.submit(handle.upsert, rows_of(spark, 200, 500, 2))
        try:
            wait_for(lambda: pause.pid or upsert.done(), "paused task")
            assert pause.pid, upsert.result()
            yield pause
            result = upsert.result(timeout=300)
        except BaseException:
            pause.end()
            raise
    assert (result.rows_updated, result.rows_inserted) == (100, 200)
    table.expect(200, 500, 2)


@pytest.mark.parametrize(
    ("type_", "version", "point"),
    [("cow", 9, "marked"), ("mor", 9, "written"), ("mor", 6, "marked"), ("cow", 6, "started")],
)
def test_upsert_survives_killed_executor(
    type_: Literal["cow", "mor"],
    version: Literal[6, 9],
    point: Point,
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    table = new_table(tmp_path, type_, version)
    with session_of(cluster) as spark, paused_upsert(spark, table, point) as pause:
        executor_of(pause.pid).signal(signal.SIGKILL)
    table.check_with_next_write()


@pytest.mark.parametrize(("type_", "version"), [("cow", 9), ("mor", 6)])
def test_speculative_copy_is_in_commit_once(
    type_: Literal["cow", "mor"], version: Literal[6, 9], cluster: Cluster, tmp_path: Path
) -> None:
    """Both copies of a task write their files; Spark takes the copy that returns first."""
    table = new_table(tmp_path, type_, version)
    with session_of(cluster, SPECULATION) as spark:
        with paused_upsert(spark, table, "written") as pause:
            before = table.data_files()
        written = table.data_files() - before
        assert written, "no second copy wrote"
        pause.end()
    table.check_with_next_write()


@pytest.mark.parametrize(("type_", "version"), [("cow", 6), ("mor", 9)])
def test_slow_copy_removes_files_that_it_writes_after_commit(
    type_: Literal["cow", "mor"], version: Literal[6, 9], cluster: Cluster, tmp_path: Path
) -> None:
    """Spark leaves the slow copy of a task 100 seconds to end."""
    table = new_table(tmp_path, type_, version)
    settings = {**SPECULATION, "spark.python.task.killTimeout": "100s"}
    with session_of(cluster, settings) as spark:
        with paused_upsert(spark, table, "marked") as pause:
            pass
        table.check()
        pause.end()
        wait_for(lambda: pause.has_worked, "end of the slow copy's work")
        committed = table.committed_files()
        wait_for(lambda: table.data_files() <= committed, "removal of late files", 20)
    table.check_with_next_write()


def test_upsert_goes_on_without_hanging_worker(cluster: Cluster, tmp_path: Path) -> None:
    """A machine is suspended, and continues its task after the commit."""
    table = new_table(tmp_path, "cow")
    with session_of(cluster, HANGING) as spark:
        with paused_upsert(spark, table, "marked") as pause:
            worker = cluster.worker_of(pause.pid)
            hanging = worker.processes()
            worker.signal(signal.SIGSTOP)
        try:
            table.check()
            pause.end()
            # The task is faster than what would stop it.
            (task,) = (process for process in hanging if process.pid == pause.pid)
            task.signal(signal.SIGCONT)
            wait_for(lambda: pause.has_worked, "end of the late task's work")
            committed = table.committed_files()
            wait_for(lambda: table.data_files() <= committed, "removal of late files", 20)
        finally:
            worker.signal(signal.SIGCONT)
        pyhudi.open_table(table.base).upsert(rows_of(spark, 400, 500, 4))
        table.expect(400, 500, 4)
    table.check_with_next_write()
