"""Reads Hudi tables with pyhudi and other readers, and prints what each took beside the others.

Each read is a process of its own; the figures are the whole process's: wall time, processor time
and peak memory, and the seconds of the read without imports, medians of several runs that take
turns. Before anything is measured, each reader's rows are compared with what was written, so that
no reader is fast by being wrong.

Prints ratios, and writes all figures to build/bench/reads.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import harness
import spark_reads
from cases import CASES, DERIVED, Case
from harness import BUILD

_HERE = Path(__file__).resolve().parent
_INDEXED = "record_index"


@dataclass(frozen=True)
class Run:
    """One process. Seconds, and bytes."""

    wall: float
    cpu: float
    peak: float
    seconds: float
    """Of the read alone."""


Medians = dict[str, Run]


def main() -> int:
    """Makes the tables unless they are there, checks the readers, measures them."""
    given = _arguments()
    harness.warn_of_slow_build()
    found: dict[str, Medians] = {}
    missed: list[str] = []
    for name in given.cases:
        folder = _table(given, CASES[name].table)
        if folder is None:
            print(f"\n{name}: left out: its table is written by Apache Hudi; run `make oracle`")
            continue
        counts = {reader: _check(reader, name, folder) for reader in CASES[name].readers}
        measured = _measure(name, folder, given.runs)
        found[name] = {reader: harness.median(some) for reader, some in measured.items()}
        _print_case(name, found[name], counts)
        missed += _judge(name, found[name])
    if given.spark:
        spark_reads.run(found, lambda shape: _table(given, shape), given.runs)
    packages = ("hudi", "pyarrow", "deltalake")
    setting = harness.setting(given, packages, **{"table version": given.version})
    target = BUILD / "reads.json"
    cases = {
        name: {reader: asdict(run) for reader, run in runs.items()} for name, runs in found.items()
    }
    target.write_text(json.dumps({"setting": setting, "cases": cases}, indent=2) + "\n")
    print(f"\nall figures are in {os.path.relpath(target)}")
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed and given.check else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="a table's first rows")
    parser.add_argument("--runs", type=int, default=3, help="of each reader in each case")
    parser.add_argument("--version", type=int, default=9, choices=(8, 9), help="of the tables")
    parser.add_argument("--codec", default="gzip", help="of the base files")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--check", action="store_true", help="fail unless all aims are met")
    parser.add_argument("--spark", action="store_true", help="Apache Hudi on Spark too")
    return parser.parse_args()


def _table(given: argparse.Namespace, shape: str) -> Path | None:
    """The folder of a table; made once, in a process of its own. None without Apache Hudi."""
    folder = BUILD / f"reads-v{given.version}-{given.rows}-{given.codec}" / shape
    if (folder / "expected.json").exists():
        return folder
    if shape in DERIVED:
        _table(given, DERIVED[shape])
    script = "generate.py"
    options = ["--rows", given.rows, "--version", given.version, "--codec", given.codec]
    if shape == _INDEXED:
        if not spark_reads.is_available():
            return None
        script = "generate_indexed.py"
    else:
        options += ["--shape", shape]
    print(f"making the table in {os.path.relpath(folder)} ...", flush=True)
    program = [sys.executable, str(_HERE / script), str(folder)]
    subprocess.run([*program, *map(str, options)], check=True)
    return folder


def _check(reader: str, name: str, folder: Path) -> int:
    """Rows of a reader; ends the program unless they are right. Also warms the page cache."""
    found, _ = _read(reader, name, folder, "--check")
    case = CASES[name]
    right = json.loads((folder / "expected.json").read_text())[_expected(reader, case)]
    columns = case.columns or [column for column in right if "by key" not in column]
    wrong = [column for column in found if column in right and found[column] != right[column]]
    if found["rows"]:
        wrong += [column for column in columns if column not in found]
    if wrong:
        sys.exit(f"{reader} gives wrong rows in case {name}: see {', '.join(wrong)}")
    return int(found["rows"])


def _expected(reader: str, case: Case) -> str:
    """Which of the noted sums a reader's rows must have."""
    if reader == "pyhudi-all":
        return "snapshot"
    if reader != "parquet" or case.keys:
        return case.expected
    return "base files filtered" if case.where else "base files"


_TRIES = 3


def _measure(case: str, folder: Path, runs: int) -> dict[str, list[Run]]:
    """The readers take turns, so that what else the machine does meets them all."""
    readers = CASES[case].readers
    measured: dict[str, list[Run]] = {reader: [] for reader in readers}
    for _ in range(runs):
        for reader in readers:
            measured[reader].append(_read(reader, case, folder)[1])
    return measured


def _read(reader: str, case: str, folder: Path, *flags: str) -> tuple[dict[str, Any], Run]:
    """What a process of `readers.py` printed, and what it took from start to end.

    Another's reader that dies (deltalake's now and then ends by a signal) is tried again.
    """
    for _ in range(1 if reader == "pyhudi" else _TRIES):
        found = _read_once(reader, case, folder, *flags)
        if found is not None:
            return found
    sys.exit(f"{reader} failed in case {case}")


def _read_once(
    reader: str, case: str, folder: Path, *flags: str
) -> tuple[dict[str, Any], Run] | None:
    program = [sys.executable, str(_HERE / "readers.py"), reader, case, str(folder)]
    done = harness.run([*program, *flags])
    if done.status != 0:
        return None
    answer = json.loads(done.printed)
    seconds = answer.pop("seconds")
    return answer, Run(done.wall, done.cpu, done.peak, seconds)


# --- output ---------------------------------------------------------------------------------------


def _print_case(name: str, medians: Medians, counts: dict[str, int]) -> None:
    print(f"\n{name}: {CASES[name].title}")
    print(f"{'':12}{'rows':>9}{'wall s':>8}{'cpu s':>8}{'read s':>8}{'peak MiB':>10}", end="")
    print("   pyhudi over it: wall   cpu  read  memory")
    ours = medians["pyhudi"]
    for reader, run in medians.items():
        print(
            f"{reader:12}{counts[reader]:9}{run.wall:8.2f}{run.cpu:8.2f}{run.seconds:8.3f}"
            f"{run.peak / 2**20:10.0f}{ours.wall / run.wall:23.2f}{ours.cpu / run.cpu:6.2f}"
            f"{ours.seconds / run.seconds:6.2f}{ours.peak / run.peak:8.2f}",
            flush=True,
        )


def _judge(name: str, medians: Medians) -> list[str]:
    """Prints each aim of the case; those that were missed."""
    missed: list[str] = []
    for aim in CASES[name].aims:
        ratio = getattr(medians[aim.reader], aim.figure) / getattr(medians[aim.of], aim.figure)
        text = f"{name}: {aim.figure} of {aim.reader} over {aim.of} {ratio:.3f}"
        missed += harness.judge(text, ratio, aim.most)
    return missed


if __name__ == "__main__":
    sys.exit(main())
