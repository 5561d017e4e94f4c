"""A server of the tests: a process that says in its first lines where it listens."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def end(process: subprocess.Popen[bytes]) -> None:
    """Ends a process, by force where it does not listen."""
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class ServerProcess:
    """Runs until `close`. What it says goes to a file."""

    def __init__(self, command: Sequence[str], folder: Path, env: Mapping[str, str]) -> None:
        """Returns when it listens. folder: where it runs, and says what it does."""
        log = folder / "server.log"
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env={**os.environ, **env},
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
        self.url = self._wait(log)

    def write(self, text: str) -> None:
        """Gives it input."""
        assert self._process.stdin is not None
        self._process.stdin.write(text.encode())
        self._process.stdin.flush()

    def close(self) -> None:
        """Ends it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        end(self._process)

    def _wait(self, log: Path) -> str:
        for _ in range(600):
            said = re.search(r"listens on (\w+://[\d.]+:\d+)", log.read_text())
            if said:
                return said[1]
            if self._process.poll() is not None:
                break
            time.sleep(0.1)
        self.close()
        raise RuntimeError(f"the server did not start; see {log}")
