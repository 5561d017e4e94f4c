"""Spark drivers that write to one table, are killed, stand still and are started again beside.

    python -m tests.spark.drivers SECONDS FOLDER

runs it on a new table of version 9, merge-on-read. What the drivers said that they wrote is
compared with the table at the end: each batch is there once, and whole.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pyhudi
from pyhudi.errors import HistoryUnavailable
from tests.spark.driver import ROWS, SCHEMA, SHORT, next_batch

DRIVER = Path(__file__).with_name("driver.py")
NAMES = ("verbs", "sink")
LEAST = 3
"""Batches of each driver: a machine may be busy."""


@dataclass
class Driven:
    """How it went."""

    batches: dict[str, int] = field(default_factory=dict)
    """By driver how many were written."""
    done: Counter[str] = field(default_factory=Counter)
    """What was done to drivers, and how often."""
    reads: int = 0
    findings: list[str] = field(default_factory=list)
    """What is wrong; empty if nothing is."""


class Driver:
    """A driver of one name, in a session of processes of its own."""

    def __init__(self, base: str, folder: Path, name: str, log: Path) -> None:
        self.name, self._log = name, log
        self._ready = folder / f"{name}.ready"
        self._ready.unlink(missing_ok=True)
        command = [sys.executable, str(DRIVER), base, str(folder), name]
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, stdout=output, stderr=output, start_new_session=True
            )

    def is_ready(self) -> bool:
        return self._ready.exists() and self._ready.read_text() == str(self._process.pid)

    def ended(self) -> str:
        """What it said last, if it ended by itself."""
        return "" if self._process.poll() is None else self._log.read_text()[-3000:]

    def signal(self, number: signal.Signals) -> None:
        """To the driver, its JVM and all that work for it."""
        for process in self._processes():
            process.signal(number)

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        self._process.wait()

    def kill_python(self) -> None:
        """Only the driver's Python. Its JVM finds out, and works on until then."""
        self._process.kill()
        self._process.wait()

    def kill_workers(self) -> None:
        """Those that carry out tasks: Spark tries the tasks again."""
        processes = self._processes()
        daemons = {one.pid for one in processes if "pyspark.daemon" in one.command}
        for process in processes:
            if process.parent in daemons:
                process.signal(signal.SIGKILL)

    def _processes(self) -> list[Process]:
        """Of its session: Spark's workers have a group of their own."""
        listed = subprocess.run(
            ["ps", "-eo", "sid=,pid=,ppid=,args="], capture_output=True, text=True, check=True
        ).stdout
        rows = [line.split(None, 3) for line in listed.splitlines()]
        return [
            Process(int(row[1]), int(row[2]), row[3])
            for row in rows
            if row[0] == str(self._process.pid)
        ]


@dataclass(frozen=True)
class Process:
    pid: int
    parent: int
    command: str

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def drive(
    folder: Path,
    seconds: float,
    *,
    type_: Literal["cow", "mor"] = "mor",
    version: Literal[6, 8, 9] = 9,
    seed: int = 0,
) -> Driven:
    """Makes a table and has drivers at work on it, to which something happens one after another."""
    base = str(folder / "table")
    pyhudi.create_table(
        base, SCHEMA, key="id", partition_by="city", order_by="v", type=type_, version=version
    )
    chance, result, reader = random.Random(seed), Driven(), Reader(base)

    def start(name: str) -> Driver:
        return Driver(base, folder, name, folder / f"{name}.log")

    def wait(seconds: float, *drivers: Driver) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            reader.read(result)
            for one in drivers:
                if told := one.ended():
                    result.findings.append(f"{one.name} ended by itself: {told}")
                    return
            time.sleep(0.5)

    drivers = {name: start(name) for name in NAMES}
    until = time.monotonic() + seconds
    while not result.findings and (time.monotonic() < until or not result.done):
        name = chance.choice(NAMES)
        while not drivers[name].is_ready() and not result.findings:
            wait(1, *drivers.values())
        wait(chance.uniform(0, 15), *drivers.values())
        what = chance.choice(("killed", "killed", "python killed", "workers killed", "stood still"))
        result.done[what] += 1
        if what == "workers killed":
            drivers[name].kill_workers()
            continue
        old = drivers[name]
        if what == "stood still":
            old.signal(signal.SIGSTOP)
            drivers[name] = start(name)
            # Two minutes make it dead for the others; the lock is lost long before.
            wait(min(chance.choice((20, 60, 160)), seconds), *drivers.values())
            old.signal(signal.SIGCONT)
            wait(chance.uniform(0, 20), *drivers.values(), old)
        if what == "python killed":
            old.kill_python()
            wait(chance.uniform(0, 3))
        old.kill()
        if what != "stood still":
            drivers[name] = start(name)
    while not result.findings and least(folder) < LEAST:
        wait(1, *drivers.values())
    for one in drivers.values():
        one.kill()
    judge(base, folder, result)
    return result


def least(folder: Path) -> int:
    return min(next_batch(str(folder), name) for name in NAMES)


class Reader:
    """Looks at the table beside the drivers; what it has seen must not go again."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._newest: dict[str, int] = {}

    def read(self, result: Driven) -> None:
        try:
            found = values(pyhudi.open_table(self._base), result)
        except HistoryUnavailable:
            return
        result.reads += 1
        result.findings += [f"{key} is gone" for key in self._newest if key not in found]
        result.findings += [
            f"{name} went back" for name in NAMES if found.get(name, 0) < self._newest.get(name, 0)
        ]
        self._newest |= found


def values(table: pyhudi.HudiTable, result: Driven) -> dict[str, int]:
    """What the table holds by key; tells of keys that are there twice, and of torn batches."""
    rows = table.scan().to_arrow().to_pylist()
    found = {row["id"]: row["v"] for row in rows}
    if len(found) < len(rows):
        result.findings.append("keys are there twice")
    result.findings += torn(found)
    return found


def torn(found: dict[str, int]) -> list[str]:
    """Batches that are there in part."""
    rows = Counter(key.rpartition("-")[0] for key in found if "-" in key)
    return [f"{batch} has {count} rows" for batch, count in rows.items() if count != ROWS]


def judge(base: str, folder: Path, result: Driven) -> None:
    """Compares what is in the table with what was said."""
    table = pyhudi.open_table(base, options=SHORT)
    found = values(table, result)
    result.batches = {name: next_batch(str(folder), name) for name in NAMES}
    for name, written in result.batches.items():
        lost = [n for n in range(written) if f"{name}-{n}-0" not in found]
        result.findings += [f"batch {name}/{n} was said and is not there" for n in lost]
        owns = max((n for n in range(written) if n % 3 < 2), default=0)
        if written and found.get(name, -1) < owns:
            result.findings.append(f"{name} is {found.get(name)} and was said to be {owns}")
    # The next writer clears up after those that died here.
    table.delete_keys(["nobody"])
    checked = pyhudi.open_table(base).check(deep=True)
    result.findings += [str(one) for one in checked.findings if one.severity == "error"]


if __name__ == "__main__":
    driven = drive(Path(sys.argv[2]), float(sys.argv[1]))
    sys.stdout.write(f"{driven}\n")
    sys.exit(bool(driven.findings))
