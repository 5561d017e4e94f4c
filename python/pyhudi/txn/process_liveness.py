"""Liveness of processes, which detects a crash immediately on the same machine.

Heartbeats and local locks contain the process, unless the machine has no identity; then only their
age shows whether their writer is active.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

_PROCESSES = Path("/proc")
active_owners: set[str] = set()
"""Names of the heartbeats and locks that this process keeps alive."""


def owner(name: str) -> bytes:
    """Return the identity of this process with a name in it; empty if the machine has none."""
    process = _this_process(os.getpid())
    return json.dumps({**process, "name": name}).encode() if process else b""


def owner_of_parent(name: str) -> bytes:
    """Return the identity of this process' parent, as `owner` does for this process.

    Of a worker of Spark that is the daemon, which ends with Spark's driver.
    """
    process = _this_process(os.getppid())
    return json.dumps({**process, "name": name}).encode() if process else b""


def parse_json_object(content: bytes) -> dict[str, Any]:
    """Parse a heartbeat or a lock; empty for another format, such as Hudi's."""
    try:
        fields = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


def is_from_dead_process(content: bytes) -> bool:
    """Return whether the content's process ran on this machine and has ended.

    For this process: whether it no longer keeps the content's name alive.
    """
    fields, process = parse_json_object(content), _this_process(os.getpid())
    if not process or fields.get("machine") != process["machine"]:
        return False
    if fields.get("pid") == os.getpid():
        return fields.get("name") not in active_owners
    return _has_ended(fields.get("pid"), fields.get("started"))


def local_process(content: bytes) -> int | None:
    """Return the number of the content's process, None unless it is one of this machine."""
    fields, process = parse_json_object(content), _this_process(os.getpid())
    number = fields.get("pid")
    is_local = bool(process) and fields.get("machine") == process["machine"]
    return number if is_local and isinstance(number, int) else None


def describe(owner: str, content: bytes) -> str:
    """Return an owner with the content's process, if it is one of this machine."""
    number = local_process(content)
    return owner if number is None else f"{owner} (process {number} of this machine)"


def _has_ended(pid: Any, started: Any) -> bool:
    """Return whether no process has this number and start time; False if unknown."""
    now = _start_time(pid)
    if now is not None:
        return bool(now != started)
    # Processes of other users may be hidden (the option hidepid of /proc).
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, TypeError, OverflowError):
        return False
    return False


@cache
def _this_process(pid: int) -> dict[str, Any]:
    """Return the identity of this process. pid: its number, which a fork changes."""
    machine, started = _machine(), _start_time(pid)
    if machine is None or started is None:
        return {}
    return {"machine": machine, "pid": pid, "started": started}


def _machine() -> str | None:
    """Return an id shared by processes that see each other, until the machine restarts."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except (OSError, UnicodeDecodeError):
        return None


def _start_time(pid: Any) -> str | None:
    """Return the start time of a process, None if no such process is visible."""
    try:
        status = (_PROCESSES / f"{int(pid)}/stat").read_bytes()
    except (OSError, TypeError, ValueError, OverflowError):
        return None
    # After the name, which may contain blanks and brackets, the start is the twentieth field.
    fields = status.rpartition(b")")[2].split()
    return fields[19].decode("ascii") if len(fields) > 19 else None
