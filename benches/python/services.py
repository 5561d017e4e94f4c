"""Table services beside Apache Hudi's own, and the housekeeping of a table of many files.

    python benches/python/services.py [--rows 2000000] [--runs 3] [--parts compaction ...]

Compaction: a merge-on-read table after an upsert of 1 %, one of 20 % and a delete. Clustering: a
table of many small files, joined, sorted, and in z-order. pyhudi and Apache Hudi on Spark take
turns on copies of the same table; its start and a warm-up are left out. After each the rows are
compared with what must stand. Housekeeping: a table of 100,000 files, half of them old, with 10,000
commits on its timeline is cleaned and archived, in a process of its own each.

Prints ratios and whether the aims are met; all figures go to build/bench/services.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import rows
from harness import BUILD, judge, warn_of_slow_build
from spark_writes import RELEASE, HudiOracle, available

import pyhudi

HERE = BUILD / "services"
PARTS = ("compaction", "clustering", "housekeeping")
MOST_OF_HUDI = 1 / 4
MOST_SECONDS = 60
MOST_MIB = 1024
FILES = 100_000
COMMITS = 10_000
SMALL_FILES = 10
"""Of each partition, for clustering."""
OPTIONS = {
    # One codec for both: gzip, Hudi's default, is most of what its services take.
    "hoodie.parquet.compression.codec": "snappy",
    "hoodie.parquet.small.file.limit": "0",
    "hoodie.metadata.record.index.enable": "true",
    "hoodie.metadata.global.record.level.index.enable": "true",
    "hoodie.compact.inline.max.delta.commits": "1",
}
SORTED_BY = ("begin_lat", "begin_lon")
Work = tuple[Callable[[Path], object], str]
"""A service by pyhudi, and as a procedure of Hudi's."""


def compaction() -> Work:
    """The one compaction."""
    return lambda path: opened(path).compact(), "run_compaction(op => 'scheduleandexecute')"


def clustering(layout: str | None) -> Work:
    """Small files joined, and sorted if a layout is given."""
    if layout is None:
        return lambda path: opened(path).cluster(), "run_clustering(op => 'scheduleandexecute')"
    order = ",".join(SORTED_BY)
    strategy = {"linear": "linear", "zorder": "z-order", "hilbert": "hilbert"}[layout]
    call = "run_clustering(op => 'scheduleandexecute', "
    call += f"order => '{order}', order_strategy => '{strategy}')"
    return lambda path: opened(path).cluster(sort_by=SORTED_BY, layout=layout), call  # type: ignore[arg-type]


def opened(path: Path) -> pyhudi.HudiTable:
    return pyhudi.open_table(path, options=OPTIONS)


# --- tables ---------------------------------------------------------------------------------------


def inputs(count: int) -> Path:
    """The folder of the inputs, those of `writes.py`; made once."""
    folder = BUILD / f"writes-{count}" / "input"
    if not (folder / "expected.json").exists():
        program = [sys.executable, str(Path(__file__).with_name("generate_writes.py"))]
        subprocess.run([*program, str(folder), "--rows", str(count)], check=True)
    return folder


def made(kind: str, path: Path) -> pyhudi.HudiTable:
    return pyhudi.create_table(
        path,
        rows.SCHEMA,
        key=rows.KEY,
        partition_by=rows.PARTITION,
        order_by=rows.ORDERING,
        type=kind,  # type: ignore[arg-type]
        options=OPTIONS,
    )


def with_logs(path: Path, source: Path) -> dict[str, int]:
    """Makes the table of the compaction; the sums of its rows."""
    table = made("mor", path)
    table.bulk_insert(pq.read_table(source / "bulk.parquet"))
    for step in ("u1", "u20"):
        table.upsert(pq.read_table(source / f"{step}.parquet"))
    table.delete_keys(pq.read_table(source / "d2.parquet").select([rows.KEY, rows.PARTITION]))
    return expected(source, "d2")


