"""Columns with ids in JSON: an Avro schema and an internal schema side by side, read and written.

Types are the Avro schema's, so that nothing of them is lost; the internal schema adds ids. Forms:
`SerDeHelper` and `AvroInternalSchemaConverter` (`InternalSchemaConverter` in Hudi 1.2.0).
"""

from __future__ import annotations

import json
from dataclasses import replace

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.column_types import (
    ELEMENT,
    NEW,
    VALUE,
    Json,
    Kind,
    Many,
    Mapped,
    Plain,
    Slot,
    Struct,
    internal_types,
)


def read_type(field: Json, *, all_types: bool) -> Kind:
    """The type of an Avro field whose named types it defines itself, without ids."""
    return ColumnReader(all_types).slot(field).kind


# --- from JSON ------------------------------------------------------------------------------------

_NAMED = ("record", "enum", "fixed", "error")


class ColumnReader:
    """Reads Avro JSON, every named type in full wherever it stands."""

    def __init__(self, all_types: bool) -> None:  # noqa: FBT001 - one flag is all there is
        self._all_types = all_types
        self._named: dict[str, tuple[Json, str]] = {}

    def slot(self, field: Json) -> Slot:
        """A field without ids."""
        return self._field(field, "", None)

    def kind(self, avro: Json, space: str, known: Json) -> Kind:
        """A type, with the ids of the internal type `known` where that is of the same kind."""
        if isinstance(avro, str):
            name = avro if "." in avro or not space else f"{space}.{avro}"
            if name not in self._named:
                return _plain(avro, avro, known, all_types=self._all_types)
            avro, space = self._named[name]
        if isinstance(avro, list):
            msg = f"the table's schema has the union {json.dumps(avro)}"
            raise UnsupportedTableFeature(msg)
        kind = avro["type"]
        if kind not in ("array", "map", "record"):
            if kind in _NAMED:
                avro, space = self._remembered(avro, space)
            return _plain(kind, avro, known, all_types=self._all_types)
        known = known if isinstance(known, dict) and known.get("type") == kind else {}
        if kind == "array":
            element = known.get("element_id", NEW), known.get("element")
            return Many(self._inner(ELEMENT, avro["items"], space, element))
        if kind == "map":
            value = known.get("value_id", NEW), known.get("value")
            inner = self._inner(VALUE, avro["values"], space, value)
            return Mapped(known.get("key_id", NEW), inner)
        avro, space = self._remembered(avro, space)
        return self._struct(avro, space, known)

    def _remembered(self, avro: Json, space: str) -> tuple[Json, str]:
        name = avro["name"]
        space = name.rpartition(".")[0] if "." in name else avro.get("namespace", space)
        avro = {**avro, "name": name.rpartition(".")[2], "namespace": space}
        self._named[f"{space}.{avro['name']}".lstrip(".")] = avro, space
        return avro, space

    def _struct(self, avro: Json, space: str, known: Json) -> Struct:
        fields = {field["name"]: field for field in known.get("fields", ())}
        name = f"{space}.{avro['name']}".lstrip(".")
        taken = {"type", "name", "namespace", "fields"}
        props = {key: value for key, value in avro.items() if key not in taken}
        return Struct(
            name,
            tuple(self._field(field, space, fields.get(field["name"])) for field in avro["fields"]),
            props,
        )

    def _field(self, avro: Json, space: str, known: Json) -> Slot:
        known = known or {}
        slot = self._inner(
            avro["name"], avro["type"], space, (known.get("id", NEW), known.get("type"))
        )
        if _is_nested(slot.kind) != isinstance(known.get("type"), dict) and known:
            slot = replace(slot, id=NEW)
        return replace(slot, doc=avro.get("doc"), default=avro.get("default"))

    def _inner(self, name: str, avro: Json, space: str, known: tuple[int, Json]) -> Slot:
        optional = isinstance(avro, list) and "null" in avro
        if optional:
            others = [branch for branch in avro if branch != "null"]
            avro = others[0] if len(others) == 1 else others
        return Slot(known[0], name, self.kind(avro, space, known[1]), optional)


def _is_nested(kind: Kind) -> bool:
    return not isinstance(kind, Plain)


def _plain(kind: str, avro: Json, known: Json, *, all_types: bool) -> Plain:
    rich, simple = internal_types(kind, avro)
    if isinstance(known, str) and known in (rich, simple):
        return Plain(avro, known)
    # What Hudi's own type changes write is the simple form, in every release.
    text = rich if all_types and not isinstance(known, str) else simple
    if not text:
        msg = f"hoodie.schema.on.read.enable: Hudi of this table version has no type {rich}"
        raise UnsupportedTableFeature(msg, hint="Upgrade the table to version 9.")
    return Plain(avro, text)


# --- to JSON --------------------------------------------------------------------------------------


class AvroWriter:
    """Writes Avro JSON, every named type in full where it comes first."""

    def __init__(self) -> None:
        self._named: dict[str, Json] = {}

    def kind(self, kind: Kind, place: str) -> Json:
        """A type. place: the full name that a struct takes when its own is another struct's."""
        match kind:
            case Plain():
                return self._once(kind.avro, place) if _has_name(kind.avro) else kind.avro
            case Many():
                return {"type": "array", "items": self._type(kind.element, place)}
            case Mapped():
                return {"type": "map", "values": self._type(kind.value, place)}
        self._named.setdefault(kind.name, None)
        fields = [self._field(slot, kind.name) for slot in kind.fields]
        space, _, name = kind.name.rpartition(".")
        head = {"type": "record", "name": name, "namespace": space, **kind.props}
        if not space:
            del head["namespace"]
        return self._once({**head, "fields": fields}, place)

    def _once(self, avro: Json, place: str) -> Json:
        name = f"{avro.get('namespace', '')}.{avro['name']}".lstrip(".")
        standing = self._named.get(name)
        if standing is None:
            self._named[name] = avro
            return avro
        if standing == avro:
            return name
        space, _, last = place.rpartition(".")
        renamed = {**avro, "name": last, "namespace": space}
        self._named[place] = renamed
        return renamed

    def _type(self, slot: Slot, place: str) -> Json:
        avro = self.kind(slot.kind, place)
        if not slot.optional:
            return avro
        return ["null", avro] if slot.default is None else [avro, "null"]

    def _field(self, slot: Slot, parent: str) -> Json:
        made = {"name": slot.name, "type": self._type(slot, f"{parent}.{slot.name}")}
        if slot.doc is not None:
            made["doc"] = slot.doc
        if slot.optional or slot.default is not None:
            made["default"] = slot.default
        return made


def _has_name(avro: Json) -> bool:
    return isinstance(avro, dict) and avro["type"] in _NAMED


def document(kind: Kind) -> Json:
    """A type in the internal schema's form."""
    match kind:
        case Plain():
            return kind.text
        case Many(element):
            return {
                "type": "array",
                "element_id": element.id,
                "element": document(element.kind),
                "element_optional": element.optional,
            }
        case Mapped(key_id, value):
            return {
                "type": "map",
                "key_id": key_id,
                "key": "string",
                "value_id": value.id,
                "value": document(value.kind),
                "value_optional": value.optional,
            }
    return {"type": "record", "fields": [_fielddocument(slot) for slot in kind.fields]}


def _fielddocument(slot: Slot) -> Json:
    made = {"id": slot.id, "name": slot.name, "optional": slot.optional}
    made["type"] = document(slot.kind)
    if slot.doc is not None:
        made["doc"] = slot.doc
    return made
