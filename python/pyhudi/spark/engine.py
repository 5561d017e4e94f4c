"""The engine on Spark: run, scan and exchange through `mapInArrow`, classic and on Connect.

The closure of the function that Spark runs contains the tasks. `range(0, n, 1, n)` has exactly one
row in each partition, so each task gets one Spark task. Nothing here uses the JVM gateway or an
RDD, or depends on what tasks do.

Spark retries a failed task (`spark.task.maxFailures`) and may run one twice (speculation); each run
is an `Attempt` of its own. A task of a lost executor can go on writing after its call: it removes
files that it finishes after the end of their write.

Errors of tasks are raised on the driver as they are (`task_errors.py`): `except CorruptTable` works
on every engine.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
from pyspark import TaskContext, cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import pyhudi
from pyhudi.engine import route_groups
from pyhudi.engine.local import SMALL_CALL_BYTES
from pyhudi.engine.protocol import Attempt, Result, Task, Watcher
from pyhudi.errors import ConfigError, HudiError, SchemaMismatch
from pyhudi.spark.job_watch import watch_jobs
from pyhudi.spark.task_errors import convert_task_errors, raise_original, run_task
from pyhudi.spark.types import spark_schema, to_wire, wire_schema
from pyhudi.spark.worker_process import trim_worker

Batches = Iterator[pa.RecordBatch]

_RUN_RESULT = pa.schema([("task", pa.int64()), ("result", pa.binary())])
_EXCHANGE_RESULT = pa.schema([("route", pa.string()), ("result", pa.binary())])
_CHUNK = 64
SMALL_CALL_OPTION = "spark.pyhudi.smallCallBytes"
"""Bytes that a call may read and write to run in the driver's process, 64 MiB by default."""


