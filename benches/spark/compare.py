"""pyhudi on Spark compared with Apache Hudi and with plain Parquet on the same Spark.

Each engine measures the steps on tables of its own in one session (`job.py`); the sessions take
turns in each round. All engines must give the same answers, or the program ends. Figures are
medians of all measurements, in processor seconds of the whole process tree.

Prints a table and the targets, and adds the figures to build/bench/spark-ROWS.json. Engines and
steps that you do not select keep their figures of an earlier run: measure only what changed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from steps import ENGINES, STEPS, TARGETS, TYPES

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
        """The name that the output and the targets use."""
        return f"{self.engine} local[{self.cores}]"


Measured = tuple[str, dict[str, Any]]
"""A step, with its seconds and answer."""
Figures = dict[str, dict[str, list[dict[str, Any]]]]
"""Measurements by step and session's name, of one type of table."""


def main() -> int:
    """Create the inputs unless they exist; measure, print and judge."""
    arguments = _arguments()
    inputs = _inputs(arguments)
    target = _BUILD / f"spark-{arguments.rows}{'-bare' * arguments.bare}.json"
    figures = _stored(target)
    sessions = [
        Session(engine, cores)
        for cores in arguments.cores
        for engine in arguments.engines
        if cores == arguments.cores[0] or engine == "pyhudi"
    ]
    for number in range(arguments.rounds):
        plain: list[Measured] = []  # the same files for each type of table
        for kind in arguments.types:
            for session in sessions:
                is_plain = session.engine == "parquet"
                measured = (is_plain and plain) or _job(
                    arguments, session, kind, inputs, is_first=number == 0
                )
                plain = measured if is_plain else plain
                figures = _stored(target)  # another engine may be measured at the same time
                _add(figures[kind], session.name, measured, is_first=number == 0)
                target.write_text(
                    json.dumps({"setting": _setting(arguments), "figures": figures}, indent=1)
                )
                _check_answers(kind, figures[kind])
    for kind in arguments.types:
        _print_type(kind, figures[kind])
    missed = [text for kind in arguments.types for text in _judge(kind, figures[kind])]
    print(f"\nall figures are in {os.path.relpath(target)}")
    return 1 if missed and arguments.check else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="of the first commit")
    parser.add_argument("--rounds", type=int, default=1, help="sessions of each engine")
    parser.add_argument("--repeat", type=int, default=3, help="measurements in a session")
    parser.add_argument("--steps", nargs="+", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--codec", default="own", help="of all base files")
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=TYPES)
    parser.add_argument("--bare", action="store_true", help="the simple index, no metadata table")
    parser.add_argument("--cores", type=int, nargs="+", default=[2], choices=[1, 2])
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES)
    parser.add_argument("--new-tables", action="store_true", help="not those of an earlier run")
    parser.add_argument("--check", action="store_true", help="fail unless all targets are met")
    return parser.parse_args()


def _inputs(arguments: argparse.Namespace) -> Path:
    """Return the folder of the inputs, those of `benches/python/writes.py`; created once."""
    folder = _BUILD / f"writes-{arguments.rows}" / "input"
    if not (folder / "expected.json").exists():
        program = [sys.executable, str(_PYTHON / "generate_writes.py"), str(folder)]
        subprocess.run([*program, "--rows", str(arguments.rows)], check=True)
    return folder


def _stored(target: Path) -> dict[str, Figures]:
    """Return the figures of earlier sessions, by type of table."""
    stored = json.loads(target.read_text())["figures"] if target.exists() else {}
    return {kind: stored.get(kind, {}) for kind in TYPES}


def _add(figures: Figures, session: str, measured: list[Measured], *, is_first: bool) -> None:
    """Add a session's figures; those of the first round replace those of earlier runs."""
    for step, _ in measured if is_first else ():
        figures.setdefault(step, {}).pop(session, None)
    for step, seconds in measured:
        figures.setdefault(step, {}).setdefault(session, []).append(seconds)


