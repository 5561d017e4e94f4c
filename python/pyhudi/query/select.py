"""Which file slices may hold rows that a filter finds. Pure.

For verbs that change those rows. Unlike a scan they see every column as it is stored, since what
they read is written again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyhudi.errors import ConfigError
from pyhudi.query.snapshot import plan_scan
from pyhudi.schema.conform import data_schema
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.record_keys import KeySpec
from pyhudi.slices.read_tasks import ReadTask, ScanRequest
from pyhudi.slices.table import Table


def plan_select(
    state: Table,
    where: Any,
    columns: tuple[str, ...],
    memory_limit: int | None,
    keys: KeySpec | None = None,
    *,
    by_path: bool = False,
) -> list[ReadTask]:
    """One task for each slice that may hold rows that the filter finds, which gives `columns`.

    by_path: partition columns have the values that a scan takes from paths, for who writes none of
    them. keys: how keys are made, where rows have none stored. Raises `ConfigError` for no filter,
    and as `parse_where` does.
    """
    if where is None:
        msg = "where is missing: it says which rows"
        raise ConfigError(msg, hint='Give where="true" for all rows.')
    if state.config.populate_meta_fields:
        found = parse_where(where, state.columns)
        request = ScanRequest(output=columns, where=found, memory_limit=memory_limit)
        tasks = plan_scan(state, request)
        return tasks if by_path else [replace(task, path_values=()) for task in tasks]
    found = parse_where(where, data_schema(state.columns))
    roots = [name if name in state.columns.names else name.split(".")[0] for name in _sources(keys)]
    request = ScanRequest(
        output=tuple(dict.fromkeys((*columns, *roots))), where=found, memory_limit=memory_limit
    )
    return [
        replace(task, path_values=(), output=columns, made_keys=keys)
        for task in plan_scan(state, request)
    ]


def _sources(keys: KeySpec | None) -> tuple[str, ...]:
    if keys is None:
        raise AssertionError
    return keys.key_fields
