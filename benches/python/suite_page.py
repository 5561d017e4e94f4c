"""Makes the page of the suites and its pictures from the raw figures that `suites.py` kept.

    python benches/python/suite_page.py [--size small] [--docs docs/explanation]

Every figure of the page is a median of all runs; processor seconds unless it says otherwise.
"""

# ruff: noqa: E501 - paragraphs of the page

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import charts
from suite_cases import MERGES, WORKLOADS
from suite_systems import is_spark
from suites import HERE, SIZES, SUITES

_ROOT = Path(__file__).resolve().parents[2]
PRICES = {"put": 5.0, "list": 5.0, "get": 0.4, "delete": 0.0}
"""US dollars for a million requests: list prices of S3 Standard, us-east-1."""

Suite = dict[str, Any]
Table = dict[str, dict[str, float]]
"""Values by row and system."""


def main() -> None:
    """Writes the page and the pictures of the suites that have figures."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--size", default="small", choices=SIZES)
    parser.add_argument("--docs", type=Path, default=_ROOT / "docs" / "explanation")
    given = parser.parse_args()
    suites = {}
    for name in SUITES:
        path = HERE / given.size / f"{name}.json"
        if path.exists():
            suites[name] = json.loads(path.read_text())
    parts = [_head(suites)]
    for name, suite in suites.items():
        text, picture = _SECTIONS[name](suite)
        (given.docs / f"benchmarks-{name}.svg").write_text(picture)
        parts.append(text)
    (given.docs / "benchmarks.md").write_text("\n".join([*parts, _TAIL]))


# --- figures --------------------------------------------------------------------------------------


def _systems(suite: Suite) -> list[str]:
    """The systems that ran, in the suite's order."""
    ran = {run["system"] for run in suite["runs"]}
    return [name for name in SUITES[suite["suite"]] if name in ran]


def _medians(suite: Suite, of: Callable[[dict[str, Any]], float]) -> dict[str, float]:
    """Of each system, the median over its runs of a value of a run."""
    return {
        name: statistics.median(of(run) for run in suite["runs"] if run["system"] == name)
        for name in _systems(suite)
    }


def _lines(run: Mapping[str, Any], case: str) -> list[dict[str, Any]]:
    return [line for line in run["lines"] if line["case"] == case]


def _of_case(suite: Suite, case: str, figure: str = "cpu") -> dict[str, float]:
    """Of each system, the median of a case."""
    return _medians(
        suite, lambda run: statistics.median(line[figure] for line in _lines(run, case))
    )


def _rate(values: Sequence[float]) -> float:
    """lst-bench's degradation rate: the mean relative change from one round to the next."""
    return statistics.mean((after - before) / before for before, after in pairwise(values))


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _table(values: Table, systems: Sequence[str], first: str) -> str:
    rows = ([row, *(_number(by.get(name)) for name in systems)] for row, by in values.items())
    return _markdown([first, *systems], rows)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _ratio(values: Mapping[str, float], ours: str, other: str) -> str:
    if ours not in values or other not in values or not values[other]:
        return "?"
    return f"{values[ours] / values[other]:.2g}"


# --- the page -------------------------------------------------------------------------------------


