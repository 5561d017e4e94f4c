"""Apache Hudi on Spark for the write benchmark: the tests' oracle, where `make oracle` set it up.

One JVM for each kind of table, warmed up by a small table before anything is timed. A figure is the
seconds of one write, from reading the input file to the commit.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import rows
from write_cases import STEPS

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.helpers.oracle.client import HudiOracle, available  # noqa: E402 - needs the path

RELEASE = "1.2.0"
_TYPES = {"cow": "COPY_ON_WRITE", "mor": "MERGE_ON_READ"}
_NEEDED = {
    "hoodie.table.name": "writes",
    "hoodie.datasource.write.recordkey.field": rows.KEY,
    "hoodie.datasource.write.partitionpath.field": rows.PARTITION,
    "hoodie.datasource.write.precombine.field": rows.ORDERING,
}
_OPTIONS = {
    "hoodie.upsert.shuffle.parallelism": "4",
    "hoodie.delete.shuffle.parallelism": "4",
    "hoodie.bulkinsert.shuffle.parallelism": "4",
    # As in the tables of pyhudi.
    "hoodie.metadata.enable": "false",
}


def needed(kind: str, codec: str) -> dict[str, str]:
    """What Hudi must be told of a kind of table; `own` is the codec that it takes by itself."""
    found = {**_NEEDED, "hoodie.datasource.write.table.type": _TYPES[kind]}
    if codec != "own":
        found["hoodie.parquet.compression.codec"] = codec
    return found


def options(kind: str, codec: str) -> dict[str, str]:
    """As `needed`, without a metadata table."""
    found = {**needed(kind, codec), **_OPTIONS}
    if kind == "mor":
        # Updates stay in log files: new rows do not have small base files rewritten.
        found["hoodie.parquet.small.file.limit"] = "0"
    return found


def run(
    given: argparse.Namespace,
    kind: str,
    table: Path,
    inputs: Path,
    check: Callable[[str, str, Path], None],
) -> Iterator[tuple[str, float]]:
    """The seconds of each step, on a table of a kind."""
    if not available(RELEASE):
        print("\nSpark: left out: no Apache Hudi here; run `make oracle`")
        return
    given_options = dict(option.split("=", 1) for option in given.option)
    chosen = {**options(kind, given.codec), **given_options}
    shutil.rmtree(table, ignore_errors=True)
    table.parent.mkdir(parents=True, exist_ok=True)
    with HudiOracle(RELEASE, memory="10g", cores=2) as hudi:
        warm = table.with_name("warm")
        for verb in ("bulk_insert", "upsert"):
            hudi.write(warm, input=inputs / "u1.parquet", operation=verb, options=chosen)
        shutil.rmtree(warm)
        for step in given.steps:
            start = time.perf_counter()
            hudi.write(
                table,
                input=inputs / f"{step}.parquet",
                operation=STEPS[step].verb,
                options=chosen,
            )
            yield step, time.perf_counter() - start
            check(kind, step, table)
    shutil.rmtree(table, ignore_errors=True)
