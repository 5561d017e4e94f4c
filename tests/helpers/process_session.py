"""Programs that a test starts and kills with all of their descendants.

Each program has a session of its own (`setsid`), in which descendants stay after their parents have
ended. A guard kills the session if the test run ends without doing it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_GUARD = 'read -r _; pkill -KILL --session "$1"'
"""Waits until the end of its input, which is the end of the process that started it."""


@dataclass(frozen=True)
class Process:
    """A process of this machine."""

    pid: int
    parent: int
    session: int
    command: str

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)


def processes() -> dict[int, Process]:
    """Return all running processes by number."""
    listed = subprocess.run(
        ["ps", "-eww", "-o", "pid=,ppid=,sid=,stat=,args="],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    rows = (line.split(None, 4) for line in listed.splitlines())
    return {
        int(row[0]): Process(int(row[0]), int(row[1]), int(row[2]), row[4])
        for row in rows
        if len(row) > 4 and not row[3].startswith("Z")
    }


class ProcessSession:
    """A program and its descendants."""

    def __init__(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start the program.

        log: gets its output appended. folder: its working folder. environment: more variables.
        """
        self.log = log
        with log.open("ab") as output:
            self._program = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["sh", "-c", _GUARD, "sh", str(self.pid)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The number of the program, and of its session."""
        return self._program.pid

    @property
    def has_ended(self) -> bool:
        """Whether the program has ended by itself, or was killed."""
        return self.return_code is not None

    @property
    def return_code(self) -> int | None:
        """The program's exit code, None while it is running."""
        return self._program.poll()

    def processes(self) -> list[Process]:
        """Return the running processes of the session."""
        return [process for process in processes().values() if process.session == self.pid]

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to all processes."""
        for process in self.processes():
            process.signal(number)

    def kill(self) -> None:
        """Kill all processes, and wait until they have ended."""
        while running := self.processes():
            for process in running:
                process.signal(signal.SIGKILL)
            self._program.wait()
            time.sleep(0.02)
        self._program.wait()
        self._guard.kill()
        self._guard.communicate()

    def kill_program(self) -> None:
        """Kill the program only; its descendants notice it by themselves."""
        self._program.kill()
        self._program.wait()