def _head(suites: Mapping[str, Suite]) -> str:
    some = next(iter(suites.values()))
    versions = ", ".join(f"{name} {version}" for name, version in some["versions"].items())
    rounds = sorted({suite["rounds"] for suite in suites.values()})
    loads = [suite["load"] for suite in suites.values()]
    notes = "".join(dict.fromkeys(f" {each['note']}" for each in suites.values() if each["note"]))
    sizes = ", ".join(sorted({suite["size"] for suite in suites.values()}))
    peers, spark = "deltalake and pyiceberg", ""
    if any(is_spark(run["system"]) for suite in suites.values() for run in suite["runs"]):
        peers, spark = "deltalake, pyiceberg and Apache Hudi on Spark", _SPARK
        versions += ", Apache Hudi 1.2.0"
    runs = " to ".join(map(str, dict.fromkeys((rounds[0], rounds[-1]))))
    runs = f"medians of {runs} runs" if rounds[-1] > 1 else "of one run"
    return f"""# Benchmarks: suites of the field

This page compares pyhudi with {peers} in five public suites, run small on one machine. You can repeat it:

```sh
make bench-suites BENCH_SIZE=small BENCH_ARGS="--runs 3"
```

## Caveats

- **The authors of pyhudi chose the sizes, wrote the programs and ran them.** They follow the ideas of the suites, not their code: rows come from a generator, not from TPC's.
- **The machine is small** ({some["processors"]} processors, a local disk), and so is the data (size `{sizes}`): everything is in the page cache. Clusters and cloud storage behave differently.
- Figures are **processor seconds**, {runs}, because other work ran on the machine (load {min(loads):.1f} to {max(loads):.1f}); elapsed times are in the raw figures only.{notes}
- Every system has its **defaults**. pyhudi's defaults include a metadata table with a record index, cleaning, archiving and compaction; deltalake and pyiceberg leave maintenance to you. `deltalake compacted` compacts and vacuums each round.
- **Guarantees differ.** pyhudi checks keys and orders rows of one key. deltalake and pyiceberg append without checking keys.
{spark}- pyiceberg has a catalog in SQLite. deltalake reads with its own engine, DataFusion.
- All answers were compared with computed ones. A wrong answer ends a run, and none did.

Versions: {versions}.
"""


_SPARK = """- Apache Hudi runs in one warm JVM (`local[2]`). It does fewer operations of the stream and of YCSB; its figures are per operation. Spark adds up its own answers, and pyarrow those of the others.
"""
_TAIL = """## Raw figures

`make bench-suites` keeps every run in `build/bench/suites/SIZE`, and `benches/python/suite_page.py` makes this page from them. `BENCH_SIZE=sf1` runs TPC-H's scale factor 1 and 30,000 streamed commits;
it takes hours. The programs are in `benches/python`: `suites.py`, `suite_cases.py`, `suite_systems.py` and `suite_rows.py`.
"""


def _lhbench(suite: Suite) -> tuple[str, str]:
    sizes, systems = suite["sizes"], _systems(suite)
    files = sizes["files"]
    cases = {
        "load": "load",
        "Q1, Q6 after the load": "Q1 after the load,Q6 after the load",
        "insert 0.1 %": "insert",
        "delete 0.1 %": "delete",
        "Q1, Q6 after refreshes": "Q1 after the refreshes,Q6 after the refreshes",
        **{f"merge {title}": f"merge {title}" for title in MERGES},
        "Q1, Q6 after merges": "Q1 after the merges,Q6 after the merges",
        f"write {files} files": f"write {files} files",
        f"read all of {files} files": f"read all of {files} files",
        f"read one of {files} files": f"read one of {files} files",
    }
    values: Table = {}
    for title, names in cases.items():
        each = [_of_case(suite, name) for name in names.split(",")]
        values[title] = {name: sum(one[name] for one in each) for name in systems}
    smallest = values[f"merge {next(iter(MERGES))}"]
    picture = charts.bars("LHBench", values, "processor seconds, less is better")
    return (
        f"""## LHBench: load, refresh, micro-merges, many files

{sizes["rows"]:,} line items are loaded and queried (Q1 and Q6 of TPC-H), then refreshed {sizes["refreshes"]} times (0.1 % new rows, 0.1 % deleted). Merges change a small share of the rows: half of
them exist, half are new. The last table has {files:,} partitions with one file each.

![Processor seconds of each step of LHBench](benchmarks-lhbench.svg)

{_table(values, systems, "processor seconds")}

A micro-merge of {next(iter(MERGES))} takes {_ratio(smallest, "pyhudi mor", "deltalake")} of deltalake's processor seconds on a merge-on-read table, and {_ratio(smallest, "pyhudi cow", "deltalake")} on a copy-on-write
table, which rewrites the file as deltalake and pyiceberg do. A load takes {_ratio(values["load"], "pyhudi cow", "deltalake")} of deltalake's: it includes the record index.
""",
        picture,
    )


