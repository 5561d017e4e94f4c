"""A table's schema in the words of Hive and of Spark, as Hudi 1.2.0 has them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pyhudi.catalog.registration import Field, fields_of, spark_schema
from pyhudi.errors import UnsupportedTableFeature


def avro(*fields: tuple[str, Any]) -> str:
    entries = [{"name": name, "type": kind} for name, kind in fields]
    return json.dumps({"type": "record", "name": "r", "namespace": "n", "fields": entries})


def only(kind: Any, *, timestamps: bool = True) -> Field:
    (field,) = fields_of(avro(("c", kind)), (), timestamps=timestamps)
    return field


@pytest.mark.parametrize(
    ("kind", "hive", "spark"),
    [
        ("int", "int", '"integer"'),
        ("long", "bigint", '"long"'),
        ("bytes", "binary", '"binary"'),
        ({"type": "int", "logicalType": "date"}, "date", '"date"'),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp", '"timestamp"'),
        ({"type": "long", "logicalType": "time-micros"}, "bigint", '"long"'),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            "timestamp",
            '"timestamp_ntz"',
        ),
        (
            {"type": "fixed", "name": "d", "size": 5, "logicalType": "decimal", "precision": 10},
            "decimal(10,0)",
            '"decimal(10,0)"',
        ),
        (
            {"type": "array", "items": ["null", "int"]},
            "array<int>",
            '{"type":"array", "elementType":"integer","containsNull":true}',
        ),
        (
            {"type": "map", "values": "double"},
            "map<string,double>",
            '{"type":"map", "keyType":"string","valueType":"double","valueContainsNull":false}',
        ),
    ],
)
def test_types(kind: Any, hive: str, spark: str) -> None:
    field = only(kind)
    assert (field.hive, field.spark, field.is_nullable) == (hive, spark, False)
    assert only(["null", kind]).is_nullable


def test_named_type_reference_is_resolved() -> None:
    inner = {"type": "record", "name": "p", "fields": [{"name": "A-b$c", "type": "int"}]}
    first, second = fields_of(avro(("a", inner), ("b", ["null", "p"])), (), timestamps=True)
    assert first.hive == second.hive == "struct<a_b_dollar_c:int>"
    assert json.loads(second.spark)["fields"][0]["name"] == "A-b$c"


def test_timestamps_as_numbers() -> None:
    kind = {"type": "long", "logicalType": "timestamp-micros"}
    assert only(kind, timestamps=False).hive == "bigint"


def test_union_type_is_refused() -> None:
    with pytest.raises(UnsupportedTableFeature, match="union of 2 types"):
        only(["null", "int", "string"])


def test_spark_has_partition_columns_last() -> None:
    fields = fields_of(avro(("city", "string"), ("n", ["null", "int"])), ("_m",), timestamps=True)
    found = json.loads(spark_schema(fields, ["city", "other"]))["fields"]
    assert [(entry["name"], entry["nullable"]) for entry in found] == [
        ("_m", True),
        ("n", True),
        ("city", False),
        ("other", False),
    ]
