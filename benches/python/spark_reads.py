"""Apache Hudi on Spark for the read benchmark: the tests' oracle, where `make oracle` set it up.

One JVM for all cases, started and warmed up before anything is timed; a figure is the seconds of
one statement that reads every wanted column of every row. Memory is not compared: a JVM takes what
it is given.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from cases import CASES, Case

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.helpers.oracle.client import HudiOracle, available  # noqa: E402 - needs the path

RELEASE = "1.2.0"


def is_available() -> bool:
    """Whether there is an Apache Hudi to ask."""
    return available(RELEASE)


def run(
    found: Iterable[str], table: Callable[[str], Path | None], runs: int
) -> dict[str, list[float]]:
    """Prints the seconds of each snapshot case in `found`, and gives them back."""
    if not is_available():
        print("\nSpark: left out: no Apache Hudi here; run `make oracle`")
        return {}
    seconds: dict[str, list[float]] = {}
    with HudiOracle(RELEASE, memory="6g") as hudi:
        for name in found:
            folder = table(CASES[name].table)
            if folder is None or CASES[name].incremental or CASES[name].keys:
                continue
            statement = _statement(CASES[name])
            seconds[name] = []
            for number in range(runs + 1):
                start = time.perf_counter()
                answer: dict[str, Any] = hudi.sql((folder / "table").resolve(), statement)
                if number:
                    seconds[name].append(time.perf_counter() - start)
            rows = answer["rows"][0]["rows"]
            median = statistics.median(seconds[name])
            print(f"\n{name}: Hudi {RELEASE} on Spark: {rows} rows in {median:.2f} s", flush=True)
    return seconds


def _statement(case: Case) -> str:
    """Reads every column without giving out rows: the digest needs them all."""
    columns = case.columns or ("*",)
    tests = " and ".join(f"{name} {test} {value!r}" for name, test, value in case.where)
    where = f" where {tests}" if tests else ""
    digest = f"sum(cast(xxhash64({', '.join(columns)}) as decimal(38)))"
    return f"select count(*) as rows, {digest} as digest from {{table}}{where}"
