"""Nearest-neighbour search over a VECTOR column, beside distances that NumPy works out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pyhudi
from pyhudi import ConfigError, HudiTable, SchemaMismatch
from tests.helpers.tables import GoldenTables

SIZE = 8
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("e", pyhudi.vector(SIZE)),
        ("b", pyhudi.vector(SIZE, "int8")),
        ("part", pa.string()),
        ("ts", pa.int64()),
    ]
)


def made(base: Path, kind: Any) -> tuple[HudiTable, dict[str, Any]]:
    """A table with updates, deletes and rows without vectors; and its vectors by key."""
    random = np.random.default_rng(7)
    table = pyhudi.create_table(
        base, SCHEMA, key="id", partition_by="part", order_by="ts", type=kind
    )

    def rows(numbers: range, ts: int) -> list[dict[str, Any]]:
        return [
            {
                "id": f"k{number:03}",
                "e": None if number % 11 == 5 else random.normal(size=SIZE).astype("float32"),
                "b": random.integers(-128, 128, SIZE).tolist(),
                "part": "xyz"[number % 3],
                "ts": ts,
            }
            for number in numbers
        ]

    first, second = rows(range(200), 1), rows(range(50, 120), 2)
    table.insert(first)
    table.upsert(second)
    table.delete_keys([f"k{number:03}" for number in range(60, 70)])
    current = {row["id"]: row for row in (*first, *second)}
    for number in range(60, 70):
        del current[f"k{number:03}"]
    return table, current


def distances(rows: dict[str, Any], column: str, query: Any, metric: str) -> dict[str, float]:
    vectors = {
        key: np.asarray(row[column], dtype=float)
        for key, row in rows.items()
        if row[column] is not None
    }
    query = np.asarray(query, dtype=float)
    if metric == "l2":
        return {key: float(np.linalg.norm(each - query)) for key, each in vectors.items()}
    if metric == "dot":
        return {key: -float(each @ query) for key, each in vectors.items()}
    length = np.linalg.norm(query)
    return {
        key: 1 - float(each @ query / (np.linalg.norm(each) * length))
        for key, each in vectors.items()
    }


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_nearest_gives_what_numpy_finds(kind: str, metric: Any, tmp_path: Path) -> None:
    table, rows = made(tmp_path / "t", kind)
    query = np.random.default_rng(1).normal(size=SIZE)
    for column in ("e", "b"):
        wanted = sorted((far, key) for key, far in distances(rows, column, query, metric).items())
        found = table.scan(columns=["id"]).nearest(column, query, 7, metric=metric)
        assert found.column_names == ["id", "_hudi_distance"]
        assert found["id"].to_pylist() == [key for _, key in wanted[:7]]
        far = found["_hudi_distance"].to_pylist()
        assert far == pytest.approx([each for each, _ in wanted[:7]])


def test_nearest_is_after_the_filter_and_gives_no_more_rows_than_there_are(tmp_path: Path) -> None:
    table, rows = made(tmp_path / "t", "mor")
    found = table.scan(where="part = 'x'").nearest("e", [0.0] * SIZE, 1000)
    wanted = {key for key, row in rows.items() if row["part"] == "x" and row["e"] is not None}
    assert set(found["id"].to_pylist()) == wanted
    assert found.schema.field("e").type == pa.list_(pa.float32(), SIZE)
    nothing = table.scan(where="id = 'none'").nearest("e", [0.0] * SIZE, 3)
    assert nothing.num_rows == 0
    assert nothing.schema.names == found.schema.names


def test_nearest_of_a_table_of_hudi(golden: GoldenTables) -> None:
    """Rows whose vectors have NaN are the last of all."""
    table = pyhudi.open_table(golden.unpack("v9_cow_vector"))
    found = table.scan().nearest("f", [1, 2, 3, 4], 100)
    assert found["id"][0].as_py() in {"k001", "k002", "k003"}
    assert found["_hudi_distance"][0].as_py() == 0.0
    assert set(found["id"].to_pylist()[-2:]) == {"k000", "k012"}


@pytest.mark.parametrize(
    ("arguments", "how", "error"),
    [
        (("id", [0.0] * SIZE, 1), {}, SchemaMismatch),
        (("none", [0.0] * SIZE, 1), {}, SchemaMismatch),
        (("e", [0.0], 1), {}, SchemaMismatch),
        (("e", [None] * SIZE, 1), {}, SchemaMismatch),
        (("e", "abc", 1), {}, SchemaMismatch),
        (("e", [0.0] * SIZE, 0), {}, ConfigError),
        (("e", [0.0] * SIZE, 1), {"metric": "l1"}, ConfigError),
    ],
)
def test_nearest_refuses_what_it_cannot_measure(
    arguments: Any, how: Any, error: type[Exception], tmp_path: Path
) -> None:
    table = pyhudi.create_table(tmp_path / "t", SCHEMA, key="id")
    with pytest.raises(error):
        table.scan().nearest(*arguments, **how)
    with pytest.raises(ConfigError, match="limit"):
        table.scan(limit=3).nearest("e", [0.0] * SIZE, 1)
