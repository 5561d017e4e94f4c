"""Measures each aim of speed next to its peer, and writes the table of `benches/README.md`.

    python benches/python/limits.py [--rows 4000000] [--runs 3] [--only bulk small ...]

Every part runs a benchmark of this directory that exists anyway, with `--rows`, and takes medians
of `--runs` runs from what it stores. What is run again with `--only` replaces its lines in the
table, if the number of rows is the same. Aims in seconds are for four million rows on two cores;
those that are ratios to a peer of the same run hold everywhere.
"""

# ruff: noqa: E501 - paragraphs of the page

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import harness
from harness import BUILD
from lookups import YCSB

_HERE = Path(__file__).resolve().parent
_README = _HERE.parent / "README.md"
_STORED = BUILD / "limits.json"
_SCRATCH = BUILD / "limits"
AIM_ROWS = 4_000_000


@dataclass(frozen=True)
class Line:
    """A line of the table."""

    work: str
    unit: str
    ours: float
    aim: float
    peer: str = ""
    value: float | None = None
    """Of the peer."""
    is_ratio: bool = True
    """Whether the aim is a ratio to the peer, not a figure of pyhudi's own."""
    is_rate: bool = False
    """Whether more is better."""

    @property
    def ratio(self) -> float | None:
        """pyhudi's figure over the peer's."""
        return self.ours / self.value if self.value else None

    @property
    def is_met(self) -> bool:
        """Whether the aim is met."""
        held = self.ratio if self.is_ratio and self.ratio is not None else self.ours
        return held >= self.aim if self.is_rate else held <= self.aim


