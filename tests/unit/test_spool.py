"""Batches that are put aside come back, from memory and from disk, as often as asked for."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.engine.spill import Spool

SCHEMA = pa.schema([("n", pa.int64())])


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([number] * 100)], schema=SCHEMA)


@pytest.mark.parametrize("in_memory", [1, 2000, 1 << 20])
def test_batches_come_back_in_order(in_memory: int) -> None:
    spool = Spool(SCHEMA, in_memory)
    for number in range(10):
        spool.add(batch(number))
    assert spool.size == 10 * batch(0).nbytes
    for _ in range(2):
        assert [one["n"][0].as_py() for one in spool.read()] == list(range(10))
    spool.close()
    assert list(spool.read()) == []