def _longevity(suite: Suite) -> tuple[str, str]:
    sizes, systems = suite["sizes"], _systems(suite)
    rounds = range(sizes["rounds"])

    def queries(run: Mapping[str, Any]) -> list[float]:
        each = [_lines(run, name) for name in ("Q1", "Q6")]
        return [sum(lines[at]["cpu"] for lines in each) for at in rounds]

    def writes(run: Mapping[str, Any]) -> float:
        names = ("insert", "delete", "merge", "end of the round")
        return sum(line["cpu"] for name in names for line in _lines(run, name)) / len(rounds)

    by_round = {
        name: [
            statistics.median(queries(run)[at] for run in suite["runs"] if run["system"] == name)
            for at in rounds
        ]
        for name in systems
    }
    written = _medians(suite, writes)
    files, size = (_medians(suite, lambda run, key=key: run[key]) for key in ("files", "bytes"))
    rows = (
        [
            name,
            f"{_rate(by_round[name]):+.1%}",
            _number(by_round[name][0]),
            _number(by_round[name][-1]),
            _number(written[name]),
            _number(files[name]),
            _number(size[name] / 1e6),
        ]
        for name in systems
    )
    head = ["system", "degradation rate", "queries, first round", "last round", "writes of a round"]
    points = {name: list(enumerate(values)) for name, values in by_round.items()}
    picture = charts.lines("lst-bench: processor seconds of both queries", points, "round")
    return (
        f"""## lst-bench: longevity

A table of {sizes["rows"]:,} line items lives for {sizes["rounds"]} rounds: Q1 and Q6, then inserts and deletes of 0.1 % and a merge of 1 %. The degradation rate is lst-bench's: the mean relative
change of the queries from one round to the next.

![Processor seconds of the queries by round](benchmarks-longevity.svg)

{_markdown([*head, "files", "MB"], rows)}
""",
        picture,
    )


