"""How long look-ups and counts take on an open handle, beside a scan of all rows.

A table of 4 million keys comes from a bulk insert, four more commits of new rows, the last one
small, and upserts of one row in a hundred, with the options of who sets none. One process for each
table type and reader opens it, looks one key up, and is measured then: medians of several runs,
each with other keys. deltalake reads the same rows, already merged, with a filter. Every answer is
compared with what was written. Processor time is noted too: it says more on a busy machine.

pyhudi looks keys up by `scan(where=...)` and by `get`, also from 8 threads that share a handle and
draw keys as workload C of YCSB does: by a Zipfian distribution with the constant 0.99, scrambled.
Each run draws other keys. "A second, cold" is the rate of the first run. The median of the others
is that of a warm handle, which has not read most of these rows before.

Aims: one key in 10 ms, by `get` and by a scan, and 100 keys in 40 ms by `get`; 1,000 keys that came
together in 5 % of the scan; 10,000 look-ups a second of a copy-on-write table from 8 threads.

Prints a line of JSON for each figure, and writes all to build/bench/lookups.json.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_BUILD = Path(__file__).resolve().parents[2] / "build" / "bench"
_TYPES = ("cow", "mor")
_READERS = ("pyhudi", "deltalake")
_INSERTS = 4
_LAST = 0.01
"""Share of the rows that the last insert brings, and of those that each upsert changes."""
_UPSERTS = 3
_KEYS = 1000
_ONE_KEY_SECONDS = 0.010
_BATCH = 100
_BATCH_SECONDS = 0.040
_THREADS = 8
_LOOKUPS = 20_000
"""Look-ups of all threads in a run."""
_PER_SECOND = 10_000
_ZIPFIAN = 0.99
_TOGETHER = 0.05
_CITY = "denver"
YCSB = "get: one key, 8 threads, YCSB C"

Case = tuple[str, Callable[[int], Any], Callable[[Any, int], bool]]
"""Its name, what it does in a run, and whether the answer of that run is right."""


def main() -> int:
    """Makes the tables unless they are there, and measures each reader in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--types", nargs="+", default=list(_TYPES), choices=_TYPES)
    parser.add_argument("--readers", nargs="+", default=list(_READERS), choices=_READERS)
    parser.add_argument("--check", action="store_true", help="fail when an aim is missed")
    parser.add_argument("--run", nargs=2, metavar=("TYPE", "READER"), help="one, by itself")
    given = parser.parse_args()
    if given.run:
        for line in _measured(given, *given.run):
            print(json.dumps(line), flush=True)
        return 0
    found = []
    for kind in given.types:
        _make(given, kind)
        for reader in given.readers:
            command = [sys.executable, __file__, "--rows", str(given.rows)]
            command += ["--runs", str(given.runs), "--run", kind, reader]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            sys.stdout.write(done.stdout)
            found += [json.loads(line) for line in done.stdout.splitlines()]
    (_BUILD / "lookups.json").write_text(json.dumps(found, indent=2) + "\n")
    missed = [one for one in found if one.get("met") is False]
    return 1 if missed and given.check else 0


# --- the tables -----------------------------------------------------------------------------------


def _folder(given: argparse.Namespace) -> Path:
    return _BUILD / f"lookups-{given.rows}"


