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
    internal: str
    """The internal schema's name for it."""

    @property
    def simple(self) -> str:
        """Its name in the internal schemas of every release; else its name in Hudi 1.2."""
        name = self.avro["type"] if isinstance(self.avro, dict) else self.avro
        rich, simple = internal_types(name, self.avro)
        return simple or rich


@dataclass(frozen=True)
class Struct:
    """A record type."""

    name: str
    """The Avro record's full name."""
    fields: tuple[Slot, ...]
    props: Mapping[str, Json] = field(default_factory=dict)
    """Other properties of the Avro record."""


@dataclass(frozen=True)
class Many:
    """A list."""

    element: Slot


@dataclass(frozen=True)
class Mapped:
    """A map with string keys."""

    key_id: int
    value: Slot


ColumnType: TypeAlias = "Plain | Struct | Many | Mapped"


@dataclass(frozen=True)
class Slot:
    """A slot of values: a column, a struct's field, a list's element or a map's value."""

    id: int
    name: str
    column_type: ColumnType
    optional: bool
    doc: str | None = None
    default: Json = None
    """A default other than null."""


def parts_of(column_type: ColumnType) -> tuple[Slot, ...]:
    """Return the fields of a struct, the element of a list, the value of a map; else nothing."""
    match column_type:
        case Struct():
            return column_type.fields
        case Many():
            return (column_type.element,)
        case Mapped():
            return (column_type.value,)
    return ()


def with_parts(column_type: ColumnType, parts: tuple[Slot, ...]) -> ColumnType:
    """Return the type with other fields, another element or another value."""
    match column_type:
        case Struct():
            return replace(column_type, fields=parts)
        case Many():
            return Many(parts[0])
        case Mapped():
            return replace(column_type, value=parts[0])
    return column_type


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


def internal_types(avro_name: str, avro: Json) -> tuple[str, str]:
    """Return the names of an Avro type in internal schemas: Hudi 1.2's, and every release's or "".

    Raises `UnsupportedTableFeature` for a type without a name.
    """
    props = avro if isinstance(avro, dict) else {}
    logical = props.get("logicalType")
    if logical == "decimal":
        digits = f"({props['precision']}, {props.get('scale', 0)})"
        size = f"_fixed{digits}[{props['size']}]" if avro_name == "fixed" else f"_bytes{digits}"
        return f"decimal{size}", f"decimal{digits}"
    if logical == "vector":
        parts = props["dimension"], props["elementType"], props.get("storageBacking", "FIXED_BYTES")
        internal_name = f"vector[{parts[0]}, {parts[1]}, {parts[2]}]"
        return internal_name, internal_name
    if logical in _BY_LOGICAL_TYPE:
        return _BY_LOGICAL_TYPE[logical]
    name = _BY_TYPE.get(avro_name, avro_name)
    if name not in _TYPES:
        msg = f"hoodie.schema.on.read.enable: the type {avro_name} has no counterpart"
        raise UnsupportedTableFeature(msg)
    internal_name = f"fixed[{props['size']}]" if avro_name == "fixed" else name
    return internal_name, internal_name
