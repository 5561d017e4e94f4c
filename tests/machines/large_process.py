"""A process that works on a table with very many partitions or log files, and measures itself.

    python -m tests.machines.large_process KIND FOLDER COUNT

KIND is `partitions` or `logs`. Files are links to those of a small table that pyhudi wrote, since
only their number matters. Each step prints its result, its seconds, and the peak memory in MiB.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

import pyhudi
from pyhudi import HudiTable

WITHOUT_METADATA = {"hoodie.metadata.enable": "false"}
ONLY_FILES = {"hoodie.metadata.index.column.stats.enable": "false"}
_LINKS = 10_000
"""Links of one file: file systems limit their number."""


def rows_of(partition: str, value: int, ids: range = range(1)) -> pa.Table:
    keys = [f"k{number}" for number in ids]
    return pa.table({"id": keys, "p": [partition] * len(keys), "v": [value] * len(keys)})


def step(name: str, call: Callable[[], object]) -> None:
    began = time.monotonic()
    result = call()
    told = {
        "step": name,
        "result": result if isinstance(result, int) else None,
        "seconds": round(time.monotonic() - began, 1),
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def make(folder: Path, partition: str, count: int) -> HudiTable:
    """A table with a base file of `count` rows in one partition, without a metadata table."""
    table = pyhudi.create_table(
        folder, rows_of("", 0).schema, key="id", partition_by="p", type="mor",
        options=WITHOUT_METADATA,
    )  # fmt: skip
    table.upsert(rows_of(partition, 0, range(count)))
    return table


def add_partitions(folder: Path, count: int) -> None:
    """More partitions, each with a file group of one row."""
    first = folder / "d0000000"
    (base,) = first.glob("*.parquet")
    source, described = base, first / ".hoodie_partition_metadata"
    for number in range(1, count):
        path = folder / f"d{number:07}"
        path.mkdir()
        # The name of a file group, then what all files of a commit have in common.
        target = path / f"{number:08x}{base.name[8:]}"
        if number % _LINKS:
            os.link(source, target)
            os.link(described, path / described.name)
        else:
            target.write_bytes(source.read_bytes())
            source, content = target, described.read_bytes()
            described = path / described.name
            described.write_bytes(content)


def work_on_partitions(folder: Path, count: int) -> None:
    make(folder, "d0000000", 1)
    step("make", lambda: add_partitions(folder, count))
    last = f"d{count - 1:07}"

    def listed() -> HudiTable:
        return pyhudi.open_table(folder, options=WITHOUT_METADATA)

    def opened() -> HudiTable:
        return pyhudi.open_table(folder, options=ONLY_FILES)

    step("count one partition by listing", lambda: listed().scan(where=f"p = '{last}'").count())
    step("build the metadata table", lambda: opened().rebuild_metadata())
    step("count one partition", lambda: opened().scan(where=f"p = '{last}'").count())
    step("upsert into one partition", lambda: opened().upsert(rows_of(last, 1, range(1, 2))))
    step("upsert into a new partition", lambda: opened().upsert(rows_of("new", 1)))
    step("count all", lambda: opened().scan().count())


def work_on_logs(folder: Path, count: int) -> None:
    table = make(folder, "a", 100)
    table.upsert(rows_of("a", 1, range(10)))
    (log,) = (folder / "a").glob(".*.log.1_*")
    for number in range(2, count + 1):
        os.link(log, log.with_name(log.name.replace(".log.1_", f".log.{number}_")))

    def opened() -> HudiTable:
        return pyhudi.open_table(folder, options=WITHOUT_METADATA)

    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
    step("count", lambda: opened().scan().count())
    step("count changed rows", lambda: opened().scan(where="v = 1").count())
    step("scan", lambda: opened().scan().to_arrow().num_rows)
    step("upsert", lambda: opened().upsert(rows_of("a", 2, range(5))))
    step("compact", lambda: opened().compact())
    step("count after compaction", lambda: opened().scan(where="v > 0").count())
    step("count of rows of the upsert", lambda: opened().scan(where="v = 2").count())


if __name__ == "__main__":
    kind, base, number = sys.argv[1:]
    {"partitions": work_on_partitions, "logs": work_on_logs}[kind](Path(base), int(number))
