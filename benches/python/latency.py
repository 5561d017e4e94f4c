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
import asyncio
import json
import random
import shutil
import statistics
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
from harness import BUILD, judge, warn_of_slow_build

import pyhudi

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.helpers.s3.server import S3Server

HERE = BUILD / "latency"
ROWS = 100
MOST_SECONDS = 1.5


class Proxy:
    """Passes on what comes, each piece of a request after the delay; answers at once."""

    def __init__(self, port: int) -> None:
        self.delay = 0.0
        self._server_port = port
        self._loop = asyncio.new_event_loop()
        started = threading.Event()
        threading.Thread(target=self._run, args=(started,), daemon=True).start()
        started.wait()

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._meet, "127.0.0.1", 0))
        self.port: int = server.sockets[0].getsockname()[1]
        started.set()
        self._loop.run_forever()

    async def _meet(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        server, requests = await asyncio.open_connection("127.0.0.1", self._server_port)
        await asyncio.gather(
            self._pass_on(client, requests, held_back=True),
            self._pass_on(server, answers, held_back=False),
        )

    async def _pass_on(
        self, given: asyncio.StreamReader, to: asyncio.StreamWriter, *, held_back: bool
    ) -> None:
        try:
            while data := await given.read(1 << 20):
                if held_back and self.delay:
                    await asyncio.sleep(self.delay)
                to.write(data)
                await to.drain()
        except ConnectionError:
            pass
        finally:
            to.close()


def rows(keys: list[int], commit: int) -> pa.Table:
    return pa.table(
        {
            "id": [f"k{key:09}" for key in keys],
            "city": [f"c{key % 4}" for key in keys],
            "at": [commit] * len(keys),
            "fare": [key % 1000 / 7 for key in keys],
        }
    )


def commits(
    table: pyhudi.HudiTable, proxy: Proxy, total: int, delays: list[float]
) -> dict[float, list[float]]:
    """Seconds of commits, which take the delays in turn."""
    choose, took = random.Random(1), dict[float, list[float]]()
    for number, delay in enumerate(delays):
        new = range(total + number * ROWS // 2, total + (number + 1) * ROWS // 2)
        given = rows([*choose.sample(range(total), ROWS // 2), *new], number + 1)
        proxy.delay = delay
        began = time.perf_counter()
        table.upsert(given)
        took.setdefault(delay, []).append(time.perf_counter() - began)
        proxy.delay = 0.0
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
        near, far = (statistics.median(took[delay][some]) for delay in (0.0, given.delay))
        waits = (far - near) / given.delay
        found[name] = {"near": near, "far": far, "waits": waits}
        print(f"{name} ten commits: {near:.2f} s without the delay, {waits:.1f} waits with it")
        missed += judge(f"{name} ten commits: {far:.2f} s", far, MOST_SECONDS)
    HERE.with_suffix(".json").write_text(json.dumps(found, indent=2) + "\n")
    shutil.rmtree(HERE)
    return 1 if missed and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
