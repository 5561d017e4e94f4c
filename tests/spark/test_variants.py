"""VARIANT columns on Spark: `VariantType` on Spark 4, a struct on Spark 3.5."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as st

import pyhudi
from pyhudi import SchemaMismatch
from pyhudi.spark import SparkEngine, read
from tests.helpers.tables import GoldenTables, facts

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]

HAS_VARIANT = hasattr(st, "VariantType")
SCHEMA = pa.schema([("id", pa.string()), ("v", pyhudi.variant()), ("ts", pa.int64())])
TEXTS = {"a": '{"b":[1,"x",null],"c":1.5}', "b": None, "c": "true"}


def json_of(frame: Any) -> dict[str, Any]:
    if HAS_VARIANT:
        found = frame.selectExpr("id", "to_json(v) t").collect()
        return {row["id"]: None if row["t"] is None else json.loads(row["t"]) for row in found}
    rows = frame.select("id", "v").collect()
    values = [row["v"] and {n: bytes(b) for n, b in row["v"].asDict().items()} for row in rows]
    texts = pyhudi.variant_to_json(values).to_pylist()
    return {
        row["id"]: None if text is None else json.loads(text)
        for row, text in zip(rows, texts, strict=True)
    }


def loaded(texts: dict[str, str | None]) -> dict[str, Any]:
    return {key: None if text is None else json.loads(text) for key, text in texts.items()}


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_variants_are_read_from_tables_of_pyhudi(
    kind: Any, spark: SparkSession, tmp_path: Path
) -> None:
    base = str(tmp_path / "t")
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", type=kind)
    values = pyhudi.variant_from_json(list(TEXTS.values()))
    table.insert(pa.table({"id": list(TEXTS), "v": values, "ts": [1, 1, 1]}))
    frame = read(spark, base)
    kinds = {field.name: field.dataType for field in frame.schema}
    if HAS_VARIANT:
        assert kinds["v"] == st.VariantType()
    else:
        assert sorted(kinds["v"].fieldNames()) == ["metadata", "value"]
    assert json_of(frame) == loaded(TEXTS)
    assert json_of(frame.where("id = 'a'")) == {"a": json.loads(str(TEXTS["a"]))}


@pytest.mark.skipif(not HAS_VARIANT, reason="Spark 3.5 has no VARIANT")
@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_variants_are_written_by_spark(kind: Any, spark: SparkSession, tmp_path: Path) -> None:
    base = str(tmp_path / "t")
    engine = SparkEngine(spark)
    frame = spark.createDataFrame(
        [(key, text, 1) for key, text in TEXTS.items()], "id string, j string, ts long"
    )
    frame = frame.selectExpr("id", "parse_json(j) v", "ts")
    table = pyhudi.create_table(base, frame, key="id", order_by="ts", type=kind, engine=engine)
    table.upsert(frame)
    changed = spark.sql("select 'c' id, parse_json('[1]') v, 2L ts")
    table.upsert(changed)
    wanted = TEXTS | {"c": "[1]"}
    found = pyhudi.open_table(base).scan().to_arrow()
    assert found.schema.field("v").metadata[b"hudi_type"] == b"VARIANT"
    texts = pyhudi.variant_to_json(found["v"]).to_pylist()
    assert dict(zip(found["id"].to_pylist(), texts, strict=True)) == wanted
    assert json_of(read(spark, base)) == loaded(wanted)
    table = pyhudi.open_table(base, engine=engine)
    if kind == "mor":
        table.compact()
    table.cluster(sort_by="id")
    assert json_of(read(spark, base)) == loaded(wanted)


@pytest.mark.parametrize("kind", ["cow", "mor"])
def test_variants_of_a_frame_are_written_to_another_table(
    kind: Any, spark: SparkSession, tmp_path: Path
) -> None:
    """Frames of Spark 3.5 have structs, which rewrites and merges keep as well."""
    options = {"hoodie.compact.inline": "false"}
    table = pyhudi.create_table(tmp_path / "a", SCHEMA, key="id", order_by="ts", type=kind)
    values = pyhudi.variant_from_json(list(TEXTS.values()))
    table.insert(pa.table({"id": list(TEXTS), "v": values, "ts": [1, 1, 1]}))
    frame = read(spark, str(tmp_path / "a"))
    base = str(tmp_path / "b")
    copy = pyhudi.create_table(
        base,
        SCHEMA,
        key="id",
        order_by="ts",
        type=kind,
        engine=SparkEngine(spark),
        options=options,
    )
    copy.upsert(frame)
    changed = frame.selectExpr("if(id = 'a', 'd', id) id", "v", "2L ts")
    merge = copy.merge(changed).when_matched_update_all().when_not_matched_insert_all()
    merge.execute()
    copy.upsert(spark.sql("select 'b' id, 3L ts"), partial=True)
    copy.delete("id = 'c'")
    wanted = loaded({"a": TEXTS["a"], "b": None, "d": TEXTS["a"]})
    assert json_of(read(spark, base)) == wanted
    if kind == "mor":
        copy.compact()
    copy.cluster(sort_by="id")
    assert json_of(read(spark, base)) == wanted
    found = pyhudi.open_table(base).scan().to_arrow()
    assert found.schema.field("v").metadata[b"hudi_type"] == b"VARIANT"
    assert not pyhudi.open_table(base).check(deep=True).findings


def test_structs_are_written_to_a_variant_column(spark: SparkSession, tmp_path: Path) -> None:
    """As Spark 3.5 has them."""
    base = str(tmp_path / "t")
    engine = SparkEngine(spark)
    table = pyhudi.create_table(base, SCHEMA, key="id", order_by="ts", engine=engine)
    values = pyhudi.variant_from_json(list(TEXTS.values())).to_pylist()
    rows = [(key, value, 1) for key, value in zip(TEXTS, values, strict=True)]
    schema = "id string, v struct<value: binary, metadata: binary>, ts long"
    table.upsert(spark.createDataFrame(rows, schema))
    assert json_of(read(spark, base)) == loaded(TEXTS)
    odd = spark.createDataFrame([("a", {"value": b"\xff", "metadata": b"\1\0\0"}, 2)], schema)
    with pytest.raises(SchemaMismatch, match="'v'"):
        table.upsert(odd)


@pytest.mark.parametrize("name", ["v9_cow_variant_shredded", "v9_mor_variant_shredded"])
def test_variants_of_hudi_are_read_whole(
    name: str, spark: SparkSession, golden: GoldenTables
) -> None:
    known = {
        (each["value"], each["metadata"]): each["json"] for each in facts(name)["variant_values"]
    }
    wanted = {}
    for row in facts(name)["expected"]["snapshot"]["rows"]:
        value = row["v"] and json.loads(known[row["v"]["value"], row["v"]["metadata"]])
        wanted[row["id"]] = value
    assert json_of(read(spark, str(golden.unpack(name)))) == wanted
