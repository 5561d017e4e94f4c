"""The suites: what each does with a system, and what it compares. See `suites.py`."""

from __future__ import annotations

import re
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import suite_systems
from suite_rows import Events, Expected, Keys, Layout, LineItems, Query, Records
from suite_systems import System, is_spark
from suites import Meter, Size

Figures = dict[str, Any] | None
MERGES = {"0.0001 %": 1e-6, "0.001 %": 1e-5, "0.01 %": 1e-4, "0.1 %": 1e-3}
"""Shares of the rows that LHBench's micro-merges change."""
_REFRESH = 0.001
"""Share of the rows that a refresh adds, and that it deletes: TPC-H's."""


class Wrong(SystemExit):
    """A system gave a wrong answer."""


def compare(what: str, answer: Any, right: Any) -> None:
    """Ends the program unless an answer is right."""
    if answer != right:
        raise Wrong(f"{what}: the answer is wrong\n  got   {answer!r:.500}\n  right {right!r:.500}")


@contextmanager
def _start(
    name: str, place: str | Path, layout: Layout, sample: pa.Table, **storage: str
) -> Iterator[System]:
    system = suite_systems.start(name, str(place), layout, sample, storage)
    try:
        yield system
    finally:
        system.close()


def _some(source: type[LineItems | Records | Events]) -> tuple[Layout, pa.Table]:
    """The layout of rows, and a thousand of them."""
    return source.layout, source.rows(np.arange(1, 1001), 1)


