"""Where a small commit spends its time: 100 rows into a merge-on-read table on a local disk.

    python benches/python/small_commits.py [--rows 4000000] [--commits 160] [--profile]

The table has twelve columns, four partitions and the options of who sets none; each commit upserts
100 keys on a handle that stays open. Prints median and maximum of processor seconds, and of Python
calls and storage calls, which do not depend on the machine, commits with services included. With
`--profile`, Python functions of the last ten commits follow, by cumulative processor time of the
main thread.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import shutil
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from harness import BUILD, warn_of_slow_build

import pyhudi
from pyhudi.storage.storage import Storage

HERE = BUILD / "small-commits"
ROWS = 100
STORAGE = (
    "read", "list", "list_dir", "head", "put", "put_if_absent", "delete", "delete_all",
    "delete_dir", "read_version", "replace_version",
)  # fmt: skip


def rows(keys: Iterable[int], commit: int) -> pa.Table:
    numbers = list(keys)
    random = np.random.default_rng(commit)
    return pa.table(
        {
            "id": [f"k{key:08}" for key in numbers],
            "city": [f"c{key % 4}" for key in numbers],
            "at": [commit] * len(numbers),
            **{f"v{column}": random.random(len(numbers)) for column in range(9)},
        }
    )


def count_storage_calls() -> Counter[str]:
    counts: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        method = getattr(Storage, name)

        def call(storage: Storage, *args: Any, **options: Any) -> Any:
            counts[name] += 1
            return method(storage, *args, **options)

        return call

    for name in STORAGE:
        setattr(Storage, name, counting(name))
    return counts


def main() -> None:
    """Prints the figures, and writes them to build/bench/small-commits.json."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--commits", type=int, default=160)
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    warn_of_slow_build()
    shutil.rmtree(HERE, ignore_errors=True)
    table = pyhudi.create_table(
        HERE / "t", rows(range(given.rows), 0), key="id", partition_by="city", order_by="at",
        type="mor",
    )  # fmt: skip
    random = np.random.default_rng(1)
    batches = [
        rows(sorted(random.choice(given.rows, ROWS, replace=False).tolist()), commit)
        for commit in range(1, 2 * given.commits + 11)
    ]
    seconds = []
    for batch in batches[: given.commits]:
        began = time.process_time()
        table.upsert(batch)
        seconds.append(time.process_time() - began)
    # Counting takes time, so other commits are counted.
    storage = count_storage_calls()
    python_calls, storage_calls = [], []
    for batch in batches[given.commits : -10]:
        storage.clear()
        profile = cProfile.Profile()
        profile.enable()
        table.upsert(batch)
        profile.disable()
        python_calls.append(sum(entry.callcount for entry in profile.getstats()))
        storage_calls.append(storage.total())
    figures = {
        "processor seconds": seconds,
        "Python calls": python_calls,
        "storage calls": storage_calls,
    }
    summary = {name: (statistics.median(each), max(each)) for name, each in figures.items()}
    for name, (median, maximum) in summary.items():
        print(f"{name}: median {median:,.3f}, maximum {maximum:,.3f}")
    HERE.with_suffix(".json").write_text(json.dumps(summary, indent=2) + "\n")
    if given.profile:
        profile = cProfile.Profile(time.thread_time)
        for batch in batches[-10:]:
            profile.enable()
            table.upsert(batch)
            profile.disable()
        pstats.Stats(profile).sort_stats("cumulative").print_stats(60)
    shutil.rmtree(HERE)


if __name__ == "__main__":
    main()
