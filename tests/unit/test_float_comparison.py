"""Floating numbers as Spark compares them: in scans, with indexes or without, and in verbs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError
from tests.helpers.table_builder import TableBuilder, numbered
from tests.unit.test_predicate_parser import in_spark

pytestmark = pytest.mark.in_parts

NAN = float("nan")
NO_INDEX = {"hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
PARTS: dict[str, list[float | None]] = {
    "below": [-5.0, -1.0, NAN],
    "zeros": [-0.0, -0.0, -0.0],
    "zero": [0.0, 0.0, None],
    "above": [2.0, 3.0, 3.0],
    "only": [NAN, NAN, None],
    "none": [None, None, None],
}
LITERALS = ("'NaN'", "-5", "-0.0", "0", "0.5", "3", "3.0000000001", "-5.0000000001", "'inf'")
OPS = ("=", "<>", "<", "<=", ">", ">=")


VALUES = [(part, value) for part, values in PARTS.items() for value in values]


def builder(column: Any) -> TableBuilder:
    """A row for each value, named by its place in `VALUES`, in a column of that type."""
    return TableBuilder(
        {
            "id": (pa.string(), numbered(2)),
            "part": (pa.string(), lambda at: VALUES[at][0]),
            "f": (column, lambda at: VALUES[at][1]),
        },
        partition_by="part",
    )


def rows(column: Any) -> pa.Table:
    return builder(column).rows(range(len(VALUES)))


def filled(base: Path, version: int, kind: Any, column: Any = None) -> HudiTable:
    column = column or pa.float64()
    table = builder(column).make(base, version=version, kind=kind)
    if version == 6:
        table.create_index("column_stats")
    table.upsert(rows(column))
    return table


def expected(op: str, literal: str) -> list[str]:
    found = rows(pa.float64()).to_pylist()
    wanted = float(literal.strip("'"))
    return [row["id"] for row in found if in_spark(op, row["f"], wanted)]


def ids(table: HudiTable, where: str) -> list[str]:
    return sorted(table.scan(["id"], where=where).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("column", [pa.float32(), pa.float64()])
@pytest.mark.parametrize(("version", "kind"), [(6, "cow"), (8, "mor"), (9, "mor"), (9, "cow")])
def test_indexes_keep_nan_and_zero(tmp_path: Path, version: int, kind: Any, column: Any) -> None:
    table = filled(tmp_path, version, kind, column)
    if kind == "mor":
        table.upsert(rows(column))
    plain = pyhudi.open_table(tmp_path, options=NO_INDEX)
    for op in OPS:
        for literal in LITERALS:
            where = f"f {op} {literal}"
            assert ids(table, where) == ids(plain, where) == expected(op, literal), where
    for literal in LITERALS:
        where = f"f IN ({literal}, 77)"
        assert ids(table, where) == ids(plain, where) == expected("=", literal), where
    assert "pruned 2 of" in str(table.scan(where="f = 77").explain())


def test_row_groups_with_nan_are_read(tmp_path: Path) -> None:
    """All values in one file, whose footer tells the bounds of numbers alone."""
    data = rows(pa.float64()).append_column("one", pa.array([1] * 18))
    table = pyhudi.create_table(tmp_path, data.schema, key="id", type="cow", version=6)
    table.upsert(data)
    table.drop_index("files")
    for op in OPS:
        for literal in LITERALS:
            assert ids(table, f"f {op} {literal}") == expected(op, literal), (op, literal)


@pytest.mark.parametrize("where", ["f > 1", "NOT (f <= 1)", "f = 'NaN'", "f = 0", "f IN (0)"])
def test_verbs_find_what_scans_find(tmp_path: Path, where: str) -> None:
    table = filled(tmp_path / "a", 9, "cow")
    found, everything = ids(table, where), ids(table, "true")
    table.update(where, {"f": 77.0})
    assert ids(table, "f = 77") == found
    other = filled(tmp_path / "b", 9, "mor")
    other.delete(where)
    assert ids(other, "true") == sorted(set(everything) - set(found))


@pytest.mark.parametrize("version", [6, 9])
def test_partitions_of_floating_numbers(tmp_path: Path, version: int) -> None:
    values = [NAN, -0.0, 0.0, -1.5, 2.0, float("inf")]
    data = pa.table({"id": [f"k{n}" for n in range(6)], "f": values, "v": list(range(6))})
    table = pyhudi.create_table(
        tmp_path, data.schema, key="id", partition_by="f", type="cow", version=version
    )
    table.upsert(data)
    for op in OPS:
        for literal in LITERALS:
            outcome = [
                n for n, f in enumerate(values) if in_spark(op, f, float(literal.strip("'")))
            ]
            found = table.scan(["v"], where=f"f {op} {literal}").to_arrow()["v"].to_pylist()
            assert sorted(found) == outcome, (op, literal)
    found = table.scan(["f"], where="f IN ('NaN', 0)").to_arrow()["f"].to_pylist()
    assert sorted(map(str, found)) == ["-0.0", "0.0", "nan"]
    table.delete_partitions("f > 1")
    left = table.scan(["f"]).to_arrow()["f"].to_pylist()
    assert not any(math.isnan(one) or one > 1 for one in left)
    assert len(left) == 3


@pytest.mark.parametrize("limit", ["5", 5.0, True, -1, [1], 1 << 63])
def test_limit_must_be_a_number(tmp_path: Path, limit: Any) -> None:
    table = filled(tmp_path, 9, "cow")
    with pytest.raises(ConfigError, match="limit is"):
        table.scan(limit=limit)
    with pytest.raises(ConfigError, match="limit is"):
        table.incremental(limit=limit)
    if limit != -1:
        with pytest.raises(ConfigError, match="memory_limit is"):
            table.scan(memory_limit=limit)


@pytest.mark.slow
def test_long_lists_of_numbers_find_their_rows(tmp_path: Path) -> None:
    data = pa.table({"id": [f"k{n}" for n in range(500)], "n": list(range(500))})
    table = pyhudi.create_table(tmp_path, data.schema, key="id", type="mor", version=9)
    table.upsert(data)
    table.upsert(data.slice(100, 50))
    wanted = [*range(20, 40), *range(120, 130), *range(10_000, 30_000)]
    given = " OR ".join(f"n = {n}" for n in wanted)
    assert table.scan(where=f"n IN ({', '.join(map(str, wanted))})").count() == 30
    assert table.scan(where=given).count() == 30


@pytest.mark.parametrize("kind", ["cow", "mor"])
@pytest.mark.parametrize("op", OPS)
def test_clauses_of_a_merge_and_new_values_compare_as_filters(
    tmp_path: Path, op: str, kind: Any
) -> None:
    create: Any = pyhudi.create_table
    table = create(tmp_path, rows(pa.float64()), key="id", type=kind, options=NO_INDEX)
    everything = table.scan().to_arrow()
    hit = expected(op, "0")
    case = f"CASE WHEN f {op} 0 THEN 'hit' WHEN NOT f {op} 0 THEN 'miss' ELSE 'null' END"
    table.update("true", {"part": case})
    assert ids(table, "part = 'hit'") == hit
    assert ids(table, "part = 'null'") == ids(table, "f IS NULL")
    source = everything.select(["id", "f"]).rename_columns(["id", "g"])
    source = source.append_column("n", pa.array([NAN] * source.num_rows))
    table.merge(source).when_matched_update(
        {"part": "'nan'"}, where=f"target.f = source.n AND source.n {op} target.f"
    ).when_matched_delete(where=f"source.g {op} 0").execute()
    nans = expected("=", "'NaN'") if op in ("=", "<=", ">=") else []
    assert ids(table, "part = 'nan'") == nans
    assert ids(table, "true") == sorted(set(everything["id"].to_pylist()) - set(hit) | set(nans))
