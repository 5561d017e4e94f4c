"""What each verb holds in memory under a memory limit: peak beyond the idle process, and seconds.

A table of so many rows of eight columns is made with the options that a user has who sets none, and
gets a second commit with new values for half of its rows. Each verb then runs in a process of its
own, on a fresh copy where it writes, and takes or gives rows as a stream. The aim: a peak of at
most the limit and a margin, over what the process had before the verb. PyPI's `hudi` scans the same
table.

Prints a line of JSON for each verb.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
_BUILD = _HERE.parents[1] / "build" / "bench"
_BATCH = 50_000
_MIB = 1 << 20
MARGIN = 128
"""MiB beyond the limit that a verb may take: libraries that it loads, pages that are decoded, what
the allocators keep."""
_LEAST = 200 * _MIB
"""Of data, for the comparison with `hudi`: below it libraries are most of what is there."""
_TABLES = ("cow", "mor")


def main() -> int:
    """Makes the tables unless they are there, and runs the verbs one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--limit", type=int, default=256, help="MiB")
    parser.add_argument("--verbs", nargs="+", default=list(VERBS), choices=VERBS)
    parser.add_argument("--types", nargs="+", default=["cow"], choices=_TABLES)
    parser.add_argument("--check", action="store_true", help="fail when an aim is missed")
    parser.add_argument("--run", nargs=2, metavar=("VERB", "FOLDER"), help="one, by itself")
    given = parser.parse_args()
    if given.run:
        print(json.dumps(_measured(given, given.run[0], Path(given.run[1]))))
        return 0
    missed = False
    for kind in given.types:
        found = {verb: _run(given, kind, verb) for verb in given.verbs}
        missed |= _judge(given, kind, found)
    return 1 if missed and given.check else 0


def _judge(given: argparse.Namespace, kind: str, found: dict[str, dict[str, Any]]) -> bool:
    """Whether any verb took more than it may."""
    most = given.limit + MARGIN
    over = [verb for verb, one in found.items() if verb != "hudi" and one["peak_mib"] > most]
    if "hudi" in found and "scan" in found and found["scan"]["table_mib"] * _MIB > _LEAST:
        ratio = found["scan"]["peak_mib"] / found["hudi"]["peak_mib"]
        print(json.dumps({"table": kind, "scan over hudi": round(ratio, 2)}), flush=True)
        over += ["hudi"] if ratio > 0.5 else []
    for verb in over:
        print(json.dumps({"table": kind, "missed": verb}), flush=True)
    return bool(over)


def _run(given: argparse.Namespace, kind: str, verb: str) -> dict[str, Any]:
    """One verb in a fresh process, on a copy whose files it may replace but not change."""
    captured = verb == "changes"
    table = _made(given, kind, captured=captured)
    copy = table.with_name(f"{table.name}-copy-{os.getpid()}")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy, copy_function=os.link)
    command = [sys.executable, __file__, "--rows", str(given.rows), "--limit", str(given.limit)]
    try:
        done = subprocess.run(
            [*command, "--run", verb, str(copy)], check=True, stdout=subprocess.PIPE, text=True
        )
    finally:
        shutil.rmtree(copy)
    found = {"table": kind, "verb": verb, **json.loads(done.stdout)}
    print(json.dumps(found), flush=True)
    return found


def _made(given: argparse.Namespace, kind: str, *, captured: bool) -> Path:
    """The folder of a table; made once, in a process of its own."""
    name = f"memory-{given.rows}-{kind}{'-cdc' if captured else ''}"
    folder = _BUILD / name
    done = _BUILD / f"{name}.made"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        _BUILD.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, __file__, "--rows", str(given.rows)]
        subprocess.run([*command, "--run", f"make-{name}", str(folder)], check=True)
        done.touch()
    return folder


# --- rows -----------------------------------------------------------------------------------------


def rows(count: int, ts: int, step: int = 1) -> Iterator[Any]:
    """Batches of rows whose numbers are multiples of a step below a count."""
    import pyarrow as pa  # noqa: PLC0415 - a child's peak begins with its parent's
    import pyarrow.compute as pc  # noqa: PLC0415

    cities = pa.array(["lisbon", "osaka", "quito", "oslo"])
    for first in range(0, count, _BATCH * step):
        numbers = pa.array(range(first, min(first + _BATCH * step, count), step), pa.int64())
        spread = _scattered(numbers)
        text = pc.utf8_lpad(numbers.cast(pa.string()), width=12, padding="0")
        yield pa.RecordBatch.from_pydict(
            {
                "id": pc.binary_join_element_wise("key", text, "-"),
                "city": cities.take(pc.bit_wise_and(pc.shift_right(numbers, 3), 3)),
                "ts": pa.repeat(pa.scalar(ts, pa.int64()), len(numbers)),
                "name": pc.binary_join_element_wise("name", spread.cast(pa.string()), " "),
                "fare": pc.divide(
                    pc.bit_wise_and(spread, (1 << 50) - 1).cast(pa.float64()), 7.0 + ts
                ),
                "distance": pc.bit_wise_and(spread, 0xFFFF).cast(pa.int32()),
                "paid": pc.equal(pc.bit_wise_and(spread, 1), 1),
                "note": pc.binary_join_element_wise(
                    "about",
                    spread.cast(pa.string()),
                    _scattered(pc.add(spread, ts)).cast(pa.string()),
                    " ",
                ),
            }
        )