def _streaming(suite: Suite) -> tuple[str, str]:
    sizes, systems = suite["sizes"], _systems(suite)

    def tenths(run: Mapping[str, Any]) -> list[float]:
        took = [line["cpu"] for line in _lines(run, "commit")]
        count = min(10, len(took))
        edges = [len(took) * at // count for at in range(count + 1)]
        return [statistics.mean(took[low:high]) for low, high in pairwise(edges)]

    def mean(run: Mapping[str, Any]) -> float:
        names = ("commit", "end of the stream")
        return sum(line["cpu"] for name in names for line in _lines(run, name)) / run["commits"]

    by_tenth = {}
    for name in systems:
        runs = [tenths(run) for run in suite["runs"] if run["system"] == name]
        by_tenth[name] = [statistics.median(values) for values in zip(*runs, strict=True)]
    means = _medians(suite, mean)
    longest = _medians(
        suite, lambda run: max(line["seconds"] for line in _lines(run, "commit")) * 1000
    )
    commits, files, size = (
        _medians(suite, lambda run, key=key: run[key]) for key in ("commits", "files", "bytes")
    )
    read = _of_case(suite, "read all")
    rows = (
        [
            name,
            _number(commits[name]),
            _number(means[name] * 1000),
            _number(by_tenth[name][0] * 1000),
            _number(by_tenth[name][-1] * 1000),
            _number(longest[name]),
            _number(read[name] * 1000),
            _number(files[name]),
            _number(size[name] / 1e6),
        ]
        for name in systems
    )
    head = [
        "system",
        "batches",
        "mean",
        "first tenth",
        "last tenth",
        "longest (elapsed)",
        "read all",
    ]
    points = {
        name: [
            (100 * at / max(len(values) - 1, 1), 1000 * value) for at, value in enumerate(values)
        ]
        for name, values in by_tenth.items()
    }
    picture = charts.lines(
        "Streaming inserts: processor milliseconds of a commit", points, "percent of the stream"
    )
    return (
        f"""## DuckLake's streaming inserts

{sizes["commits"]:,} batches of 10 rows, each committed before the next one; `pyhudi writer` queues them in a [group writer](../how-to/group-commits.md), which commits all that wait together.
Milliseconds of processor time for each batch, maintenance by default included:

![Processor milliseconds of a commit, by the share of the stream](benchmarks-streaming.svg)

{_markdown([*head, "files", "MB"], rows)}

The original has 30,000 commits. DuckLake itself needs an extension of DuckDB that is downloaded at run time, and is missing here.
""",
        picture,
    )


def _ycsb(suite: Suite) -> tuple[str, str]:
    sizes, systems = suite["sizes"], _systems(suite)
    values: Table = {}
    for workload, shares in WORKLOADS.items():
        title = f"{workload}: " + ", ".join(f"{share:.0%} {name}" for name, share in shares)
        values[title.replace("%", " %")] = _medians(
            suite,
            lambda run, workload=workload: (
                1000 * _lines(run, workload)[0]["cpu"] / _lines(run, workload)[0]["operations"]
            ),
        )
    short = {title[0]: by for title, by in values.items()}
    picture = charts.bars("YCSB A to F", short, "processor ms an operation, less is better")
    return (
        f"""## YCSB A to F by key

{sizes["records"]:,} records of ten fields with 100 characters each, {sizes["operations"]} operations a workload, one at a time on an open handle. A read looks one key up, a range reads up to 100 keys,
and every update or insert is a commit. Processor milliseconds of an operation:

![Processor milliseconds of an operation by workload](benchmarks-ycsb.svg)

{_table(values, systems, "workload")}
""",
        picture,
    )


def _requests(suite: Suite) -> tuple[str, str]:
    systems = _systems(suite)
    works = {
        "load": ("load", 1),
        "upsert of 100 rows": ("upsert of 100 rows", 1),
        "look-up of a key": ("look-up of a key", 1),
        "Q1 and Q6": ("Q6", 1),
    }

    def mean(run: Mapping[str, Any], case: str) -> dict[str, float]:
        lines = [line for line in _lines(run, case) if "requests" in line]
        return {
            kind: sum(line["requests"].get(kind, 0) for line in lines) / len(lines)
            for kind in PRICES
        }

    dollars: Table = {}
    counts: dict[str, dict[str, str]] = {}
    for title, (case, _) in works.items():
        by_kind = {
            kind: _medians(suite, lambda run, case=case, kind=kind: mean(run, case)[kind])
            for kind in PRICES
        }
        dollars[title] = {
            name: sum(by_kind[kind][name] * price for kind, price in PRICES.items())
            for name in systems
        }
        counts[title] = {
            name: ", ".join(_number(by_kind[kind][name]) for kind in PRICES) for name in systems
        }
    rows = ([title, *(by[name] for name in systems)] for title, by in counts.items())
    picture = charts.bars("Requests", dollars, "US dollars a million operations, less is better")
    prices = ", ".join(f"{kind.upper()} ${price:g}" for kind, price in PRICES.items())
    return (
        f"""## Requests to storage as money

A table of {min(suite["sizes"]["rows"], 200_000):,} line items lies in a bucket of a local S3 server, which counts requests. List prices of S3 Standard in us-east-1 for a million requests: {prices}. Storage, transfer and
computing come on top. US dollars for a million operations:

![US dollars for a million operations](benchmarks-requests.svg)

{_table(dollars, systems, "operation")}

Requests of one operation, as PUT, LIST, GET (with HEAD), DELETE:

{_markdown(["operation", *systems], rows)}

pyiceberg keeps its catalog outside the bucket. Apache Hudi on Spark is left out: its requests depend on the settings of Hadoop's S3A file system.
""",
        picture,
    )


_SECTIONS = {
    "lhbench": _lhbench,
    "longevity": _longevity,
    "streaming": _streaming,
    "ycsb": _ycsb,
    "requests": _requests,
}


if __name__ == "__main__":
    main()
