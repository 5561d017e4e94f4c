"""Inlines the named types of an Avro schema at each use, and defines each of them once again.

A change of a schema applies to one path, and not to every use of its type. Names and namespaces
are Avro's (`Schema.Names`, 1.11).
"""

from __future__ import annotations

from itertools import chain, count
from typing import Any, TypeAlias

from pyhudi.errors import UnsupportedTableFeature

Json: TypeAlias = Any
"""A type in an Avro schema: a name, a record or other named type, or a union."""

NAMED = ("record", "enum", "fixed", "error")


def inline_references(avro: Json) -> Json:
    """Return a schema with definitions in path of references, each with its namespace.

    Raises `UnsupportedTableFeature` for a recursive type.
    """
    return _Definitions().of(avro, "")


def define_names_once(avro: Json) -> Json:
    """Return an inlined schema with every named type defined once, where it comes first.

    A type whose name another type has gets one by its position.
    """
    return _Names().of(avro, "", "")


class _Definitions:
    def __init__(self) -> None:
        self._definitions: dict[str, Json] = {}

    def of(self, avro: Json, space: str) -> Json:
        if isinstance(avro, list):
            return [self.of(branch, space) for branch in avro]
        if isinstance(avro, str):
            return self._resolve_name(avro, space)
        if avro["type"] in NAMED:
            return self._define(avro, space)
        return {
            key: self.of(value, space) if key in ("items", "values") else value
            for key, value in avro.items()
        }

    def _resolve_name(self, name: str, space: str) -> Json:
        full_name = next(
            (
                candidate
                for candidate in (_full(name, space), name)
                if candidate in self._definitions
            ),
            None,
        )
        if full_name is None:
            return name
        if self._definitions[full_name] is None:
            msg = f"the table's schema has the type {full_name}, which contains itself"
            raise UnsupportedTableFeature(msg)
        return self._definitions[full_name]

    def _define(self, avro: Json, space: str) -> Json:
        written_name = avro["name"]
        space = (
            written_name.rpartition(".")[0] if "." in written_name else avro.get("namespace", space)
        )
        head = {"type": avro["type"], "name": written_name.rpartition(".")[2], "namespace": space}
        definition = {**head, **{key: value for key, value in avro.items() if key not in head}}
        name = _full(head["name"], space)
        self._definitions[name] = None
        if "fields" in definition:
            definition["fields"] = [
                {**field, "type": self.of(field["type"], space)} for field in definition["fields"]
            ]
        self._definitions[name] = definition
        return definition


class _Names:
    def __init__(self) -> None:
        self._taken: dict[str, Json] = {}

    def of(self, avro: Json, space: str, path: str) -> Json:
        """space: the namespace around it. path: the full name to use if its own is taken."""
        if isinstance(avro, list):
            return [self.of(branch, space, path) for branch in avro]
        if isinstance(avro, str):
            return avro
        if avro["type"] in NAMED:
            return self._once(avro, space, path)
        return {
            key: self.of(value, space, path) if key in ("items", "values") else value
            for key, value in avro.items()
        }

    def _once(self, avro: Json, space: str, path: str) -> Json:
        name = _full(avro["name"], avro["namespace"])
        if name in self._taken:
            if self._taken[name] == avro:
                return name
            name = self._free(path)
        self._taken[name] = avro
        own, _, last = name.rpartition(".")
        definition = {**avro, "name": last, "namespace": own}
        if own == space:
            del definition["namespace"]
        if "fields" in definition:
            definition["fields"] = [
                {**field, "type": self.of(field["type"], own, f"{name}.{field['name']}")}
                for field in definition["fields"]
            ]
        return definition

    def _free(self, path: str) -> str:
        numbered = (f"{path}_{number}" for number in count(2))
        return next(name for name in chain((path,), numbered) if name not in self._taken)


def _full(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"
