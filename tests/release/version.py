"""A version of pyhudi in a process of its own, which runs worker.py."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, cast

import pyarrow as pa

WORKER = Path(__file__).with_name("worker.py")


class Refused(Exception):  # noqa: N818 - a refusal is what some tests want
    """A version raised a `HudiError`."""


class Version(AbstractContextManager["Version"]):
    """Calls of one version's API. An error that is no `HudiError` fails the test."""

    def __init__(self, name: str, python: str | Path, path: Path | None = None) -> None:
        """Start the process. path: the directory of the package, if it is not installed."""
        self.name = name
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
        if path is not None:
            environment["PYTHONPATH"] = str(path)
        self._process = subprocess.Popen(
            [str(python), "-W", "ignore", str(WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.package = Path(self._receive()["pyhudi"])

    def __exit__(self, *_: object) -> None:
        cast("IO[str]", self._process.stdin).close()
        cast("IO[str]", self._process.stdout).close()
        assert self._process.wait(60) == 0

    def parameters(self, function: str) -> list[str]:
        """Return the parameters of a public function."""
        return cast("list[str]", self._ask({"know": function}))

    def create(self, base: Path, data: pa.Table | pa.Schema, **arguments: Any) -> None:
        """Create a table with rows, or an empty one."""
        arguments["schema_or_data"] = data
        self._ask({"create": str(base), "arguments": _encode(arguments)})

    def call(self, base: Path, method: str, options: Mapping[str, str], **arguments: Any) -> Any:
        """Call a method of the table, and return the instant of the result."""
        request = {"table": str(base), "options": options, "call": method}
        return self._ask({**request, "arguments": _encode(arguments)})

    def read(self, base: Path, **arguments: Any) -> pa.Table:
        """Return the rows of a scan."""
        return _decode(self._ask({"table": str(base), "read": arguments}))

    def incremental(self, base: Path, **arguments: Any) -> pa.Table:
        """Return the rows of an incremental query."""
        return _decode(self._ask({"table": str(base), "incremental": arguments}))

    def check(self, base: Path) -> list[str]:
        """Return the findings of a deep check."""
        return cast("list[str]", self._ask({"table": str(base), "check": {"deep": True}}))

    def _ask(self, request: dict[str, Any]) -> Any:
        stdin = cast("IO[str]", self._process.stdin)
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        response = self._receive()
        if "ok" in response:
            return response["ok"]
        text = f"{self.name}: {response['error']}"
        if response["is_typed"]:
            raise Refused(text)
        raise AssertionError(text)

    def _receive(self) -> dict[str, Any]:
        line = cast("IO[str]", self._process.stdout).readline()
        assert line, f"{self.name} ended with {self._process.wait(60)}"
        return cast("dict[str, Any]", json.loads(line))


def _encode(value: Any) -> Any:
    if isinstance(value, pa.Schema):
        value = value.empty_table()
    if isinstance(value, pa.Table):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, value.schema) as stream:
            stream.write_table(value)
        return {"arrow": base64.b64encode(sink.getvalue()).decode()}
    if isinstance(value, Mapping):
        return {name: _encode(item) for name, item in value.items()}
    return value


def _decode(value: dict[str, str]) -> pa.Table:
    return pa.ipc.open_stream(base64.b64decode(value["arrow"])).read_all()
