"""A standalone Spark cluster: a master and two workers in processes and folders of their own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import pyspark
from pyspark.sql import SparkSession

from tests.spark import drivers

SPARK_HOME = Path(pyspark.__file__).parent
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")
_HOST = "127.0.0.1"
_SMALL_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
T = TypeVar("T")

TIMEOUT = 120
"""Seconds in which an expected event must happen."""


class Cluster:
    """A running cluster. Each worker has one core, so it has one executor with one task."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self.folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        log = self._start("master", _HOST, "org.apache.spark.deploy.master.Master", "--port", "0")
        self.url = wait_for(lambda: _search(_MASTER, log), "the master's address")
        for number in range(workers):
            name = f"worker{number}"
            sizes = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / name / "work"))
            # Spark speculates on another host only.
            host = f"127.0.0.{number + 2}"
            self._start(name, host, "org.apache.spark.deploy.worker.Worker", *sizes, self.url)
        wait_for(lambda: log.read_text().count("Registering worker") >= workers, "the workers")

    def _start(self, name: str, host: str, main_class: str, *arguments: str) -> Path:
        folder = self.folder / name
        (folder / "local").mkdir(parents=True)
        environment = {
            **os.environ,
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": _SMALL_JVM,
            "SPARK_LOCAL_DIRS": str(folder / "local"),
        }
        common = ("--host", host, "--webui-port", "0")
        log = folder / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [SPARK_HOME / "bin/spark-class", main_class, *common, *arguments],
                cwd=folder,
                env=environment,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._processes.append(process)
        return log

    def pid_of_worker(self, number: int) -> int:
        """Return the process number of a worker."""
        return self._processes[number + 1].pid

    def stop(self) -> None:
        """End all processes of the cluster, its executors, too."""
        children = [process for started in self._processes for process in below(started.pid)]
        for process in children:
            process.signal(signal.SIGKILL)
        for started in self._processes:
            started.kill()
            started.wait()


def session_at(url: str, folder: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session of this process on a cluster; stop it before you start the next one."""
    os.environ.setdefault("SPARK_HOME", str(SPARK_HOME))
    os.environ["PYSPARK_PYTHON"] = sys.executable
    values = {
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
        "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        **(settings or {}),
    }
    builder = SparkSession.builder.master(url).appName("pyhudi on a cluster")
    for name, value in values.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    return spark


class Process(drivers.Process):
    """A process of this machine."""

    @property
    def is_executor(self) -> bool:
        """Whether it is an executor's JVM."""
        return "CoarseGrainedExecutorBackend" in self.command


def processes() -> dict[int, Process]:
    """Return all processes by number."""
    listed = subprocess.run(
        ["ps", "-eww", "-o", "pid=,ppid=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(None, 2) for line in listed.splitlines())
    return {int(row[0]): Process(int(row[0]), int(row[1]), row[2]) for row in rows if len(row) > 2}


def below(pid: int) -> list[Process]:
    """Return a process and its descendants, parents first."""
    listed = processes()
    found = [listed[pid]] if pid in listed else []
    for process in found:
        found += [child for child in listed.values() if child.parent == process.pid]
    return found


def executor_of(pid: int) -> Process:
    """Return the executor's JVM that a Python worker belongs to."""
    listed = processes()
    process = listed[pid]
    while not process.is_executor:
        process = listed[process.parent]
    return process


def exists(pid: int) -> bool:
    """Return whether a process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_for(event: Callable[[], T], what: str, seconds: float = TIMEOUT) -> T:
    """Return the first true value of `event`."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if value := event():
            return value
        time.sleep(0.1)
    msg = f"no {what} within {seconds} seconds"
    raise AssertionError(msg)


def _search(pattern: re.Pattern[str], log: Path) -> str:
    match = pattern.search(log.read_text())
    return match[1] if match else ""