def main() -> int:
    """Measures the parts, stores the lines, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=AIM_ROWS)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--commits", type=int, default=160, help="small ones, on a local disk")
    parser.add_argument("--bucket-commits", type=int, default=50)
    parser.add_argument("--groups", type=int, default=100_000, help="that are planned")
    parser.add_argument("--large", action="store_true", help="plan a million: half an hour more")
    parser.add_argument("--seconds", type=float, default=10, help="of many callers")
    parser.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS)
    parser.add_argument("--note", default="", help="for the table: what else the machine did")
    parser.add_argument("--readme", type=Path, default=_README)
    parser.add_argument("--check", action="store_true", help="fail unless all aims are met")
    parser.add_argument("--probe", choices=_PROBES, help="one measurement, by itself")
    given = parser.parse_args()
    if given.large:
        given.groups = 1_000_000
    if given.probe:
        print(json.dumps(_PROBES[given.probe](given)))
        return 0
    harness.warn_of_slow_build()
    stored = json.loads(_STORED.read_text()) if _STORED.exists() else {}
    parts = stored.get("parts", {}) if stored.get("rows") == given.rows else {}
    for name in given.only:
        print(f"== {name}", flush=True)
        lines = PARTS[name](given)
        for line in lines:
            print(f"  {'met' if line.is_met else 'MISSED'}: {line.work}: {line.ours:.3g}")
        parts[name] = [asdict(line) for line in lines]
        result = {"rows": given.rows, "runs": given.runs, "note": given.note, "parts": parts}
        _STORED.write_text(json.dumps(result, indent=1) + "\n")
    lines = [Line(**each) for name in PARTS for each in parts.get(name, [])]
    given.readme.write_text(_page(given, lines))
    return 1 if given.check and not all(line.is_met for line in lines) else 0


# --- the parts ------------------------------------------------------------------------------------


def _run(program: str, *arguments: object) -> None:
    """A benchmark of this directory, to its end."""
    done = harness.run([sys.executable, str(_HERE / program), *map(str, arguments)])
    print(done.printed, end="", flush=True)
    if done.status != 0:
        sys.exit(f"{program} failed")


def _stored(name: str) -> Any:
    return json.loads((BUILD / f"{name}.json").read_text())


def _repeat(given: argparse.Namespace, work: Callable[[], Sequence[float]]) -> list[float]:
    """Medians of each figure of some runs."""
    runs = [work() for _ in range(given.runs)]
    return [statistics.median(each) for each in zip(*runs, strict=True)]


def _probe(given: argparse.Namespace, name: str) -> list[float]:
    program = [sys.executable, __file__, "--probe", name, "--rows", str(given.rows)]
    program += ["--commits", str(given.commits), "--seconds", str(given.seconds)]
    done = harness.run(program)
    if done.status != 0:
        sys.exit(f"the probe {name} failed")
    return [float(value) for value in json.loads(done.printed.splitlines()[-1])]


def _bulk(given: argparse.Namespace) -> list[Line]:
    """Writes of all sizes."""
    _run(
        "writes.py", "--rows", given.rows, "--runs", given.runs,
        "--writers", "plain", "deltalake", "pyhudi",
    )  # fmt: skip
    steps = _stored("writes")["steps"]

    def line(work: str, step: str, ours: str, peer: str, aim: float) -> Line:
        figures = steps[step]
        return Line(work, "s", figures[f"pyhudi {ours}"]["used"], aim, peer, figures[peer]["used"])

    return [
        line("bulk_insert", "bulk", "cow", "deltalake", 1.0),
        line("copy-on-write upsert of 1 %", "u1", "cow", "plain", 1.5),
        line("copy-on-write upsert of 20 %", "u20", "cow", "plain", 2.5),
        line("copy-on-write delete of 2 %", "d2", "cow", "plain", 4 / 3),
        line("the same upsert of 1 %", "u1", "cow", "deltalake", 4.5 / 7.4),
        line("the same upsert of 20 %", "u20", "cow", "deltalake", 0.5),
        line("the same delete of 2 %", "d2", "cow", "deltalake", 4 / 6.6),
        line("merge-on-read upsert of 1 %", "u1", "mor", "deltalake", 0.6 / 7.4),
        line("merge-on-read upsert of 20 %", "u20", "mor", "deltalake", 4 / 15),
        line("merge-on-read delete of 2 %", "d2", "mor", "deltalake", 0.6 / 6.6),
    ]


def _small(given: argparse.Namespace) -> list[Line]:
    """Small commits on a local disk."""

    def ours() -> list[float]:
        _run("small_commits.py", "--rows", given.rows, "--commits", given.commits)
        median, longest = _stored("small-commits")["processor seconds"]
        return [median, longest]

    median, longest = _repeat(given, ours)
    peer = _repeat(given, lambda: _probe(given, "append"))
    name = "deltalake, append"
    return [
        Line("100 rows, local: median", "s", median, 0.05, name, peer[0], is_ratio=False),
        Line("100 rows, local: longest", "s", longest, 0.3, name, peer[1], is_ratio=False),
    ]


def _bucket(given: argparse.Namespace) -> list[Line]:
    """Small commits in a bucket with 30 ms a call."""

    def ours() -> list[float]:
        rows = min(given.rows, 1_000_000)
        _run("latency.py", "--rows", rows, "--commits", given.bucket_commits)
        found = _stored("latency")
        return [
            found[part][name] for part in ("first", "last") for name in ("calls", "waits", "far")
        ]

    medians = _repeat(given, ours)
    first, last = medians[:3], medians[3:]
    aims = (("calls", "", 40.0), ("calls in turn", "", 12.0), ("elapsed", "s", 0.45))
    return [
        Line(
            f"100 rows, in a bucket, {name}, {which} ten commits", unit, value, aim, is_ratio=False
        )
        for which, values in (("first", first), ("last", last))
        for (name, unit, aim), value in zip(aims, values, strict=True)
    ]


def _callers(given: argparse.Namespace) -> list[Line]:
    """Many callers of one process."""

    def ours() -> list[float]:
        rows = min(given.rows, 1_000_000)
        _run("group_commits.py", "--rows", rows, "--seconds", given.seconds, "--callers", 32)
        return [_stored("group_commits")["group-32"]["batches"]]

    group = _repeat(given, ours)[0]
    peer = _repeat(given, lambda: _probe(given, "callers"))[0]
    return [
        Line(
            "32 callers, group writer", "batches/s", group, 100.0, "deltalake, append", peer,
            is_ratio=False, is_rate=True,
        )
    ]  # fmt: skip


def _lookups(given: argparse.Namespace) -> list[Line]:
    """One key on an open handle."""
    _run("lookups.py", "--rows", given.rows, "--runs", 2 * given.runs + 1)
    found = {(each["table"], each["reader"], each["case"]): each for each in _stored("lookups")}
    peer = _repeat(given, lambda: _probe(given, "key"))[0]
    lines = []
    for kind, title in (("mor", "merge-on-read"), ("cow", "copy-on-write")):
        for case, aim in (
            ("one key", 10.0),
            ("get: one key", 10.0),
            ("get: 100 keys from all over", 40.0),
        ):
            if (kind, "pyhudi", case) in found:
                ours = found[kind, "pyhudi", case]["cpu"] * 1000
                text = f"{case}, open handle, {title}"
                # The peer looks one key up.
                of_peer = ("deltalake, QueryBuilder", peer * 1000) if aim == 10.0 else ("", None)
                lines.append(Line(text, "ms", ours, aim, *of_peer, is_ratio=False))
        rate, label = found[kind, "pyhudi", YCSB]["a second"], f"YCSB C, 8 threads, {title}"
        lines.append(
            Line(
                label, "/s", rate, 10_000, "deltalake, QueryBuilder", 1 / peer,
                is_ratio=False, is_rate=True,
            )
        )  # fmt: skip
    return lines


def _reads(given: argparse.Namespace) -> list[Line]:
    """Snapshots of merge-on-read tables, and what a scan holds in memory."""
    _run("reads.py", "--rows", given.rows, "--runs", given.runs, "--cases", "a", "b", "c", "d")
    cases = _stored("reads")["cases"]
    lines = []
    titles = {"b": "snapshot, logs twice the base", "c": "two columns of twelve under merge"}
    for case, title in titles.items():
        ours, peer = (cases[case][name]["cpu"] for name in ("pyhudi", "parquet"))
        lines.append(Line(title, "s", ours, 1.2, "plain Parquet", peer))
    for case, readers in cases.items():
        ours, peer = (readers[name]["peak"] / 2**20 for name in ("pyhudi", "hudi"))
        lines.append(
            Line(f"peak memory of a scan, case {case}", "MiB", ours, 0.5, "PyPI hudi", peer)
        )
    return lines


def _planning(given: argparse.Namespace) -> list[Line]:
    """A scan and a health report of very many file groups."""
    wanted = ("plan all", "health")

    def ours() -> list[float]:
        _run("scale.py", "--axes", "groups", "--most", given.groups, "--verbs", *wanted)
        of_size = [each for each in _stored("scale") if each["axis"] == "groups"]
        size = max(each["size"] for each in of_size if each["size"] <= given.groups)
        by_verb = {each["verb"]: each for each in of_size if each["size"] == size}
        plan, health = (by_verb[verb] for verb in wanted)
        return [plan["cpu"], plan["peak_mib"], health["cpu"]]

    seconds, memory, health = _repeat(given, ours)
    title = f"{given.groups:,} file groups"
    return [
        Line(f"plan {title}", "s", seconds, 5.0, is_ratio=False),
        Line(f"plan {title}: memory", "MiB", memory, 300.0, is_ratio=False),
        Line(f"health of {title}", "s", health, 8.0, is_ratio=False),
    ]


def _start(given: argparse.Namespace) -> list[Line]:
    """The import, and a command."""
    table = _SCRATCH / "show"
    shutil.rmtree(_SCRATCH, ignore_errors=True)
    code = (
        "import pyarrow as pa, pyhudi\n"
        f"pyhudi.create_table({str(table)!r}, pa.table({{'id': ['a'], 'v': [1]}}), key='id')"
    )
    harness.run([sys.executable, "-c", code])
    # As installed by pip: modules are compiled once, in the first run.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    commands = (["-c", "pass"], ["-c", "import pyhudi"], ["-m", "pyhudi.cli", "show", str(table)])

    def ours() -> list[float]:
        """Of several runs each: one is short."""
        runs = [[harness.run([sys.executable, *each]) for _ in range(8)][1:] for each in commands]
        if any(done.status for done in runs[2]):
            sys.exit("pyhudi show failed")
        return [statistics.median(done.cpu for done in each) for each in runs]

    python, imported, show = _repeat(given, ours)
    shutil.rmtree(_SCRATCH, ignore_errors=True)
    return [
        Line("import pyhudi", "s", imported, 0.025, "python", python, is_ratio=False),
        Line("pyhudi show", "s", show, 0.2, "python", python, is_ratio=False),
    ]


PARTS = {
    "bulk": _bulk,
    "small": _small,
    "bucket": _bucket,
    "callers": _callers,
    "lookups": _lookups,
    "reads": _reads,
    "planning": _planning,
    "start": _start,
}


# --- peers, each in a process of its own ----------------------------------------------------------


def _append(given: argparse.Namespace) -> list[float]:
    """Median and longest processor seconds of appends of 100 rows by deltalake."""
    from deltalake import DeltaTable, write_deltalake  # noqa: PLC0415 - only where it is measured
    from small_commits import rows  # noqa: PLC0415 - likewise

    place = _SCRATCH / "append"
    shutil.rmtree(place, ignore_errors=True)
    write_deltalake(place, rows(range(given.rows), 0), partition_by=["city"])
    table, took = DeltaTable(place), []
    for commit in range(1, given.commits + 1):
        batch = rows(range(given.rows + 100 * commit, given.rows + 100 * commit + 100), commit)
        began = time.process_time()
        write_deltalake(table, batch, mode="append")
        took.append(time.process_time() - began)
    shutil.rmtree(place)
    return [statistics.median(took), max(took)]


def _append_together(given: argparse.Namespace) -> list[float]:
    """Appends a second of 32 threads by deltalake."""
    from deltalake import write_deltalake  # noqa: PLC0415 - only where it is measured
    from deltalake.exceptions import CommitFailedError  # noqa: PLC0415 - likewise
    from group_commits import ROWS, rows  # noqa: PLC0415 - likewise

    place = _SCRATCH / "callers"
    shutil.rmtree(place, ignore_errors=True)
    write_deltalake(place, rows(["k"], 0), partition_by=["city"])
    done = [0] * 32

    def call(caller: int) -> None:
        until = time.perf_counter() + given.seconds
        while time.perf_counter() < until:
            batch = rows([f"{caller}-{done[caller]}-{each}" for each in range(ROWS)], 1)
            try:
                write_deltalake(place, batch, mode="append")
            except CommitFailedError:
                continue
            done[caller] += 1

    callers = [threading.Thread(target=call, args=(each,)) for each in range(len(done))]
    began = time.perf_counter()
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    shutil.rmtree(place)
    return [sum(done) / (time.perf_counter() - began)]


def _key(given: argparse.Namespace) -> list[float]:
    """Median processor seconds in which deltalake finds one key of the table of `lookups.py`."""
    import pyarrow as pa  # noqa: PLC0415 - only where it is measured
    import rows  # noqa: PLC0415 - likewise
    from deltalake import DeltaTable, QueryBuilder  # noqa: PLC0415 - likewise

    query = QueryBuilder().register("t", DeltaTable(BUILD / f"lookups-{given.rows}" / "delta"))
    took = []
    for run in range(8):
        (key,) = rows.keys(pa.array([(run * 7919 + 13) % given.rows], pa.uint64())).to_pylist()
        began = time.process_time()
        answer = query.execute(f"select * from t where id = '{key}'")
        found = pa.Table.from_batches(pa.RecordBatchReader.from_stream(answer))
        took.append(time.process_time() - began)
        if found["id"].to_pylist() != [key]:
            sys.exit("deltalake: the answer is wrong")
    return [statistics.median(took[1:])]


_PROBES: dict[str, Callable[[argparse.Namespace], list[float]]] = {
    "append": _append,
    "callers": _append_together,
    "key": _key,
}


# --- the table ------------------------------------------------------------------------------------


def _page(given: argparse.Namespace, lines: Sequence[Line]) -> str:
    head = ["work", "pyhudi", "peer", "ratio", "aim", ""]
    rows = [
        [
            line.work,
            _text(line.ours, line.unit),
            f"{_text(line.value, line.unit)} ({line.peer})" if line.value is not None else "",
            f"{line.ratio:.2f}" if line.ratio is not None else "",
            _aim(line),
            "met" if line.is_met else "missed",
        ]
        for line in lines
    ]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
    size = "" if given.rows == AIM_ROWS else f" Aims in seconds are for {AIM_ROWS:,} rows."
    note = f" {given.note}" if given.note else ""
    return f"""# Benchmarks

`make bench-limits` measures each aim of speed next to its peer, and writes this table. [python/README.md](python/README.md) explains the
benchmarks of reads, writes and lookups, [spark/README.md](spark/README.md) those on Spark. `make bench-suites` runs public suites
([results](../docs/explanation/benchmarks.md)); `make bench-compare BASE=...` says what a change made slower.

{given.rows:,} rows, {os.cpu_count()} processors, medians of {given.runs}. Seconds are processor seconds unless the line says "elapsed".{size}{note}
"Plain" writes files with pyarrow and ignores keys: the minimum that any writer does.

{table}
"""


def _text(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    number = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{number} {unit}".strip()


def _aim(line: Line) -> str:
    sign = "≥" if line.is_rate else "≤"
    if line.is_ratio:
        return f"{sign} {line.aim:.2g} x"
    return f"{sign} {_text(line.aim, line.unit)}"


if __name__ == "__main__":
    sys.exit(main())
