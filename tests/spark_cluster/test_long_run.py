"""Two streams into one table and its maintenance for a long time, while processes are killed.

PYHUDI_CLUSTER_SECONDS says how long. Each row must be in the table once at the end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.errors import HistoryUnavailable
from tests.helpers.process_session import ProcessSession
from tests.spark_cluster.cluster_table import SCHEMA, ClusterTable
from tests.spark_cluster.standalone import Cluster, wait_for
from tests.spark_cluster.streaming_driver import SHORT

SECONDS = float(os.environ.get("PYHUDI_CLUSTER_SECONDS", "600"))
START = 1200
"""Seconds in which both streams must start, and end: a machine may be busy."""
QUIET = 180
"""Seconds without new rows after which a stream is restarted at the end."""
ROWS = 20
METHODS = {"inserts": "bulk_insert", "upserts": "upsert"}
"""A repeated batch of the first stream would double its rows."""
SHARED = "shared"
"""A key that each batch of the second stream updates."""


@dataclass
class LongRun:
    """The processes, and what they should have written."""

    cluster: Cluster
    folder: Path
    running: dict[str, ProcessSession] = field(default_factory=dict)
    written: Counter[str] = field(default_factory=Counter)
    """Number of input files by stream."""
    expected: dict[str, int] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    """What was done to processes, and how often."""

    @property
    def base(self) -> Path:
        return self.folder / "table"

    def start(self, name: str) -> None:
        program, *arguments = ["maintainer", str(self.base)]
        if name in METHODS:
            program = "streaming_driver"
            arguments += [self.cluster.url, str(self.folder), name, METHODS[name]]
        command = [sys.executable, "-m", f"tests.spark_cluster.{program}", *arguments]
        self.running[name] = ProcessSession(command, self.folder / f"{name}.log")

    def restart(self, name: str) -> None:
        self.running[name].kill()
        self.start(name)

    def check_running(self) -> None:
        for name, session in self.running.items():
            assert not session.has_ended, f"{name} ended: {session.log.read_text()[-4000:]}"

    def drain(self) -> None:
        """Wait until all input is in the table, and restart streams that write nothing for long."""
        until = time.monotonic() + START
        found, since = self.read(), time.monotonic()
        while found != self.expected and time.monotonic() < until:
            self.check_running()
            time.sleep(1)
            before, found = found, self.read()
            if found != before:
                since = time.monotonic()
            elif time.monotonic() - since > QUIET:
                since = time.monotonic()
                for name in METHODS:
                    self.done["streams restarted at the end"] += 1
                    self.restart(name)
        differing = dict(found.items() ^ self.expected.items())
        assert not differing, f"{len(differing)} rows differ, such as {[*differing.items()][:5]}"

    def add_input(self, name: str) -> None:
        """Add a file to the input of a stream."""
        number = self.written[name]
        rows = {f"{name}-{number}-{row}": number for row in range(ROWS)}
        if METHODS[name] == "upsert":
            rows |= {SHARED: number, f"{name}-{max(number - 3, 0)}-0": number}
        lines = [
            json.dumps({"id": key, "city": f"c{hash_of(key) % 3}", "v": value})
            for key, value in rows.items()
        ]
        target = self.folder / name
        temporary = self.folder / "input"
        temporary.write_text("\n".join(lines))
        temporary.rename(target / f"{number:06d}.json")
        self.written[name] += 1
        self.expected |= rows

    def kill_something(self, chance: random.Random) -> None:
        """Kill a process, or stop one for a while."""
        name = chance.choice([*METHODS, *METHODS, "maintenance"])
        what = chance.choice(("killed", "stopped", "executors killed"))
        if what == "executors killed" or (name == "maintenance" and what != "killed"):
            for process in self.cluster.executors():
                if chance.random() < 0.5:
                    process.signal(signal.SIGKILL)
                    self.done["executor killed"] += 1
            return
        self.done[f"{name} {what}"] += 1
        if what == "stopped":
            self.running[name].signal(signal.SIGSTOP)
            time.sleep(chance.choice((3, 15, 30)))
            self.running[name].signal(signal.SIGCONT)
            time.sleep(chance.uniform(0, 5))
        self.restart(name)

    def read(self) -> dict[str, int]:
        """Return the rows by key; none may be there twice."""
        rows = pyhudi.open_table(self.base).scan(["id", "v"]).to_arrow()
        found = dict(zip(*rows.to_pydict().values(), strict=True))
        counts = Counter(rows.column("id").to_pylist())
        assert len(found) == rows.num_rows, f"twice: {counts.most_common(5)}"
        return found


def hash_of(key: str) -> int:
    return sum(key.encode())


@pytest.mark.timeout(SECONDS * 2 + 2 * START)
def test_streams_and_maintenance_write_each_row_once(cluster: Cluster, tmp_path: Path) -> None:
    run = LongRun(cluster, tmp_path)
    chance = random.Random(0)
    pyhudi.create_table(run.base, SCHEMA, key="id", partition_by="city", order_by="v", type="mor")
    for name in METHODS:
        (tmp_path / name).mkdir()
        run.add_input(name)
    for name in (*METHODS, "maintenance"):
        run.start(name)
    try:
        wait_for(lambda: len(run.read()) >= 2 * ROWS, "first rows of both streams", START)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for _ in range(chance.randrange(5, 25)):
                for name in METHODS:
                    run.add_input(name)
                run.check_running()
                with suppress(HistoryUnavailable):  # cleaned in the middle of the read
                    run.read()
                time.sleep(1)
            run.kill_something(chance)
        run.done["commits"] = len(pyhudi.open_table(run.base).history())
        run.drain()
    finally:
        for session in run.running.values():
            session.kill()
    # The next writer cleans up after the killed processes.
    table = pyhudi.open_table(run.base, options=SHORT)
    table.upsert(pa.table({"id": [SHARED], "city": [f"c{hash_of(SHARED) % 3}"], "v": [10**9]}))
    assert run.read() == run.expected | {SHARED: 10**9}
    findings = pyhudi.open_table(run.base).check(deep=True).findings
    sys.stdout.write(f"{dict(run.done)} {dict(run.written)}\n")
    assert findings == ()
    assert ClusterTable(run.base, "mor").leftovers() == set()
