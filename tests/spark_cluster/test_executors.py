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
from tests.spark_cluster.cluster_table import ClusterTable, rows_of
from tests.spark_cluster.pausing import Pause, PausingEngine, Point
from tests.spark_cluster.standalone import Cluster, executor_of, session_at, wait_for

pytestmark = pytest.mark.timeout(400)


@contextmanager
def session_of(cluster: Cluster) -> Iterator[SparkSession]:
    spark = session_at(cluster.url, cluster.folder)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def paused_upsert(spark: SparkSession, table: ClusterTable, point: Point) -> Iterator[Pause]:
    """Start an upsert, yield once one of its tasks has paused, and check the table after it."""
    folder = table.base.with_name("control")
    folder.mkdir()
    pause = Pause(folder, point)
    handle = pyhudi.open_table(table.base, engine=PausingEngine(spark, pause))
    with ThreadPoolExecutor(1) as pool:
        upsert = pool.submit(handle.upsert, rows_of(spark, 200, 500, 2))
        try:
            wait_for(lambda: pause.pid or upsert.done(), "paused task")
            assert pause.pid, upsert.result()
            yield pause
            result = upsert.result(timeout=200)
        finally:
            pause.end()
    assert (result.rows_updated, result.rows_inserted) == (100, 200)
    table.expect(200, 500, 2)


def new_table(
    folder: Path, type_: Literal["cow", "mor"], version: Literal[6, 8, 9]
) -> ClusterTable:
    table = ClusterTable(folder / "table", type_, version)
    table.create()
    return table


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
    table.check()
