"""What many writers cost: a commit with the lock beside one without, and processes in one table.

    python benches/python/concurrency.py [--commits 30] [--seconds 10] [--writers 1 2 4 8]

First, small upserts into two tables in turn, one under the default lock and one as a single writer:
the ratio of their medians. Then for each number of writers as many processes upsert batches into
partitions of their own for some seconds, with pyhudi and with deltalake (its merge, restricted to
the partition): commits a second, and how many were made again because of others.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import pyhudi

BUILD = Path("build/bench/concurrency")
SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
ROWS = 1000


def batch(part: str, number: int) -> pa.Table:
    """Half of the keys are those of the batch before."""
    first = number * ROWS // 2
    return pa.table(
        {
            "id": [f"{part}-{n}" for n in range(first, first + ROWS)],
            "part": [part] * ROWS,
            "v": [number] * ROWS,
        },
        schema=SCHEMA,
    )


# --- one writer -----------------------------------------------------------------------------------


def lock_cost(commits: int) -> dict[str, float]:
    """Medians of seconds of small commits, one table beside the other."""
    alone = {"hoodie.write.concurrency.mode": "SINGLE_WRITER"}
    kinds: dict[str, dict[str, object]] = {"lock": {}, "alone": dict(alone)}
    tables = {
        name: pyhudi.create_table(
            BUILD / f"cost-{name}", SCHEMA, key="id", partition_by="part", options=options
        )
        for name, options in kinds.items()
    }
    took: dict[str, list[float]] = {name: [] for name in tables}
    for number in range(commits):
        rows = batch("one", number).slice(0, 10)
        for name, table in sorted(tables.items(), reverse=number % 2 == 0):
            began = time.perf_counter()
            table.upsert(rows)
            took[name].append(time.perf_counter() - began)
    medians = {name: statistics.median(seconds) for name, seconds in took.items()}
    return {**medians, "ratio": medians["lock"] / medians["alone"]}


# --- many -----------------------------------------------------------------------------------------


def pyhudi_writer(uri: str, part: str) -> tuple[Callable[[int], None], Callable[[], int]]:
    """Writes one batch; and how often a write was begun."""
    from pyhudi.txn.transaction import Transaction  # noqa: PLC0415 - of this process alone

    begun = [0]
    enter = Transaction.__enter__

    def entered(self: Transaction) -> Transaction:
        begun[0] += 1
        return enter(self)

    Transaction.__enter__ = entered  # type: ignore[method-assign]
    table = pyhudi.open_table(uri)
    return lambda number: table.upsert(batch(part, number)) and None, lambda: begun[0]


def delta_writer(uri: str, part: str) -> tuple[Callable[[int], None], Callable[[], int]]:
    """The same with deltalake."""
    from deltalake import DeltaTable  # noqa: PLC0415 - not where pyhudi is measured alone
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 - likewise

    begun = [0]

    def write(number: int) -> None:
        while True:
            begun[0] += 1
            merge = DeltaTable(uri).merge(
                batch(part, number),
                predicate=f"t.part = '{part}' AND s.part = t.part AND s.id = t.id",
                source_alias="s",
                target_alias="t",
            )
            try:
                merge.when_matched_update_all().when_not_matched_insert_all().execute()
            except CommitFailedError:
                continue
            return

    return write, lambda: begun[0]


def work(kind: str, uri: str, part: str, seconds: float, ready: Any, told: Any) -> None:
    """One process."""
    writer, begun = (pyhudi_writer if kind == "pyhudi" else delta_writer)(uri, part)
    writer(0)
    first = begun()
    ready.wait()
    number, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        number += 1
        writer(number)
    told.put((number, begun() - first - number))


def throughput(kind: str, writers: int, seconds: float) -> dict[str, float]:
    """Commits a second of all writers together, and writes that were made again."""
    uri = str(BUILD / f"{kind}-{writers}")
    if kind == "pyhudi":
        pyhudi.create_table(uri, SCHEMA, key="id", partition_by="part")
    else:
        from deltalake import write_deltalake  # noqa: PLC0415 - likewise

        write_deltalake(uri, SCHEMA.empty_table(), partition_by=["part"])
    context = multiprocessing.get_context("spawn")
    ready, told = context.Barrier(writers), context.Queue()
    processes = [
        context.Process(target=work, args=(kind, uri, f"p{number}", seconds, ready, told))
        for number in range(writers)
    ]
    for process in processes:
        process.start()
    answers = [told.get() for _ in processes]
    for process in processes:
        process.join()
    commits = sum(done for done, _ in answers)
    return {"a second": commits / seconds, "again": sum(more for _, more in answers)}


def main() -> None:
    """Prints the figures, and writes them to build/bench/concurrency.json."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--writers", type=int, nargs="*", default=[1, 2, 4, 8])
    given = parser.parse_args()
    shutil.rmtree(BUILD, ignore_errors=True)
    BUILD.mkdir(parents=True)
    cost = lock_cost(given.commits)
    print(
        f"a commit under the lock takes {cost['ratio']:.2f} of one without ({cost['alone']:.3f} s)"
    )
    found: dict[str, Any] = {"cost": cost, "throughput": {}}
    for writers in given.writers:
        both = {kind: throughput(kind, writers, given.seconds) for kind in ("pyhudi", "deltalake")}
        found["throughput"][writers] = both
        ratio = both["pyhudi"]["a second"] / max(both["deltalake"]["a second"], 0.001)
        said = ", ".join(
            f"{kind} {one['a second']:.2f} commits a second, {one['again']:.0f} made again"
            for kind, one in both.items()
        )
        print(f"{writers} writers: {said}; {ratio:.2f} of deltalake's")
    BUILD.with_suffix(".json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
