"""What an upsert of a few keys into a table of many reads and takes, by the record index.

Each upsert is a process of its own on a fresh copy of the table. Beside it the same upsert by the
simple index, which reads the keys of every base file. The aim: on merge-on-read no base file is
opened, on copy-on-write only those that are rewritten. The table begins as one of the golden
tables, whose record index Apache Hudi made; pyhudi brings the keys.

Prints a line of JSON for each upsert.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_HERE = Path(__file__).resolve().parent
_BUILD = _HERE.parents[1] / "build" / "bench"
_GOLDEN = _HERE.parents[1] / "tests" / "fixtures" / "tables"
_SEEDS = {"mor": "v9_mor_record_index", "cow": "v9_cow_record_index"}
_INDEXES = ("RECORD_INDEX", "SIMPLE")
_COMMIT_ROWS = 1_000_000
_OPTIONS = {"hoodie.parquet.small.file.limit": "0", "hoodie.parquet.max.file.size": str(16 << 20)}
_CITIES = pa.array(["lisbon", "osaka", "quito", "oslo"])


def main() -> int:
    """Makes the tables unless they are there, runs the upserts, compares what they read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=10_000_000, help="in the table")
    parser.add_argument("--upserts", type=int, default=10_000)
    parser.add_argument("--kinds", nargs="+", default=list(_SEEDS), choices=_SEEDS)
    parser.add_argument("--together", action="store_true", help="keys that came together")
    parser.add_argument("--check", action="store_true", help="fail when the aim is missed")
    parser.add_argument("--upsert", nargs=2, metavar=("FOLDER", "INDEX"), help="one, by itself")
    given = parser.parse_args()
    if given.upsert:
        print(json.dumps(_upsert(given, Path(given.upsert[0]), given.upsert[1])))
        return 0
    missed = False
    for kind in given.kinds:
        table = _table(kind, given.keys)
        for index in _INDEXES:
            found = _run(given, table, index)
            print(json.dumps({"table": kind, "index": index, **found}), flush=True)
            if index == "RECORD_INDEX":
                missed |= found["base_bytes_rewritten"] != found["base_bytes_opened"]
    return 1 if missed and given.check else 0


def _table(kind: str, keys: int) -> Path:
    """The folder of a table; made once."""
    import pyhudi  # noqa: PLC0415 - the measured processes import it for themselves

    folder = _BUILD / f"tagging-{keys}"
    base = folder / _SEEDS[kind]
    if (folder / f"{kind}-made").exists():
        return base
    shutil.rmtree(base, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(_GOLDEN / f"{_SEEDS[kind]}.zip") as packed:
        packed.extractall(folder)
    started = time.perf_counter()
    for first in range(0, keys, _COMMIT_ROWS):
        table = pyhudi.open_table(base, options=_OPTIONS)
        table.bulk_insert(_rows(_numbers(first, min(_COMMIT_ROWS, keys - first)), 1000))
    seconds = round(time.perf_counter() - started, 1)
    print(json.dumps({"made": base.name, "keys": keys, "seconds": seconds}), flush=True)
    (folder / f"{kind}-made").touch()
    return base


def _run(given: argparse.Namespace, table: Path, index: str) -> dict[str, Any]:
    """One upsert on a copy of the table, in a fresh process."""
    copy = table.with_name(f"{table.name}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(table, copy, copy_function=os.link)
    command = [sys.executable, __file__, "--keys", str(given.keys)]
    command += ["--upserts", str(given.upserts), "--upsert", str(copy), index]
    command += ["--together"] if given.together else []
    try:
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    finally:
        shutil.rmtree(copy)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _upsert(given: argparse.Namespace, base: Path, index: str) -> dict[str, Any]:
    import pyhudi  # noqa: PLC0415 - what is measured

    table = pyhudi.open_table(base, options={**_OPTIONS, "hoodie.index.type": index})
    step = 1 if given.together else given.keys // given.upserts
    numbers = pc.multiply(_numbers(0, given.upserts), step)
    data = _rows(numbers, 2000)
    files = [one for one in base.rglob("*.parquet") if ".hoodie" not in one.parts]
    # Older than the content, so that a read shows wherever access times are kept at all.
    for one in files:
        os.utime(one, ns=(0, one.stat().st_mtime_ns))
    read, started = _bytes_read(), time.perf_counter()
    result = table.upsert(data)
    seconds, read = time.perf_counter() - started, _bytes_read() - read
    opened = [one for one in files if one.stat().st_atime_ns]
    if result.rows_updated != given.upserts:
        sys.exit(f"{result.rows_updated} of {given.upserts} keys were found")
    return {
        "seconds": round(seconds, 3),
        "bytes_read": read,
        "base_bytes": sum(one.stat().st_size for one in files),
        "base_bytes_rewritten": result.bytes_read,
        "base_bytes_opened": sum(one.stat().st_size for one in opened),
        "bytes_written": result.bytes_written,
    }


def _bytes_read() -> int:
    """What this process has read so far, the page cache's part included."""
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def _numbers(first: int, count: int) -> pa.Int64Array:
    ones = pa.repeat(pa.scalar(1, pa.int64()), count)
    return pc.add(pc.cumulative_sum(ones), first - 1)


def _rows(numbers: pa.Int64Array, ts: int) -> pa.Table:
    text = numbers.cast(pa.string())
    padded = pc.utf8_lpad(text, width=12, padding="0")
    count = len(numbers)
    return pa.table(
        {
            "id": pc.binary_join_element_wise("key", padded, "-"),
            "name": pc.binary_join_element_wise("name", text, " "),
            "age": numbers.cast(pa.int32()),
            "amount": pa.repeat(pa.scalar(1, pa.decimal128(10, 2)), count),
            "ts": pa.repeat(pa.scalar(ts, pa.int64()), count),
            "city": _CITIES.take(pc.bit_wise_and(pc.shift_right(numbers, 3), 3)),
        }
    )


if __name__ == "__main__":
    sys.exit(main())
