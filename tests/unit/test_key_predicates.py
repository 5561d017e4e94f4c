"""Record keys that a filter allows."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pyhudi.config.table_config import TableConfig
from pyhudi.schema.key_generator import plain_key
from pyhudi.schema.key_predicates import field_keys, find_allowed_values, find_record_keys
from pyhudi.schema.predicate_parser import parse_where

SCHEMA = pa.schema(
    [
        ("_hoodie_record_key", pa.string()),
        ("id", pa.string()),
        ("n", pa.int64()),
        ("day", pa.date32()),
    ]
)


def keys(where: object, fields: str, generator: str = "SIMPLE", **besides: str) -> list[str] | None:
    config = TableConfig(
        {
            "hoodie.table.recordkey.fields": fields,
            "hoodie.table.keygenerator.type": generator,
        }
    )
    return find_record_keys(config, parse_where(where, SCHEMA).conjuncts, set(besides.values()))


def test_bare_key_is_column_value() -> None:
    assert keys([("id", "=", "k1")], "id") == ["k1"]
    assert keys([("n", "in", [2, 1])], "n") == ["1", "2"]


def test_complex_key_of_one_field_has_both_encodings() -> None:
    assert keys([("id", "=", "k1")], "id", "COMPLEX") == ["id:k1", "k1"]


def test_key_of_several_fields_needs_all() -> None:
    where = [("id", "in", ["a", "b"]), ("n", "=", 7)]
    assert keys(where, "id,n", "COMPLEX") == ["id:a,n:7", "id:b,n:7"]
    assert keys(where[:1], "id,n", "COMPLEX") is None


def test_conditions_on_one_column_meet() -> None:
    where = [("id", "in", ["a", "b"]), ("id", "in", ["b", "c"])]
    assert keys(where, "id") == ["b"]
    assert keys([("id", "=", "a"), ("id", "=", "b")], "id") == []


def test_stored_key_column_selects_keys() -> None:
    assert keys([("_hoodie_record_key", "=", "id:k1")], "id,n", "COMPLEX") == ["id:k1"]


@pytest.mark.parametrize(
    "where",
    [
        [("id", ">", "a")],
        [("id", "!=", "a")],
        [("id", "=", "")],
        [[("id", "=", "a")], [("n", "=", 1)]],
    ],
)
def test_other_conditions_tell_no_key(where: object) -> None:
    assert keys(where, "id") is None


def test_values_without_a_certain_text_tell_no_key() -> None:
    assert keys([("day", "=", "2024-02-29")], "day") is None


def test_columns_that_are_shown_otherwise_tell_no_key() -> None:
    assert keys([("id", "=", "a")], "id", shown="id") is None
    conjuncts = parse_where([("id", "=", "a")], SCHEMA).conjuncts
    assert find_allowed_values(conjuncts, "id", ["id"]) is None
    assert field_keys(conjuncts, (), ()) is None


def test_custom_key_generator_prunes_nothing() -> None:
    assert keys([("id", "=", "a")], "id", "USER_PROVIDED") is None


@pytest.mark.parametrize(
    ("properties", "found"),
    [
        ({"hoodie.table.keygenerator.type": "SIMPLE"}, "id"),
        ({"hoodie.table.keygenerator.type": "NON_PARTITION_AVRO"}, "id"),
        ({"hoodie.table.keygenerator.class": "org.apache.hudi.keygen.SimpleKeyGenerator"}, "id"),
        ({"hoodie.table.keygenerator.type": "COMPLEX"}, None),
        ({"hoodie.table.keygenerator.type": "CUSTOM"}, None),
        ({"hoodie.table.keygenerator.class": "com.example.Keys"}, None),
        ({}, None),
    ],
)
def test_plain_key_is_certain_only_with_named_generator(
    properties: dict[str, str], found: str | None
) -> None:
    config = TableConfig({"hoodie.table.recordkey.fields": "id", **properties})
    assert plain_key(config, SCHEMA) == found


@pytest.mark.parametrize("fields", ["n", "day", "id,n", "missing", ""])
def test_plain_key_is_single_string_column(fields: str) -> None:
    config = TableConfig(
        {"hoodie.table.recordkey.fields": fields, "hoodie.table.keygenerator.type": "SIMPLE"}
    )
    assert plain_key(config, SCHEMA) is None
