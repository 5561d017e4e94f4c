"""The types of columns, with an id for each slot of values, and Hudi's names for them.

`column_json.py` reads and writes them, `column_tree.py` has all columns of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.avro_names import Json

NEW = -1
"""The id of a slot without an id."""

ELEMENT, VALUE = "element", "value"
"""The names of a list's element and a map's value in paths."""


@dataclass(frozen=True)
class Plain:
    """A type without parts."""

    avro: Json
    text: str
    """The internal schema's name for it."""

    @property
    def simple(self) -> str:
        """The internal schema's name for it in every release; Hudi 1.2's if there is none."""
        kind = self.avro["type"] if isinstance(self.avro, dict) else self.avro
        rich, simple = internal_types(kind, self.avro)
        return simple or rich


@dataclass(frozen=True)
class Struct:
    """A record type."""

    name: str
    """The Avro record's full name."""
    fields: tuple[Slot, ...]
    props: Mapping[str, Json] = field(default_factory=dict)
    """Other properties of the Avro record."""

    def field_named(self, name: str) -> Slot | None:
        """Return the field of a name; None if there is none."""
        return next((slot for slot in self.fields if slot.name == name), None)


@dataclass(frozen=True)
class Many:
    """A list."""

    element: Slot


@dataclass(frozen=True)
class Mapped:
    """A map with string keys."""

    key_id: int
    value: Slot


Kind: TypeAlias = "Plain | Struct | Many | Mapped"


@dataclass(frozen=True)
class Slot:
    """A slot of values: a column, a struct's field, a list's element or a map's value."""

    id: int
    name: str
    kind: Kind
    optional: bool
    doc: str | None = None
    default: Json = None
    """A default other than null."""


def parts_of(kind: Kind) -> tuple[Slot, ...]:
    """Return the fields of a struct, the element of a list, the value of a map; else nothing."""
    match kind:
        case Struct():
            return kind.fields
        case Many():
            return (kind.element,)
        case Mapped():
            return (kind.value,)
    return ()


def with_parts(kind: Kind, parts: tuple[Slot, ...]) -> Kind:
    """Return the type with other fields, another element or another value."""
    match kind:
        case Struct():
            return replace(kind, fields=parts)
        case Many():
            return Many(parts[0])
        case Mapped():
            return replace(kind, value=parts[0])
    return kind


_BY_LOGICAL_TYPE = {
    "date": ("date", "date"),
    "time-millis": ("time-millis", "time"),
    "time-micros": ("time", "time"),
    "timestamp-millis": ("timestamp-millis", "timestamp"),
    "timestamp-micros": ("timestamp", "timestamp"),
    "local-timestamp-millis": ("local-timestamp-millis", ""),
    "local-timestamp-micros": ("local-timestamp-micros", ""),
    "uuid": ("uuid", "uuid"),
}
_BY_TYPE = {"bytes": "binary", "enum": "string"}
_TYPES = frozenset(
    ("boolean", "int", "long", "float", "double", "string", "binary", "fixed", "enum")
)


def internal_types(kind: str, avro: Json) -> tuple[str, str]:
    """Return the names of an Avro type in internal schemas: Hudi 1.2's, and every release's ("").

    Raises `UnsupportedTableFeature` for a type without a name.
    """
    props = avro if isinstance(avro, dict) else {}
    logical = props.get("logicalType")
    if logical == "decimal":
        digits = f"({props['precision']}, {props.get('scale', 0)})"
        size = f"_fixed{digits}[{props['size']}]" if kind == "fixed" else f"_bytes{digits}"
        return f"decimal{size}", f"decimal{digits}"
    if logical == "vector":
        parts = props["dimension"], props["elementType"], props.get("storageBacking", "FIXED_BYTES")
        text = f"vector[{parts[0]}, {parts[1]}, {parts[2]}]"
        return text, text
    if logical in _BY_LOGICAL_TYPE:
        return _BY_LOGICAL_TYPE[logical]
    name = _BY_TYPE.get(kind, kind)
    if name not in _TYPES:
        msg = f"hoodie.schema.on.read.enable: the type {kind} has no counterpart"
        raise UnsupportedTableFeature(msg)
    text = f"fixed[{props['size']}]" if kind == "fixed" else name
    return text, text
