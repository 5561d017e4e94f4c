"""Executors that Spark removes and adds between the jobs of a write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.engine.protocol import Attempt
from pyhudi.spark import SparkEngine
from tests.spark_cluster.cluster_table import new_table, rows_of
from tests.spark_cluster.standalone import Cluster, session_of, wait_for

pytestmark = pytest.mark.timeout(900)

DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.shuffleTracking.enabled": "true",
    "spark.dynamicAllocation.minExecutors": "0",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.executorIdleTimeout": "1s",
    "spark.dynamicAllocation.cachedExecutorIdleTimeout": "1s",
    "spark.dynamicAllocation.shuffleTracking.timeout": "1s",
}
"""Executors go after a second, with the rows that they cache and shuffle."""


class EngineWithoutExecutors(SparkEngine):
    """Waits before it writes files, until Spark has removed all executors."""

    def __init__(self, spark: SparkSession, cluster: Cluster) -> None:
        super().__init__(spark)
        self._cluster = cluster
        self._application = spark.sparkContext.applicationId
        self.removed: list[int] = []
        """Number of executors that Spark had removed before each call of this engine or a copy."""

    def _wait(self) -> None:
        wait_for(lambda: not self._cluster.executors(), "removal of idle executors")
        self.removed.append(self._cluster.count_started_executors(self._application))

    def exchange(
        self,
        rows: DataFrame,
        route: str,
        work: Callable[[str, pa.Table, Attempt], Sequence[Any]],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Any]:
        self._wait()
        return super().exchange(rows, route, work, stage=stage, label=label)

    def run(
        self,
        work: Callable[[Any, Attempt], Any],
        tasks: Sequence[Any],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Any]:
        self._wait()
        return super().run(work, tasks, stage=stage, label=label)


def test_write_survives_removed_executors(cluster: Cluster, tmp_path: Path) -> None:
    table = new_table(tmp_path)
    with session_of(cluster, DYNAMIC) as spark:
        engine = EngineWithoutExecutors(spark, cluster)
        handle = pyhudi.open_table(table.base, engine=engine)
        for first, v in ((200, 2), (100, 3)):
            handle.upsert(rows_of(spark, first, first + 300, v))
            table.expect(first, first + 300, v)
        assert engine.removed[-1] > 1, "no executors were removed between the jobs of a write"
        handle.compact()
        table.check()
        handle.delete("v = 3")
        table.model = {key: v for key, v in table.model.items() if v != 3}
    table.check_with_next_write()
