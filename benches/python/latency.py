"""Small commits into a table in a bucket, where each call to storage takes a while.

    python benches/python/latency.py [--rows 1000000] [--commits 50] [--delay 0.03]

A merge-on-read table with the options of who sets none lies behind the tests' S3 server, and that
behind a proxy that holds each request back for some milliseconds, as the way to a cloud does. Each
commit upserts 100 rows, half of them new, on a handle that stays open. Prints medians of the
first ten commits and of the last ten, with the delay and without, and the seconds that the delay
costs in units of itself: how many calls wait for one another.
"""

from __future__ import annotations

import argparse
import atexit
import json
import random
import shutil
import statistics
import sys
import time
from pathlib import Path

import pyarrow as pa
from harness import BUILD, judge, warn_of_slow_build

import pyhudi

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.helpers.s3.proxy import Proxy
from tests.helpers.s3.server import S3Server

HERE = BUILD / "latency"
ROWS = 100

Took = dict[float, list[tuple[float, int]]]
"""Seconds and requests of commits, by delay."""
MOST_SECONDS = 1.5


def rows(keys: list[int], commit: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{key:09}" for key in keys],
            "city": [f"c{key % 4}" for key in keys],
            "at": [commit] * len(keys),
            "fare": [key % 1000 / 7 for key in keys],
        }
    )


def commits(table: pyhudi.HudiTable, proxy: Proxy, total: int, delays: list[float]) -> Took:
    """Commits that take the delays in turn."""
    choose, took = random.Random(1), Took()
    for number, delay in enumerate(delays):
        new = range(total + number * ROWS // 2, total + (number + 1) * ROWS // 2)
        given = rows([*choose.sample(range(total), ROWS // 2), *new], number + 1)
        proxy.set_delay(delay)
        began = time.perf_counter()
        table.upsert(given)
        seconds = time.perf_counter() - began
        took.setdefault(delay, []).append((seconds, proxy.requests))
        proxy.set_delay(0.0)
    return took


def main() -> int:
    """Prints the figures, and writes them to build/bench/latency.json."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument(
        "--commits", type=int, default=50, help="with the delay, and as many without"
    )
    parser.add_argument("--delay", type=float, default=0.03, help="seconds of each call")
    parser.add_argument("--check", action="store_true", help="fail unless the aim is met")
    given = parser.parse_args()
    warn_of_slow_build()
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    server = S3Server(HERE.resolve())
    try:
        server.make_bucket("lake")
        proxy = Proxy(server.port)
        atexit.register(proxy.close)
        storage = {**server.options, "aws_endpoint_url": f"http://127.0.0.1:{proxy.port}"}
        table = pyhudi.create_table(
            "s3://lake/trips", rows([0], 0).schema, key="id", partition_by="city", order_by="at",
            type="mor", storage_options=storage,
        )  # fmt: skip
        table.bulk_insert(rows(list(range(given.rows)), 0))
        took = commits(table, proxy, given.rows, [0.0, given.delay] * given.commits)
    finally:
        server.close()
    found, missed = {}, []
    for name, some in (("first", slice(0, 10)), ("last", slice(-10, None))):
        near, far = (
            statistics.median(seconds for seconds, _ in took[delay][some])
            for delay in (0.0, given.delay)
        )
        calls = statistics.median(requests for _, requests in took[given.delay][some])
        waits = (far - near) / given.delay
        found[name] = {"near": near, "far": far, "waits": waits, "calls": calls}
        print(f"{name} ten commits: {near:.2f} s without the delay; with it {calls:.0f} calls")
        print(f"  that take as long as {waits:.1f} one after the other")
        missed += judge(f"{name} ten commits: {far:.2f} s", far, MOST_SECONDS)
    HERE.with_suffix(".json").write_text(json.dumps(found, indent=2) + "\n")
    shutil.rmtree(HERE)
    return 1 if missed and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