def _scattered(numbers: Any) -> Any:
    """Other numbers, that a codec finds no order in."""
    import pyarrow.compute as pc  # noqa: PLC0415 - as above

    once = pc.multiply(pc.bit_wise_and(numbers, (1 << 62) - 1), 0x1E3779B97F4A7C15)
    return pc.bit_wise_and(pc.bit_wise_xor(once, pc.shift_right(once, 29)), (1 << 62) - 1)


def reader(count: int, ts: int, step: int = 1) -> Any:
    """The rows as a stream."""
    import pyarrow as pa  # noqa: PLC0415 - as above

    schema = next(rows(1, ts)).schema
    return pa.RecordBatchReader.from_batches(schema, rows(count, ts, step))


def make(folder: Path, count: int) -> None:
    """Makes a table of two commits."""
    import pyhudi  # noqa: PLC0415 - as above

    kind = folder.name.removesuffix("-cdc").rpartition("-")[2]
    options = {"hoodie.table.cdc.enabled": "true"} if folder.name.endswith("-cdc") else {}
    table = pyhudi.create_table(
        folder,
        next(rows(1, 0)).slice(0, 0),
        key="id",
        partition_by="city",
        order_by="ts",
        type=kind,
        options=options,
    )
    table.bulk_insert(reader(count, 1))
    table.upsert(reader(count, 2, step=2))


# --- verbs ----------------------------------------------------------------------------------------


def _drained(outputs: Any) -> int:
    return sum(batch.num_rows for batch in outputs.to_reader())


def _first(table: Any) -> str:
    times = table.inspect.commits()
    name = "completed" if table.config.version.incremental_by_completion_time else "requested"
    return str(min(times[name].to_pylist()))


def _requested(table: Any) -> str:
    return str(min(table.inspect.commits()["requested"].to_pylist()))


def _scan(table: Any, _count: int, limit: int) -> int:
    return _drained(table.scan(memory_limit=limit))


def _incremental(table: Any, _count: int, limit: int) -> int:
    return _drained(table.incremental(memory_limit=limit))


def _diff(table: Any, _count: int, limit: int) -> int:
    last = max(table.inspect.commits()["requested"].to_pylist())
    return _drained(table.diff(_requested(table), last, memory_limit=limit))


def _changes(table: Any, _count: int, limit: int) -> int:
    return _drained(table.changes(memory_limit=limit))


def _upsert(table: Any, count: int, limit: int) -> int:
    result = table.upsert(reader(count, 3), memory_limit=limit)
    return int(result.rows_updated)


def _merge(table: Any, count: int, limit: int) -> int:
    clauses = table.merge(reader(count, 3), memory_limit=limit)
    clauses = clauses.when_matched_update_all().when_not_matched_insert_all()
    return int(clauses.execute().rows_updated)


def _check(table: Any, _count: int, limit: int) -> int:
    return len(table.check(deep=True, memory_limit=limit).findings)


def _rebuild(table: Any, _count: int, limit: int) -> int:
    table.rebuild_metadata(memory_limit=limit)
    return 0


VERBS: dict[str, Callable[[Any, int, int], int] | None] = {
    "scan": _scan,
    "hudi": None,
    "incremental": _incremental,
    "diff": _diff,
    "changes": _changes,
    "upsert": _upsert,
    "merge": _merge,
    "check": _check,
    "rebuild_metadata": _rebuild,
}


def _hudi(folder: Path) -> int:
    from hudi import HudiTableBuilder  # noqa: PLC0415 - only where it is measured

    table = HudiTableBuilder.from_base_uri(str(folder)).build()
    return sum(batch.num_rows for batch in table.read_stream())


# --- measuring ------------------------------------------------------------------------------------


def _measured(given: argparse.Namespace, verb: str, folder: Path) -> dict[str, Any]:
    if verb.startswith("make-"):
        make(folder, given.rows)
        return {}
    size = sum(file.stat().st_size for file in folder.rglob("*.parquet"))
    work: Callable[[], int]
    if verb == "hudi":
        import hudi  # noqa: F401, PLC0415 - its libraries are no part of the peak
        import pyarrow as pa  # noqa: PLC0415

        work = lambda: _hudi(folder)  # noqa: E731
    else:
        import pyarrow as pa  # noqa: PLC0415 - as above

        import pyhudi  # noqa: PLC0415
        from pyhudi import _native  # noqa: F401, PLC0415

        table, found = pyhudi.open_table(folder), VERBS[verb]
        assert found is not None
        work = lambda: found(table, given.rows, given.limit * _MIB)  # noqa: E731
    before = _memory("VmRSS")
    arrow = _Watch(lambda: pa.default_memory_pool().bytes_allocated())
    started = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - started
    peak = _memory("VmHWM") - before
    return {
        "rows": given.rows,
        "limit_mib": given.limit,
        "result": result,
        "seconds": round(seconds, 1),
        "idle_mib": before >> 20,
        "peak_mib": peak >> 20,
        "arrow_pool_mib": arrow.stop() >> 20,
        "table_mib": size >> 20,
    }


def _memory(name: str) -> int:
    """Not `getrusage`: there a child starts with the peak of the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) * 1024


class _Watch:
    """The greatest value of a figure that is looked at now and then."""

    def __init__(self, figure: Callable[[], int]) -> None:
        self._figure, self._most = figure, 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            self._most = max(self._most, self._figure())

    def stop(self) -> int:
        self._over.set()
        self._thread.join()
        return max(self._most, self._figure())


if __name__ == "__main__":
    sys.exit(main())
