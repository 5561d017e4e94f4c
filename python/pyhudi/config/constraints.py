"""The properties with the constraints and generated columns of a table, which `schema/` applies."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyhudi.config.property_names import CONSTRAINTS, GENERATED_COLUMNS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable


def read_constraints(config: TableConfig) -> Mapping[str, str]:
    """Return the conditions of a table's constraints by name.

    Raises `CorruptTable` if the property is not what pyhudi writes.
    """
    return read_expressions(config, CONSTRAINTS)


def read_generated_columns(config: TableConfig) -> Mapping[str, str]:
    """Return the SQL expressions of a table's generated columns by name.

    Raises `CorruptTable` if the property is not what pyhudi writes.
    """
    return read_expressions(config, GENERATED_COLUMNS)


def read_expressions(config: TableConfig, name: str) -> Mapping[str, str]:
    """Return the SQL expressions of a property by name, empty without the property.

    Raises `CorruptTable` if the property is not what pyhudi writes.
    """
    text = config.properties.get(name)
    if text is None:
        return {}
    try:
        expressions: Any = json.loads(text)
    except ValueError:
        expressions = None
    if not isinstance(expressions, dict) or not all(
        isinstance(expression, str) for expression in expressions.values()
    ):
        raise CorruptTable(f"hoodie.properties: {name} is not a JSON object of strings")
    return expressions


def format_expressions(expressions: Mapping[str, str]) -> str:
    """Return the value of a property for `read_expressions`."""
    return json.dumps(dict(expressions), ensure_ascii=True, sort_keys=True)
