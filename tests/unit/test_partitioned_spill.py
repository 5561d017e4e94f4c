from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi.engine.spill import PartitionedSpill
from pyhudi.errors import StorageError


def rows(first: int, count: int) -> pa.Table:
    return pa.table({"n": list(range(first, first + count)), "text": ["x" * 20] * count})


def filled(spill: PartitionedSpill[str]) -> None:
    for first in range(0, 1000, 100):
        part = rows(first, 100)
        routes = pa.array([f"r{n % 3}" for n in part["n"].to_pylist()])
        spill.add(routes, part)


def test_rows_come_back_by_route_in_their_order() -> None:
    for in_memory in (1, 3000, 1 << 20):
        with PartitionedSpill[str](in_memory) as spill:
            filled(spill)
            found = spill.routes()
            assert list(found) == ["r0", "r1", "r2"]
            for number, part in enumerate(found.values()):
                assert part.to_table()["n"].to_pylist() == list(range(number, 1000, 3))
                assert pa.table(part).equals(part.to_table())


def test_slices_and_sums_of_rows() -> None:
    with PartitionedSpill[str](3000) as spill:
        filled(spill)
        part = spill.routes()["r1"]
        numbers = part.to_table()["n"].to_pylist()
        assert part.slice(30, 200).to_table()["n"].to_pylist() == numbers[30:230]
        assert len(part.slice(300)) == len(part) - 300
        both = part.slice(0, 2) + part.slice(5, 1)
        assert both.to_table()["n"].to_pylist() == [*numbers[:2], numbers[5]]


def test_spill_run_is_sorted_within_route() -> None:
    with PartitionedSpill[str](1 << 20, order=("n",)) as spill:
        part = rows(0, 50)
        spill.add(pa.array(["a"] * 50), part.take(pa.array(range(49, -1, -1))))
        assert spill.routes()["a"].to_table()["n"].to_pylist() == list(range(50))


def test_pickled_rows_do_not_need_the_spill() -> None:
    with PartitionedSpill[int](1) as spill:
        spill.add(pa.array([7] * 10), rows(0, 10))
        pickled = pickle.dumps(spill.routes()[7])
    assert pickle.loads(pickled)["n"].to_pylist() == list(range(10))


def test_empty_spill_has_no_routes() -> None:
    with PartitionedSpill[int](1) as spill:
        assert spill.routes() == {}


def test_spill_disk_failure_raises_storage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    with pytest.raises(StorageError, match="local files failed"):
        PartitionedSpill(1)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with PartitionedSpill[str](1) as spill:
        for folder in tmp_path.iterdir():
            folder.rmdir()
        with pytest.raises(StorageError, match="local files failed"):
            spill.add(pa.array(["a"]), pa.table({"a": [1]}))
