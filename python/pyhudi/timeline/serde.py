"""Serialization of timeline files: JSON as Hudi's Jackson prints it, Avro containers.

This module does not interpret the values. Containers are read with the schema in the file, so
fields of any release are kept; they are written with the schemas in `schemas/`, which Hudi 1.0.2
and 1.2.0 write and 0.15.0 reads.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple, TypeAlias

from pyhudi.clock import Clock
from pyhudi.config.bounded_json import parse_json
from pyhudi.errors import CorruptTable, SchemaMismatch, UnsupportedTableFeature

_CONTAINER_MAGIC = b"Obj\x01"


def decode(data: bytes, path: str) -> dict[str, Any] | None:
    """Return the one value of a timeline file, None for an empty file.

    Raises `CorruptTable` naming `path` if the bytes are neither a JSON object nor a container.
    """
    if not data:
        return None
    if data.startswith(_CONTAINER_MAGIC):
        return container_record(data, path)
    return _as_object(parse_json(data, path), path)


def container_record(data: bytes, path: str) -> dict[str, Any]:
    """Return the one record of a container. Raises `CorruptTable` if it is invalid."""
    from pyhudi import _native  # noqa: PLC0415 - JSON timelines work without it

    try:
        records = json.loads(_native.container_to_json(data)[1])
    except (CorruptTable, SchemaMismatch) as error:  # The schema is the file's own.
        raise CorruptTable(f"{path}: {error}", file=path) from error
    except UnsupportedTableFeature as error:
        raise UnsupportedTableFeature(f"{path}: {error}") from error
    if len(records) != 1:
        msg = f"{path}: expected one record, got {len(records)}"
        raise CorruptTable(msg, file=path)
    return _as_object(records[0], path)


def _as_object(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        msg = f"{path}: expected an object, got {type(value).__name__}"
        raise CorruptTable(msg, file=path, offset=0)
    return value


@cache
def avro_schema(name: str) -> str:
    """Return the schema of a record of Hudi's timeline, as Java writes it into a container."""
    folder = resources.files("pyhudi.timeline") / "schemas"
    return (folder / f"{name}.avsc").read_text(encoding="utf-8")


def encode_container(name: str, record: Mapping[str, Any], clock: Clock) -> bytes:
    """Return a container file of one record of the named type.

    Missing fields are written as null, at every level, or as their default if null is not allowed,
    like fields of later releases; a field without a default is required. Fields that are not in the
    type are dropped.
    """
    from pyhudi import _native  # noqa: PLC0415 - JSON timelines work without it

    schema = avro_schema(name)
    fitted = _fitter(name)(record)
    sync_marker = uuid.UUID(clock.uuid()).bytes
    return _native.json_to_container(schema, json.dumps([fitted]), sync_marker)


def encode_archive_block(name: str, records: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a log block of records of the named type, as in archives of layout 1."""
    from pyhudi import _native  # noqa: PLC0415 - JSON timelines work without it

    schema = avro_schema(name)
    fitted = [*map(_fitter(name), records)]
    return _native.archive_block(schema, json.dumps(fitted))


Fit: TypeAlias = Callable[[Any], Any]
"""Returns a value with exactly the fields of its schema."""


@cache
def _fitter(name: str) -> Fit:
    """Return the function for records of the named type."""
    schema = json.loads(avro_schema(name))
    names: dict[str, Any] = {}
    _collect(schema, schema.get("namespace", ""), names)
    return _fit_of(schema, names) or _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _collect(schema: Any, namespace: str, names: dict[str, Any]) -> None:
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, namespace, names)
    elif isinstance(schema, dict):
        if schema.get("type") == "record":
            namespace = schema.get("namespace", namespace)
            names[schema["name"]] = names[f"{namespace}.{schema['name']}"] = schema
        inner = [schema.get("items"), schema.get("values"), schema.get("type")]
        for part in (*inner, *(field["type"] for field in schema.get("fields", ()))):
            _collect(part, namespace, names)


def _fit_of(schema: Any, names: Mapping[str, Any]) -> Fit | None:
    """Return the function for a part of a schema; None if values stay as they are.

    names: the records that the schema may refer to.
    """
    if isinstance(schema, list):
        (branch,) = (branch for branch in schema if branch != "null")
        return _fit_of(branch, names)
    if isinstance(schema, str):
        schema = names.get(schema, {"type": schema})
    schema_type = schema["type"]
    if schema_type == "record":
        return _fit_record([_Field.of(field, names) for field in schema["fields"]])
    if schema_type == "map" and _is_text(schema["values"]):
        return _fit_texts
    inner = {"array": "items", "map": "values"}.get(schema_type)
    fit = None if inner is None else _fit_of(schema[inner], names)
    if fit is None:
        return None
    return _fit_array(fit) if schema_type == "array" else _fit_map(fit)


def _is_text(schema: Any) -> bool:
    return "string" in (schema, schema["type"] if isinstance(schema, dict) else None)


class _Field(NamedTuple):
    """A field of a record."""

    name: str
    fit: Fit | None
    default: Any
    """The value for a missing field: None if null is allowed."""

    @classmethod
    def of(cls, field: Mapping[str, Any], names: Mapping[str, Any]) -> _Field:
        default = None if "null" in field["type"] else field.get("default")
        return cls(field["name"], _fit_of(field["type"], names), default)


def _fit_record(fields: Sequence[_Field]) -> Fit:
    names = [field.name for field in fields]
    defaults = [(field.name, field.default) for field in fields if field.default is not None]
    inner = [(field.name, field.fit) for field in fields if field.fit is not None]

    def fit(value: Any) -> Any:
        if value is None:
            return None
        # A commit has dozens of fields a file: no Python call for each.
        record = dict(zip(names, map(value.get, names), strict=True))
        for name, default in defaults:
            if record[name] is None:
                record[name] = default
        for name, fit_field in inner:
            record[name] = fit_field(record[name])
        return record

    return fit


def _fit_texts(value: Any) -> Any:
    """Convert a map of strings without its null values, which Avro does not support."""
    return None if value is None else {k: item for k, item in value.items() if item is not None}


def _fit_array(inner: Fit) -> Fit:
    return lambda value: None if value is None else [*map(inner, value)]


def _fit_map(inner: Fit) -> Fit:
    return lambda value: None if value is None else {k: inner(item) for k, item in value.items()}


def encode_json(value: Any) -> bytes:
    """Encode JSON as Jackson's default pretty printer does, in UTF-8.

    Objects are indented by two blanks per level and use ` : `; arrays stay on one line.
    """
    return _print(value, 0).encode("utf-8")


def _print(value: Any, level: int) -> str:
    if isinstance(value, dict):
        if not value:
            return "{ }"
        inner = "  " * (level + 1)
        lines = [f"{inner}{_scalar(str(k))} : {_print(v, level + 1)}" for k, v in value.items()]
        return "{\n" + ",\n".join(lines) + "\n" + "  " * level + "}"
    if isinstance(value, (list, tuple)):
        return "[ " + ", ".join(_print(item, level) for item in value) + " ]" if value else "[ ]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
