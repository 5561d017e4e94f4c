"""Lookups on a handle that is kept: what they read, and what they return while others write."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pyhudi
from pyhudi import HistoryUnavailable, HudiTable
from tests.helpers.table_builder import TableBuilder
from tests.unit.test_storage_calls import counted, python_calls

ROWS = 20_000
MOST_PYTHON_CALLS = 34
"""27 of a lookup in a file that is known, 31 of two keys."""

TABLE = TableBuilder(
    {
        "id": (pa.string(), lambda number: f"k{number * 7919 % ROWS:05d}"),
        "part": (pa.string(), lambda number: f"p{number % 2}"),
        "v": (pa.int64(), lambda number: number),
        "note": (pa.string(), lambda number: f"note {number * 104_729 % 1_000_003}"),
        "ts": (pa.int64(), 1),
    },
    partition_by="part",
    order_by="ts",
    options={"hoodie.parquet.page.size": "4096", "hoodie.parquet.dictionary.enabled": "false"},
)


def key(number: int) -> str:
    return f"k{number * 7919 % ROWS:05d}"


def bytes_read(work: Callable[[], Any]) -> int:
    """What the process reads from files meanwhile."""
    return reads(work)[0]


def reads(work: Callable[[], Any]) -> tuple[int, int]:
    """The bytes that the process reads from files meanwhile, and its calls for them."""

    def so_far() -> tuple[int, int]:
        words = Path("/proc/self/io").read_text("ascii").split()
        return int(words[1]), int(words[5])

    before = so_far()
    work()
    after = so_far()
    return after[0] - before[0], after[1] - before[1]


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One of each type; the merge-on-read one has log files in one partition."""
    bases = {kind: tmp_path_factory.mktemp(kind) for kind in ("cow", "mor")}
    for kind, base in bases.items():
        table = TABLE.make(base, kind=kind)
        table.bulk_insert(TABLE.rows(range(ROWS)))
        table.upsert(TABLE.rows(range(0, 4000, 2), v=-1, ts=2))
    return bases


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_warm_lookup_reads_pages_of_row(
    tables: dict[str, Path], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After lookups in each partition and in each file group of the index."""
    table = pyhudi.open_table(tables[kind])
    assert table.get([key(number) for number in range(0, ROWS, 99)]).num_rows == 203
    size = sum(table.scan().plan()["base_size"].to_pylist())
    measurement = bytes_read(lambda: None)
    for number, value in ((10_000, 10_000), (10_001, 10_001), (3000, -1)):
        rows: list[pa.Table] = []
        with monkeypatch.context() as patch:
            calls = counted(patch)
            read = bytes_read(lambda: rows.append(table.get([key(number)])))  # noqa: B023
        assert rows[0]["v"].to_pylist() == [value]
        assert calls.total() == 0
        assert read - measurement < size / 8, (number, read, size)
    assert bytes_read(lambda: table.get([key(10_000)])) == measurement  # It was read before.


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_lookup_reads_dictionary_once(tmp_path: Path, kind: Any) -> None:
    """A dictionary of each column, as large as hundreds of pages, with nulls and strings."""
    values = [None if number % 9 == 0 else number * 104_729 for number in range(ROWS)]
    names = [None if number % 7 == 0 else f"note {number * 104_729}" for number in range(ROWS)]
    rows = pa.table(
        {"id": [f"k{number:05d}" for number in range(ROWS)], "v": values, "name": names}
    )
    options = {"hoodie.parquet.page.size": "4096"}
    made = pyhudi.create_table(tmp_path / "t", rows.schema, key="id", type=kind, options=options)
    made.bulk_insert(rows)
    table = pyhudi.open_table(tmp_path / "t")
    size = sum(table.scan().plan()["base_size"].to_pylist())
    table.get([f"k{number:05d}" for number in range(0, ROWS, 99)])
    for number in range(40):  # In each file group of the index.
        table.get([f"k{number:05d}"])
    nothing = reads(lambda: None)
    for number in (7000, 7002, 7003, 19_998):  # Among them nulls of either column.
        answers: list[pa.Table] = []
        read, calls = reads(lambda: answers.append(table.get([f"k{number:05d}"])))  # noqa: B023
        assert answers[0].to_pydict() == rows.slice(number, 1).to_pydict()
        assert read - nothing[0] < size / 20, (number, read, size)
        assert calls - nothing[1] <= 8


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_lookup_returns_values_of_each_type(tmp_path: Path, kind: Any) -> None:
    """Lists, maps, structs and nulls too, on pages of few rows and of several row groups."""
    numbers = range(600)
    gaps: Callable[[int, Any], Any] = lambda number, value: None if number % 7 == 3 else value  # noqa: E731
    columns = {
        "id": pa.array([f"k{number:04d}" for number in numbers]),
        "bits": pa.array([gaps(number, number % 3 == 0) for number in numbers]),
        "list": pa.array(
            [gaps(number, [number, -number, number + 1][: number % 4]) for number in numbers],
            pa.list_(pa.int64()),
        ),
        "texts": pa.array(
            [[f"a{number % 5}"] * (number % 3) for number in numbers], pa.list_(pa.string())
        ),
        "map": pa.array(
            [gaps(number, [(f"m{number % 9}", number)]) for number in numbers],
            pa.map_(pa.string(), pa.int32()),
        ),
        "struct": pa.array(
            [gaps(number, {"a": gaps(number + 1, number), "b": f"b{number}"}) for number in numbers]
        ),
        "price": pa.array(numbers, pa.int64()).cast(pa.decimal128(21, 2)),
        "day": pa.array(numbers, pa.int32()).cast(pa.date32()),
        "at": pa.array(numbers, pa.int64()).cast(pa.timestamp("us", "UTC")),
        "raw": pa.array([gaps(number, bytes([number % 251])) for number in numbers]),
        "none": pa.array([None] * len(numbers), pa.float64()),
    }
    rows = pa.table(columns)
    options = {"hoodie.parquet.page.size": "256", "hoodie.parquet.block.size": "20000"}
    table = pyhudi.create_table(tmp_path, rows.schema, key="id", type=kind, options=options)
    table.bulk_insert(rows)
    table.upsert(rows.slice(40, 5))
    scanned = table.to_arrow()
    table = pyhudi.open_table(tmp_path)
    for number in (0, 3, 41, 299, 599):
        key = f"k{number:04d}"
        assert table.get([key]) == scanned.filter(pc.field("id") == key)
    keys = [f"k{number:04d}" for number in range(0, 600, 11)]
    expected = scanned.filter(pc.field("id").isin(keys)).sort_by("id")
    assert table.get(keys) == expected
    assert table.get(keys, columns=["texts", "id"]) == expected.select(["texts", "id"])


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_lookup_finds_keys_that_moved(tmp_path: Path, kind: Any) -> None:
    """Keys that were moved to another partition, deleted or inserted again; some are not ASCII."""
    names = [f"k{number}" for number in range(30)]
    names += ["\u043a\u043b\u044e\u0447", "\U0001f600x", "\ufffdy", "k\u00e9"]

    def rows(chosen: list[str], part: str, at: int) -> pa.Table:
        count = len(chosen)
        return pa.table({"id": chosen, "part": [part] * count, "ts": [at] * count})

    options = {"hoodie.record.index.update.partition.path": "true"}
    first = rows(names, "p0", 1)
    table = pyhudi.create_table(
        tmp_path,
        first,
        key="id",
        partition_by="part",
        order_by="ts",
        type=kind,
        options=options,
    )
    table.upsert(rows(names[::2], "p1", 2))
    table.delete_keys(pa.table({"id": names[::5], "part": ["p0"] * len(names[::5])}))
    table.upsert(rows([*names[1::5], names[30]], "p2", 3))
    rest = {row["id"]: row for row in table.to_arrow().to_pylist()}
    for moved in (names[2], names[0], names[1]):
        # The index has its earlier file group, too, which still has other keys.
        handle = pyhudi.open_table(tmp_path)
        assert handle.get([moved]).num_rows == (moved in rest)
        assert [handle.get([name]).num_rows for name in rest] == [1] * len(rest)
    asked = [*reversed(names), "k99", "\ufffd"]
    for handle in (table, pyhudi.open_table(tmp_path)):
        expected = {row["id"]: row for row in handle.to_arrow().to_pylist()}
        there = [expected[name] for name in asked if name in expected]
        assert handle.get(asked).to_pylist() == there
        for name in names:
            found = handle.get([name]).to_pylist()
            assert found == [expected[name]] if name in expected else found == []


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_warm_lookup_has_expected_python_calls(tables: dict[str, Path], kind: str) -> None:
    table = pyhudi.open_table(tables[kind])
    table.get([key(number) for number in range(0, ROWS, 99)])
    table.get([key(12)])
    assert python_calls(lambda: table.get([key(12)])) <= MOST_PYTHON_CALLS
    assert python_calls(lambda: table.get([key(10_000)])) <= MOST_PYTHON_CALLS
    assert python_calls(lambda: table.get([key(10_001), key(3)])) <= MOST_PYTHON_CALLS


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_threads_share_a_handle(tables: dict[str, Path], kind: str) -> None:
    table = pyhudi.open_table(tables[kind])
    expected = dict(zip(*map(pa.ChunkedArray.to_pylist, table.to_arrow(["id", "v"])), strict=True))

    def look_up(number: int) -> bool:
        keys = [key(number * each % ROWS) for each in (17, 1, 29)]
        distinct = list(dict.fromkeys(keys))
        rows = {"id": distinct, "v": [expected[name] for name in distinct]}
        return bool(table.get(keys, columns=["id", "v"]).to_pydict() == rows)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(look_up, range(200)))


def test_handle_keeps_bounded_memory(
    tables: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyhudi.query import key_reader  # noqa: PLC0415 - the constants of this module

    monkeypatch.setattr(key_reader, "_ROWS_BYTES", 100_000)
    monkeypatch.setattr(key_reader, "_INDEX_BYTES", 100_000)
    table = pyhudi.open_table(tables["mor"])
    for number in range(0, 4000, 7):
        assert table.get([key(number)]).num_rows == 1
    assert table._key_readers._cache.bytes <= 100_000


STEPS: dict[str, Callable[[HudiTable], Any]] = {
    "upsert": lambda table: table.upsert(TABLE.rows(range(0, 40, 3), v=-2, ts=3)),
    "delete": lambda table: table.delete_keys(TABLE.rows(range(1, 40, 5)).select(["id", "part"])),
    "compact": lambda table: table.compact() if table.type == "mor" else None,
    "cluster": lambda table: table.cluster(sort_by=["id"]),
    "clean": lambda table: table.clean(retain=1),
    "upsert again": lambda table: table.upsert(TABLE.rows(range(0, 40, 4), v=-3, ts=4)),
    "clean again": lambda table: table.clean(retain=1),
}


@pytest.mark.parametrize("metadata", [True, False])
@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("version", [6, 9])
def test_lookups_equal_scans_while_others_write(
    tmp_path: Path, version: int, kind: Any, metadata: bool
) -> None:
    """Handles opened before each step, some of them used at once and some for the first time."""
    index = None if metadata else "bloom"
    options = {"hoodie.clean.automatic": "false", "hoodie.metadata.enable": str(metadata).lower()}
    make = {"version": version, "kind": kind, "index": index, "metadata": metadata}
    writer = TABLE.make(tmp_path, **make, options=options)
    writer.upsert(TABLE.rows(range(40)))
    keys = [key(number) for number in (39, *range(20), 100)]
    handles: list[tuple[HudiTable, dict[str, int]]] = []
    for step, work in STEPS.items():
        rows = writer.refresh().to_arrow(["id", "v"])
        expected = dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))
        warm, cold = pyhudi.open_table(tmp_path), pyhudi.open_table(tmp_path)
        warm.get(keys)
        handles += [(warm, expected), (cold, expected)]
        work(writer)
        for handle, snapshot in handles:
            _check_snapshot(handle, keys, snapshot, step)
        for handle, _ in handles[-2:]:
            current = writer.refresh().get(keys)
            assert handle.refresh().get(keys) == current == _scanned(writer, keys)
        handles = [pair for pair in handles if pair[0] is not warm and pair[0] is not cold]
        handles.append((pyhudi.open_table(tmp_path), _values(writer)))


def _check_snapshot(
    handle: HudiTable, keys: list[str], snapshot: dict[str, int], step: str
) -> None:
    """The lookup has the rows of the handle's snapshot, or fails as a scan does."""
    try:
        rows = handle.get(keys, columns=["id", "v"])
    except HistoryUnavailable:
        with pytest.raises(HistoryUnavailable):
            handle.to_arrow()
        return
    there = [name for name in keys if name in snapshot]
    assert rows.to_pydict() == {"id": there, "v": [snapshot[name] for name in there]}, step


def _values(table: HudiTable) -> dict[str, int]:
    rows = table.refresh().to_arrow(["id", "v"])
    return dict(zip(rows["id"].to_pylist(), rows["v"].to_pylist(), strict=True))


def _scanned(table: HudiTable, keys: list[str]) -> pa.Table:
    rows = table.to_arrow().filter(pc.field("id").isin(keys))
    order = {name: number for number, name in enumerate(keys)}
    numbers = pa.array([order[name] for name in rows["id"].to_pylist()], pa.int32())
    return rows.append_column("order", numbers).sort_by("order").drop_columns(["order"])


def test_readers_are_pickled_without_their_memory(tables: dict[str, Path]) -> None:
    table = pyhudi.open_table(tables["cow"])
    table.get([key(1)])
    copy = pickle.loads(pickle.dumps(table._key_readers))  # noqa: S301
    assert table._key_readers._cache.bytes > copy._cache.bytes == 0
