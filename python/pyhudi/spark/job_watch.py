"""The Spark jobs of one engine call: their description, their progress, and their end if it fails.

Each call has a tag of its own. On a classic session, Spark's status tracker lists the jobs of a tag
with their stages. A client of Spark Connect has the progress messages that the server sends.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, Protocol

from pyspark.sql import SparkSession

from pyhudi.clock import SystemClock
from pyhudi.config.log import logger
from pyhudi.engine.protocol import Step, Watcher

_POLL_SECONDS = 0.1
_MAX_POLLS_TO_END = 600


@contextmanager
def watch_jobs(
    spark: SparkSession, watcher: Watcher | None, label: str, tasks: int = 0
) -> Iterator[Progress]:
    """Describe the jobs of the block, and tell a watcher their progress.

    If the block or the watcher fails, or the user interrupts it, the jobs are cancelled; on a
    classic session, none of their tasks is running any more when the exception leaves the block.

    tasks: number of the tasks; 0 if Spark decides it. Raises what the watcher raises.
    """
    title = watcher.title if watcher is not None else ""
    description = f"{title or 'pyhudi'}: {label}" if label else title
    jobs: _Jobs = _ConnectJobs(spark, title) if is_connect(spark) else _ClassicJobs(spark)
    progress = Progress(watcher, label, tasks)
    with jobs.describe(description):
        observed = jobs.observe(progress) if progress.is_shown else nullcontext()
        try:
            with observed:
                yield progress
            progress.check()
        except BaseException:
            jobs.end()
            progress.check()
            raise


class Progress:
    """The progress of one call, passed on to a watcher whenever it changes."""

    def __init__(self, watcher: Watcher | None, label: str, tasks: int) -> None:
        self._watcher = watcher
        self._step = Step(label, 0, tasks)
        self._failure: BaseException | None = None
        if watcher is not None:
            watcher.begin(label, tasks)

    @property
    def is_shown(self) -> bool:
        """Whether the watcher wants to know each change."""
        return self._watcher is not None and self._watcher.needs_steps

    def advance(self, finished: int, total: int) -> None:
        """Pass on the numbers of finished and of all tasks; keep and raise what that raises."""
        step = Step(self._step.label, min(finished, total), total)
        if self._watcher is None or step == self._step or not total or self._failure is not None:
            return
        self._step = step
        try:
            self._watcher.step(step)
        except BaseException as error:
            self._failure = error
            raise

    def check(self) -> None:
        """Raise the failure of the watcher."""
        if self._failure is not None:
            raise self._failure

    def end(self, tasks: int, results: Sequence[Any]) -> None:
        """Pass on the end of the call. tasks: number of pyhudi's tasks."""
        if self._watcher is None:
            return
        if self.is_shown:
            total = self._step.total or tasks
            self.advance(total, total)
        self._watcher.end(self._step.label, tasks, results)


class _Jobs(Protocol):
    """The jobs of one call on one kind of session."""

    def describe(self, description: str, /) -> AbstractContextManager[None]:
        """Describe and tag the jobs of the block."""

    def observe(self, progress: Progress) -> AbstractContextManager[None]:
        """Pass on the progress of the block's jobs."""

    def end(self) -> None:
        """Cancel the jobs that are running."""


