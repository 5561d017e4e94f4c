"""Parts of keys by hash, for shuffles and key lookups."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native

PARTS = 1 << 12


def test_key_part_contains_its_keys() -> None:
    keys = pa.array([f"k{n}" for n in range(100)])
    found = _native.parts_with_keys(keys, PARTS)
    assert len(found) == PARTS
    assert pc.all(found.take(_native.key_parts(keys, PARTS))).as_py()
    assert 90 <= found.true_count <= 100


def test_other_keys_seldom_are() -> None:
    found = _native.parts_with_keys(pa.array(["a", None, "b"]), PARTS)
    others = pa.array([f"k{n}" for n in range(1000)])
    assert found.true_count == 2
    assert found.take(_native.key_parts(others, PARTS)).true_count < 10


def test_parts_of_empty_keys_are_empty() -> None:
    assert _native.parts_with_keys(pa.array([], pa.string()), PARTS).true_count == 0
