"""A process that works on a table under limits of the system, and says how each step ended.

    python -m tests.machines.limited_process URI LIMITS

LIMITS is JSON: by the name of a limit, such as RLIMIT_NOFILE, its value. RLIMIT_AS counts from what
the process has mapped after it imported pyhudi. With CGROUP the process moves into a control group
first.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

import pyhudi
from pyhudi import _native  # noqa: F401 - the limits begin once all is mapped

COUNT = 20_000


def rows_of(numbers: range, value: int) -> pa.Table:
    ids = [f"k{number:06}" for number in numbers]
    notes = [f"{number * 2654435761 % 2**32:08x}" * 4 for number in numbers]
    cities = [f"p{number % 5}" for number in numbers]
    return pa.table({"id": ids, "p": cities, "v": [value] * len(ids), "note": notes})


def limit(limits: dict[str, int | str]) -> None:
    group = limits.pop("CGROUP", None)
    if group is not None:
        Path(str(group), "cgroup.procs").write_text("0")
    for name, value in limits.items():
        allowed = int(value)
        if name == "RLIMIT_AS":
            allowed += int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(getattr(resource, name), (allowed, allowed))


def step(name: str, call: Callable[[], object]) -> None:
    """Prints how a step ended at once, since a later one may end the process."""
    told: dict[str, Any] = {"step": name}
    try:
        result = call()
    except (pyhudi.HudiError, MemoryError, ImportError) as error:
        told |= {"error": type(error).__name__, "text": str(error)}
    else:
        told["result"] = result if isinstance(result, int) else None
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def work(uri: str) -> None:
    step("open", lambda: pyhudi.open_table(uri))
    step("scan", lambda: pyhudi.open_table(uri).scan().to_arrow().num_rows)
    step("count", lambda: pyhudi.open_table(uri).scan(where="v = 0").count())
    step("upsert", lambda: pyhudi.open_table(uri).upsert(rows_of(range(COUNT // 2), 1)))
    step("compact", lambda: pyhudi.open_table(uri).compact())
    step("new", lambda: pyhudi.open_table(uri).insert(rows_of(range(COUNT, COUNT + 10), 2)))
    step("create", lambda: pyhudi.create_table(f"{uri}-2", rows_of(range(9), 0), key="id"))


if __name__ == "__main__":
    limit(json.loads(sys.argv[2]))
    work(sys.argv[1])
