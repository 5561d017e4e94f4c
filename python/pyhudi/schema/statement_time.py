"""The time of a statement: one value for each `now()` and `current_date` of a call, in UTC.

Expressions that are parsed again later, as after a conflict, keep the time of the call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from pyhudi.clock import Clock, SystemClock
from pyhudi.errors import ConfigError

_CALLS = re.compile(r"\b(now|current_timestamp|current_date)\b", re.IGNORECASE)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - UTC


class StatementTime:
    """The time of one call."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._now = _EPOCH + timedelta(milliseconds=(clock or SystemClock()).now_ms())

    def fix(self, sql: Any) -> Any:
        """Return a SQL expression with the time in the places of its calls, or another value."""
        if not isinstance(sql, str) or not _CALLS.search(sql):
            return sql
        from sqlglot import exp  # noqa: PLC0415 - takes a while to import

        from pyhudi.schema.sql_parser import SqlTree, parse_one, time_of_call  # noqa: PLC0415 - as above

        try:
            tree = parse_one(sql, "where")
        except ConfigError:
            return sql  # its use raises the error
        for node in list(tree.walk()):
            kind = time_of_call(node)
            if kind is None:
                continue
            text = str(self._now if kind == "TIMESTAMP" else self._now.date())
            fixed = exp.Cast(this=exp.Literal.string(text), to=exp.DataType.build(kind))
            tree = fixed if node is tree else tree
            node.replace(fixed)
        return SqlTree(sql, tree)

    def fix_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return new values by column with the time in the places of calls."""
        return {name: self.fix(value) for name, value in values.items()}