class _ClassicJobs:
    def __init__(self, spark: SparkSession) -> None:
        self._context = spark.sparkContext
        self._spark = spark
        self._tag = f"pyhudi {SystemClock().uuid()}"

    @contextmanager
    def describe(self, description: str) -> Iterator[None]:
        self._context.addJobTag(self._tag)
        try:
            with local_property(self._spark, "spark.job.description", description):
                yield
        finally:
            self._context.removeJobTag(self._tag)

    @contextmanager
    def observe(self, progress: Progress) -> Iterator[None]:
        has_ended = threading.Event()

        def poll() -> None:
            is_last = False
            while not is_last:
                is_last = has_ended.wait(_POLL_SECONDS)
                try:
                    stages = self._stages()
                except Exception as error:  # noqa: BLE001 - such as a session that was stopped
                    logger.debug("no progress of Spark jobs: %s", error)
                    return
                finished = sum(stage.numCompletedTasks for stage in stages)
                try:
                    progress.advance(finished, sum(stage.numTasks for stage in stages))
                except BaseException:  # noqa: BLE001 - `Progress.check` raises it
                    # Spark may be planning the next job of the call.
                    while not is_last:
                        self._context.cancelJobsWithTag(self._tag)
                        is_last = has_ended.wait(_POLL_SECONDS)

        thread = threading.Thread(target=poll, name="pyhudi-progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            has_ended.set()
            thread.join()

    def end(self) -> None:
        """Cancel the jobs, and wait until none of their tasks is running.

        Spark kills a Python process two seconds after its task was cancelled.
        """
        quiet, pause = 0, threading.Event()
        for _ in range(_MAX_POLLS_TO_END):
            try:
                self._context.cancelJobsWithTag(self._tag)
                # Spark's status follows its scheduler a little later.
                quiet = 0 if self._is_running() else quiet + 1
            except Exception as error:  # noqa: BLE001 - such as a session that was stopped
                logger.debug("no status of Spark jobs: %s", error)
                return
            if quiet == 2:
                return
            pause.wait(_POLL_SECONDS)
        logger.warning("tasks of a failed Spark job are still running; they remove their files")

    def _is_running(self) -> bool:
        jobs = self._jobs()
        return any(job.status == "RUNNING" for job in jobs) or any(
            stage.numActiveTasks for stage in self._stages(jobs)
        )

    def _jobs(self) -> list[Any]:
        # PySpark has no method of its own for it.
        ids = self._context._jsc.sc().statusTracker().getJobIdsForTag(self._tag)  # noqa: SLF001
        return [
            job for job in map(self._context.statusTracker().getJobInfo, ids) if job is not None
        ]

    def _stages(self, jobs: Iterable[Any] | None = None) -> list[Any]:
        """Return the stages that have started; Spark skips those whose rows it has already."""
        jobs = self._jobs() if jobs is None else jobs
        ids = sorted({stage for job in jobs for stage in job.stageIds})
        stages = map(self._context.statusTracker().getStageInfo, ids)
        return [
            stage
            for stage in stages
            if stage and stage.numActiveTasks + stage.numCompletedTasks + stage.numFailedTasks
        ]


class _ConnectJobs:
    def __init__(self, spark: SparkSession, title: str) -> None:
        self._spark = spark
        self._title = title.replace(",", " ")
        self._tag = f"pyhudi {SystemClock().uuid()}"

    @contextmanager
    def describe(self, _: str) -> Iterator[None]:
        """Tag the jobs of the block; the server describes them itself."""
        tags = {self._tag, self._title} - {"", *self._spark.getTags()}
        for tag in tags:
            self._spark.addTag(tag)
        try:
            yield
        finally:
            for tag in tags:
                self._spark.removeTag(tag)

    @contextmanager
    def observe(self, progress: Progress) -> Iterator[None]:
        if not hasattr(self._spark, "registerProgressHandler"):  # PySpark 3.5 has no messages
            yield
            return
        thread = threading.get_ident()

        def handle(*, stages: Iterable[Any] | None, **_: object) -> None:
            if threading.get_ident() == thread:  # not of another query of this session
                counts = [(stage.num_completed_tasks, stage.num_tasks) for stage in stages or ()]
                progress.advance(sum(n for n, _ in counts), sum(n for _, n in counts))

        self._spark.registerProgressHandler(handle)
        try:
            yield
        finally:
            self._spark.removeProgressHandler(handle)

    def end(self) -> None:
        """Cancel the jobs. A client does not learn when their tasks end."""
        with suppress(Exception):  # the exception of the call says more
            self._spark.interruptTag(self._tag)


def is_connect(value: object) -> bool:
    """Return whether a session or a DataFrame is Spark Connect's."""
    return type(value).__module__.startswith("pyspark.sql.connect")


@contextmanager
def local_property(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    """Set a property for jobs of the block, which Spark's UI shows (classic sessions only)."""
    if not value or is_connect(spark):
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(name)
    context.setLocalProperty(name, value)
    try:
        yield
    finally:
        context.setLocalProperty(name, before)
