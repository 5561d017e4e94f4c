"""A Java program that answers a line of JSON for each line of JSON that it is asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.helpers.java_server import pyspark_jars
from tests.helpers.oracle.client import oracle_home

_PACKAGES = (
    *("lang", "lang.invoke", "lang.reflect", "util", "util.concurrent", "util.concurrent.atomic"),
    *("nio", "net", "io", "time", "math", "text"),
)
"""Those of Java that Hudi and Hive reflect on."""


class JavaError(Exception):
    """The trace of an exception."""


class JavaLines:
    """The program's process, from `__init__` to `close`."""

    def __init__(self, source: Path, folder: Path, *jars: str) -> None:
        """source: the program. folder: of its log. jars: class path before Hudi's bundle."""
        bundle = oracle_home() / "jars" / "hudi-spark3.5-bundle_2.12-1.2.0.jar"
        classes = ":".join([*jars, str(bundle), pyspark_jars()])
        opened = [f"--add-opens=java.base/java.{name}=ALL-UNNAMED" for name in _PACKAGES]
        settings = ("-Xmx1g", "-Duser.timezone=UTC", "-Dlog4j2.level=WARN")
        self._log = (folder / f"{source.stem}.log").open("wb")
        self._process = subprocess.Popen(
            ["java", *opened, *settings, "-cp", classes, str(source)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            encoding="utf-8",
        )

    def ask(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the answer. Raises `JavaError` with the program's trace."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(Path(self._log.name).read_text(errors="replace")[-4000:])
        answer: Mapping[str, Any] = json.loads(line)
        if "error" in answer:
            raise JavaError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.communicate()
        self._log.close()
