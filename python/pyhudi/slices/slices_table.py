"""File slices as an Arrow table, for inspection."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from pyhudi.slices.file_slice import FileSlice

SLICES = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_instant", pa.string()),
        ("base_file", pa.string()),
        ("base_size", pa.int64()),
        ("log_files", pa.list_(pa.string())),
        ("log_size", pa.int64()),
    ]
)
"""Sizes in bytes; file names without directory."""


def slices_table(slices: Iterable[FileSlice]) -> pa.Table:
    """Return one row per slice; base_file and base_size are null for log files alone."""
    rows = [
        {
            "partition": slice_.partition,
            "file_id": slice_.file_id,
            "base_instant": slice_.base_instant,
            "base_file": slice_.base.name if slice_.base else None,
            "base_size": slice_.base.size if slice_.base else None,
            "log_files": [log.name for log in slice_.logs],
            "log_size": sum(log.size for log in slice_.logs),
        }
        for slice_ in slices
    ]
    return pa.Table.from_pylist(rows, SLICES)
