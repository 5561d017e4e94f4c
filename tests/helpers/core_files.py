"""Files written by the core itself where a test has no table: as a table's are by default."""

from __future__ import annotations

from typing import Any

from pyhudi import _native
from pyhudi.config.write_options import WriteOptions

_OPTIONS = WriteOptions()
_BASE = {
    name: getattr(_OPTIONS, name)
    for name in (
        "codec",
        "row_group_bytes",
        "page_bytes",
        "dictionary",
        "bloom_type",
        "bloom_entries",
        "bloom_by_keys",
        "bloom_fpp",
        "bloom_max_entries",
    )
}


def write_base_file(store: _native.Store, path: str, rows: Any, **spec: Any) -> _native.BaseFile:
    return _native.write_base_file(store, path, rows, **{**_BASE, **spec})


def write_log_files(store: _native.Store, next_path: Any, **spec: Any) -> list[_native.LogFile]:
    defaults = {
        "codec": _OPTIONS.codec,
        "blocks": _OPTIONS.log_blocks,
        "block_bytes": _OPTIONS.log_block_bytes,
        "file_bytes": _OPTIONS.log_file_bytes,
    }
    return _native.write_log_files(store, next_path, **{**defaults, **spec})
