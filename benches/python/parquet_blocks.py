"""Gives log files Parquet data blocks in place of Avro ones, with the same records and headers.

Hudi writes such blocks with `hoodie.logfile.data.block.format=parquet`; pyhudi's own writer does
not. What a log file's rows are is read by pyhudi itself; that they are right is checked by the
benchmark, which compares what every reader gives with what was written.
"""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi import _native
from pyhudi.storage.storage import Storage

_MAGIC = b"#HUDI#"
_FORMAT, _PARQUET_DATA = 1, 5
_HEADER_KEYS = {"INSTANT_TIME": 0, "SCHEMA": 2}


def rewrite_log_files(table: Path, codec: str) -> None:
    """Rewrites every log file with an Avro block; one with deletes alone stays as it is."""
    storage = Storage(str(table))
    for path in sorted(table.glob("*/.*.log.*")):
        name = str(path.relative_to(table))
        blocks = _native.log_blocks(storage.native, name)
        data = [block for block in blocks if block["type"] == "AVRO_DATA_BLOCK"]
        if data and len(data) < len(blocks):
            raise ValueError(f"{name} has other blocks beside those of records")
        if data:
            header = data[0]["header"]
            content = _parquet(_rows(storage, name, header), codec)
            path.write_bytes(_block(header, content))


def _rows(storage: Storage, name: str, header: dict[str, str]) -> pa.Table:
    """The records of a log file; each key comes once in what one commit writes."""
    schema = _native.arrow_schema(header["SCHEMA"])
    reader, _ = _native.read_slice(
        storage.native,
        base=None,
        logs=[name],
        schema=schema,
        columns=schema.names,
        merge_mode="COMMIT_TIME_ORDERING",
    )
    return reader.read_all()


def _parquet(rows: pa.Table, codec: str) -> bytes:
    file = io.BytesIO()
    pq.write_table(rows, file, store_schema=False, coerce_timestamps="us", compression=codec)
    return file.getvalue()


def _block(header: dict[str, str], content: bytes) -> bytes:
    """One framed block (`HoodieLogFormatWriter`, Hudi 1.2.0)."""
    inside = struct.pack(">iii", _FORMAT, _PARQUET_DATA, len(_HEADER_KEYS))
    for name, number in _HEADER_KEYS.items():
        value = header[name].encode()
        inside += struct.pack(">ii", number, len(value)) + value
    inside += struct.pack(">q", len(content)) + content + struct.pack(">i", 0)
    # The length at the front leaves out the magic and itself, the one at the end only itself.
    length = len(inside) + 8
    return _MAGIC + struct.pack(">q", length) + inside + struct.pack(">q", length + len(_MAGIC))
