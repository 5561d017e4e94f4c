"""Which process does something, so that others on the machine know at once when it has died.

Heartbeats and local locks say it. Where the machine cannot be told from others, nothing is said,
and only time tells.
"""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

_PROCESSES = Path("/proc")
at_work: set[str] = set()
"""Names of what this process keeps alive."""


def owner(name: str) -> bytes:
    """What tells this process and something that it keeps alive; empty where nothing can."""
    here = _this_process(os.getpid())
    return json.dumps({**here, "name": name}).encode() if here else b""


def said_in(content: bytes) -> dict[str, Any]:
    """What a heartbeat or a lock says; nothing where it is of another form, as Hudi's are."""
    try:
        said = json.loads(content)
    except (ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def is_dead_here(content: bytes) -> bool:
    """Whether the process that an `owner` names ran on this machine and is gone.

    Of this process itself: whether it keeps that no more.
    """
    said, here = said_in(content), _this_process(os.getpid())
    if not here or said.get("machine") != here["machine"]:
        return False
    if said.get("pid") == os.getpid():
        return said.get("name") not in at_work
    return _is_gone(said.get("pid"), said.get("started"))


def _is_gone(pid: Any, started: Any) -> bool:
    """Whether no process of that number was started then; not where that cannot be told."""
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
    """pid: its own, which a fork changes."""
    machine, started = _machine(), _start_time(pid)
    if machine is None or started is None:
        return {}
    return {"machine": machine, "pid": pid, "started": started}


def _machine() -> str | None:
    """What is the same for processes that see each other, until the machine starts anew."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except (OSError, UnicodeDecodeError):
        return None


def _start_time(pid: Any) -> str | None:
    """When a process was started, None where there is none that can be seen."""
    try:
        status = (_PROCESSES / f"{int(pid)}/stat").read_bytes()
    except (OSError, TypeError, ValueError, OverflowError):
        return None
    # After the name, which may hold blanks and brackets, the start is the twentieth field.
    fields = status.rpartition(b")")[2].split()
    return fields[19].decode("ascii") if len(fields) > 19 else None
