"""Says what got slower or faster between two commits of pyhudi.

    python benches/python/compare_commits.py BASE [HEAD] [--rows 500000] [--runs 5] [--check]

Optimised wheels of both commits are built, each in a git worktree and into an environment of its
own below build/bench/compare; wheels that were built before are used again. Then a fixed set of
cases runs in turn, each in a process of its own: processor seconds and peak memory, medians of
several rounds. A case is slower if the ratio is above `--threshold` and even the best run of HEAD
is above the median of BASE, so that one noisy run says nothing. Other programs of this directory
say how pyhudi compares with its peers; this one compares pyhudi with itself.

`--base-python` and `--head-python` name interpreters that have pyhudi already; nothing is built
then. The cases are those of this checkout, whatever the commits have.
"""

# ruff: noqa: PLC0415 - each process imports what its case needs

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
import venv
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
from harness import BUILD

if TYPE_CHECKING:
    import pyarrow as pa

_ROOT = Path(__file__).resolve().parents[2]
HERE = BUILD / "compare"
_COMMITS = 30
_LOOKUPS = 50


@dataclass(frozen=True)
class Run:
    """What a case took: processor seconds, and the process's peak memory in bytes."""

    cpu: float
    peak: float


def main() -> int:
    """Builds the wheels, runs the cases, prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("base", nargs="?", default="HEAD~1")
    parser.add_argument("head", nargs="?", default="HEAD")
    parser.add_argument("--rows", type=int, default=500_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=CASES)
    parser.add_argument("--threshold", type=float, default=1.1)
    parser.add_argument("--check", action="store_true", help="fail if a case got slower")
    parser.add_argument("--base-python", help="an interpreter that has pyhudi")
    parser.add_argument("--head-python", help="likewise")
    parser.add_argument("--run", nargs=2, metavar=("CASE", "FOLDER"), help="one, by itself")
    given = parser.parse_args()
    if given.run:
        print(json.dumps(asdict(_measure(given.run[0], Path(given.run[1]), given.rows))))
        return 0
    if not (given.base_python and given.head_python):
        # Another pyhudi must not come before the wheel's.
        os.environ.pop("PYTHONPATH", None)
    sides = {
        "base": given.base_python or str(_environment(given.base)),
        "head": given.head_python or str(_environment(given.head)),
    }
    runs: dict[str, dict[str, list[Run]]] = {}
    for number in range(given.runs):
        for case in given.cases:
            # The order changes with the round: what else the machine does meets both.
            for side in sorted(sides, reverse=number % 2 == 1):
                run = _run(sides[side], case, given.rows)
                runs.setdefault(case, {}).setdefault(side, []).append(run)
            print(".", end="", flush=True)
    slower = _print(runs, given)
    stored = {
        case: {side: [asdict(run) for run in each] for side, each in of_case.items()}
        for case, of_case in runs.items()
    }
    setting = {"base": given.base, "head": given.head, "rows": given.rows}
    target = HERE.with_suffix(".json")
    target.write_text(json.dumps({**setting, "runs": stored}, indent=1) + "\n")
    print(f"all figures are in {os.path.relpath(target)}")
    return 1 if slower and given.check else 0


def _print(runs: dict[str, dict[str, list[Run]]], given: argparse.Namespace) -> list[str]:
    """Prints a line for each case; the cases that got slower or take more memory."""
    print(f"\n{'case':24}{'base s':>9}{'head s':>9}{'ratio':>7}{'memory':>8}")
    slower = []
    for case, sides in runs.items():
        cpu = {side: [run.cpu for run in each] for side, each in sides.items()}
        base, head = (statistics.median(cpu[side]) for side in ("base", "head"))
        peaks = [statistics.median(run.peak for run in sides[side]) for side in ("base", "head")]
        ratio, memory = head / base, peaks[1] / peaks[0]
        word = ""
        if ratio > given.threshold and min(cpu["head"]) > base:
            word = "SLOWER"
        elif ratio < 1 / given.threshold and max(cpu["head"]) < base:
            word = "faster"
        if memory > given.threshold:
            word = f"{word} MORE MEMORY".strip()
        if "SLOWER" in word or "MORE" in word:
            slower.append(case)
        print(f"{case:24}{base:9.3f}{head:9.3f}{ratio:7.2f}{memory:8.2f}  {word}")
    return slower


# --- wheels ---------------------------------------------------------------------------------------


def _environment(revision: str) -> Path:
    """The interpreter of an environment that has the optimised wheel of a commit."""
    commit = _git("rev-parse", "--verify", f"{revision}^{{commit}}")
    folder = HERE.resolve() / commit[:12]
    python = folder / "venv" / "bin" / "python"
    if (folder / "done").exists():
        return python
    print(f"building {revision} ({commit[:12]}) ...", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    source = folder / "source"
    _git("worktree", "prune")
    _git("worktree", "add", "--quiet", "--detach", str(source), commit)
    try:
        # One directory for both: crates of others are compiled once.
        target = HERE.resolve() / "target"
        environment = {**os.environ, "CARGO_TARGET_DIR": str(target)}
        command = [_maturin(), "build", "--release", "--locked", "--quiet"]
        command += ["--interpreter", sys.executable, "--out", str(folder)]
        subprocess.run(command, cwd=source, env=environment, check=True)
    finally:
        _git("worktree", "remove", "--force", str(source))
    venv.create(folder / "venv", system_site_packages=False, with_pip=True)
    (wheel,) = folder.glob("*.whl")
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    locked = _ROOT / "requirements" / "bench.txt"
    subprocess.run([*pip, "--require-hashes", "--requirement", str(locked)], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    (folder / "done").touch()
    return python


def _maturin() -> str:
    """The maturin of the development environment, or the one of the path."""
    own = _ROOT / ".venv" / "bin" / "maturin"
    found = str(own) if own.exists() else shutil.which("maturin")
    if found is None:
        sys.exit("maturin is missing: run `make setup`")
    return found


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        sys.exit(f"git {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout.strip()


# --- a case ---------------------------------------------------------------------------------------


def _run(python: str, case: str, rows: int) -> Run:
    """A case in a process of its own."""
    folder = HERE / "table"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = [python, __file__, "--rows", str(rows), "--run", case, str(folder)]
    done = harness.run(program)
    shutil.rmtree(folder, ignore_errors=True)
    if done.status != 0:
        sys.exit(f"{case} failed with {python}")
    return Run(**json.loads(done.printed.splitlines()[-1]))


def _measure(case: str, folder: Path, count: int) -> Run:
    """Prepares a case, does it once, and compares its answer."""
    work, is_right = CASES[case](folder, count)
    began = time.process_time()
    answer = work()
    cpu = time.process_time() - began
    if not is_right(answer):
        sys.exit(f"{case}: the answer is wrong")
    status = Path("/proc/self/status").read_text().splitlines()
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
    return Run(cpu, peak * 1024)


Case = tuple[Callable[[], Any], Callable[[Any], bool]]
"""The work, and whether its answer is right."""


def _rows(first: int, count: int, seed: int) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    import rows

    ids = pc.add(rows.numbers(count), pa.scalar(first, pa.uint64()))
    return rows.make_rows(ids, pa.repeat(pa.scalar(seed, pa.int64()), count), seed)


def _table(folder: Path, count: int, kind: Any) -> Any:
    import pyhudi

    table = pyhudi.create_table(
        str(folder / "t"), _rows(0, 1, 1).schema, key="id", partition_by="city",
        order_by="ts", type=kind,
    )  # fmt: skip
    table.bulk_insert(_rows(0, count, 1))
    table.head(1)  # The imports of a first read are no part of a case.
    return table


def _bulk(folder: Path, count: int) -> Case:
    import pyhudi

    given = _rows(0, count, 1)
    table = pyhudi.create_table(
        str(folder / "t"), given.schema, key="id", partition_by="city", order_by="ts"
    )
    return lambda: table.bulk_insert(given), lambda _: table.count() == count


def _upsert(kind: str, share: float) -> Callable[[Path, int], Case]:
    def case(folder: Path, count: int) -> Case:
        table, given = _table(folder, count, kind), _rows(0, int(count * share), 2)
        newer = [("ts", "=", 2)]
        return (lambda: table.upsert(given), lambda _: table.count(where=newer) == given.num_rows)

    return case


def _delete(folder: Path, count: int) -> Case:
    table = _table(folder, count, "cow")
    keys = _rows(0, count // 50, 2).select(["id", "city"])
    return lambda: table.delete_keys(keys), lambda _: table.count() == count - keys.num_rows


def _small(kind: str) -> Callable[[Path, int], Case]:
    def case(folder: Path, count: int) -> Case:
        table = _table(folder, count, kind)
        batches = [_rows(100 * number, 100, number + 2) for number in range(_COMMITS)]

        def work() -> None:
            for batch in batches:
                table.upsert(batch)

        newer = [("ts", ">", 1)]
        return work, lambda _: table.count(where=newer) == 100 * _COMMITS

    return case


def _scan(columns: list[str] | None) -> Callable[[Path, int], Case]:
    """Of a merge-on-read table with log files."""

    def case(folder: Path, count: int) -> Case:
        table = _table(folder, count, "mor")
        for number in range(4):
            table.upsert(_rows(0, count // 10, number + 2))

        def work() -> int:
            scan = table.scan(columns=columns)
            return sum(batch.num_rows for batch in scan.to_reader())

        return work, lambda answer: answer == count

    return case


def _lookups(kind: str) -> Callable[[Path, int], Case]:
    def case(folder: Path, count: int) -> Case:
        table = _table(folder, count, kind)
        table.upsert(_rows(0, count // 100, 2))
        keys = _rows(count // 2, _LOOKUPS, 1)["id"].to_pylist()
        table.scan(where=[("id", "in", keys[:1])]).to_arrow()

        def work() -> list[str]:
            scans = (table.scan(where=[("id", "in", [key])]) for key in keys)
            return [key for scan in scans for key in scan.to_arrow()["id"].to_pylist()]

        return work, lambda answer: answer == keys

    return case


def _open(folder: Path, count: int) -> Case:
    import pyhudi

    _table(folder, min(count, 1000), "cow")
    place = str(folder / "t")
    return lambda: [pyhudi.open_table(place).count() for _ in range(20)], lambda _: True


CASES: dict[str, Callable[[Path, int], Case]] = {
    "bulk_insert": _bulk,
    "cow upsert of 1 %": _upsert("cow", 0.01),
    "cow upsert of 20 %": _upsert("cow", 0.2),
    "cow delete of 2 %": _delete,
    "mor upsert of 20 %": _upsert("mor", 0.2),
    f"cow {_COMMITS} small commits": _small("cow"),
    f"mor {_COMMITS} small commits": _small("mor"),
    "mor scan": _scan(None),
    "mor scan of 2 columns": _scan(["fare", "distance"]),
    f"cow {_LOOKUPS} look-ups": _lookups("cow"),
    f"mor {_LOOKUPS} look-ups": _lookups("mor"),
    "open and count, 20 times": _open,
}


if __name__ == "__main__":
    sys.exit(main())
