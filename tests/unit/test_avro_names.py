"""Named types in Avro schemas: what a reference stands for, and that no name is given twice."""

from __future__ import annotations

from typing import Any

import pytest

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.avro_names import define_names_once, inline_references


def record(name: str, *fields: tuple[str, Any], **more: Any) -> dict[str, Any]:
    listed = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, **more, "fields": listed}


def test_named_types_inline_and_return() -> None:
    place = record("place", ("a", "int"), ("color", {"type": "enum", "name": "c", "symbols": []}))
    lists = {"type": "array", "items": ["null", "n.place"]}
    maps = {"type": "map", "values": "c"}
    avro = record("r", ("p", ["null", place]), ("l", lists), ("m", maps), namespace="n")
    full = inline_references(avro)
    first, second, third = (field["type"] for field in full["fields"])
    assert first[1] == second["items"][1]
    assert third["values"] == first[1]["fields"][1]["type"]
    assert third["values"]["namespace"] == "n"
    again = define_names_once(full)
    assert again["fields"][0] == avro["fields"][0]
    assert again["fields"][1] == avro["fields"][1]
    assert again["fields"][2]["type"]["values"] == "n.c"
    assert inline_references(again) == full


def test_names_with_dots_and_none_at_all_are_found_as_avro_finds_them() -> None:
    bare = record("bare", ("a", "int"), namespace="")
    dotted = record("q.dotted", ("b", "bare"), namespace="unused")
    avro = record("r", ("x", bare), ("y", dotted), ("z", "q.dotted"), namespace="n")
    full = inline_references(avro)
    assert full["fields"][1] == {**full["fields"][2], "name": "y"}
    assert full["fields"][1]["type"]["fields"][0]["type"] == full["fields"][0]["type"]
    again = define_names_once(full)
    assert again["fields"][0]["type"]["namespace"] == ""
    assert again["fields"][2]["type"] == "q.dotted"
    assert inline_references(again) == full


def test_named_types_get_unique_names_by_position() -> None:
    one, two, three = (record("s", (name, "int"), namespace="n.r") for name in "xyz")
    avro = record("r", ("s_old", one), ("s", two), ("t", record("n.r.s_2", ("s", three))))
    made = define_names_once(inline_references({**avro, "namespace": "n"}))
    kinds = [field["type"] for field in made["fields"]]
    assert [(kind["namespace"], kind["name"]) for kind in kinds] == [
        ("n.r", "s"),
        ("n.r", "s_2"),
        ("n.r", "t"),
    ]
    inner = kinds[2]["fields"][0]["type"]
    assert (inner["namespace"], inner["name"], inner["fields"][0]["name"]) == ("n.r.t", "s", "z")
    assert define_names_once(inline_references(made)) == made


def test_recursive_type_is_refused() -> None:
    avro = record("node", ("next", ["null", "node"]), namespace="n")
    with pytest.raises(UnsupportedTableFeature, match=r"n\.node, which contains itself"):
        inline_references(avro)
