"""Merge rules by column: how a table stores them, and their names.

The rules use the CUSTOM merge mode with a strategy id of pyhudi's own, so that Hudi does not merge
the table's records in another way (decision 32). `schema/column_rules.py` checks rules against
columns; `rust/merge` applies them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias, cast, get_args

from pyhudi.errors import ConfigError, UnsupportedTableFeature

RuleName = Literal["sum", "max", "min", "last_non_null", "first", "append", "union"]
"""How the values of two records of one key are combined."""

ColumnRules: TypeAlias = tuple[tuple[str, RuleName], ...]
"""Columns with their rules."""

RULE_NAMES: tuple[RuleName, ...] = get_args(RuleName)

MERGE_RULES = "pyhudi.merge.rules"
"""Option of a new table: `column:rule,column:rule`."""

RULES_STRATEGY = "298b5268-d714-4b4c-9180-9d2b1c738602"
"""The `hoodie.record.merge.strategy.id` of tables with merge rules."""

_PAYLOAD = re.compile(r"pyhudi\.ColumnRules\((.*)\)")


def rules_payload(rules: ColumnRules) -> str:
    """Return the `hoodie.compaction.payload.class` of a table with rules: it contains them.

    The class does not exist. Hudi falls back to the payload class if it has no merger with the
    strategy id, and then fails. A property of another name would be lost: `CREATE TABLE` of Hudi
    1.0.2 at a table's location keeps the properties that it knows.
    """
    return f"pyhudi.ColumnRules({format_rules(dict(rules))})"


def parse_payload(payload: str) -> ColumnRules:
    """Return the rules in a payload class, none if it is another class.

    Raises `UnsupportedTableFeature` for a rule that pyhudi does not have.
    """
    match = _PAYLOAD.fullmatch(payload)
    rules = _split(match[1]) if match else ()
    for column, rule in rules:
        if rule not in RULE_NAMES:
            msg = f"{MERGE_RULES} has {column}:{rule}; pyhudi supports {', '.join(RULE_NAMES)}"
            raise UnsupportedTableFeature(msg, hint="Install a newer pyhudi.")
    return cast("ColumnRules", rules)


def choose_rules(text: str) -> ColumnRules:
    """Return the rules of an option. Raises `ConfigError` for an invalid one."""
    rules = _split(text)
    for column, rule in rules:
        if not column or rule not in RULE_NAMES:
            msg = f"{MERGE_RULES} has {column}:{rule}"
            raise ConfigError(msg, hint=f"Give column:rule with {', '.join(RULE_NAMES)}.")
    if len({column for column, _ in rules}) < len(rules):
        raise ConfigError(f"{MERGE_RULES} names a column twice: {text}")
    return cast("ColumnRules", rules)


def format_rules(rules: Mapping[str, str]) -> str:
    """Return the text of rules by column."""
    return ",".join(f"{column}:{rule}" for column, rule in rules.items())


def _split(text: str) -> tuple[tuple[str, str], ...]:
    pairs = (part.rpartition(":") for part in text.split(",") if part.strip())
    return tuple((column.strip(), rule.strip().lower()) for column, _, rule in pairs)
