"""A month of a table: small commits one after the other under the default services.

    python benches/python/month.py [--rows 1000000] [--commits 3000] [--size 1000] [--new 0.2]
        [--types cow mor]

Each commit upserts rows, by default a fifth of them new, into a table of a million with all
defaults but what --option names. With new rows the table itself grows, by 1.6 over a month: what a
commit rewrites then grows, too, and is no sign of a table that is kept badly. Every so often the
rows are read, and what the table has grown to is noted. At the end: the medians of the last commits
beside those of commits 26 to 75, as ratios, and a picture of the commits' times in
build/bench/month.
"""

from __future__ import annotations

import argparse
import csv
import random
import shutil
import statistics
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import pyhudi
from pyhudi import HudiTable

BUILD = Path("build/bench/month")
CITIES = 8
BEFORE = 3000
"""Commits that the first rows are of."""
NOTED = ("commit", "commit_s", "read_s", "files", "bytes_a_row", "instants")
WIDTH, HEIGHT = 900, 300


def rows(keys: Sequence[int], commits: Iterable[int]) -> pa.Table:
    """commits: of each key that which its row is of."""
    given = list(zip(keys, commits, strict=True))
    return pa.table(
        {
            "id": [f"k{key:09}" for key in keys],
            "city": [f"c{key % CITIES}" for key in keys],
            "at": [commit for _, commit in given],
            "fare": [key % 1000 / 7 for key in keys],
            "note": [f"{key * 2654435761 % 2**32:x} of {commit:05}" for key, commit in given],
        }
    )


def make(kind: Literal["cow", "mor"], count: int, options: dict[str, str]) -> HudiTable:
    base = BUILD / kind
    shutil.rmtree(base, ignore_errors=True)
    table = pyhudi.create_table(
        base,
        rows([0], [0]).schema,
        key="id",
        partition_by="city",
        order_by="at",
        type=kind,
        options=options,
    )
    # As of commits before: rows that differ in less take less space, and would seem to grow.
    table.bulk_insert(rows(range(count), [-(key * 7919 % BEFORE) for key in range(count)]))
    return table


def live(
    table: HudiTable, count: int, commits: int, size: int, share: float
) -> Iterator[dict[str, Any]]:
    """Makes the commits, and gives what each took and, of some, what the table is then.

    share: of the rows of a commit those that are new.
    """
    choose, total = random.Random(1), count
    every = max(commits // 60, 1)
    for commit in range(1, commits + 1):
        new = round(size * share)
        keys = [*choose.sample(range(total), size - new), *range(total, total + new)]
        total += new
        given = rows(keys, [commit] * size)
        began = time.perf_counter()
        table.upsert(given)
        found: dict[str, Any] = {"commit": commit, "commit_s": time.perf_counter() - began}
        if commit % every == 0 or commit == 50:
            began = time.perf_counter()
            read = table.scan(columns=["id", "fare"]).to_arrow().num_rows
            found["read_s"] = time.perf_counter() - began
            assert read == total, (read, total)
            files = [path for path in Path(table.uri).rglob("*") if path.is_file()]
            found["files"] = len(files)
            found["bytes_a_row"] = sum(path.stat().st_size for path in files) / total
            found["instants"] = len(table.state.timeline.instants)
        yield found


def summary(found: list[dict[str, Any]]) -> Iterator[tuple[str, float, float]]:
    """Of each figure the median around commit 50, and of the last tenth."""
    early = [row for row in found if 26 <= row["commit"] <= 75]
    late = found[-max(len(found) // 10, 1) :]
    for name in NOTED[1:]:
        yield name, median(early, name), median(late, name)


def median(found: list[dict[str, Any]], name: str) -> float:
    return statistics.median([row[name] for row in found if name in row] or [float("nan")])


def picture(kind: str, found: list[dict[str, Any]]) -> str:
    """The commits' times as an SVG."""
    most = max(row["commit_s"] for row in found)
    points = " ".join(
        f"{number * WIDTH / len(found):.1f},{HEIGHT - row['commit_s'] / most * HEIGHT:.1f}"
        for number, row in enumerate(found)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 -30 {WIDTH} {HEIGHT + 40}">'
        f'<text y="-10">{kind}: seconds of {len(found)} commits, at most {most:.2f}</text>'
        f'<polyline fill="none" stroke="black" points="{points}"/></svg>'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--commits", type=int, default=3000)
    parser.add_argument("--size", type=int, default=1000)
    parser.add_argument("--new", type=float, default=0.2, help="share of rows that are new")
    parser.add_argument("--types", nargs="+", choices=["cow", "mor"], default=["cow", "mor"])
    parser.add_argument("--option", action="append", default=[], help="name=value of the handle")
    given = parser.parse_args()
    options = dict(text.split("=", 1) for text in given.option)
    BUILD.mkdir(parents=True, exist_ok=True)
    for kind in given.types:
        table = make(kind, given.rows, options)
        found = list(live(table, given.rows, given.commits, given.size, given.new))
        with (BUILD / f"{kind}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, NOTED)
            writer.writeheader()
            writer.writerows(found)
        (BUILD / f"{kind}.svg").write_text(picture(kind, found))
        for name, early, late in summary(found):
            grown = f"{early:.3f} around commit 50, {late:.3f} at the end, {late / early:.2f} x"
            print(f"{kind} {name}: {grown}")


if __name__ == "__main__":
    main()