def of_small_files(path: Path, source: Path) -> dict[str, int]:
    """Makes the table of the clustering; the sums of its rows."""
    table, given = made("cow", path), pq.read_table(source / "bulk.parquet")
    each = -(-given.num_rows // SMALL_FILES)
    for first in range(0, given.num_rows, each):
        table.bulk_insert(given.slice(first, each))
    return expected(source, "bulk")


def expected(source: Path, step: str) -> dict[str, int]:
    found: dict[str, int] = json.loads((source / "expected.json").read_text())[step]
    return found


# --- beside Apache Hudi ---------------------------------------------------------------------------


def beside(
    hudi: HudiOracle | None, table: Path, work: Work, sums: dict[str, int], runs: int
) -> dict[str, float]:
    """Medians of seconds of both, and their ratio."""
    ours, theirs = work
    who: dict[str, Callable[[Path], object]] = {"pyhudi": ours}
    if hudi is not None:
        who["hudi"] = lambda path: hudi.call(path, theirs, conf=OPTIONS)
    took: dict[str, list[float]] = {name: [] for name in who}
    for _ in range(runs):
        for name, carry_out in who.items():
            took[name].append(timed(table, carry_out, sums))
    found = {name: statistics.median(seconds) for name, seconds in took.items()}
    if "hudi" in found:
        found["ratio"] = found["pyhudi"] / found["hudi"]
    return found


def timed(source: Path, work: Callable[[Path], object], sums: dict[str, int]) -> float:
    """Seconds of a service on a copy of a table, which must do something and change no row."""
    copy = HERE / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    before = len(opened(copy).state.timeline.instants)
    began = time.perf_counter()
    work(copy)
    seconds = time.perf_counter() - began
    table = opened(copy)
    if len(table.state.timeline.instants) <= before:
        sys.exit("nothing was changed")
    if rows.sums(table.scan().to_arrow().select(rows.SCHEMA.names)) != sums:
        sys.exit("rows changed")
    return seconds


@contextmanager
def session() -> Iterator[HudiOracle | None]:
    """Apache Hudi on Spark where it is here, warmed up by the services of small tables."""
    if not available(RELEASE):
        print("Apache Hudi is left out: run `make oracle`")
        yield None
        return
    small = inputs(20_000)
    with HudiOracle(RELEASE, memory="10g", cores=2) as hudi:
        for make, work in (
            (with_logs, compaction()),
            (of_small_files, clustering(None)),
            (of_small_files, clustering("zorder")),
        ):
            warm = HERE / "warm"
            shutil.rmtree(warm, ignore_errors=True)
            make(warm, small)
            hudi.call(warm, work[1], conf=OPTIONS)
        shutil.rmtree(warm)
        yield hudi


# --- housekeeping ---------------------------------------------------------------------------------


def housekeeping() -> dict[str, dict[str, float]]:
    """What cleaning and archiving the large table take."""
    from scale_tables import Size, make  # noqa: PLC0415 - of this part alone

    table = HERE / "many"
    # Each commit wrote a second slice of five file groups.
    make(table, Size(groups=FILES // 2, active=COMMITS, files=FILES // 2 // COMMITS))
    found = {}
    for verb in ("clean", "archive"):
        program = [sys.executable, str(Path(__file__).with_name("scale.py"))]
        program += ["--run", verb, str(table)]
        done = subprocess.run(program, check=True, stdout=subprocess.PIPE, text=True)
        found[verb] = json.loads(done.stdout)
    shutil.rmtree(table)
    return found


# --- the program ----------------------------------------------------------------------------------


def main() -> int:
    """Measures, prints and judges."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--check", action="store_true", help="fail unless all aims are met")
    given = parser.parse_args()
    warn_of_slow_build()
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir(parents=True)
    found: dict[str, Any] = {"rows": given.rows, "runs": given.runs}
    missed = []
    if set(given.parts) - {"housekeeping"}:
        with session() as hudi:
            for name, figures in services(hudi, given):
                found[name] = figures
                print(name, {who: round(seconds, 2) for who, seconds in figures.items()})
                if "ratio" in figures:
                    ratio = figures["ratio"]
                    missed += judge(f"{name}: {ratio:.3f} of Hudi's seconds", ratio, MOST_OF_HUDI)
    if "housekeeping" in given.parts:
        for verb, figures in housekeeping().items():
            found[verb] = figures
            print(verb, {name: round(figure, 1) for name, figure in figures.items()})
            seconds, memory = figures["seconds"], figures["peak_mib"]
            missed += judge(f"{verb}: {seconds:.1f} seconds", seconds, MOST_SECONDS)
            missed += judge(f"{verb}: {memory} MiB", memory, MOST_MIB)
    HERE.with_suffix(".json").write_text(json.dumps(found, indent=2) + "\n")
    return 1 if missed and given.check else 0


def services(
    hudi: HudiOracle | None, given: argparse.Namespace
) -> Iterator[tuple[str, dict[str, float]]]:
    """The figures of each service that is asked for, as they come."""
    source, table = inputs(given.rows), HERE / "table"
    if "compaction" in given.parts:
        sums = with_logs(table, source)
        yield "compaction", beside(hudi, table, compaction(), sums, given.runs)
        shutil.rmtree(table)
    if "clustering" in given.parts:
        sums = of_small_files(table, source)
        for layout in (None, "linear", "zorder"):
            name = f"clustering, {layout or 'joined'}"
            yield name, beside(hudi, table, clustering(layout), sums, given.runs)
        shutil.rmtree(table)


if __name__ == "__main__":
    sys.exit(main())
