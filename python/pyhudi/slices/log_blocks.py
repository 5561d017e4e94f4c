"""Which blocks of a log file are damaged, by their frames and headers."""

from __future__ import annotations

from pyhudi import _native
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage

_CORRUPT = "CORRUPT_BLOCK"


def damaged_blocks(storage: Storage, path: str) -> list[int]:
    """Where damaged blocks begin. Raises `CorruptTable` where not even the first can be told."""
    blocks = _native.log_blocks(storage.native, path)
    return [block["offset"] for block in blocks if block["type"] == _CORRUPT]


def is_torn(storage: Storage, path: str) -> bool:
    """Whether nothing in a log file is whole: its writer died in the first block."""
    try:
        blocks = _native.log_blocks(storage.native, path)
    except CorruptTable:
        return True
    return all(block["type"] == _CORRUPT for block in blocks)
