"""Writes tables with pyhudi and other writers, and prints what each took beside the others.

Each commit is a process of its own; the writers take turns at every step, and each step goes on
from the table that the step before left. Figures are medians of several rounds: the seconds from
the input file to the commit (imports and the start of an interpreter or a JVM excluded), the
process's wall time, processor time and peak memory, and the bytes of the files it wrote. In the
first round the rows of every table are compared with what must stand after each step, so that no
writer is fast by being wrong.

Prints ratios, and writes all figures to build/bench/writes.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import harness
import spark_writes
from harness import BUILD
from write_cases import AIMS, STEPS, TYPES, WRITERS

_HERE = Path(__file__).resolve().parent
_HUDI_RS = _HERE.parent / "hudi_rs"
_CODECS = ("own", "snappy", "zstd", "gzip", "uncompressed")


@dataclass(frozen=True)
class Run:
    """One commit. Seconds, and bytes."""

    seconds: float
    """From the input file to the commit."""
    wall: float
    """Of the process."""
    cpu: float
    peak: float
    written: float
    used: float
    """Processor seconds from the input file to the commit."""


@dataclass(frozen=True)
class Contender:
    """A writer with a kind of table."""

    writer: str
    type: str

    @property
    def name(self) -> str:
        """Of its folder, and in what is printed."""
        return self.writer if WRITERS[self.writer] == ("cow",) else f"{self.writer} {self.type}"


Found = dict[str, dict[str, Run]]
"""Medians by step and contender's name."""


_WRITERS = ["plain", "deltalake", "pyhudi", "pyhudi-bare", "hudi-rs"]


def main() -> int:
    """Makes the inputs unless they are there, writes, checks and measures."""
    given = _arguments()
    harness.warn_of_slow_build()
    inputs = _inputs(given)
    runs: dict[str, dict[str, list[Run]]] = {step: {} for step in given.steps}
    for number in range(given.runs):
        for step, contender, run in _round(given, inputs, check=number == 0):
            runs[step].setdefault(contender.name, []).append(run)
    if given.spark:
        _add_spark(given, inputs, runs)
    found = {
        step: {name: harness.median(some) for name, some in of_step.items()}
        for step, of_step in runs.items()
    }
    for step in given.steps:
        _print_step(step, found[step])
    missed = _judge(found)
    setting = harness.setting(given, ("pyarrow", "deltalake"), options=given.option)
    target = BUILD / "writes.json"
    steps = {
        step: {name: asdict(run) for name, run in of_step.items()}
        for step, of_step in found.items()
    }
    target.write_text(json.dumps({"setting": setting, "steps": steps}, indent=2) + "\n")
    print(f"\nall figures are in {os.path.relpath(target)}")
    return 1 if missed and given.check else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000, help="of the first commit")
    parser.add_argument("--runs", type=int, default=3, help="rounds")
    parser.add_argument("--codec", default="own", choices=_CODECS, help="of all writers' files")
    parser.add_argument("--writers", nargs="+", default=_WRITERS)
    parser.add_argument("--types", nargs="+", default=list(TYPES), choices=TYPES)
    parser.add_argument("--steps", type=int, default=len(STEPS), help="only the first ones")
    parser.add_argument("--option", action="append", default=[], help="of pyhudi and Spark: k=v")
    parser.add_argument("--check", action="store_true", help="fail unless all aims are met")
    parser.add_argument("--spark", action="store_true", help="Apache Hudi on Spark too")
    given = parser.parse_args()
    given.steps = list(STEPS)[: given.steps]
    if "hudi-rs" in given.writers and _hudi_rs() is None:
        print("hudi-rs: left out: build it as the README says")
        given.writers.remove("hudi-rs")
    return given


def _hudi_rs() -> Path | None:
    """The program, where it was built."""
    target = Path(os.environ.get("BENCH_HUDI_RS_TARGET", _HUDI_RS / "target"))
    program = target / "release" / "bench-hudi-rs"
    return program if program.exists() else None


def _inputs(given: argparse.Namespace) -> Path:
    """The folder of the inputs; made once, in a process of its own."""
    folder = BUILD / f"writes-{given.rows}" / "input"
    if not (folder / "expected.json").exists():
        print(f"making the inputs in {os.path.relpath(folder)} ...", flush=True)
        program = [sys.executable, str(_HERE / "generate_writes.py"), str(folder)]
        subprocess.run([*program, "--rows", str(given.rows)], check=True)
    return folder


# --- measuring ------------------------------------------------------------------------------------


def _round(
    given: argparse.Namespace, inputs: Path, *, check: bool
) -> Iterator[tuple[str, Contender, Run]]:
    """Every step by every contender, from no table on."""
    contenders = [
        Contender(writer, kind)
        for writer in given.writers
        for kind in WRITERS[writer]
        if kind in given.types or WRITERS[writer] == ("cow",)
    ]
    tables = inputs.with_name("tables")
    shutil.rmtree(tables, ignore_errors=True)
    for step in given.steps:
        for contender in contenders:
            table = tables / contender.name.replace(" ", "-")
            # What one left to be written to the disk is not the next one's to wait for.
            os.sync()
            yield step, contender, _write(given, contender, step, table, inputs)
            if check:
                _check(contender, step, table, inputs)
    shutil.rmtree(tables, ignore_errors=True)


