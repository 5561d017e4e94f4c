"""Frames and headers of a log file's blocks: torn files, and the instants of the blocks."""

from __future__ import annotations

from pyhudi import _native
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage

_CORRUPT = "CORRUPT_BLOCK"


def is_torn(storage: Storage, path: str) -> bool:
    """Return whether a log file has no whole block: its writer failed in the first one."""
    try:
        blocks = _native.log_blocks(storage.native, path)
    except CorruptTable:
        return True
    return all(block["type"] == _CORRUPT for block in blocks)


def block_instants(storage: Storage, path: str) -> list[str]:
    """Return the instants of the blocks of a log file, in their order; each once.

    Command blocks that roll back others count too, with the instant of their rollback.
    """
    blocks = _native.log_blocks(storage.native, path)
    headers = (block["header"] for block in blocks if block["type"] != _CORRUPT)
    return list(dict.fromkeys(header.get("INSTANT_TIME", "") for header in headers))
