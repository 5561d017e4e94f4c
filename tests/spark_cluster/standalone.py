"""A standalone Spark cluster: a master and two workers in processes and folders of their own."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pyspark
from pyspark.sql import SparkSession

from pyhudi.spark.engine import SMALL_CALL_OPTION
from tests.helpers.process_session import Process, ProcessSession, processes

SPARK_HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_HOST = "127.0.0.1"
_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
_LOST_WORKER_SECONDS = 30
"""Seconds without a heartbeat after which the master regards a worker as lost."""
T = TypeVar("T")

TIMEOUT = 240
"""Seconds in which an expected event must happen."""


class Cluster:
    """A running cluster. Each worker has one core, so it has one executor with one task."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self.workers: list[ProcessSession] = []
        """Each with its executors."""
        self._master = self._start("master", _HOST, "master.Master", "--port", "0")
        try:
            self.url = wait_for(self._find_url, "the master's address")
            for number in range(workers):
                name = f"worker{number}"
                sizes = (
                    "--cores",
                    "1",
                    "--memory",
                    "1g",
                    "--work-dir",
                    str(folder / name / "work"),
                )
                # Spark speculates on another host only.
                host = f"127.0.0.{number + 2}"
                self.workers.append(self._start(name, host, "worker.Worker", *sizes, self.url))
            wait_for(
                lambda: self._master.log.read_text().count("Registering worker") >= workers,
                "the workers",
            )
        except BaseException:
            self.stop()
            raise

    def _start(self, name: str, host: str, main_class: str, *arguments: str) -> ProcessSession:
        folder = self.folder / name
        (folder / "local").mkdir(parents=True)
        options = (
            f"{_SMALL_JVM} -Dspark.worker.timeout={_LOST_WORKER_SECONDS}"
            " -Dspark.master.rest.enabled=false"
        )
        environment = {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": options,
            "SPARK_LOCAL_DIRS": str(folder / "local"),
            "PYTHONPATH": "",  # executors would inherit it
        }
        program = [str(SPARK_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{main_class}"]
        common = ("--host", host, "--webui-port", "0")
        command = [*program, *common, *arguments]
        return ProcessSession(command, folder / "log", folder=folder, environment=environment)

    def _find_url(self) -> str:
        match = _MASTER.search(self._master.log.read_text())
        return match[1] if match else ""

    def worker_of(self, pid: int) -> ProcessSession:
        """Return the worker that a process runs on."""
        session = processes()[pid].session
        return next(worker for worker in self.workers if worker.pid == session)

    def executors(self) -> list[Process]:
        """Return the JVMs of running executors."""
        running = [process for worker in self.workers for process in worker.processes()]
        return [process for process in running if _is_executor(process)]

    def count_started_executors(self, application: str) -> int:
        """Return the number of executors that an application has started, ended ones included."""
        return len([*self.folder.glob(f"worker*/work/{application}/*/")])

    def wait_until_idle(self) -> None:
        """Wait until the processes of all executors have ended."""
        wait_for(
            lambda: all(len(worker.processes()) == 1 for worker in self.workers),
            "end of the executors",
        )

    def stop(self) -> None:
        """End all processes of the cluster, its executors, too."""
        for session in (*self.workers, self._master):
            session.kill()


def session_at(url: str, folder: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session of this process on a cluster; stop it before you start the next one."""
    os.environ.setdefault("SPARK_HOME", str(SPARK_HOME))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(url).appName("pyhudi on a cluster")
    for name, value in {**settings_in(folder), **(settings or {})}.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    return spark


def settings_in(folder: Path) -> dict[str, str]:
    """Return the settings of sessions on a cluster, with their files in a folder."""
    return {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": _SMALL_JVM,
        "spark.executor.extraJavaOptions": _SMALL_JVM,
        "spark.driver.memory": "512m",
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
        "spark.executor.memory": "512m",
        "spark.executor.cores": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.task.maxFailures": "8",
        SMALL_CALL_OPTION: "0",  # executors are to write these few rows
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }


@contextmanager
def session_of(
    cluster: Cluster, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session of this process on the cluster, for one test; it ends without executors."""
    spark = session_at(cluster.url, cluster.folder, settings)
    try:
        yield spark
    finally:
        spark.stop()
        cluster.wait_until_idle()


def executor_of(pid: int) -> Process:
    """Return the executor's JVM that a Python worker belongs to."""
    listed = processes()
    process = listed[pid]
    while not _is_executor(process):
        process = listed[process.parent]
    return process


def _is_executor(process: Process) -> bool:
    return "CoarseGrainedExecutorBackend" in process.command


def wait_for(event: Callable[[], T], what: str, seconds: float = TIMEOUT) -> T:
    """Return the first true value of `event`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if value := event():
            return value
        time.sleep(0.1)
    msg = f"no {what} within {seconds} seconds"
    raise AssertionError(msg)
