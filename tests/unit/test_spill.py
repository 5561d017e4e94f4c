"""Spilled batches can be read repeatedly, from memory and from disk."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.engine.spill import Spill

SCHEMA = pa.schema([("n", pa.int64())])


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([number] * 100)], schema=SCHEMA)


@pytest.mark.parametrize("in_memory", [1, 2000, 1 << 20])
def test_batches_come_back_in_order(in_memory: int) -> None:
    spill = Spill(SCHEMA, in_memory)
    for number in range(10):
        spill.add(batch(number))
    assert spill.size == 10 * batch(0).nbytes
    for _ in range(2):
        assert [one["n"][0].as_py() for one in spill.read()] == list(range(10))
    spill.close()
    assert list(spill.read()) == []