class _Life:
    """A table of line items, and what it must hold."""

    def __init__(self, meter: Meter, name: str, system: System) -> None:
        self._meter = meter
        self._name = name
        self._system = system
        self._version = 1
        self.expected = Expected(LineItems)
        self._next = 1

    def load(self, count: int) -> None:
        """The first rows."""
        keys = self._new(count)
        rows = self._system.stage(LineItems.rows(keys, 1))
        self._meter.measure("load", lambda: self._system.load(rows))
        self.expected.put(keys, 1)

    def refresh(self, count: int, step: int) -> None:
        """TPC-H's two: new rows, and deletes of old ones."""
        self._version += 1
        keys = self._new(count)
        rows = self._system.stage(LineItems.rows(keys, self._version))
        self._meter.measure("insert", lambda: self._system.insert(rows), step=step)
        self.expected.put(keys, self._version)
        dead = self._choose(count, step)
        self._meter.measure("delete", lambda: self._system.delete(dead), step=step)
        self.expected.remove(dead)

    def merge(self, count: int, case: str, step: int) -> None:
        """Half updates, half new rows, one of either at least."""
        self._version += 1
        old = self._choose(max(count // 2, 1), 1000 + self._version)
        keys = np.concatenate([old, self._new(max(count // 2, 1))])
        rows = self._system.stage(LineItems.rows(keys, self._version))
        self._meter.measure(case, lambda: self._system.upsert(rows), step=step)
        self.expected.put(keys, self._version)

    def query(self, case: str, step: int) -> None:
        """Both queries, and whether their answers are right."""
        for query in LineItems.queries:
            self._answer(query, f"{query.name} {case}".strip(), step)

    def check(self) -> None:
        """Whether all rows are right."""
        answer = self._system.query(LineItems.check)
        compare(f"{self._name}, all rows", answer, self.expected.answer(LineItems.check))

    def _answer(self, query: Query, case: str, step: int) -> None:
        answer = self._meter.measure(case, lambda: self._system.query(query), step=step)
        compare(f"{self._name}, {case}", answer, self.expected.answer(query))

    def _new(self, count: int) -> Keys:
        self._next += count
        return np.arange(self._next - count, self._next)

    def _choose(self, count: int, seed: int) -> Keys:
        keys = np.random.default_rng(seed).choice(self.expected.keys, count, replace=False)
        return np.sort(keys)


# --- LHBench --------------------------------------------------------------------------------------


def lhbench(meter: Meter, name: str, folder: Path, size: Size) -> Figures:
    """Load and query, refresh and query again, micro-merges, many files."""
    with _start(name, folder / "table", *_some(LineItems)) as system:
        life = _Life(meter, name, system)
        life.load(size.rows)
        for step in range(3):
            life.query("after the load", step)
        for step in range(size.refreshes):
            life.refresh(max(int(size.rows * _REFRESH), 1), step)
        for step in range(3):
            life.query("after the refreshes", step)
        for title, share in MERGES.items():
            for step in range(3):
                life.merge(int(size.rows * share), f"merge {title}", step)
        life.query("after the merges", 0)
        life.check()
        figures = _files(folder / "table")
    _many_files(meter, name, folder, size)
    return figures


def _many_files(meter: Meter, name: str, folder: Path, size: Size) -> None:
    """A table of as many files as partitions, of a hundred rows each."""
    fields = [pa.field("day", pa.string()), *Events.layout.schema]
    layout = Layout(pa.schema(fields), "id", partition="day")
    keys = np.arange(size.files * 100)
    days = pa.array([f"d{number:06}" for number in range(size.files)])
    rows = Events.rows(keys).add_column(0, fields[0], days.take(pa.array(keys // 100)))
    everything = Query("all", (("id",), ("at", "id"), ("v",)))
    chosen = Query("one", everything.sums, (("day", "=", "d000007"),))
    with _start(name, folder / "files", layout, rows.slice(0, 1000)) as system:
        staged = system.stage(rows)
        meter.measure(f"write {size.files} files", lambda: system.load(staged))
        for step in range(3):
            for query in (everything, chosen):
                case = f"read {query.name} of {size.files} files"
                answer = meter.measure(case, partial(system.query, query), step=step)
                right = rows if query is everything else rows.slice(700, 100)
                compare(f"{name}, {case}", answer, query.answer(right.to_batches()))


def _files(place: Path) -> dict[str, int]:
    """Files of a table, and their bytes."""
    sizes = [path.stat().st_size for path in place.rglob("*") if path.is_file()]
    return {"files": len(sizes), "bytes": sum(sizes)}


# --- lst-bench ------------------------------------------------------------------------------------


def longevity(meter: Meter, name: str, folder: Path, size: Size) -> Figures:
    """Rounds of both queries, and of a refresh and a merge in between."""
    with _start(name, folder / "table", *_some(LineItems)) as system:
        life = _Life(meter, name, system)
        life.load(size.rows)
        # The first query opens what a handle keeps, and imports what a library needs.
        life.check()
        for step in range(size.rounds):
            life.query("", step)
            life.refresh(max(int(size.rows * _REFRESH), 1), step)
            life.merge(int(size.rows * 0.01), "merge", step)
            meter.measure("end of the round", system.end_round, step=step)
        life.check()
    return _files(folder / "table")


# --- DuckLake -------------------------------------------------------------------------------------


def streaming(meter: Meter, name: str, folder: Path, size: Size) -> Figures:
    """Commits of ten rows, then the sums of all rows."""
    count = int(size.commits * size.spark) if is_spark(name) else size.commits
    expected = Expected(Events)
    with _start(name, folder / "table", *_some(Events)) as system:
        first = np.arange(1, 11)
        staged = system.stage(Events.rows(first))
        meter.measure("create", lambda: system.load(staged))
        batches = [np.arange(10 * number + 1, 10 * number + 11) for number in range(1, count)]
        for step, keys in enumerate(batches):
            rows = system.stage(Events.rows(keys))
            meter.measure("commit", partial(system.insert, rows), step=step)
        meter.measure("end of the stream", system.end_round)
        expected.put(np.arange(1, 10 * count + 1), 1)
        answer = meter.measure("read all", lambda: system.query(Events.check))
        rows = Events.rows(expected.keys)
        compare(f"{name}, all rows", answer, Events.check.answer(rows.to_batches()))
    return {"commits": count, **_files(folder / "table")}


# --- YCSB -----------------------------------------------------------------------------------------

WORKLOADS: dict[str, tuple[tuple[str, float], ...]] = {
    "A": (("read", 0.5), ("update", 0.5)),
    "B": (("read", 0.95), ("update", 0.05)),
    "C": (("read", 1.0),),
    "D": (("read latest", 0.95), ("insert", 0.05)),
    "E": (("range", 0.95), ("insert", 0.05)),
    "F": (("read", 0.5), ("read-modify-write", 0.5)),
}
"""The operations of each workload, and their shares."""


def ycsb(meter: Meter, name: str, folder: Path, size: Size) -> Figures:
    """Each workload in turn on one table, one operation at a time."""
    count = int(size.operations * size.spark) if is_spark(name) else size.operations
    with _start(name, folder / "table", *_some(Records)) as system:
        store = _Store(name, system, size.records)
        meter.measure("load", store.load)
        # The first look-up opens what the handle keeps.
        store.read(np.array([1]))
        for seed, (workload, shares) in enumerate(WORKLOADS.items(), start=1):
            random = np.random.default_rng(seed)
            names = [operation for operation, _ in shares]
            chances = [share for _, share in shares]
            # As many of each kind as its share says, whatever the number of operations.
            kinds = [
                each for each in names for _ in range(round(count * chances[names.index(each)]))
            ]
            random.shuffle(kinds)
            took: dict[str, list[float]] = {}
            cpu, start = meter.clock(), time.perf_counter()
            for kind in kinds:
                began = time.perf_counter()
                store.run(kind, random)
                took.setdefault(kind, []).append(time.perf_counter() - began)
            wall, cpu = time.perf_counter() - start, meter.clock() - cpu
            line = {"case": workload, "operations": len(kinds), "seconds": wall, "cpu": cpu}
            medians = {kind: statistics.median(each) for kind, each in took.items()}
            meter.lines.append(line | {"medians": medians})
        store.check()
    return _files(folder / "table")


class _Store:
    """A system as a store of records by key, and what it must hold."""

    def __init__(self, name: str, system: System, records: int) -> None:
        self._name = name
        self._system = system
        self._version = 1
        self._end = records + 1
        self._expected = Expected(Records)
        keys = np.arange(1, self._end)
        self._rows = system.stage(Records.rows(keys, 1))
        self._expected.put(keys, 1)

    def load(self) -> None:
        self._system.load(self._rows)
        del self._rows

    def run(self, kind: str, random: np.random.Generator) -> None:
        """One operation."""
        if kind == "insert":
            self._write(np.array([self._end]), new=True)
            self._end += 1
        elif kind == "range":
            first = int(random.integers(1, self._end))
            self._range(first, first + int(random.integers(1, 101)))
        else:
            # YCSB's skew: few keys are asked for often.
            rank = int(random.zipf(1.2)) % self._end
            spread = rank if kind == "read latest" else rank * 7919 % self._end
            key = np.array([max(self._end - 1 - spread, 1)])
            if kind != "update":
                self.read(key)
            if kind in {"update", "read-modify-write"}:
                self._write(key, new=False)

    def read(self, keys: Keys) -> None:
        """Look rows up and compare them."""
        names = Records.layout.schema.names
        rows = self._system.get(Records.ids(keys), names)
        self._compare("look-up", rows, keys)

    def _range(self, first: int, end: int) -> None:
        keys = np.arange(first, end)
        low, high = Records.ids(np.array([first, end]))
        where = [("id", ">=", low), ("id", "<", high)]
        rows = self._system.scan(Records.layout.schema.names, where)
        self._compare("range", rows, keys)

    def _write(self, keys: Keys, *, new: bool) -> None:
        self._version += 1
        rows = self._system.stage(Records.rows(keys, self._version))
        (self._system.insert if new else self._system.upsert)(rows)
        self._expected.put(keys, self._version)

    def _compare(self, what: str, rows: pa.Table, keys: Keys) -> None:
        found = sorted(
            rows.select(Records.layout.schema.names).to_pylist(), key=lambda row: row["id"]
        )
        compare(f"{self._name}, {what}", found, self._expected.rows(keys).to_pylist())

    def check(self) -> None:
        """Whether all rows have their newest version."""
        query = Query("all", (("version",), ("version", "version")))
        keys = self._expected.keys
        versions = pa.table({"version": self._expected.versions[keys]})
        answer = self._system.query(query)
        compare(f"{self._name}, all rows", answer, query.answer(versions.to_batches()))


# --- requests -------------------------------------------------------------------------------------

_REQUEST = re.compile(r"\| (GET|PUT|POST|HEAD|DELETE) \| (\S+) \| [^|]*\| ?(\S*)")


def requests(meter: Meter, name: str, folder: Path, size: Size) -> Figures:
    """Requests to an S3 server of a load, small upserts, look-ups and queries."""
    from tests.helpers.s3.server import S3Server  # noqa: PLC0415 - only here

    server = S3Server(folder.resolve())
    try:
        server.make_bucket("lake")
        log = folder / "server.log"
        wanted = ("aws_access_key_id", "aws_secret_access_key", "aws_region", "aws_endpoint_url")
        storage = {each: server.options[each] for each in (*wanted, "aws_allow_http")}
        if name == "pyiceberg":
            storage["catalog"] = str(folder)
        rows = min(size.rows, 200_000)
        with _start(name, "s3://lake/table", *_some(LineItems), **storage) as system:
            life = _Life(meter, name, system)
            _counting(meter, log, lambda: life.load(rows))
            for step in range(size.writes):
                _counting(meter, log, partial(life.merge, 100, "upsert of 100 rows", step))
            for step in range(size.writes):
                _counting(meter, log, partial(_look_up, meter, life, system, step))
            _counting(meter, log, lambda: life.query("", 0))
            life.check()
    finally:
        server.close()
    return None


def _look_up(meter: Meter, life: _Life, system: System, step: int) -> None:
    key = 1 + step * 997
    columns = LineItems.layout.schema.names
    rows = meter.measure("look-up of a key", lambda: system.get([key], columns), step=step)
    right = life.expected.rows(np.array([key])).to_pylist()
    compare("look-up of a key", rows.to_pylist(), right)


def _counting(meter: Meter, log: Path, work: Callable[[], Any]) -> None:
    """Adds the requests that the server noted to the lines of the work, by what they cost."""
    before, lines = log.stat().st_size, len(meter.lines)
    work()
    # The server writes its log after it has answered.
    time.sleep(0.2)
    with log.open("rb") as file:
        file.seek(before)
        text = file.read().decode()
    counts: Counter[str] = Counter()
    for method, _path, query in _REQUEST.findall(text):
        counts[_price_class(method, query)] += 1
    for line in meter.lines[lines:]:
        line["requests"] = dict(counts) if line is meter.lines[-1] else {}


def _price_class(method: str, query: str) -> str:
    if method == "DELETE" or (method == "POST" and query.startswith("delete")):
        return "delete"
    if method == "GET" and "list-type" in query:
        return "list"
    return "put" if method in {"PUT", "POST"} else "get"


CASES: dict[str, Callable[[Meter, str, Path, Size], Figures]] = {
    "lhbench": lhbench,
    "longevity": longevity,
    "streaming": streaming,
    "ycsb": ycsb,
    "requests": requests,
}
