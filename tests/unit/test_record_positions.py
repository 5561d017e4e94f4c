"""Record positions of log blocks: what they change, and when keys decide in their place."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow as pa
import pytest

from pyhudi import _native
from tests.helpers import log_bytes
from tests.helpers.core_files import write_base_file
from tests.helpers.log_bytes import Ordering

SCHEMA = pa.schema([("_hoodie_record_key", pa.string()), ("n", pa.int64())])
AVRO = _native.avro_schema(SCHEMA, "r", "n")
BASE = "20260101000000000"
Rows = list[tuple[str, int]]


def table(rows: Rows) -> pa.Table:
    return pa.table([[key for key, _ in rows], [n for _, n in rows]], schema=SCHEMA)


def header(positions: str | None, base: str | None = BASE, instant: str = "2") -> dict[int, str]:
    return log_bytes.headers(instant, AVRO, positions=positions, base_instant=base)


def data(rows: Rows, positions: str | None, base: str | None = BASE, instant: str = "2") -> bytes:
    named = [{"_hoodie_record_key": key, "n": n} for key, n in rows]
    return log_bytes.avro_block(header(positions, base, instant), named)


def merged(
    folder: Path, base: Rows, *blocks: bytes, by_position: bool = True, ordering: bool = False
) -> tuple[Rows, bool]:
    """The slice's rows, and whether positions were used."""
    store = _native.Store(str(folder))
    store.delete("b.parquet")
    write_base_file(store, "b.parquet", table(base), avro_schema=AVRO)
    store.put(".l", b"".join(blocks))
    reader, stats = _native.read_slice(
        store,
        base="b.parquet",
        logs=[".l"],
        schema=SCHEMA,
        columns=SCHEMA.names,
        merge_mode="EVENT_TIME_ORDERING" if ordering else "COMMIT_TIME_ORDERING",
        ordering_fields=["n"] if ordering else [],
        base_instant=BASE if by_position else None,
    )
    rows = [(row["_hoodie_record_key"], row["n"]) for row in reader.read_all().to_pylist()]
    return sorted(rows), stats.by_position


TWICE: Rows = [("k", 1), ("other", 2), ("k", 3)]


def test_both_rows_of_a_key_are_updated_by_their_positions(tmp_path: Path) -> None:
    update = data([("k", 10), ("k", 30)], log_bytes.positions([0, 2]))
    assert merged(tmp_path, TWICE, update) == ([("k", 10), ("k", 30), ("other", 2)], True)


def test_without_positions_the_first_row_of_a_key_is_updated(tmp_path: Path) -> None:
    update = data([("k", 10), ("k", 30)], log_bytes.positions([0, 2]))
    wanted: Rows = [("k", 3), ("k", 30), ("other", 2)]
    assert merged(tmp_path, TWICE, update, by_position=False) == (wanted, False)
    assert merged(tmp_path, TWICE, data([("k", 10), ("k", 30)], None)) == (wanted, False)


def test_block_without_positions_falls_back_to_keys(tmp_path: Path) -> None:
    first = data([("k", 10), ("k", 30)], log_bytes.positions([0, 2]))
    second = data([("other", 20)], None, instant="3")
    wanted: Rows = [("k", 3), ("k", 30), ("other", 20)]
    assert merged(tmp_path, TWICE, first, second) == (wanted, False)


def test_deletes_go_by_position_too(tmp_path: Path) -> None:
    gone: list[tuple[str, str, Ordering]] = [("k", "", ("int", 0))]
    block = log_bytes.delete_block(header(log_bytes.positions([2])), gone)
    assert merged(tmp_path, TWICE, block) == ([("k", 1), ("other", 2)], True)
    late: list[tuple[str, str, Ordering]] = [("k", "", ("long", 2))]
    block = log_bytes.delete_block(header(log_bytes.positions([2])), late)
    assert merged(tmp_path, TWICE, block, ordering=True) == (sorted(TWICE), True)


@pytest.mark.parametrize(
    ("positions", "base"),
    [
        (log_bytes.positions([0, 2]), "20250101000000000"),
        (log_bytes.positions([0, 2]), None),
        (log_bytes.positions([0]), BASE),
        (log_bytes.positions([0, 1, 2]), BASE),
        (log_bytes.positions([]), BASE),
        (base64.b64encode(b"no bitmap").decode(), BASE),
        ("no base 64!", BASE),
        (None, BASE),
    ],
    ids=[
        "of another base file",
        "of no base file",
        "too few",
        "too many",
        "none",
        "no bitmap",
        "no base 64",
        "not there",
    ],
)
def test_positions_that_do_not_fit_leave_it_to_the_keys(
    tmp_path: Path, positions: str | None, base: str | None
) -> None:
    rows: Rows = [("a", 1), ("b", 2), ("c", 3)]
    update = data([("a", 10), ("c", 30)], positions, base)
    assert merged(tmp_path, rows, update) == ([("a", 10), ("b", 2), ("c", 30)], False)
