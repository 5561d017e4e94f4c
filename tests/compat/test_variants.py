"""Apache Hudi reads the VARIANT columns that pyhudi writes, those of rewritten shredded files too.

Spark 3.5 has no VARIANT type: Hudi reads the column as the struct that its documentation names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.meta_columns import META_COLUMNS
from tests.helpers.oracle.client import HudiOracle
from tests.helpers.tables import facts, unpack

TABLES = ("v9_cow_variant_shredded", "v9_mor_variant_shredded", "v9_mor_variant_parquet_log")
TEXT = {"metadata": bytes.fromhex("010000"), "value": b"\x0dnew"}


@pytest.mark.hudi("1.2.0")
@pytest.mark.parametrize("name", TABLES)
def test_hudi_reads_variants_that_pyhudi_rewrote(
    name: str, tmp_path: Path, hudi: HudiOracle
) -> None:
    base = unpack(name, tmp_path)
    table = pyhudi.open_table(base)
    row = {"id": "k013", "v": TEXT, "name": "new", "ts": 20_000_000_000}
    table.upsert(pa.Table.from_pylist([row], table.scan().to_arrow().schema))
    if facts(name)["table_type"] == "MERGE_ON_READ":
        table.compact()
        table.upsert(pa.Table.from_pylist([row | {"id": "k014"}], table.scan().to_arrow().schema))
    wanted = {row["id"]: row["v"] for row in facts(name)["expected"]["snapshot"]["rows"]}
    wanted["k013"] = {part: value.hex() for part, value in TEXT.items()}
    if facts(name)["table_type"] == "MERGE_ON_READ":
        wanted["k014"] = wanted["k013"]
    read = hudi.read(base, columns=["id", "v"], ddl=facts(name)["spark_schema_given"])
    assert {row["id"]: row["v"] for row in read["rows"]} == wanted


@pytest.mark.hudi("1.2.0")
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_hudi_reads_variants_of_a_table_of_pyhudi(
    kind: Any, tmp_path: Path, hudi: HudiOracle
) -> None:
    base = tmp_path / "t"
    columns = [("id", pa.string()), ("v", pyhudi.variant()), ("w", pyhudi.variant())]
    schema = pa.schema([*columns, ("ts", pa.int64())])
    table = pyhudi.create_table(base, schema, key="id", order_by="ts", type=kind)
    values = pyhudi.variant_from_json(['{"a":[1,"x"]}', None, "2.50"])
    rows = pa.table({"id": ["a", "b", "c"], "v": values, "w": values[::-1], "ts": [1, 1, 1]})
    table.insert(rows)
    table.upsert(rows.slice(0, 1).set_column(3, "ts", pa.array([2])))
    meta = ", ".join(f"{name} string" for name in META_COLUMNS)
    struct = "struct<value: binary, metadata: binary>"
    ddl = f"{meta}, id string, v {struct}, w {struct}, ts long"
    read = hudi.read(base, columns=["id", "v", "w"], ddl=ddl)
    wanted = [
        {
            name: {part: each.hex() for part, each in value.items()}
            if isinstance(value, dict)
            else value
            for name, value in row.items()
        }
        for row in rows.select(["id", "v", "w"]).to_pylist()
    ]
    assert sorted(read["rows"], key=lambda row: row["id"]) == wanted
