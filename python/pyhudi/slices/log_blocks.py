"""What the frames and headers of a log file's blocks say: damage, and whose blocks they are."""

from __future__ import annotations

from pyhudi import _native
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage

_CORRUPT = "CORRUPT_BLOCK"


def find_corrupt_blocks(storage: Storage, path: str) -> list[int]:
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


def block_instants(storage: Storage, path: str) -> list[str]:
    """The instants whose blocks a log file holds, in their order; each once.

    Of blocks that call others off as well, by the instant of their rollback.
    """
    blocks = _native.log_blocks(storage.native, path)
    headers = (block["header"] for block in blocks if block["type"] != _CORRUPT)
    return list(dict.fromkeys(header.get("INSTANT_TIME", "") for header in headers))
