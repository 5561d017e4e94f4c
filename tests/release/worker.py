"""Calls of pyhudi's public API in one interpreter: a JSON object per line in, one per line out.

The last release and this version both run this script, so it imports nothing else of the
repository. Rows and schemas travel as Arrow IPC in Base64. tests/release/version.py drives it.

    {"create": uri, "arguments": {...}}                   create_table
    {"table": uri, "call": "upsert", "arguments": {...}}  a method of the table
    {"table": uri, "read": {...}}                         rows of a scan
    {"table": uri, "incremental": {...}}                  rows of an incremental query
    {"table": uri, "check": {...}}                        findings of a check
    {"know": "create_table"}                              names of its parameters
"""

from __future__ import annotations

import base64
import inspect
import json
import sys
from typing import Any

import pyarrow as pa

import pyhudi


def decode(value: Any) -> Any:
    """Return a value of a request, with its Arrow data."""
    if isinstance(value, dict) and value.keys() == {"arrow"}:
        rows = pa.ipc.open_stream(base64.b64decode(value["arrow"])).read_all()
        return rows.schema if value["arrow"] and rows.num_rows == 0 else rows
    if isinstance(value, dict):
        return {name: decode(item) for name, item in value.items()}
    return value


def encode(rows: pa.Table) -> dict[str, str]:
    """Return rows for a response."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows)
    return {"arrow": base64.b64encode(sink.getvalue()).decode()}


def answer(request: dict[str, Any]) -> Any:
    """Run a request."""
    if "know" in request:
        return list(inspect.signature(getattr(pyhudi, request["know"])).parameters)
    if "create" in request:
        pyhudi.create_table(request["create"], **decode(request["arguments"]))
        return None
    table = pyhudi.open_table(request["table"], options=request.get("options"))
    if "read" in request:
        return encode(table.scan(**request["read"]).to_arrow())
    if "incremental" in request:
        return encode(table.incremental(**request["incremental"]).to_arrow())
    if "check" in request:
        return [str(finding) for finding in table.check(**request["check"]).findings]
    result = getattr(table, request["call"])(**decode(request["arguments"]))
    return getattr(result, "instant", None)


def respond(response: dict[str, Any]) -> None:
    """Write a line of JSON."""
    sys.stdout.write(json.dumps(response) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Answer requests until the input ends."""
    respond({"pyhudi": pyhudi.__file__})
    for line in sys.stdin:
        try:
            response: dict[str, Any] = {"ok": answer(json.loads(line))}
        except Exception as error:  # noqa: BLE001 - the other process decides which errors are right
            is_typed = isinstance(error, pyhudi.HudiError)
            response = {"error": f"{type(error).__name__}: {error}", "is_typed": is_typed}
        respond(response)


if __name__ == "__main__":
    main()
