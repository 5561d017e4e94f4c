"""Log blocks that pyhudi's own writer does not make: partial rows, positions, ordered deletes.

For tests only: bytes by the layout of Hudi's log format version 1 (`HoodieLogFormatWriter`, Hudi
1.2.0), made by hand so that the reader is not checked against its own writer.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import io
import json
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

COMMAND, DELETE, AVRO_DATA, PARQUET_DATA = 0, 1, 3, 5
INSTANT_TIME, SCHEMA, COMPACTED_BLOCK_TIMES, RECORD_POSITIONS = 0, 2, 4, 5
IS_PARTIAL, BASE_INSTANT_OF_POSITIONS = 7, 8

Ordering = tuple[str, Any]
"""The class of a delete record's ordering value, and the value."""

_BRANCHES = {
    "null": 0,
    "boolean": 1,
    "int": 2,
    "long": 3,
    "string": 7,
    "date": 8,
    "decimal": 9,
    "timestamp": 11,
    "array": 12,
}
_DELETE_SCALE = 15
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def headers(
    instant: str,
    schema: str | None = None,
    *,
    partial: bool = False,
    compacted: Sequence[str] = (),
    positions: str | None = None,
    base_instant: str | None = None,
) -> dict[int, str]:
    """The header of a data or delete block."""
    found = {
        RECORD_POSITIONS: positions,
        INSTANT_TIME: instant,
        SCHEMA: schema,
        IS_PARTIAL: "true" if partial else None,
        COMPACTED_BLOCK_TIMES: ",".join(compacted) or None,
        BASE_INSTANT_OF_POSITIONS: base_instant,
    }
    return {key: value for key, value in found.items() if value is not None}


def block(kind: int, header: Mapping[int, str], content: bytes) -> bytes:
    """One framed block."""
    entries = [
        struct.pack(">ii", key, len(value.encode())) + value.encode()
        for key, value in header.items()
    ]
    inside = struct.pack(">iii", 1, kind, len(entries)) + b"".join(entries)
    inside += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    # The length at the end counts magic and length at the front, not itself.
    length = len(inside) + 8
    return b"#HUDI#" + struct.pack(">q", length) + inside + struct.pack(">q", length + 6)


def avro_block(header: Mapping[int, str], rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A data block of rows with exactly the fields of the header's schema."""
    schema = json.loads(header[SCHEMA])
    records = [datum(schema, row) for row in rows]
    content = struct.pack(">ii", 3, len(records))
    content += b"".join(struct.pack(">i", len(record)) + record for record in records)
    return block(AVRO_DATA, header, content)


def parquet_block(header: Mapping[int, str], rows: pa.Table) -> bytes:
    """A data block whose content is a whole Parquet file."""
    file = io.BytesIO()
    pq.write_table(rows, file, store_schema=False, coerce_timestamps="us")
    return block(PARQUET_DATA, header, file.getvalue())


def delete_block(header: Mapping[int, str], records: Sequence[tuple[str, str, Ordering]]) -> bytes:
    """A delete block of (record key, partition path, ordering value)."""
    return block(DELETE, header, delete_content(records))


def delete_content(records: Sequence[tuple[str, str, Ordering]]) -> bytes:
    """What a delete block has after its header."""
    body = _long(len(records)) if records else b""
    for key, partition, ordering in records:
        body += _long(1) + _text(key) + _long(1) + _text(partition) + _ordering(ordering)
    body += _long(0)
    return struct.pack(">ii", 3, len(body)) + body


def positions(rows: Sequence[int]) -> str:
    """Row numbers as a RECORD_POSITIONS header: a 64-bit Roaring bitmap of array containers."""
    highs: dict[int, list[int]] = {}
    for row in sorted(set(rows)):
        highs.setdefault(row >> 32, []).append(row & 0xFFFFFFFF)
    body = struct.pack("<q", len(highs))
    for high, lows in highs.items():
        body += struct.pack("<I", high) + _bitmap(lows)
    return base64.b64encode(body).decode()


def _bitmap(lows: Sequence[int]) -> bytes:
    containers: dict[int, list[int]] = {}
    for low in lows:
        containers.setdefault(low >> 16, []).append(low & 0xFFFF)
    no_runs = 12346
    head = struct.pack("<II", no_runs, len(containers))
    for key, values in containers.items():
        head += struct.pack("<HH", key, len(values) - 1)
    offset, offsets, body = len(head) + 4 * len(containers), b"", b""
    for values in containers.values():
        offsets += struct.pack("<I", offset + len(body))
        body += struct.pack(f"<{len(values)}H", *values)
    return head + offsets + body


def datum(schema: Any, value: Any) -> bytes:
    """A value in Avro's binary encoding."""
    if isinstance(schema, list):
        branch = next(at for at, one in enumerate(schema) if (one == "null") == (value is None))
        return _long(branch) + (b"" if value is None else datum(schema[branch], value))
    kind = schema["type"] if isinstance(schema, dict) else schema
    if isinstance(kind, dict | list):
        return datum(kind, value)
    logical = schema.get("logicalType") if isinstance(schema, dict) else None
    if kind == "record":
        return b"".join(datum(field["type"], value[field["name"]]) for field in schema["fields"])
    if kind == "array":
        items = b"".join(datum(schema["items"], item) for item in value)
        return (_long(len(value)) + items if value else b"") + _long(0)
    if logical == "decimal":
        return _decimal(schema, value)
    if kind in {"int", "long"}:
        return _long(_whole(value))
    if kind == "boolean":
        return bytes([value])
    if kind == "double":
        return struct.pack("<d", value)
    if kind in {"string", "bytes"}:
        data = value.encode() if isinstance(value, str) else value
        return _long(len(data)) + bytes(data)
    raise NotImplementedError(f"{schema}")


def _whole(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // datetime.timedelta(microseconds=1)
    return int(value)


def _decimal(schema: Mapping[str, Any], value: decimal.Decimal) -> bytes:
    unscaled = int(value.scaleb(schema["scale"]))
    if schema["type"] == "fixed":
        return unscaled.to_bytes(schema["size"], "big", signed=True)
    data = unscaled.to_bytes(unscaled.bit_length() // 8 + 1, "big", signed=True)
    return _long(len(data)) + data


def _ordering(ordering: Ordering) -> bytes:
    kind, value = ordering
    branch = _long(_BRANCHES[kind])
    match kind:
        case "null":
            return branch
        case "array":
            parts = b"".join(_ordering(part) for part in value)
            return branch + _long(1) + _long(len(value)) + parts + _long(0)
        case "decimal":
            return branch + _decimal({"type": "bytes", "scale": _DELETE_SCALE}, value)
        case "timestamp":
            return branch + datum("long", value)
        case _:
            return branch + datum(kind, value)


def _text(text: str) -> bytes:
    return datum("string", text)


def _long(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    data = bytearray()
    while zigzag > 0x7F:
        data.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    data.append(zigzag)
    return bytes(data)
