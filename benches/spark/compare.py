"""pyhudi on Spark beside Apache Hudi on the same Spark, and beside itself on one core.

Each engine does all steps on a table of its own in one session (`job.py`); the runs take turns in
each round. After every write the table's rows are compared with what must stand, and what the
engines read is the same, or the program ends. Figures are medians of the rounds, in seconds.

Prints ratios, and writes all figures to build/bench/spark.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from steps import AIMS, ENGINES, READS, STEPS, TYPES

_HERE = Path(__file__).resolve().parent
_PYTHON = _HERE.parent / "python"
_BUILD = _HERE.parents[1] / "build" / "bench"


@dataclass(frozen=True)
class Session:
    """An engine, and the cores it may use."""

    engine: str
    cores: int

    @property
    def name(self) -> str:
        """As it is printed and named in the aims."""
        return f"{self.engine} local[{self.cores}]"


SESSIONS = (Session("pyhudi", 2), Session("hudi", 2), Session("pyhudi", 1))
Found = dict[str, dict[str, list[float]]]
"""Seconds by step and session's name, of one type of table."""


def main() -> int:
    """Makes the inputs unless they are there; measures, prints and judges."""
    given = _arguments()
    inputs = _inputs(given)
    found: dict[str, Found] = {kind: {step: {} for step in STEPS} for kind in given.types}
    for number in range(given.runs):
        for kind in given.types:
            _round(given, kind, inputs, found[kind], check=number == 0)
    for kind in given.types:
        _print_type(kind, found[kind])
    missed = [text for kind in given.types for text in _judge(kind, found[kind])]
    target = _BUILD / "spark.json"
    target.write_text(json.dumps({"setting": _setting(given), "seconds": found}, indent=2) + "\n")
    print(f"\nall figures are in {os.path.relpath(target)}")
    return 1 if missed and given.check else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="of the first commit")
    parser.add_argument("--runs", type=int, default=1, help="rounds")
    parser.add_argument("--codec", default="own", help="of all base files")
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=TYPES)
    parser.add_argument("--bare", action="store_true", help="the simple index, no metadata table")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2], choices=[1, 2])
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--check", action="store_true", help="fail unless all aims are met")
    return parser.parse_args()


def _inputs(given: argparse.Namespace) -> Path:
    """The folder of the inputs, those of `benches/python/writes.py`; made once."""
    folder = _BUILD / f"writes-{given.rows}" / "input"
    if not (folder / "expected.json").exists():
        program = [sys.executable, str(_PYTHON / "generate_writes.py"), str(folder)]
        subprocess.run([*program, "--rows", str(given.rows)], check=True)
    return folder


def _round(
    given: argparse.Namespace, kind: str, inputs: Path, found: Found, *, check: bool
) -> None:
    """Every session's steps, and whether they read the same."""
    read: dict[str, set[tuple[str, str]]] = {step: set() for step in READS}
    for session in SESSIONS:
        if session.engine not in given.engines or session.cores not in given.cores:
            continue
        for answer in _job(given, session, kind, inputs, check=check):
            step = answer["step"]
            found[step].setdefault(session.name, []).append(answer["seconds"])
            print(f"{kind} {step}: {session.name}: {answer['seconds']:.2f} s", flush=True)
            if step in READS:
                read[step].add((answer["rows"], answer["digest"]))
    for step, answers in read.items():
        # Of a late row an incremental query tells where its base file was not rewritten with it.
        alike = kind == "cow" or given.bare or step != "incremental"
        if len(answers) > 1 and alike:
            sys.exit(f"{kind} {step}: the rows differ: {sorted(answers)}")


def _job(
    given: argparse.Namespace, session: Session, kind: str, inputs: Path, *, check: bool
) -> Iterator[dict[str, Any]]:
    table = _BUILD / "spark-table"
    shutil.rmtree(table, ignore_errors=True)
    os.sync()
    program = [sys.executable, str(_HERE / "job.py"), session.engine, kind, str(session.cores)]
    program += [str(table), str(inputs), "--codec", given.codec]
    program += ["--bare"] * given.bare
    job = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(_HERE.parents[1])},
    )
    assert job.stdin is not None
    assert job.stdout is not None
    for line in job.stdout:
        if not line.startswith("{"):  # Hudi says things on standard output
            continue
        answer = json.loads(line)
        yield answer
        if check and answer["step"] not in READS:
            _check_rows(session, kind, answer["step"], table, inputs)
        job.stdin.write("\n")
        job.stdin.flush()
    if job.wait() != 0:
        sys.exit(f"{session.name} failed")
    shutil.rmtree(table, ignore_errors=True)


def _check_rows(session: Session, kind: str, step: str, table: Path, inputs: Path) -> None:
    """Ends the program unless the table has the rows that it must have after a write."""
    program = [sys.executable, str(_PYTHON / "writers.py"), "pyhudi", kind, step]
    program += [str(table), str(inputs), "--check"]
    printed = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    if json.loads(printed) != json.loads((inputs / "expected.json").read_text())[step]:
        sys.exit(f"{session.name} left wrong rows after {step}, {kind}")


# --- output ---------------------------------------------------------------------------------------


def _print_type(kind: str, found: Found) -> None:
    names = [session.name for session in SESSIONS]
    print(f"\n{kind:34}" + "".join(f"{name:>18}" for name in names) + "   first over the others")
    for step, of_step in found.items():
        medians = {name: statistics.median(some) for name, some in of_step.items()}
        line = "".join(
            f"{medians[name]:18.2f}" if name in medians else f"{'':18}" for name in names
        )
        first = medians.get(names[0])
        if first is not None:
            line += "   " + ", ".join(
                f"{first / medians[name]:.2f}" for name in names[1:] if name in medians
            )
        print(f"{STEPS[step]:34}{line}")


def _judge(kind: str, found: Found) -> list[str]:
    """Prints each aim that can be judged; those that were missed."""
    print()
    missed = []
    for aim in AIMS:
        ours = found[aim.step].get("pyhudi local[2]")
        other = found[aim.step].get(aim.of)
        if aim.type != kind or not ours or not other:
            continue
        ratio = statistics.median(ours) / statistics.median(other)
        text = f"{STEPS[aim.step]}, {kind}: {ratio:.2f} of {aim.of}'s seconds"
        text += f", at most {aim.most:.2f} wanted"
        print(f"  {'met' if ratio <= aim.most else 'MISSED'}: {text}")
        if ratio > aim.most:
            missed.append(text)
    return missed


def _setting(given: argparse.Namespace) -> dict[str, Any]:
    return {
        "rows": given.rows,
        "codec": given.codec,
        "bare": given.bare,
        "runs": given.runs,
        "processors": os.cpu_count(),
        "load at the end": os.getloadavg()[0],
        "versions": {name: metadata.version(name) for name in ("pyspark", "pyarrow")},
    }


if __name__ == "__main__":
    sys.exit(main())