def _job(
    arguments: argparse.Namespace, session: Session, kind: str, inputs: Path, *, is_first: bool
) -> list[Measured]:
    """Run a session; return what it measured, by step."""
    tables = _tables(arguments, session.engine, kind)
    if arguments.new_tables and is_first:
        shutil.rmtree(tables, ignore_errors=True)
    tables.mkdir(parents=True, exist_ok=True)
    os.sync()
    program = [sys.executable, str(_HERE / "job.py"), session.engine, kind, str(session.cores)]
    program += [str(tables), str(inputs), "--codec", arguments.codec]
    program += ["--repeat", str(arguments.repeat), "--steps", *arguments.steps]
    program += ["--bare"] * arguments.bare
    if session.engine == "hudi":
        # Hudi reads the same files as pyhudi: its own upserts rewrite base files this small.
        program += ["--read", str(_tables(arguments, "pyhudi", kind))]
    path = [str(_HERE.parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))}
    job = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, env=environment)
    assert job.stdout is not None
    measured = []
    for line in job.stdout:
        if not line.startswith("{"):  # Hudi prints on standard output, too
            continue
        seconds = json.loads(line)
        step = seconds.pop("step")
        measured.append((step, seconds))
        text = f"{seconds['processor']:.2f} s of processors, {seconds['elapsed']:.2f} s"
        print(f"{kind} {step}: {session.name}: {text}", flush=True)
    if job.wait() != 0:
        sys.exit(f"{session.name} failed")
    return measured


def _tables(arguments: argparse.Namespace, engine: str, kind: str) -> Path:
    """Return the folder of an engine's tables."""
    type_ = "plain" if engine == "parquet" else kind
    name = f"{engine}-{type_}-{arguments.rows}{'-bare' * arguments.bare}"
    return _BUILD / "spark-tables" / name


def _check_answers(kind: str, figures: Figures) -> None:
    """End the program unless all engines gave the same answers."""
    for step, sessions in figures.items():
        answers = {
            measured["answer"]
            for measurements in sessions.values()
            for measured in measurements
            if measured["answer"] != "None"
        }
        if len(answers) > 1 and not (step == "incremental" and kind == "mor"):
            # An incremental read returns a late row only if its base file was rewritten.
            sys.exit(f"{kind} {step}: the answers differ: {sorted(answers)}")


# --- output ---------------------------------------------------------------------------------------


def _medians(figures: Figures, step: str, unit: str) -> dict[str, float]:
    return {
        name: statistics.median(measured[unit] for measured in measurements)
        for name, measurements in figures.get(step, {}).items()
        if measurements
    }


def _print_type(kind: str, figures: Figures) -> None:
    names = list(dict.fromkeys(name for step in STEPS for name in figures.get(step, {})))
    names.sort(key=lambda name: (name.split()[1] != "local[2]", ENGINES.index(name.split()[0])))
    print(f"\n| {kind}, processor seconds | " + " | ".join(names) + " | first over the others |")
    print("|---|" + "---|" * (len(names) + 1))
    for step, title in STEPS.items():
        medians = _medians(figures, step, "processor")
        cells = [f"{medians[name]:.2f}" if name in medians else "" for name in names]
        first = medians.get(names[0]) if names else None
        ratios = [
            f"{first / medians[name]:.2f}" if first is not None and name in medians else "-"
            for name in names[1:]
        ]
        print(f"| {title} | " + " | ".join([*cells, ", ".join(ratios)]) + " |")


def _judge(kind: str, figures: Figures) -> list[str]:
    """Print each target that can be judged; return those that were missed."""
    print()
    missed = []
    for target in TARGETS:
        medians = _medians(figures, target.step, target.unit)
        ours, other = medians.get("pyhudi local[2]"), medians.get(target.of)
        if target.type != kind or not ours or not other:
            continue
        ratio = ours / other
        text = f"{STEPS[target.step]}, {kind}: {ratio:.2f} of {target.of}'s {target.unit} seconds"
        text += f", target {target.ratio:.2f}"
        print(f"  {'met' if ratio <= target.ratio else 'MISSED'}: {text}")
        if ratio > target.ratio:
            missed.append(text)
    return missed


def _setting(arguments: argparse.Namespace) -> dict[str, Any]:
    return {
        "rows": arguments.rows,
        "codec": arguments.codec,
        "bare": arguments.bare,
        "processors": os.cpu_count(),
        "load at the end": os.getloadavg()[0],
        "versions": {name: metadata.version(name) for name in ("pyspark", "pyarrow")},
    }


if __name__ == "__main__":
    sys.exit(main())
