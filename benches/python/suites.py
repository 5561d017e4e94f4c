"""Runs suites that the field compares table formats with, small, and keeps every raw figure.

    python benches/python/suites.py [--size small] [--suites NAME ...] [--runs 3] [--spark]

| suite | what it does |
|---|---|
| lhbench | LHBench: load and query, refreshes and the same queries, micro-merges, many files |
| longevity | lst-bench's long run: rounds of queries and refreshes, and the degradation rate |
| streaming | DuckLake's stream: commits of ten rows, one after the other |
| ycsb | YCSB A to F by key |
| requests | requests to object storage of a small life of a table, as money |

Each system runs each suite in a process of its own, and the systems take turns in each round. All
answers are compared with right ones, computed from what was written: a wrong one ends the program.
Raw figures of all runs are in build/bench/suites/SIZE; `suite_page.py` makes the page of them.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import harness
from harness import BUILD

HERE = BUILD / "suites"
PACKAGES = ("pyarrow", "deltalake", "pyiceberg")


@dataclass(frozen=True)
class Size:
    """How much work a run is."""

    rows: int
    """Line items that are loaded: 6,000,000 are TPC-H's scale factor 1."""
    refreshes: int
    files: int
    rounds: int
    commits: int
    """Of the stream."""
    records: int
    """Of YCSB."""
    operations: int
    """Of each workload of YCSB."""
    writes: int
    """Small commits of which requests are counted."""
    spark: float = 0.1
    """Share of streamed commits and of YCSB's operations that Hudi on Spark does."""


SIZES = {
    "tiny": Size(20_000, 2, 20, 3, 20, 2_000, 20, 5, spark=0.25),
    "small": Size(300_000, 5, 300, 6, 200, 50_000, 60, 15),
    "sf1": Size(6_000_000, 10, 5_000, 20, 30_000, 1_000_000, 1_000, 50, spark=0.01),
}

_ALL = (
    "pyhudi cow",
    "pyhudi mor",
    "deltalake",
    "pyiceberg",
    "Hudi on Spark cow",
    "Hudi on Spark mor",
)
SUITES = {
    "lhbench": _ALL,
    "longevity": (*_ALL[:3], "deltalake compacted", *_ALL[3:]),
    "streaming": ("pyhudi mor", "pyhudi writer", "deltalake", "pyiceberg", "Hudi on Spark mor"),
    "ycsb": _ALL,
    "requests": _ALL[:4],
}
"""The suites, and the systems that take part."""


def main() -> int:
    """Runs the suites and stores what they took."""
    given = _arguments()
    if given.run:
        _run_one(given)
        return 0
    harness.warn_of_slow_build()
    for suite in given.suites:
        _run_suite(given, suite)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--runs", type=int, default=3, help="rounds")
    parser.add_argument("--suites", nargs="+", default=list(SUITES), choices=SUITES)
    parser.add_argument("--systems", nargs="+", help="of those that a suite has")
    parser.add_argument("--spark", action="store_true", help="Apache Hudi on Spark too")
    parser.add_argument("--note", default="", help="for the page: what else the machine did")
    parser.add_argument("--run", nargs=2, metavar=("SUITE", "SYSTEM"), help="one, by itself")
    return parser.parse_args()


def _run_suite(given: argparse.Namespace, suite: str) -> None:
    """Adds runs to a suite's file: those of other systems stay, those of the same are replaced."""
    from suite_systems import is_spark, spark_is_available  # noqa: PLC0415 - not in each process

    chosen = [
        name
        for name in SUITES[suite]
        if (not given.systems or name in given.systems) and (given.spark or not is_spark(name))
    ]
    if any(map(is_spark, chosen)) and not spark_is_available():
        print("Hudi on Spark: left out: no Apache Hudi here; run `make oracle`")
        chosen = [name for name in chosen if not is_spark(name)]
    runs: list[dict[str, Any]] = []
    for number in range(given.runs):
        for name in chosen:
            print(f"{suite}, {name}, round {number + 1} ...", end="", flush=True)
            os.sync()
            program = [sys.executable, __file__, "--size", given.size, "--run", suite, name]
            done = harness.run(program)
            if done.status != 0:
                sys.exit(f"\n{name} failed in {suite}")
            run = json.loads(done.printed.splitlines()[-1])
            run |= {"system": name, "round": number, "wall": done.wall, "cpu": done.cpu}
            runs.append(run | {"peak": done.peak})
            print(f" {done.cpu:.1f} processor seconds", flush=True)
    target = HERE / given.size / f"{suite}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    before = json.loads(target.read_text()) if target.exists() else {}
    runs = [run for run in before.get("runs", ()) if run["system"] not in chosen] + runs
    result = {"suite": suite, "size": given.size, **_setting(given), "runs": runs}
    target.write_text(json.dumps(result, indent=1) + "\n")


def _setting(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "sizes": asdict(SIZES[given.size]),
        "rounds": given.runs,
        "note": given.note,
        "processors": os.cpu_count(),
        "load": os.getloadavg()[0],
        "versions": {name: metadata.version(name) for name in PACKAGES},
    }


# --- one system in one suite ----------------------------------------------------------------------


class Meter:
    """Notes what each piece of work took.

    Args:
        clock: processor seconds so far.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.lines: list[dict[str, Any]] = []

    def measure(self, case: str, work: Callable[[], Any], **more: Any) -> Any:
        """What the work returns; its seconds and processor seconds become a line."""
        cpu, wall = self.clock(), time.perf_counter()
        answer = work()
        wall, cpu = time.perf_counter() - wall, self.clock() - cpu
        self.lines.append({"case": case, **more, "seconds": wall, "cpu": cpu})
        return answer


def _run_one(given: argparse.Namespace) -> None:
    """Prints the lines of one system in one suite as JSON."""
    import suite_cases  # noqa: PLC0415 - imports Arrow, which the parent does not hold
    from suite_systems import is_spark  # noqa: PLC0415 - likewise

    suite, name = given.run
    # Only Spark has processes of its own; asking for those of a tree takes milliseconds.
    is_tree = is_spark(name)
    meter = Meter(harness.tree_seconds if is_tree else time.process_time)
    with _folder(suite, name) as folder:
        more = suite_cases.CASES[suite](meter, name, folder, SIZES[given.size])
        print(json.dumps({"lines": meter.lines, **(more or {})}))


@contextmanager
def _folder(suite: str, name: str) -> Iterator[Path]:
    """An empty folder for a run, which is removed after it."""
    folder = HERE / "tables" / f"{suite} {name}".replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