def _commits(given: argparse.Namespace) -> list[tuple[int, int]]:
    """The first row of each insert and of the end behind it."""
    last = int(given.rows * _LAST)
    step = -(-(given.rows - last) // _INSERTS)
    starts = [*range(0, given.rows - last, step), given.rows - last]
    return list(zip(starts, [*starts[1:], given.rows], strict=True))


def _make(given: argparse.Namespace, kind: str) -> None:
    """The tables of a type, unless they were made before."""
    import rows  # noqa: PLC0415 - measured processes hold no rows

    import pyhudi  # noqa: PLC0415 - measured processes import it for themselves

    base = _folder(given) / kind
    if (_folder(given) / f"{kind}-made").exists():
        _make_delta(given, base)
        return
    shutil.rmtree(base, ignore_errors=True)
    table = pyhudi.create_table(
        str(base), rows.SCHEMA, key=rows.KEY, partition_by=rows.PARTITION,
        order_by=rows.ORDERING, type=kind,
    )  # fmt: skip
    for start, end in _commits(given):
        # Bulk inserts after the first would leave open whether keys repeat.
        write = table.upsert if start else table.bulk_insert
        write(_some(rows.numbers(given.rows).slice(start, end - start), 1))
    for number in range(2, 2 + _UPSERTS):
        table.upsert(_some(rows.pick(given.rows, _LAST, number), number))
    (_folder(given) / f"{kind}-made").touch()
    _make_delta(given, base)


def _make_delta(given: argparse.Namespace, base: Path) -> None:
    """The rows of a table as a Delta table, where it is asked for and not there."""
    if "deltalake" not in given.readers or (_folder(given) / "delta").exists():
        return
    from generate import write_delta  # noqa: PLC0415 - needs deltalake

    import pyhudi  # noqa: PLC0415 - measured processes import it for themselves

    write_delta(_folder(given) / "delta", pyhudi.open_table(base).scan().to_arrow(), "snappy")


def _some(ids: Any, generation: int) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - measured processes hold no rows
    import rows  # noqa: PLC0415 - likewise

    ids = ids.cast(pa.uint64())
    return rows.make_rows(ids, pa.repeat(pa.scalar(generation, pa.int64()), len(ids)), generation)


# --- one reader -----------------------------------------------------------------------------------


def _measured(given: argparse.Namespace, kind: str, reader: str) -> Iterator[dict[str, Any]]:
    """The figures of one reader."""
    cases = (_of_pyhudi if reader == "pyhudi" else _of_deltalake)(given, kind)
    whole = 0.0
    for name, work, is_right in cases:
        runs = 3 if name == "scan" else given.runs
        timed = [_timed(work, is_right, f"{reader}, {name}", run) for run in range(runs + 1)]
        # The first opens what a handle keeps.
        median, cpu = (statistics.median(some) for some in zip(*timed[1:], strict=True))
        whole = whole or median
        line = {"table": kind, "reader": reader, "case": name, "first": round(timed[0][0], 6)}
        line |= {"seconds": round(median, 6), "cpu": round(cpu, 6)}
        line |= {"of the scan": round(median / whole, 4)}
        if name == YCSB:
            line |= {"a second": round(_LOOKUPS / median)}
            line |= {"a second, cold": round(_LOOKUPS / timed[0][0])}
        if reader == "pyhudi":
            line |= _judged(name, median, whole, kind)
        yield line


def _timed(
    work: Callable[[int], Any], is_right: Callable[[Any, int], bool], name: str, run: int
) -> tuple[float, float]:
    """Seconds, and those of processors."""
    started, used = time.perf_counter(), time.process_time()
    answer = work(run)
    seconds = time.perf_counter() - started, time.process_time() - used
    if not is_right(answer, run):
        sys.exit(f"{name}: the answer is wrong")
    return seconds


def _judged(name: str, seconds: float, whole: float, kind: str) -> dict[str, bool]:
    if name == f"get: {_BATCH} keys from all over":
        return {"met": seconds <= _BATCH_SECONDS}
    if name == YCSB and kind == "cow":
        return {"met": _LOOKUPS / seconds >= _PER_SECOND}
    if name in ("one key", "get: one key"):
        return {"met": seconds <= _ONE_KEY_SECONDS}
    if name == "1,000 keys that came together":
        return {"met": seconds <= _TOGETHER * whole}
    return {}


def _wanted(given: argparse.Namespace) -> dict[str, Callable[[int], list[str]]]:
    """The keys of each look-up by its run."""
    import pyarrow as pa  # noqa: PLC0415 - the parent of measured processes holds no Arrow
    import rows  # noqa: PLC0415 - likewise

    start, end = _commits(given)[-1]
    few = min(_KEYS, end - start)

    def keys(numbers: Iterator[int]) -> list[str]:
        return list(rows.keys(pa.array(numbers, pa.uint64())).to_pylist())

    return {
        "one key": lambda run: keys(iter([(run * 7919 + 13) % given.rows])),
        f"{_BATCH} keys from all over": lambda run: keys(
            iter(range(run * 7919 % 40_000 % given.rows, given.rows, -(-given.rows // _BATCH)))
        ),
        "one key that is not there": lambda run: keys(iter([given.rows + run])),
        "1,000 keys that came together": lambda run: keys(
            iter(range(start + run, min(start + run + few, end)))
        ),
        "1,000 keys from all over": lambda run: keys(
            iter(range(run, given.rows, given.rows // few))
        ),
    }


def _of_pyhudi(given: argparse.Namespace, kind: str) -> Iterator[Case]:
    import pyhudi  # noqa: PLC0415 - what is measured
    import pyhudi.slices.read  # noqa: PLC0415 - likewise

    base = _folder(given) / kind
    table = pyhudi.open_table(base)

    def whole(_run: int) -> int:
        return sum(batch.num_rows for batch in table.scan().to_reader())

    yield "scan", whole, lambda found, _: found == given.rows
    yield "open", lambda _: pyhudi.open_table(base), lambda _, __: True
    for name, wanted in _wanted(given).items():
        yield name, *_look_up(wanted, lambda keys: table.scan(where=[("id", "in", keys)]), given)
    for name, wanted in _wanted(given).items():
        yield f"get: {name}", *_look_up(wanted, table.get, given)
    yield YCSB, *_ycsb(table.get, given)
    yield (
        "open, and one key",
        *_look_up(
            _wanted(given)["one key"],
            lambda keys: pyhudi.open_table(base).scan(where=[("id", "in", keys)]),
            given,
        ),
    )
    yield "count", lambda _: table.scan().count(), lambda found, _: found == given.rows
    city = [("city", "=", _CITY)]
    yield (
        "count of a partition",
        lambda _: table.scan(where=city).count(),
        lambda found, _: found == given.rows // 4,
    )


def _of_deltalake(given: argparse.Namespace, _kind: str) -> Iterator[Case]:
    import pyarrow.compute as pc  # noqa: PLC0415 - only its reads need it
    from deltalake import DeltaTable  # noqa: PLC0415 - likewise

    dataset = DeltaTable(_folder(given) / "delta").to_pyarrow_dataset()

    def whole(_run: int) -> int:
        return sum(batch.num_rows for batch in dataset.scanner().to_reader())

    yield "scan", whole, lambda found, _: found == given.rows
    for name, wanted in _wanted(given).items():
        yield (
            name,
            *_look_up(
                wanted, lambda keys: dataset.scanner(filter=pc.field("id").isin(keys)), given
            ),
        )
    yield "count", lambda _: dataset.count_rows(), lambda found, _: found == given.rows
    yield (
        "count of a partition",
        lambda _: dataset.count_rows(filter=pc.field("city") == _CITY),
        lambda found, _: found == given.rows // 4,
    )


def _look_up(
    wanted: Callable[[int], list[str]], scan: Callable[[list[str]], Any], given: argparse.Namespace
) -> tuple[Callable[[int], Any], Callable[[Any, int], bool]]:
    """Finds the rows of keys; each that is in the table is found once."""
    keys = [wanted(run) for run in range(given.runs + 1)]

    def work(run: int) -> Any:
        found = scan(keys[run])
        read = getattr(found, "to_table", None) or getattr(found, "to_arrow", None)
        return (read() if read else found)["id"]

    def is_right(found: Any, run: int) -> bool:
        there = [key for key in keys[run] if int(key.rsplit("-", 1)[1]) < given.rows]
        return sorted(found.to_pylist()) == sorted(there)

    return work, is_right


def _ycsb(
    get: Callable[[list[str]], Any], given: argparse.Namespace
) -> tuple[Callable[[int], int], Callable[[int, int], bool]]:
    """Look-ups of one key each, by threads that share a handle. Gives how many rows there were."""
    import pyarrow as pa  # noqa: PLC0415 - measured processes hold no more than they need
    import rows  # noqa: PLC0415 - likewise

    def keys(run: int) -> list[str]:
        drawn = _zipfian(given.rows, _LOOKUPS, run)
        return list(rows.keys(pa.array(drawn, pa.uint64())).to_pylist())

    runs = [keys(run) for run in range(given.runs + 1)]

    def work(run: int) -> int:
        def one_thread(number: int) -> int:
            return sum(get([key]).num_rows for key in runs[run][number::_THREADS])

        with ThreadPoolExecutor(_THREADS) as pool:
            return sum(pool.map(one_thread, range(_THREADS)))

    return work, lambda found, _: found == _LOOKUPS


def _zipfian(items: int, count: int, seed: int) -> list[int]:
    """Numbers below `items`, as YCSB's ScrambledZipfianGenerator draws them (Gray et al., 1994)."""
    draw = random.Random(seed)
    zeta = sum(1 / number**_ZIPFIAN for number in range(1, items + 1))
    first_two = 1 + 0.5**_ZIPFIAN
    alpha = 1 / (1 - _ZIPFIAN)
    eta = (1 - (2 / items) ** (1 - _ZIPFIAN)) / (1 - first_two / zeta)

    def rank() -> int:
        share = draw.random()
        if share * zeta < first_two:
            return int(share * zeta >= 1)
        return int(items * (eta * share - eta + 1) ** alpha)

    # A prime larger than the table scatters the ranks, each to a number of its own.
    return [min(rank(), items - 1) * 2_654_435_761 % items for _ in range(count)]


if __name__ == "__main__":
    sys.exit(main())
