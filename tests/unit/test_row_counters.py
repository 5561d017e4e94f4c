"""Row counts in write results are the same for rows in memory and spilled rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi

SCHEMA = pa.schema([("id", pa.string()), ("part", pa.string()), ("v", pa.int64())])
OPTIONS: dict[str, Any] = {"hoodie.metadata.enable": False}
VALUES = {"id": "id", "part": "part", "v": "v"}
LEAST = 1024 * 1024


def table(base: Path, **more: Any) -> pyhudi.HudiTable:
    options = {**OPTIONS, **more.pop("options", {})}
    return pyhudi.create_table(base, SCHEMA, key="id", partition_by="part", options=options, **more)


def rows(*ids: str, v: int = 1) -> pa.Table:
    return pa.table({"id": ids, "part": ["x"] * len(ids), "v": [v] * len(ids)}, SCHEMA)


def wide(count: int, keys: int) -> pa.Table:
    """More than a quarter of a megabyte: it does not go in memory of a megabyte."""
    ids = [f"{number % keys:0100d}" for number in range(count)]
    return pa.table({"id": ids, "part": ["x", "y"] * (count // 2), "v": range(count)}, SCHEMA)


def counts(result: pyhudi.WriteResult) -> tuple[int | None, int | None]:
    return result.rows_in, result.duplicates_dropped


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_results_count_rows_of_every_operation(tmp_path: Path, kind: Any) -> None:
    t = table(tmp_path, type=kind)
    assert counts(t.insert(rows("a", "a", "b"))) == (3, 0)
    upserted = t.upsert(rows("a", "c", "c", "c", v=2))
    assert counts(upserted) == (4, 2)
    assert "2 duplicates dropped" in repr(upserted)
    assert upserted.rows_ignored == (0 if kind == "cow" else None)
    assert counts(t.bulk_insert(rows("d", "d"))) == (2, 0)
    assert counts(t.delete_keys(pa.table({"id": ["a", "a", "nobody"]}))) == (3, 1)
    assert counts(t.merge(rows("c", "e")).when_not_matched_insert(VALUES).execute()) == (2, 0)
    assert counts(t.update("id = 'c'", {"v": 3})) == (None, None)
    assert counts(t.delete("id = 'c'")) == (None, None)
    assert counts(t.overwrite_partitions(rows("g"))) == (1, 0)
    assert counts(t.overwrite(rows())) == (0, 0)
    assert counts(t.upsert(rows())) == (0, 0)


def test_partial_rows_are_counted(tmp_path: Path) -> None:
    t = table(tmp_path)
    t.insert(rows("a", "b"))
    given = rows("a", "a", "b").drop_columns(["v"])
    assert counts(t.upsert(given, partial=True)) == (3, 1)


@pytest.mark.parametrize("option", ["insert", "upsert"])
def test_options_that_combine(tmp_path: Path, option: str) -> None:
    combine = {f"hoodie.combine.before.{option}": option == "insert"}
    t = table(tmp_path, options=combine)
    dropped = 1 if option == "insert" else 0
    assert counts(t.bulk_insert(rows("a", "a"))) == (2, dropped)
    assert counts(t.insert(rows("b", "b"))) == (2, dropped)


@pytest.mark.parametrize("limit", [None, LEAST])
def test_insert_counts_dropped_duplicates(tmp_path: Path, limit: int | None) -> None:
    t = table(tmp_path, options={"hoodie.datasource.insert.dup.policy": "drop"})
    first, second = wide(2000, 2000), wide(4000, 4000)
    assert counts(t.insert(first, memory_limit=limit)) == (2000, 0)
    result = t.insert(second, memory_limit=limit)
    assert (counts(result), result.rows_inserted) == ((4000, 2000), 2000)


@pytest.mark.parametrize("limit", [None, LEAST])
def test_rows_on_disk_are_counted_as_those_in_memory(tmp_path: Path, limit: int | None) -> None:
    t = table(tmp_path)
    data = wide(6000, 1500)
    result = t.upsert(data, memory_limit=limit)
    assert (counts(result), result.rows_inserted) == ((6000, 4500), 1500)
    again = t.upsert(data.to_reader(max_chunksize=700), memory_limit=limit)
    assert (counts(again), again.rows_updated) == ((6000, 4500), 1500)
    assert counts(t.bulk_insert(data, memory_limit=limit)) == (6000, 0)
    assert counts(t.overwrite(data, memory_limit=limit)) == (6000, 0)


@pytest.mark.parametrize("limit", [None, LEAST])
def test_combined_inserts_on_disk(tmp_path: Path, limit: int | None) -> None:
    t = table(tmp_path, options={"hoodie.combine.before.insert": True})
    for verb in (t.insert, t.bulk_insert, t.overwrite):
        result = verb(wide(6000, 1500), memory_limit=limit)
        assert (counts(result), result.rows_inserted) == ((6000, 4500), 1500)


def test_repeated_commit_id_counts_nothing(tmp_path: Path) -> None:
    t = table(tmp_path)
    t.upsert(rows("a"), commit_id="one")
    again = t.upsert(rows("a"), commit_id="one")
    assert (again.was_written_before, counts(again), again.rows_ignored) == (
        True,
        (None, None),
        None,
    )
