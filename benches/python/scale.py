"""What grows with what: time and memory of verbs over tables that are large in one respect.

    python benches/python/scale.py [--axes groups keys active archived] [--most 1000000]

Each axis is one kind of size, in powers of ten, with the others small: file groups, keys in one
file group of the record index, commits on the timeline, commits in its history. Each verb runs in a
process of its own, imports left out: seconds, processor seconds, and the peak of its memory beyond
what it had after opening nothing (`VmHWM`). A verb that takes longer than `--seconds` is stopped
and said to be over. Tables are made directly (`scale_tables.py`), one after the other, and go when
they were measured.

Prints a line of JSON for each figure; all go to build/bench/scale.json and, drawn, to the file that
`--plot` names.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import BUILD

_MIB = 1 << 20
AXES = {
    "groups": [1_000, 10_000, 100_000, 1_000_000],
    "keys": [10_000, 100_000, 1_000_000, 10_000_000],
    "active": [100, 1_000, 10_000, 100_000],
    "archived": [100, 1_000, 10_000, 100_000],
}
_MANY = 1000


def main() -> None:
    """Makes a table of each size and measures every verb on it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--axes", nargs="+", default=list(AXES), choices=AXES)
    parser.add_argument("--most", type=int, default=1_000_000, help="the largest size of an axis")
    parser.add_argument("--verbs", nargs="+", default=list(VERBS), choices=VERBS)
    parser.add_argument("--seconds", type=float, default=300, help="for one verb")
    parser.add_argument("--plot", type=Path, help="an SVG file")
    parser.add_argument("--run", nargs=2, metavar=("VERB", "FOLDER"), help="one, by itself")
    parser.add_argument("--keys", type=int, default=_MANY, help="of the table, with --run")
    given = parser.parse_args()
    if given.run:
        print(json.dumps(_measured(given.run[0], given.run[1], given.keys)))
        return
    stored = BUILD / "scale.json"
    found = json.loads(stored.read_text()) if stored.exists() else []
    for axis in given.axes:
        for size in (size for size in AXES[axis] if size <= given.most):
            found = [one for one in found if (one["axis"], one["size"]) != (axis, size)]
            for line in _of_size(given, axis, size):
                print(json.dumps(line), flush=True)
                found.append(line)
            stored.write_text(json.dumps(found, indent=2) + "\n")
    if given.plot:
        from scale_plot import drawn  # noqa: PLC0415 - only for a plot

        given.plot.write_text(drawn(found))


def _of_size(given: argparse.Namespace, axis: str, size: int) -> list[dict[str, Any]]:
    """The figures of one table, which is gone in the end."""
    folder = BUILD / "scale-table"
    shape = subprocess.run(
        [sys.executable, "-c", _MAKE, str(folder), axis, str(size)],
        cwd=Path(__file__).parent, check=True, capture_output=True, text=True,
    )  # fmt: skip
    lines = []
    try:
        for verb in given.verbs:
            command = [sys.executable, __file__, "--run", verb, str(folder)]
            command += ["--keys", str(size if axis == "keys" else _MANY)]
            line = {"axis": axis, "size": size, "verb": verb}
            try:
                done = subprocess.run(
                    command, check=True, stdout=subprocess.PIPE, text=True, timeout=given.seconds
                )
                line |= json.loads(done.stdout)
            except subprocess.TimeoutExpired:
                line |= {"over": given.seconds}
            lines.append(line)
    finally:
        shutil.rmtree(folder)
    lines.append({"axis": axis, "size": size, "verb": "(making)", **json.loads(shape.stdout)})
    return lines


_MAKE = """
import json, sys, time
from dataclasses import replace
from pathlib import Path
from scale_tables import Size, make
started = time.perf_counter()
make(Path(sys.argv[1]), replace(Size(), **{sys.argv[2]: int(sys.argv[3])}))
index = Path(sys.argv[1]) / ".hoodie/metadata/record_index"
bytes_ = max(path.stat().st_size for path in index.glob("*.hfile"))
print(json.dumps({"seconds": round(time.perf_counter() - started, 1), "index_bytes": bytes_}))
"""


# --- one verb -------------------------------------------------------------------------------------


def _measured(verb: str, folder: str, keys: int) -> dict[str, Any]:
    """What a verb takes in this process, and what it says that it did."""
    import pyarrow.compute  # noqa: F401, PLC0415 - every verb comes to need it
    from scale_tables import OPTIONS  # noqa: PLC0415 - imports pyhudi, which is not measured

    import pyhudi  # noqa: PLC0415 - likewise
    import pyhudi.slices.read  # noqa: PLC0415 - likewise

    idle, started, used = _peak(), time.perf_counter(), time.process_time()
    told = VERBS[verb](pyhudi.open_table(folder, options=OPTIONS), keys)
    seconds, cpu = time.perf_counter() - started, time.process_time() - used
    line = {"seconds": round(seconds, 4), "cpu": round(cpu, 4), "told": told}
    return line | {"peak_mib": round((_peak() - idle) / _MIB, 1)}


def _peak() -> int:
    """The most memory that this process ever had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def _keys(count: int, of: int) -> list[str]:
    from scale_tables import key  # noqa: PLC0415 - imports pyhudi

    return [key(number) for number in range(0, of, max(1, of // count))][:count]


def _upsert(table: Any, _keys_of_table: int) -> int:
    """Of new keys, whose rows go to a partition without large files."""
    import pyarrow as pa  # noqa: PLC0415 - the program that starts the others needs none
    from scale_tables import SCHEMA  # noqa: PLC0415 - imports pyhudi

    columns = {"id": [f"new-{number}" for number in range(100)], "part": ["own"] * 100}
    result = table.upsert(pa.table({**columns, "v": range(100)}, SCHEMA))
    return int(result.rows_inserted)


def _planned(table: Any, where: Any) -> int:
    return len(table.scan(where=where).tasks)


VERBS: dict[str, Callable[[Any, int], Any]] = {
    "open": lambda table, _: len(table.state.timeline.instants),
    "plan all": lambda table, _: _planned(table, None),
    "plan a partition": lambda table, _: _planned(table, [("part", "=", "p00000")]),
    "1 key": lambda table, keys: _planned(table, [("id", "in", _keys(1, keys))]),
    "1,000 keys": lambda table, keys: _planned(table, [("id", "in", _keys(_MANY, keys))]),
    "count": lambda table, _: table.scan(where=[("part", "=", "own")]).count(),
    "health": lambda table, _: table.inspect.health().old_files,
    "clean plan": lambda table, _: table.clean(dry_run=True).files_removed,
    "clean": lambda table, _: table.clean().files_removed,
    "upsert of 100": _upsert,
    "archive": lambda table, _: len(table.archive().instants),
}
"""Each opens the table first. The last three change it."""


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    os.environ.setdefault("PYTHONHASHSEED", "0")
    main()
