"""What only the Spark engine can suffer or show: lost processes, jobs in the UI, task sizes."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace
from pathlib import Path
from zipimport import zipimporter

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from pyhudi.engine.protocol import Attempt
from pyhudi.errors import ConfigError, HudiError
from pyhudi.spark import SparkEngine
from pyhudi.spark.engine import _Job
from tests.engine import jobs
from tests.engine.jobs import Job, traces
from tests.spark.arrow import frame_of

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(spark)


def test_run_leaves_marked_file_of_killed_process(engine: SparkEngine, tmp_path: Path) -> None:
    tasks = [Job(str(tmp_path), f"f{n}", crash="exit" if n == 1 else "") for n in range(3)]
    results = engine.run(jobs.write, tasks)
    assert [name.split("_")[0] for name in results] == ["f0", "f1", "f2"]
    (left,) = traces(tmp_path, ".data") - set(results)
    assert left.startswith("f1_1-0-")
    assert left.replace(".data", ".marker") in traces(tmp_path, ".marker")


def test_exchange_resends_rows_after_killed_process(
    engine: SparkEngine, spark: SparkSession, tmp_path: Path
) -> None:
    rows = frame_of(spark, pa.table({"to": ["a", "b", "a"], "n": [1, 2, 3]}))
    work = jobs.WriteGroup(Job(str(tmp_path), "", crash="exit"))
    results = engine.exchange(rows, "to", work)
    assert [name.split("_")[0] for name in results] == ["a-2", "b-1"]
    assert traces(tmp_path, ".data") - set(results)


def test_run_fails_if_process_always_dies(engine: SparkEngine) -> None:
    with pytest.raises(HudiError, match="Python worker exited unexpectedly") as caught:
        engine.run(jobs.lose_the_process, [1])
    assert "memory" in caught.value.hint
    assert str(caught.value.__cause__).startswith("Task 0 in stage")


def test_run_label_describes_job_and_is_reset(engine: SparkEngine, spark: SparkSession) -> None:
    seen = engine.run(describe, [1], label="looking around")
    assert seen == ["pyhudi: looking around"]
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


def test_run_broadcasts_shared_state_once() -> None:
    shared = pa.schema([(f"column{n}", pa.string()) for n in range(500)])
    job = _Job.pack(jobs.double, [(shared, n) for n in range(64)])
    assert sum(map(len, job.chunks)) < 2 * len(cloudpickle.dumps(shared)) + 64 * 50
    work, task = job.unpack(63)
    assert task == (shared, 63)
    assert work(4, Attempt(0, 0, 0)) == 8


def test_run_leaves_spark_little_to_do_around_tasks(engine: SparkEngine) -> None:
    """Spark collects garbage and invalidates import caches in the worker of every task.

    It would visit some 90,000 objects of modules, and read its own archives again.
    """
    for objects, archives in engine.run(measure_upkeep, range(4)):
        assert objects < 20_000
        assert not archives


def test_run_refuses_executor_with_other_release() -> None:
    job = replace(_Job.pack(jobs.double, [1]), version="0.0.0")
    with pytest.raises(ConfigError, match=r"the driver has pyhudi 0\.0\.0, an executor"):
        job.unpack(0)


def measure_upkeep(_task: int, _attempt: Attempt) -> tuple[int, list[str]]:
    readers = sys.path_importer_cache.items()
    return len(gc.get_objects()), [
        path for path, reader in readers if isinstance(reader, zipimporter) and "spark" in path
    ]


def describe(_task: int, _attempt: Attempt) -> str | None:
    from pyspark import TaskContext

    context = TaskContext.get()
    return None if context is None else context.getLocalProperty("spark.job.description")
