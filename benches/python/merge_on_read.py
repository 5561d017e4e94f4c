"""Reads a merge-on-read table's snapshot with pyhudi, with PyPI's hudi, and its base files alone.

Each read is a process of its own, and the figures are the whole process's: wall time, processor
time and peak memory, medians of several runs that take turns. Before anything is measured, each
reader's rows are compared with what was written, so that no reader is fast by being wrong.

Prints ratios, and writes all figures to build/bench/merge_on_read.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, astuple, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from cases import CASES

_HERE = Path(__file__).resolve().parent
_BUILD = _HERE.parents[1] / "build" / "bench"
_READERS = ("parquet", "pyhudi", "hudi")
# This process imports no Arrow and holds no rows: a child's peak memory begins with its parent's.


@dataclass(frozen=True)
class Run:
    """One process. Seconds, and bytes."""

    wall: float
    cpu: float
    peak: int


def main() -> None:
    """Makes the table unless it is there, checks the readers, measures them."""
    given = _arguments()
    _warn_of_slow_build()
    folder = _table(given)
    expected = json.loads((folder / "expected.json").read_text())
    found: dict[str, dict[str, Run]] = {}
    for name in given.cases:
        for reader in _READERS:
            _check(reader, name, folder, expected)
        found[name] = _medians(_measure(name, folder, given.runs))
        _print_case(name, found[name])
    target = _BUILD / "merge_on_read.json"
    result = {"setting": _setting(given, folder), "cases": _plain(found)}
    target.write_text(json.dumps(result, indent=2) + "\n")
    print(f"all figures are in {os.path.relpath(target)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="the table's first rows")
    parser.add_argument("--runs", type=int, default=5, help="of each reader in each case")
    parser.add_argument("--version", type=int, default=9, choices=(8, 9), help="of the table")
    parser.add_argument("--codec", default="gzip", help="of the base files")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    return parser.parse_args()


def _warn_of_slow_build() -> None:
    code = "import pyhudi._native as native; print(native.DEBUG_BUILD)"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    if b"True" in printed.stdout:
        print("pyhudi was built without optimisation: its figures say nothing", flush=True)


def _table(given: argparse.Namespace) -> Path:
    """The folder of the table that the arguments ask for; made once, in a process of its own."""
    folder = _BUILD / f"mor-v{given.version}-{given.rows}-{given.codec}"
    if not (folder / "expected.json").exists():
        print(f"making the table in {os.path.relpath(folder)} ...", flush=True)
        options = ("--rows", given.rows, "--version", given.version, "--codec", given.codec)
        program = [sys.executable, str(_HERE / "generate.py"), str(folder)]
        subprocess.run([*program, *map(str, options)], check=True)
    return folder


def _check(reader: str, case: str, folder: Path, expected: dict[str, dict[str, int]]) -> None:
    """Ends the program unless the reader gives the right rows. Also warms the page cache."""
    found, _ = _read(reader, case, folder, "--check")
    right = expected["base files" if reader == "parquet" else "snapshot"]
    columns = CASES[case].columns or [name for name in right if "by key" not in name]
    wrong = [name for name in found if name in right and found[name] != right[name]]
    wrong += [name for name in columns if name not in found]
    if wrong:
        sys.exit(f"{reader} gives wrong rows in case {case}: see {', '.join(wrong)}")


def _measure(case: str, folder: Path, runs: int) -> dict[str, list[Run]]:
    """The readers take turns, so that what else the machine does meets them all."""
    measured: dict[str, list[Run]] = {reader: [] for reader in _READERS}
    for _ in range(runs):
        for reader in _READERS:
            measured[reader].append(_read(reader, case, folder)[1])
    return measured


def _read(reader: str, case: str, folder: Path, *flags: str) -> tuple[dict[str, int], Run]:
    """What a process of `readers.py` printed, and what it took from start to end."""
    program = [sys.executable, str(_HERE / "readers.py"), reader, case, str(folder / "table")]
    start = time.perf_counter()
    child = subprocess.Popen([*program, *flags], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    if child.returncode != 0:
        sys.exit(f"{reader} failed in case {case}")
    return json.loads(printed), Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024)


def _medians(runs: dict[str, list[Run]]) -> dict[str, Run]:
    return {
        reader: Run(
            *(statistics.median(values) for values in zip(*map(astuple, some), strict=True))
        )
        for reader, some in runs.items()
    }


# --- output ---------------------------------------------------------------------------------------


def _print_case(name: str, medians: dict[str, Run]) -> None:
    print(f"\n{name}: {CASES[name].title}")
    print(f"{'':10}{'wall s':>8}{'cpu s':>8}{'peak MB':>9}   over parquet: wall   cpu  memory")
    least = medians["parquet"]
    for reader, run in medians.items():
        ratios = _over(run, least)
        print(
            f"{reader:10}{run.wall:8.2f}{run.cpu:8.2f}{run.peak / 1e6:9.0f}"
            f"{ratios['wall']:21.2f}{ratios['cpu']:6.2f}{ratios['peak']:8.2f}"
        )
    to_hudi = _over(medians["pyhudi"], medians["hudi"])
    print(
        f"pyhudi over hudi: wall {to_hudi['wall']:.2f}, cpu {to_hudi['cpu']:.2f},"
        f" memory {to_hudi['peak']:.2f}",
        flush=True,
    )


def _over(run: Run, other: Run) -> dict[str, float]:
    """Each figure as a multiple of another run's."""
    return {name: value / getattr(other, name) for name, value in asdict(run).items()}


def _plain(found: dict[str, dict[str, Run]]) -> dict[str, Any]:
    return {
        case: {
            "medians": {reader: asdict(run) for reader, run in medians.items()},
            "pyhudi over parquet": _over(medians["pyhudi"], medians["parquet"]),
            "pyhudi over hudi": _over(medians["pyhudi"], medians["hudi"]),
        }
        for case, medians in found.items()
    }


def _setting(given: argparse.Namespace, folder: Path) -> dict[str, Any]:
    files = [path for path in (folder / "table").glob("*/*") if path.is_file()]
    logs = [path for path in files if ".log." in path.name and not path.name.endswith(".crc")]
    bases = [path for path in files if path.suffix == ".parquet"]
    return {
        "rows": given.rows,
        "table version": given.version,
        "codec": given.codec,
        "base bytes": sum(path.stat().st_size for path in bases),
        "log bytes": sum(path.stat().st_size for path in logs),
        "runs": given.runs,
        "processors": os.cpu_count(),
        "architecture": platform.machine(),
        "load at the end": os.getloadavg()[0],
        "versions": {name: metadata.version(name) for name in ("hudi", "pyarrow")},
    }


if __name__ == "__main__":
    main()
