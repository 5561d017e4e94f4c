"""Which file slices may hold rows that a filter finds. Pure.

For verbs that change those rows. Unlike a scan they see every column as it is stored, since what
they read is written again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyhudi.errors import ConfigError
from pyhudi.plan.read import ReadTask, ScanRequest, plan_scan
from pyhudi.where import parse_where

if TYPE_CHECKING:
    from pyhudi.plan.read import TableState


def plan_select(
    state: TableState, where: Any, columns: tuple[str, ...], memory_limit: int | None
) -> list[ReadTask]:
    """One task for each slice that may hold rows that the filter finds, which gives `columns`.

    Raises `ConfigError` for no filter, and as `parse_where` does.
    """
    if where is None:
        msg = "where is missing: it says which rows"
        raise ConfigError(msg, hint='Give where="true" for all rows.')
    request = ScanRequest(
        output=columns, where=parse_where(where, state.schema), memory_limit=memory_limit
    )
    return [replace(task, path_values=()) for task in plan_scan(state, request)]