def _write(
    given: argparse.Namespace, contender: Contender, step: str, table: Path, inputs: Path
) -> Run:
    before = _files(table)
    done = harness.run(_command(given, contender, step, table, inputs))
    if done.status != 0:
        sys.exit(f"{contender.name} failed in step {step}")
    answer = json.loads(done.printed.splitlines()[-1])
    written = written_since(before, table)
    used = answer.get("used", float("nan"))
    return Run(answer["seconds"], done.wall, done.cpu, answer["peak"], written, used)


def _command(
    given: argparse.Namespace, contender: Contender, step: str, table: Path, inputs: Path
) -> list[str]:
    if contender.writer == "hudi-rs":
        source = str(inputs / f"{step}.parquet")
        named = () if given.codec == "own" else (given.codec,)
        return [str(_hudi_rs()), contender.type, STEPS[step].verb, str(table), source, *named]
    codec = () if given.codec == "own" else ("--codec", given.codec)
    options = [part for option in given.option for part in ("--option", option)]
    return [*_program(contender, step, table, inputs), *codec, *options]


def _program(contender: Contender, step: str, table: Path, inputs: Path) -> list[str]:
    program = [sys.executable, str(_HERE / "writers.py"), contender.writer, contender.type]
    return [*program, step, str(table), str(inputs)]


def _files(table: Path) -> dict[Path, tuple[int, int]]:
    """Size and time of change of every file."""
    found = {}
    for path in table.rglob("*"):
        if path.is_file():
            status = path.stat()
            found[path] = (status.st_size, status.st_mtime_ns)
    return found


def written_since(before: dict[Path, tuple[int, int]], table: Path) -> int:
    """Bytes of the files that are new or changed."""
    return sum(at[0] for path, at in _files(table).items() if before.get(path) != at)


def _check(contender: Contender, step: str, table: Path, inputs: Path) -> None:
    """Ends the program unless the table has the rows that it must have."""
    # What reads and rewrites without looking at rows leaves those of the first step.
    after = next(iter(STEPS)) if contender.writer == "plain" else step
    right = json.loads((inputs / "expected.json").read_text())[after]
    program = [*_program(contender, step, table, inputs), "--check"]
    printed = subprocess.run(program, check=True, capture_output=True, text=True).stdout
    found = json.loads(printed)
    wrong = [name for name in right if found.get(name) != right[name]]
    if wrong:
        sys.exit(f"{contender.name} left wrong rows after step {step}: see {', '.join(wrong)}")


def _add_spark(
    given: argparse.Namespace, inputs: Path, runs: dict[str, dict[str, list[Run]]]
) -> None:
    for kind in given.types:
        contender = Contender("spark", kind)
        table = inputs.with_name("tables") / contender.name.replace(" ", "-")
        for step, seconds in spark_writes.run(given, kind, table, inputs, _check_spark(inputs)):
            nothing = float("nan")
            run = Run(seconds, nothing, nothing, nothing, nothing, nothing)
            runs[step].setdefault(contender.name, []).append(run)


def _check_spark(inputs: Path) -> Any:
    return lambda kind, step, table: _check(Contender("spark", kind), step, table, inputs)


# --- output ---------------------------------------------------------------------------------------


def _print_step(step: str, found: dict[str, Run]) -> None:
    print(f"\n{step}: {STEPS[step].title}")
    print(
        f"{'':16}{'write s':>8}{'wall s':>8}{'cpu s':>8}{'peak MiB':>10}{'written MiB':>13}", end=""
    )
    print("   over it: pyhudi cow, mor")
    for name, run in found.items():
        ours = [found.get(f"pyhudi {kind}") for kind in TYPES]
        ratios = "".join(f"{one.seconds / run.seconds:10.2f}" if one else "" for one in ours)
        print(
            f"{name:16}{run.seconds:8.2f}{run.wall:8.2f}{run.cpu:8.2f}{run.peak / 2**20:10.0f}"
            f"{run.written / 2**20:13.1f}{ratios:>26}",
            flush=True,
        )


def _judge(found: Found) -> list[str]:
    """Prints each aim that can be judged; those that were missed."""
    print()
    missed: list[str] = []
    for aim in AIMS:
        of_step = found.get(aim.step, {})
        other = of_step.get(aim.of) or of_step.get(f"{aim.of} {aim.type}")
        ours = of_step.get(f"pyhudi {aim.type}")
        if ours is None or other is None:
            continue
        ratio = ours.seconds / other.seconds
        text = f"{STEPS[aim.step].title}, {aim.type}: {ratio:.2f} of {aim.of}'s seconds"
        missed += harness.judge(text, ratio, aim.most)
    return missed


if __name__ == "__main__":
    sys.exit(main())
