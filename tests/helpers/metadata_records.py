"""Records of the metadata table as they are stored, field by field: to compare with Hudi's own.

pyhudi's readers give what records mean; here nothing is merged and nothing is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyhudi import _native

Record = dict[str, Any]
_SYNC = b"0123456789abcdef"


def stored_records(folder: Path) -> Iterator[tuple[str, Record]]:
    """Keys and records of all HFiles and log files of a partition's folder, by file name."""
    store = _native.Store(str(folder))
    for path in sorted(folder.iterdir()):
        if path.name.endswith(".hfile"):
            schema = _native.hfile_info(store, path.name, "schema")
            yield from decode((schema or b"").decode(), _native.hfile_pairs(store, path.name))
        elif ".log." in path.name and not path.name.endswith(".crc"):
            yield from _in_log(folder, path)


def decode(schema: str, pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[tuple[str, Record]]:
    """Records out of Avro bytes, without meta fields and what is null."""
    keys, values = zip(*pairs, strict=True)
    _, text = _native.container_to_json(_container(schema, values))
    for key, record in zip(keys, json.loads(text), strict=True):
        yield key.decode(), _plain(record)


def _in_log(folder: Path, path: Path) -> Iterator[tuple[str, Record]]:
    data = path.read_bytes()
    for block in _native.log_blocks(_native.Store(str(folder)), path.name):
        if block["type"] != "HFILE_DATA_BLOCK":
            continue
        start = block["content_offset"]
        part = path.with_name("part")
        part.write_bytes(data[start : start + block["content_size"]])
        store = _native.Store(str(folder))
        schema = _native.hfile_info(store, part.name, "schema")
        pairs = _native.hfile_pairs(store, part.name)
        part.unlink()
        yield from decode((schema or b"").decode(), pairs)


def _plain(record: Record) -> Record:
    return {
        name: value
        for name, value in record.items()
        if value is not None and name != "key" and not name.startswith("_hoodie")
    }


def _container(schema: str, values: Iterable[bytes]) -> bytes:
    """An Avro container with one block."""
    rows = list(values)
    body = b"".join(rows)
    facts = _bytes(b"avro.schema") + _bytes(schema.encode())
    facts += _bytes(b"avro.codec") + _bytes(b"null")
    block = _long(len(rows)) + _long(len(body)) + body
    return b"Obj\x01" + _long(2) + facts + _long(0) + _SYNC + block + _SYNC


def _bytes(data: bytes) -> bytes:
    return _long(len(data)) + data


def _long(number: int) -> bytes:
    """Avro's form of a number that is not negative."""
    number <<= 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
