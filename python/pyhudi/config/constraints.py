"""The property with the constraints of a table; `schema/constraints.py` checks rows by them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyhudi.config.property_names import CONSTRAINTS
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import CorruptTable


def read_constraints(config: TableConfig) -> Mapping[str, str]:
    """Return the conditions of a table's constraints by name.

    Raises `CorruptTable` if the property is not what pyhudi writes.
    """
    text = config.properties.get(CONSTRAINTS)
    if text is None:
        return {}
    try:
        conditions: Any = json.loads(text)
    except ValueError:
        conditions = None
    if not isinstance(conditions, dict) or not all(
        isinstance(condition, str) for condition in conditions.values()
    ):
        raise CorruptTable(f"hoodie.properties: {CONSTRAINTS} is not a JSON object of strings")
    return conditions


def format_constraints(conditions: Mapping[str, str]) -> str:
    """Return the value of the property."""
    return json.dumps(dict(conditions), ensure_ascii=True, sort_keys=True)