class SparkEngine:
    """Runs tasks on the executors of a Spark session, which need the pyhudi wheel."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.watcher: Watcher | None = None
        convert_task_errors(spark)

    def with_watcher(self, watcher: Watcher) -> SparkEngine:
        """Return a copy of this engine whose calls the watcher observes."""
        engine = copy(self)
        engine.watcher = watcher
        return engine

    @property
    def tasks_per_process(self) -> int:
        """One: a Python worker of Spark runs one task at a time. See `Engine.tasks_per_process`."""
        return 1

    @property
    def small_call_bytes(self) -> int:
        """The session's `spark.pyhudi.smallCallBytes`. See `Engine.small_call_bytes`."""
        value = self.spark.conf.get(SMALL_CALL_OPTION, str(SMALL_CALL_BYTES))
        try:
            return int(str(value))
        except ValueError as error:
            hint = "Set a number of bytes; 0 runs everything on executors."
            raise ConfigError(f"{SMALL_CALL_OPTION} is {value!r}", hint=hint) from error

    @property
    def has_late_tasks(self) -> bool:
        """Yes. See `Engine.has_late_tasks`."""
        return True

    def run(
        self,
        work: Callable[[Task, Attempt], Result],
        tasks: Sequence[Task],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        """Run tasks as `Engine.run`; results go through the driver's memory."""
        if not tasks:
            return []
        body = _run_body(_Job.pack(work, tasks), stage)
        frame = self._one_row_per_task(len(tasks)).mapInArrow(body, spark_schema(_RUN_RESULT))
        results = self._collect_results(frame, label, len(tasks))
        if sorted(results) != list(range(len(tasks))):
            raise HudiError(f"Spark returned results of {len(results)} tasks, not of {len(tasks)}")
        return [results[index] for index in range(len(tasks))]

    def scan(
        self,
        work: Callable[[Task], Iterator[pa.RecordBatch]],
        tasks: Sequence[Task],
        schema: pa.Schema,
        *,
        label: str = "",  # noqa: ARG002 - a lazy DataFrame's job belongs to its caller
        size: int = 0,
    ) -> DataFrame:
        """Return a DataFrame with one partition for each task, computed at each action.

        As `Engine.scan`. size: bytes that Spark assumes when it plans joins; 0 if it does not
        matter.
        """
        wire = wire_schema(schema)
        spark_types = spark_schema(wire)
        if not tasks:
            return self.spark.createDataFrame([], spark_types)
        step = _step(len(tasks), size)
        body = _scan_body(_Job.pack(work, tasks), schema, wire, step)
        return self._one_row_per_task(len(tasks), step).mapInArrow(body, spark_types)

    def exchange(
        self,
        rows: DataFrame,
        route: str,
        work: Callable[[str, pa.Table, Attempt], Sequence[Result]],
        *,
        stage: int = 0,
        label: str = "",
    ) -> list[Result]:
        """Run `Engine.exchange` by one shuffle; executors sort by route, with spilling."""
        routed = rows.repartition(route).sortWithinPartitions(route)
        body = _exchange_body(_Job.pack(work), route, stage)
        frame = routed.mapInArrow(body, spark_schema(_EXCHANGE_RESULT))
        results = self._collect_results(frame, label)
        return list(chain.from_iterable(results[value] for value in sorted(results)))

    def _one_row_per_task(self, tasks: int, step: int = 1) -> DataFrame:
        """Return the multiples of `step`, each in its own partition."""
        frame = self.spark.range(0, tasks * step, 1, tasks)
        return frame if step == 1 else frame.where(sf.col("id").bitwiseAND(step - 1) == 0)

    def collect(
        self,
        frame: DataFrame,
        label: str,
        *,
        tasks: int = 0,
        result_of: Callable[[Any], Any] | None = None,
    ) -> list[Any]:
        """Run a job once and collect its few rows.

        tasks: number of its tasks, if Spark does not decide it. result_of: returns the result of a
        task from its row, if pyhudi's tasks make the rows.
        """
        jobs = watch_jobs(frame.sparkSession, self.watcher, label, tasks)
        with jobs as progress, raise_original():
            rows: list[Any] = frame.collect()
        results = [] if result_of is None else [result_of(row) for row in rows]
        progress.end(len(results), results)
        return rows if result_of is None else results

    def _collect_results(self, frame: DataFrame, label: str, tasks: int = 0) -> dict[Any, Any]:
        """Run a job once and return its results by their first column."""
        keys: list[Any] = []

        def result_of(row: Any) -> Any:
            keys.append(row[0])
            return pickle.loads(row[1])  # noqa: S301 - our own tasks made it

        values = self.collect(frame, label, tasks=tasks, result_of=result_of)
        results = dict(zip(keys, values, strict=True))
        if len(results) != len(keys):
            raise HudiError("Spark returned two results of one task")
        return results


@dataclass(frozen=True)
class _Job:
    """Work and its tasks as they travel to every executor.

    Tasks share objects (schema, storage, merge rule), which a pickle of many tasks stores once. But
    a task should not unpickle all others, so tasks are pickled in chunks.
    """

    version: str
    work: bytes
    chunks: tuple[bytes, ...] = ()

    @classmethod
    def pack(cls, work: object, tasks: Sequence[Any] = ()) -> _Job:
        starts = range(0, len(tasks), _CHUNK)
        chunks = tuple(_pickle(tasks[at : at + _CHUNK]) for at in starts)
        return cls(pyhudi.__version__, _pickle(work), chunks)

    def unpack_work(self) -> Callable[..., Any]:
        """Return the work, after checking that the executor has the driver's release.

        Unpickling checks no fields: a task of another release could be misread.
        """
        if pyhudi.__version__ != self.version:
            raise ConfigError(
                f"the driver has pyhudi {self.version}, an executor {pyhudi.__version__}",
                hint="install the same wheel on the driver and on all executors",
            )
        work: Callable[..., Any] = pickle.loads(self.work)  # noqa: S301  from our own driver
        trim_worker()
        return work

    def unpack(self, index: int) -> tuple[Callable[..., Any], Any]:
        """Return the work and the task at an index."""
        work = self.unpack_work()
        chunk, position = divmod(index, _CHUNK)
        return work, pickle.loads(self.chunks[chunk])[position]  # noqa: S301


def _pickle(value: object) -> bytes:
    packed: bytes = cloudpickle.dumps(value)
    return packed


def _run_body(job: _Job, stage: int) -> Callable[[Batches], Batches]:
    def body(batches: Batches) -> Batches:
        for index in _indices(batches):
            with run_task():
                work, task = job.unpack(index)
                yield _result(_RUN_RESULT, index, work(task, attempt_of(stage)))

    return body


def _step(tasks: int, size: int) -> int:
    """Return how many numbers a task's partition has before they are filtered down to one.

    Spark does not know the output size of `mapInArrow`, and uses the input size
    (`SizeInBytesOnlyStatsPlanVisitor.default`, Spark 3.5 to 4.3): 8 bytes for each number of a
    range, filtered or not. With one number a task, any table would have some dozen bytes, and be
    broadcast into joins. It is a power of two, because the JVM tests all numbers.
    """
    numbers = -(-size // (8 * tasks))
    return 1 << max(numbers - 1, 0).bit_length()


def _scan_body(
    job: _Job, schema: pa.Schema, wire: pa.Schema, step: int
) -> Callable[[Batches], Batches]:
    def body(batches: Batches) -> Batches:
        with run_task():
            for number in _indices(batches):
                work, task = job.unpack(number // step)
                for batch in work(task):
                    if not batch.schema.equals(schema):
                        raise SchemaMismatch(
                            f"a scan returned the schema\n{batch.schema}\ninstead of\n{schema}"
                        )
                    if batch.num_rows:
                        yield to_wire(batch, wire)

    return body


def _exchange_body(job: _Job, route: str, stage: int) -> Callable[[Batches], Batches]:
    def body(batches: Batches) -> Batches:
        with run_task():
            work = job.unpack_work()
            rows = (to_wire(batch, wire_schema(batch.schema)) for batch in batches)
            for value, table in route_groups.cut(rows, route):
                results = list(work(value, table, attempt_of(stage)))
                yield _result(_EXCHANGE_RESULT, value, results)

    return body


def _indices(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch.column(0).to_pylist()


def attempt_of(stage: int) -> Attempt:
    """Return the attempt of the current Spark task."""
    context = TaskContext.get()
    if context is None:
        raise HudiError("not inside a Spark task")
    # Unlike `attemptNumber`, the id is unique for the whole Spark application.
    return Attempt(context.partitionId(), stage, context.taskAttemptId())


def _result(schema: pa.Schema, key: int | str, result: object) -> pa.RecordBatch:
    columns = [pa.array([key], schema.field(0).type), pa.array([_pickle(result)], pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
