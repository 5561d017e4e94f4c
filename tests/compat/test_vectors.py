"""pyhudi and Apache Hudi write VECTOR columns of one table in turn, and read the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.pairwise import pairwise

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("f", pyhudi.vector(4)),
        ("g", pyhudi.vector(4)),
        ("d", pyhudi.vector(3, "double")),
        ("b", pyhudi.vector(5, "int8")),
        ("ts", pa.int64()),
    ]
)
ROWS: list[dict[str, Any]] = [
    {"id": "a", "f": [0.5, -1, 2, 3], "g": None, "d": [1e300, 0, -0.5], "b": [1, 2, 3, 4, -128]},
    {"id": "b", "f": None, "g": [1, 1, 1, 1], "d": None, "b": None},
    {"id": "c", "f": [4, 4, 4, 4], "g": [2, 2, 2, 2], "d": [0, 0, 0], "b": [0, 0, 0, 0, 127]},
]
OPTIONS = {"hoodie.compact.inline": "false", "hoodie.clean.automatic": "false"}


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: row["id"])


def check(hudi: HudiOracle, base: Path) -> list[dict[str, Any]]:
    """The rows, which both read alike."""
    mine = by_id(pyhudi.open_table(base).scan().to_arrow().to_pylist())
    assert by_id(hudi.read(base)["rows"]) == mine
    return mine


@pytest.mark.hudi("1.2.0")
@pytest.mark.parametrize(
    ("version", "kind", "blocks"), pairwise((8, 9), ("cow", "mor"), ("avro", "parquet"))
)
def test_both_write_vectors_of_one_table(
    version: int, kind: Any, blocks: str, hudi: HudiOracle, tmp_path: Path
) -> None:
    base = tmp_path / "t"
    options = {"hoodie.logfile.data.block.format": blocks}
    table = pyhudi.create_table(
        base, SCHEMA, key="id", order_by="ts", type=kind, version=version, options=options
    )
    table.insert([row | {"ts": 1} for row in ROWS])
    table.upsert([ROWS[1] | {"f": [9, 9, 9, 9], "ts": 2}])
    check(hudi, base)
    conf = OPTIONS | options
    hudi.sql(base, "update {table} set f = array(7f,7f,7f,7f), ts = 3 where id = 'c'", conf=conf)
    hudi.sql(base, "delete from {table} where id = 'a'", conf=conf)
    rows = check(hudi, base)
    assert [row["f"] for row in rows] == [[9, 9, 9, 9], [7, 7, 7, 7]]
    table = pyhudi.open_table(base, options=options)
    table.upsert([ROWS[0] | {"ts": 4}])
    if kind == "mor":
        table.compact()
    table.cluster(sort_by="id")
    assert [row["id"] for row in check(hudi, base)] == ["a", "b", "c"]


@pytest.mark.hudi("1.2.0")
def test_hudi_reads_what_alter_made_of_vectors(hudi: HudiOracle, tmp_path: Path) -> None:
    base = tmp_path / "t"
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", type="mor")
    table.insert([row | {"ts": 1} for row in ROWS])
    table.alter().add_column("h", pyhudi.vector(2)).execute()
    pyhudi.open_table(base).upsert([ROWS[0] | {"h": [1, 2], "ts": 2}])
    rows = check(hudi, base)
    assert [row["h"] for row in rows] == [[1, 2], None, None]
