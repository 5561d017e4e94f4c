"""What the benchmarks of reads and of writes share: processes, aims, and the setting.

A child's peak memory begins with its parent's, so no Arrow is imported here and no rows are held.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

BUILD = Path(__file__).resolve().parents[2] / "build" / "bench"
"""Where tables, inputs and figures go."""


@dataclass(frozen=True)
class Ended:
    """A process that is over: what it printed, seconds, and bytes."""

    status: int
    printed: str
    wall: float
    cpu: float
    peak: int


def run(command: Sequence[str]) -> Ended:
    """Runs a process to its end.

    It finds modules compiled, as those of an installed wheel are, also where pyhudi is imported
    from a checkout and the shell forbids Python to write bytecode.
    """
    forbidden = "PYTHONDONTWRITEBYTECODE"
    inherited = {name: value for name, value in os.environ.items() if name != forbidden}
    environment = {"PYTHONPYCACHEPREFIX": str(BUILD / "pycache"), **inherited}
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert child.stdout is not None
    printed = child.stdout.read()
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    child.stdout.close()
    cpu = used.ru_utime + used.ru_stime
    return Ended(child.returncode, printed, wall, cpu, used.ru_maxrss * 1024)


def median(runs: Sequence[Any]) -> Any:
    """Of each figure of some runs, which are of one dataclass of figures."""
    figures = zip(*map(astuple, runs), strict=True)
    return type(runs[0])(*(statistics.median(values) for values in figures))


def tree_seconds() -> float:
    """Processor seconds of this process and of all below it, of those that ended too."""
    parents: dict[int, int] = {}
    used: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            # User and system time, and both of children that were waited for.
            used[int(entry.name)] = sum(map(int, fields[11:15]))
    below, seconds = {os.getpid()}, time.process_time()
    for _ in range(8):
        below |= {process for process, parent in parents.items() if parent in below}
    own = os.times()
    seconds += own.children_user + own.children_system
    ticks = sum(used[process] for process in below if process != os.getpid() and process in used)
    return seconds + ticks / os.sysconf("SC_CLK_TCK")


def warn_of_slow_build() -> None:
    """Says so where pyhudi was built for debugging."""
    code = "import pyhudi._native as native; print(native.DEBUG_BUILD)"
    printed = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    if b"True" in printed.stdout:
        print("pyhudi was built without optimisation: its figures say nothing", flush=True)


def judge(text: str, ratio: float, most: float) -> list[str]:
    """Prints whether an aim was met; the text in a list if it was missed."""
    text += f", at most {most:.3f} wanted"
    print(f"  {'met' if ratio <= most else 'MISSED'}: {text}", flush=True)
    return [] if ratio <= most else [text]


def setting(given: argparse.Namespace, packages: Sequence[str], **more: Any) -> dict[str, Any]:
    """Under what the figures came about."""
    return {
        "rows": given.rows,
        "codec": given.codec,
        "runs": given.runs,
        **more,
        "processors": os.cpu_count(),
        "architecture": platform.machine(),
        "load at the end": os.getloadavg()[0],
        "versions": {name: metadata.version(name) for name in packages},
    }
