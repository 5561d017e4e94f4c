"""Clustering beside deltalake's optimize, and what layouts save scans with filters on two columns.

    python benches/python/clustering.py [--rows 2000000] [--files 40] [--runs 3]

Rows with random numbers x and y lie in many small files. They are joined, by pyhudi and by
deltalake in turn on copies of the same table, unsorted and in z-order: the ratio of the medians.
Then pyhudi sorts them into some 64 files, linear, in z-order and along the Hilbert curve. For each
layout: the part of the files that scans read whose filters ask for a 32nd of x, of y, or an eighth
of both.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from harness import BUILD, warn_of_slow_build

import pyhudi

HERE = BUILD / "clustering"
LAYOUTS = ("linear", "zorder", "hilbert")
RANGE = 1 << 20
OUTPUTS = 64
OPTIONS = {
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.record.index.enable": "false",
    "hoodie.metadata.index.column.stats.enable": "true",
    "hoodie.metadata.index.column.stats.column.list": "x,y",
}


def batch(first: int, rows: int) -> pa.Table:
    """Rows whose x and y say nothing of each other, or of the file that they are in."""
    chance = random.Random(first)
    numbers = pa.array(range(first, first + rows), pa.int64())
    return pa.table(
        {
            "id": numbers,
            "x": pa.array((chance.randrange(RANGE) for _ in range(rows)), pa.int64()),
            "y": pa.array((chance.randrange(RANGE) for _ in range(rows)), pa.int64()),
            "text": pc.binary_join_element_wise("row", numbers.cast(pa.string()), "-"),
            "v": pc.divide(numbers.cast(pa.float64()), 7),
        }
    )


def make(rows: int, files: int) -> tuple[Path, Path]:
    """The same small files as a table of pyhudi's and one of deltalake's."""
    from deltalake import write_deltalake  # noqa: PLC0415 - of the benchmarks alone

    hudi, delta = HERE / "hudi", HERE / "delta"
    table, each = None, rows // files
    for number in range(files):
        given = batch(number * each, each)
        if table is None:
            table = pyhudi.create_table(hudi, given, key="id", options=OPTIONS)
        else:
            table.insert(given)
        write_deltalake(str(delta), given, mode="append")
    return hudi, delta


def by_pyhudi(path: Path, layout: str | None, **options: str) -> pyhudi.HudiTable:
    table = pyhudi.open_table(path, options={**OPTIONS, **options})
    if layout is None:
        table.cluster()
    else:
        table.cluster(sort_by=["x", "y"], layout=layout)  # type: ignore[arg-type]
    return table


def by_deltalake(path: Path, layout: str | None) -> None:
    from deltalake import DeltaTable  # noqa: PLC0415 - of the benchmarks alone

    optimize, size = DeltaTable(str(path)).optimize, 1024 * 1024 * 1024
    if layout is None:
        optimize.compact(target_size=size)
    else:
        optimize.z_order(["x", "y"], target_size=size)


def timed(source: Path, work: Callable[[Path], object]) -> float:
    """Seconds of work on a copy of a table."""
    copy = HERE / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    began = time.perf_counter()
    work(copy)
    return time.perf_counter() - began


def beside(hudi: Path, delta: Path, layout: str | None, runs: int) -> dict[str, float]:
    """Medians of seconds of both, which take turns."""
    took: dict[str, list[float]] = {"pyhudi": [], "deltalake": []}
    for _ in range(runs):
        took["pyhudi"].append(timed(hudi, lambda path: by_pyhudi(path, layout)))
        took["deltalake"].append(timed(delta, lambda path: by_deltalake(path, layout)))
    medians = {name: statistics.median(seconds) for name, seconds in took.items()}
    return {**medians, "ratio": medians["pyhudi"] / medians["deltalake"]}


def filters() -> dict[str, list[str]]:
    """For each kind of filter some at different places."""
    one, two = RANGE // 32, RANGE // 8
    starts = [RANGE * number // 10 for number in range(1, 9)]
    return {
        "x": [f"x >= {low} AND x < {low + one}" for low in starts],
        "y": [f"y >= {low} AND y < {low + one}" for low in starts],
        "x and y": [
            f"x >= {low} AND x < {low + two} AND y >= {other} AND y < {other + two}"
            for low, other in zip(starts, reversed(starts), strict=True)
        ],
    }


def read_part(hudi: Path, layout: str) -> dict[str, float]:
    """The part of the files that scans read, by kind of filter."""
    copy = HERE / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(hudi, copy)
    size = sum(file.stat().st_size for file in copy.glob("*.parquet")) // OUTPUTS
    limit = {"hoodie.clustering.plan.strategy.target.file.max.bytes": str(size)}
    table = by_pyhudi(copy, layout, **limit)
    every = table.scan().plan().num_rows
    parts = {
        name: statistics.mean(table.scan(where=where).plan().num_rows for where in some) / every
        for name, some in filters().items()
    }
    return {"files": every, **parts}


def main() -> None:
    """Prints the figures, and writes them to build/bench/clustering.json."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    warn_of_slow_build()
    shutil.rmtree(HERE, ignore_errors=True)
    hudi, delta = make(given.rows, given.files)
    found: dict[str, Any] = {"beside": {}, "read": {}}
    for layout in (None, "zorder"):
        figures = beside(hudi, delta, layout, given.runs)
        found["beside"][layout or "joined"] = figures
        print(
            f"{layout or 'joined'}: {figures['ratio']:.2f} of deltalake's "
            f"{figures['deltalake']:.2f} s"
        )
    for layout in LAYOUTS:
        parts = read_part(hudi, layout)
        found["read"][layout] = parts
        said = ", ".join(f"{parts[name]:.3f} for {name}" for name in filters())
        print(f"{layout}: of {parts['files']} files scans read {said}")
    HERE.with_suffix(".json").write_text(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
