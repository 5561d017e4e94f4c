"""Progress, cancellation and names of the Spark jobs of an operation."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.spark import SparkEngine
from tests.engine import jobs
from tests.engine.jobs import Job
from tests.helpers.table_builder import TableBuilder, numbered
from tests.spark.arrow import frame_of

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.on_executors,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]

TABLE = TableBuilder(
    {
        "id": (pa.string(), numbered(6)),
        "part": (pa.string(), lambda number: f"p{number % 3}"),
        "v": (pa.int64(), 1),
    },
    partition_by="part",
    order_by="v",
)


class StoppedError(Exception):
    """The exception of a callback that stops a write."""


def held_frame(spark: SparkSession, folder: Path) -> DataFrame:
    """Rows of two tasks; the second one leaves its process id and never ends by itself."""
    batches = [TABLE.rows(range(at, at + 6), v=2).to_batches() for at in (0, 6)]
    where = str(folder)

    def body(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        yield from batches[number]
        if number:
            Path(where, "process").write_text(str(os.getpid()), encoding="utf-8")
            Path(where, "held").touch()
            while True:
                time.sleep(0.01)

    schema = frame_of(spark, TABLE.rows(range(1), v=1)).schema
    return spark.range(0, 2, 1, 2).mapInArrow(body, schema)


@dataclass(frozen=True)
class StopInTheMiddle:
    """A callback that stops a write when one of two tasks is finished and the other one runs."""

    folder: Path
    stop: Callable[[], object]

    def __call__(self, step: pyhudi.Step) -> None:
        if step.label == "write files" and step.finished == 1:
            while not Path(self.folder, "held").exists():
                time.sleep(0.01)
            self.stop()


def raise_stopped() -> None:
    raise StoppedError


def press_ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def check_stopped(table: HudiTable, folder: Path) -> None:
    """Check that no task goes on, and that the table is as before and can be written."""
    process = int(Path(folder, "process").read_text(encoding="utf-8"))
    while True:  # Spark's daemon kills the process after the end of the task
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            break
        time.sleep(0.01)
    table.refresh()
    assert not table.storage.list(".hoodie/.temp")
    assert not table.check(deep=True).findings
    assert table.scan().to_arrow().num_rows == 6
    table.upsert(TABLE.rows(range(3, 8), v=3))
    assert table.scan().to_arrow().column("v").to_pylist().count(3) == 5
    assert not table.check(deep=True).findings


def test_error_of_callback_cancels_jobs_of_write_only(tmp_path: Path, spark: SparkSession) -> None:
    table = TABLE.make(tmp_path / "t", first=range(6))
    others = Job(str(tmp_path), "others")
    with ThreadPoolExecutor(1) as thread:
        engine = SparkEngine(spark)
        other = thread.submit(engine.run, jobs.wait_for_own_file, [others])
        stop = StopInTheMiddle(tmp_path, raise_stopped)
        with pytest.raises(StoppedError):
            table.bulk_insert(held_frame(spark, tmp_path), progress=stop)
        jobs.leave(str(tmp_path), "0")
        assert other.result() == [0]
    check_stopped(table, tmp_path)


def test_ctrl_c_cancels_jobs_and_rolls_back(tmp_path: Path, spark: SparkSession) -> None:
    table = TABLE.make(tmp_path / "t", first=range(6))
    stop = StopInTheMiddle(tmp_path, press_ctrl_c)
    with pytest.raises(KeyboardInterrupt):
        table.bulk_insert(held_frame(spark, tmp_path), progress=stop)
    assert not spark.sparkContext.statusTracker().getActiveStageIds()
    check_stopped(table, tmp_path)


@pytest.mark.parametrize("verb", ["upsert", "bulk_insert"])
def test_metrics_and_descriptions_cover_each_job(
    tmp_path: Path, spark: SparkSession, verb: str
) -> None:
    table = TABLE.make(tmp_path / "t", first=range(6))
    before = set(descriptions(spark))
    steps: list[pyhudi.Step] = []
    write: Callable[..., pyhudi.WriteResult] = getattr(table, verb)
    result = write(frame_of(spark, TABLE.rows(range(9), v=2)), progress=steps.append)
    by_stage = {metrics.stage: metrics for metrics in result.metrics}
    assert list(by_stage)[-2:] == ["write files", "write metadata"]
    files = by_stage["write files"]
    assert files.files_written == result.files_written == 3
    assert files.bytes_written == result.bytes_written
    assert files.rows_written == 9
    assert files.tasks == (3 if verb == "upsert" else 1)
    assert {step.label for step in steps} == by_stage.keys()
    last = {step.label: step for step in steps}
    assert all(step.finished == step.total > 0 for step in last.values())
    named = {text for job, text in descriptions(spark).items() if job not in before}
    title = f"pyhudi {verb.replace('_', ' ')} of {table.name}"
    assert named == {f"{title}: {stage}" for stage in by_stage}


def test_operation_without_frame_describes_its_jobs(tmp_path: Path, spark: SparkSession) -> None:
    table = TABLE.make(tmp_path / "t", first=range(6), engine=SparkEngine(spark))
    before = set(descriptions(spark))
    table.update("v = 1", {"v": "5"})
    named = {text for job, text in descriptions(spark).items() if job not in before}
    assert named
    assert all(text.startswith(f"pyhudi update of {table.name}: ") for text in named)


def test_metrics_and_descriptions_cover_services(tmp_path: Path, spark: SparkSession) -> None:
    options = {"hoodie.compact.inline": "true", "hoodie.compact.inline.max.delta.commits": "1"}
    table = TABLE.make(tmp_path / "t", kind="mor", first=range(6))
    table = pyhudi.open_table(tmp_path / "t", options=options, engine=SparkEngine(spark))
    before = set(descriptions(spark))
    result = table.upsert(frame_of(spark, TABLE.rows(range(3), v=2)))
    by_stage = {metrics.stage: metrics for metrics in result.metrics}
    assert by_stage["table services: compact files"].files_written == 3
    named = {text for job, text in descriptions(spark).items() if job not in before}
    assert f"pyhudi table services of {table.name}: compact files" in named


def descriptions(spark: SparkSession) -> dict[int, str]:
    """Return the description of each job in Spark's UI."""
    listed: Any = spark.sparkContext._jsc.sc().statusStore().jobsList(None).iterator()  # noqa: SLF001
    found = {}
    while listed.hasNext():
        job = listed.next()
        description = job.description()
        found[job.jobId()] = description.get() if description.isDefined() else ""
    return found
