"""Small batches of many callers of one process, with a commit for each and with a group writer.

    python benches/python/group_commits.py [--rows 1000000] [--seconds 10] [--callers 1 8 32]

Each caller is a thread that upserts 10 rows, half of them new, and waits until they are committed,
on a merge-on-read table with the options of a user who sets none. "alone" calls `upsert` of a
shared handle, "group" that of a writer. Prints for each number of callers the batches and commits a
second, and the median and the largest time that a caller waits.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
from harness import BUILD, judge, warn_of_slow_build

import pyhudi

HERE = BUILD / "group_commits"
ROWS = 10
LEAST_BATCHES = 100.0
"""The aim, batches a second of the largest number of callers."""


def rows(keys: list[str], number: int) -> pa.Table:
    return pa.table(
        {
            "id": keys,
            "city": [f"c{hash(key) % 4}" for key in keys],
            "at": [number] * len(keys),
            "fare": [number / 7] * len(keys),
        }
    )


def measure(name: str, count: int, total: int, seconds: float) -> dict[str, float]:
    """Have callers write for some seconds."""
    table = pyhudi.create_table(
        HERE / name, rows(["k"], 0).schema, key="id", partition_by="city", order_by="at", type="mor"
    )
    table.bulk_insert(rows([f"k{number}" for number in range(total)], 0))
    took: list[float] = []
    instants: set[str] = set()
    failures: list[pyhudi.HudiError] = []

    def call(caller: int, upsert: Callable[[pa.Table], Any]) -> None:
        choose, number = random.Random(caller), 0
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            number += 1
            old = [f"k{choose.randrange(total)}" for _ in range(ROWS // 2)]
            new = [f"{caller}-{number}-{each}" for each in range(ROWS // 2)]
            given = rows([*dict.fromkeys(old), *new], number)
            began = time.perf_counter()
            try:
                instants.add(upsert(given).instant)
                took.append(time.perf_counter() - began)
            except pyhudi.CommitConflict as error:
                failures.append(error)

    began = time.perf_counter()
    with table.writer() if name.startswith("group") else nullcontext() as writer:
        upsert = table.upsert if writer is None else lambda given: writer.upsert(given).result()
        callers = [threading.Thread(target=call, args=(each, upsert)) for each in range(count)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    passed = time.perf_counter() - began
    return {
        "batches": len(took) / passed,
        "commits": len(instants) / passed,
        "median": statistics.median(took) if took else 0.0,
        "longest": max(took, default=0.0),
        "failed": len(failures),
    }


def main() -> int:
    """Prints the figures, and writes them to build/bench/group_commits.json."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--callers", type=int, nargs="+", default=[1, 8, 32])
    parser.add_argument("--check", action="store_true", help="fail unless the aim is met")
    given = parser.parse_args()
    warn_of_slow_build()
    figures: dict[str, dict[str, float]] = {}
    missed: list[str] = []
    print("callers         batches/s  commits/s  median s  longest s  failed")
    for count in given.callers:
        for way in ("alone", "group"):
            shutil.rmtree(HERE, ignore_errors=True)
            HERE.mkdir(parents=True)
            found = figures[f"{way}-{count}"] = measure(
                f"{way}-{count}", count, given.rows, given.seconds
            )
            print(
                f"{count:4} {way:8} {found['batches']:10.1f} {found['commits']:10.1f} "
                f"{found['median']:9.3f} {found['longest']:10.2f} {found['failed']:7.0f}",
                flush=True,
            )
    most = figures[f"group-{max(given.callers)}"]["batches"]
    missed = judge(f"{most:.0f} batches a second", LEAST_BATCHES / most, 1.0)
    HERE.with_suffix(".json").write_text(json.dumps(figures, indent=2) + "\n")
    shutil.rmtree(HERE)
    return 1 if missed and given.check else 0


if __name__ == "__main__":
    raise SystemExit(main())
