from __future__ import annotations

import pickle
from random import Random

import pyarrow as pa
import pytest

from pyhudi.slices import row_selection
from pyhudi.slices.row_selection import SelectedRows


def chunked(lengths: list[int]) -> pa.Table:
    """Rows 0, 1, 2 and so on, in batches of these lengths."""
    batches, first = [], 0
    for length in lengths:
        batches.append(pa.record_batch({"n": pa.array(range(first, first + length), pa.int64())}))
        first += length
    return pa.Table.from_batches(batches, pa.schema([("n", pa.int64())]))


@pytest.mark.parametrize("seed", range(20))
def test_selected_rows_equal_take(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_selection, "_BATCH_ROWS", 3)
    random = Random(seed)
    table = chunked([random.choice([0, 1, 2, 7, 30]) for _ in range(random.randint(1, 8))])
    numbers = [row for row in range(table.num_rows) if random.random() < 0.4]
    rows = SelectedRows(table, pa.array(numbers, pa.int64()))
    assert pa.table(rows)["n"].to_pylist() == numbers
    assert all(batch.num_rows in {1, 2, 3} for batch in rows.batches())
    assert (rows.num_rows, len(rows)) == (len(numbers), len(numbers))
    assert pa.table(rows.slice(2, 5))["n"].to_pylist() == numbers[2:7]
    assert pa.table(rows.slice(1))["n"].to_pylist() == numbers[1:]


def test_pickled_selection_contains_rows() -> None:
    rows = SelectedRows(chunked([2, 3]), pa.array([1, 2], pa.int64()))
    assert pickle.loads(pickle.dumps(rows)).equals(pa.table({"n": pa.array([1, 2], pa.int64())}))


def test_empty_selection_keeps_schema() -> None:
    rows = SelectedRows(chunked([]), pa.array([], pa.int64()))
    assert pa.table(rows).equals(chunked([]))


def test_columns_with_the_same_values_are_copied_once() -> None:
    """The record key often is a column of the data."""
    keys = pa.array(["a", "b", "c"])
    table = pa.table({"key": keys, "n": pa.array([1, 2, 3]), "id": keys, "other": ["a", "b", "c"]})
    (batch,) = SelectedRows(table, pa.array([0, 2], pa.int64())).batches()
    assert batch.to_pydict() == table.take([0, 2]).to_pydict()
    addresses = [column.buffers()[-1].address for column in batch.columns]
    assert addresses[0] == addresses[2] != addresses[3]
