"""Columns with ids in JSON: reads and writes an Avro schema and an internal schema side by side.

Types come from the Avro schema, so that no property is lost; the internal schema adds the ids.
Formats: `SerDeHelper` and `AvroInternalSchemaConverter` (`InternalSchemaConverter` in Hudi 1.2.0).
"""

from __future__ import annotations

import json
from dataclasses import replace

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.avro_names import Json, define_names_once, inline_references
from pyhudi.schema.column_types import (
    ELEMENT,
    NEW,
    VALUE,
    ColumnType,
    Many,
    Mapped,
    Plain,
    Slot,
    Struct,
    internal_types,
)


def read_type(field: Json, *, all_types: bool) -> ColumnType:
    """Return the type, without ids, of an Avro field that defines its named types itself."""
    return ColumnReader(all_types).slot(field).column_type


# --- from JSON ------------------------------------------------------------------------------------


class ColumnReader:
    """Reads Avro JSON."""

    def __init__(self, all_types: bool) -> None:  # noqa: FBT001 - one flag is all there is
        self._all_types = all_types

    def slot(self, field: Json) -> Slot:
        """Return a field without ids."""
        return self._field({**field, "type": inline_references(field["type"])}, None)

    def root(self, avro: Json, internal: Json) -> ColumnType:
        """Return a table's schema, with the ids of the internal schema `internal`."""
        return self._column_type(inline_references(avro), internal)

    def _column_type(self, avro: Json, internal: Json) -> ColumnType:
        """Return a type, with the ids of the internal type `internal` if they match."""
        if isinstance(avro, str):
            return _plain(avro, avro, internal, all_types=self._all_types)
        if isinstance(avro, list):
            raise UnsupportedTableFeature(f"the table's schema has the union {json.dumps(avro)}")
        name = avro["type"]
        if name not in ("array", "map", "record"):
            return _plain(name, avro, internal, all_types=self._all_types)
        internal = internal if isinstance(internal, dict) and internal.get("type") == name else {}
        if name == "array":
            element = internal.get("element_id", NEW), internal.get("element")
            return Many(self._inner(ELEMENT, avro["items"], element))
        if name == "map":
            value = internal.get("value_id", NEW), internal.get("value")
            inner = self._inner(VALUE, avro["values"], value)
            return Mapped(internal.get("key_id", NEW), inner)
        return self._struct(avro, internal)

    def _struct(self, avro: Json, internal: Json) -> Struct:
        fields = {field["name"]: field for field in internal.get("fields", ())}
        name = f"{avro['namespace']}.{avro['name']}".lstrip(".")
        reserved = {"type", "name", "namespace", "fields"}
        props = {key: value for key, value in avro.items() if key not in reserved}
        return Struct(
            name,
            tuple(self._field(field, fields.get(field["name"])) for field in avro["fields"]),
            props,
        )

    def _field(self, avro: Json, internal: Json) -> Slot:
        internal = internal or {}
        slot = self._inner(
            avro["name"], avro["type"], (internal.get("id", NEW), internal.get("type"))
        )
        is_plain = isinstance(slot.column_type, Plain)
        if internal and is_plain == isinstance(internal.get("type"), dict):
            slot = replace(slot, id=NEW)
        return replace(slot, doc=avro.get("doc"), default=avro.get("default"))

    def _inner(self, name: str, avro: Json, internal: tuple[int, Json]) -> Slot:
        optional = isinstance(avro, list) and "null" in avro
        if optional:
            others = [branch for branch in avro if branch != "null"]
            avro = others[0] if len(others) == 1 else others
        return Slot(internal[0], name, self._column_type(avro, internal[1]), optional)


def _plain(name: str, avro: Json, internal: Json, *, all_types: bool) -> Plain:
    rich, simple = internal_types(name, avro)
    if isinstance(internal, str) and internal in (rich, simple):
        return Plain(avro, internal)
    # Hudi's own type changes write the simple name, in every release.
    internal_type = rich if all_types and not isinstance(internal, str) else simple
    if not internal_type:
        msg = f"hoodie.schema.on.read.enable: Hudi of this table version has no type {rich}"
        raise UnsupportedTableFeature(msg, hint="Upgrade the table to version 9.")
    return Plain(avro, internal_type)


# --- to JSON --------------------------------------------------------------------------------------


def avro_json(root: ColumnType) -> Json:
    """Return a type as an Avro schema, every named type in full where it comes first."""
    return define_names_once(_avro(root))


def _avro(column_type: ColumnType) -> Json:
    match column_type:
        case Plain():
            return column_type.avro
        case Many():
            return {"type": "array", "items": _avro_type(column_type.element)}
        case Mapped():
            return {"type": "map", "values": _avro_type(column_type.value)}
    space, _, name = column_type.name.rpartition(".")
    head = {"type": "record", "name": name, "namespace": space, **column_type.props}
    return {**head, "fields": [_avro_field(slot) for slot in column_type.fields]}


def _avro_type(slot: Slot) -> Json:
    avro = _avro(slot.column_type)
    if not slot.optional:
        return avro
    return ["null", avro] if slot.default is None else [avro, "null"]


def _avro_field(slot: Slot) -> Json:
    field = {"name": slot.name, "type": _avro_type(slot)}
    if slot.doc is not None:
        field["doc"] = slot.doc
    if slot.optional or slot.default is not None:
        field["default"] = slot.default
    return field


def document(column_type: ColumnType) -> Json:
    """Return a type in the internal schema's format."""
    match column_type:
        case Plain():
            return column_type.internal
        case Many(element):
            return {
                "type": "array",
                "element_id": element.id,
                "element": document(element.column_type),
                "element_optional": element.optional,
            }
        case Mapped(key_id, value):
            return {
                "type": "map",
                "key_id": key_id,
                "key": "string",
                "value_id": value.id,
                "value": document(value.column_type),
                "value_optional": value.optional,
            }
    return {"type": "record", "fields": [_field_document(slot) for slot in column_type.fields]}


def _field_document(slot: Slot) -> Json:
    field = {"id": slot.id, "name": slot.name, "optional": slot.optional}
    field["type"] = document(slot.column_type)
    if slot.doc is not None:
        field["doc"] = slot.doc
    return field
