"""Sizes of memory, as bytes or as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pyhudi.config.memory_size import parse_memory_size
from pyhudi.errors import ConfigError
from tests.helpers.table_builder import SMALL, TableBuilder


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (4096, 4096),
        (np.int64(4096), 4096),
        ("4096", 4096),
        ("1 GiB", 1 << 30),
        ("1GB", 10**9),
        ("512 MiB", 512 << 20),
        ("1.5gib", 3 << 29),
        (" 2 tb ", 2 * 10**12),
        ("0.1 kB", 100),
        ("7 B", 7),
        ("9007199254740993", 9007199254740993),
    ],
)
def test_parse_memory_size(size: int | str, expected: int) -> None:
    assert parse_memory_size(size) == expected


@pytest.mark.parametrize(
    "size", ["", "GiB", "1g", "-1 MB", "1e9", "1 GiB/s", "1.5.2 MB", 1.5, None, True, "8192 PB"]
)
def test_parse_memory_size_refuses_other_text(size: Any) -> None:
    with pytest.raises(ConfigError, match=r'(?s)^memory_limit is .*Hint: .*"512 MiB"'):
        parse_memory_size(size)


@pytest.mark.parametrize("size", ["8388608 TiB", 1 << 63])
def test_parse_memory_size_refuses_large_sizes(size: Any) -> None:
    with pytest.raises(ConfigError, match="is too large"):
        parse_memory_size(size)


def test_methods_take_sizes_as_text(tmp_path: Path) -> None:
    builder = TableBuilder(
        {"id": (pa.string(), str), "fare": (pa.float64(), 1.0)}, options=SMALL, kind="mor"
    )
    table = builder.make(tmp_path / "t", first="ab")
    table.upsert(builder.rows("bc"), memory_limit="64 MiB")
    table.update("id = 'a'", {"fare": "2"}, memory_limit="64MB")
    table.merge(builder.rows("d"), memory_limit="64MB").when_not_matched_insert_all().execute()
    assert table.scan(memory_limit="2 MiB").count() == 4
    assert table.scan(memory_limit="2 MiB").request.memory_limit == (
        table.scan(memory_limit=2 << 20).request.memory_limit
    )
    assert table.compact(memory_limit="16 MiB").instants
    assert not table.check(deep=True, memory_limit="16 MiB")
    with pytest.raises(ConfigError, match="must be at least"):
        table.scan(memory_limit="1 KiB")
    with pytest.raises(ConfigError, match="not a size"):
        table.stream(memory_limit="lots")
