"""A table's Avro schema as the columns of a Hive table, and as the schema that Spark reads.

It converts types only: no rows, and no Arrow types. Sources: `HiveSchemaUtil` and
`SparkSchemaUtils` (Hudi 1.2.0), whose JSON text is reproduced exactly, including spaces.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyhudi.catalog.protocol import Column
from pyhudi.errors import UnsupportedTableFeature

_HIVE = {
    "int": "int",
    "long": "bigint",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
_SPARK = {
    "int": "integer",
    "long": "long",
    "float": "float",
    "double": "double",
    "boolean": "boolean",
    "string": "string",
    "enum": "string",
    "bytes": "binary",
    "fixed": "binary",
}
_TIMESTAMPS = ("timestamp-millis", "timestamp-micros")
_LOCAL_TIMESTAMPS = ("local-timestamp-millis", "local-timestamp-micros")
_NAMED = ("record", "enum", "fixed")


@dataclass(frozen=True)
class Field:
    """A field of the table's schema."""

    name: str
    hive: str
    spark: str
    """JSON text of its type."""
    is_nullable: bool
    comment: str = ""

    @property
    def spark_field(self) -> str:
        """JSON text of the field."""
        return (
            f'{{"name":"{self.name}","type":{self.spark},'
            f'"nullable":{_flag(self.is_nullable)},"metadata":{{}}}}'
        )

    @property
    def column(self) -> Column:
        """Column of a Hive table."""
        return Column(self.name, self.hive)


def fields_of(avro: str, meta_columns: Sequence[str], *, timestamps: bool) -> tuple[Field, ...]:
    """Return the fields of a table: its meta columns, then those of its schema.

    Raises `UnsupportedTableFeature` for a type that Hive does not have.

    timestamps: convert timestamps to Hive's timestamps, else to integers.
    """
    types = _Types(timestamps)
    meta = (Field(name, "string", '"string"', is_nullable=True) for name in meta_columns)
    return (*meta, *types.fields(json.loads(avro)))


def spark_schema(fields: Sequence[Field], partition_keys: Sequence[str]) -> str:
    """Return JSON text of the schema as Spark stores it: partition columns last."""
    by_name = {field.name: field for field in fields}
    first = [field for field in fields if field.name not in partition_keys]
    last = [
        by_name.get(name, Field(name, "string", '"string"', is_nullable=False))
        for name in partition_keys
    ]
    return _struct([*first, *last])


def _struct(fields: Sequence[Field]) -> str:
    return f'{{"type":"struct","fields":[{",".join(field.spark_field for field in fields)}]}}'


def _flag(value: bool) -> str:
    return "true" if value else "false"


class _Types:
    """Converts one schema, in which later fields may refer to named types."""

    def __init__(self, timestamps: bool) -> None:
        self._timestamps = timestamps
        self._named: dict[str, Any] = {}

    def fields(self, record: Any) -> list[Field]:
        """Return the fields of a record."""
        result = []
        for entry in record["fields"]:
            hive, spark, nullable = self._type(entry["type"])
            comment = entry.get("doc") or ""
            result.append(Field(entry["name"], hive, spark, nullable, comment))
        return result

    def _type(self, schema: Any) -> tuple[str, str, bool]:
        """Return the type in Hive, as Spark's JSON text, and whether it is nullable."""
        if isinstance(schema, list):
            types = [avro_type for avro_type in schema if avro_type != "null"]
            if len(types) != 1:
                raise UnsupportedTableFeature(
                    f"a union of {len(types)} types, which catalogs cannot represent"
                )
            return (*self._plain(types[0]), len(types) < len(schema))
        return (*self._plain(schema), False)

    def _plain(self, schema: Any) -> tuple[str, str]:
        if isinstance(schema, str):
            if schema in self._named:
                return self._plain(self._named[schema])
            schema = {"type": schema}
        avro_type = schema["type"]
        if not isinstance(avro_type, str):
            return self._plain(avro_type)
        if avro_type in _NAMED and "name" in schema:
            self._remember(schema)
        logical = self._logical(schema)
        if logical is not None:
            return logical
        if avro_type == "array":
            hive, spark, nullable = self._type(schema["items"])
            json_text = f'"elementType":{spark},"containsNull":{_flag(nullable)}'
            return f"array<{hive}>", f'{{"type":"array", {json_text}}}'
        if avro_type == "map":
            hive, spark, nullable = self._type(schema["values"])
            json_text = f'"valueType":{spark},"valueContainsNull":{_flag(nullable)}'
            return f"map<string,{hive}>", f'{{"type":"map", "keyType":"string",{json_text}}}'
        if avro_type == "record":
            fields = self.fields(schema)
            # As in Hudi: field names of a struct cannot contain a hyphen or a dollar sign in Hive.
            text = ",".join(f"{_to_hive_field_name(field.name)}:{field.hive}" for field in fields)
            return f"struct<{text}>".replace("-", "_"), _struct(fields)
        if avro_type not in _HIVE:
            raise UnsupportedTableFeature(f"a column of the Avro type {avro_type!r} in a catalog")
        return _HIVE[avro_type], f'"{_SPARK[avro_type]}"'

    def _logical(self, schema: Any) -> tuple[str, str] | None:
        logical = schema.get("logicalType")
        if logical == "date":
            return "date", '"date"'
        if logical == "decimal":
            digits = f"decimal({schema['precision']},{schema.get('scale', 0)})"
            return digits, f'"{digits}"'
        if logical in _TIMESTAMPS or logical in _LOCAL_TIMESTAMPS:
            spark = '"timestamp"' if logical in _TIMESTAMPS else '"timestamp_ntz"'
            return "timestamp" if self._timestamps else "bigint", spark
        if logical == "uuid":
            return "binary", '"string"'
        return None

    def _remember(self, schema: Any) -> None:
        name = schema["name"]
        self._named[name] = schema
        if "." not in name and schema.get("namespace"):
            self._named[f"{schema['namespace']}.{name}"] = schema
        self._named[name.rsplit(".", 1)[-1]] = schema


def _to_hive_field_name(name: str) -> str:
    """Return the name of a struct's field in Hive, as in Hudi (`ColumnNameXLator`)."""
    return name.replace("$", "_dollar_").lower()
