"""Checks merge rules against columns, and keeps combined columns out of updates.

A rule adds a written value to the stored one. A write that must leave the column as it is writes
null there, so columns with a rule are nullable.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.config.column_rules import MERGE_RULES, ColumnRules, RuleName
from pyhudi.errors import ConfigError, UnsupportedTableFeature
from pyhudi.schema.alter_changes import Change, ChangeType, Drop, Rename


def check_rules(schema: pa.Schema, rules: ColumnRules, fixed: Collection[str]) -> None:
    """Raise `ConfigError` for rules that the columns of a new table cannot have.

    fixed: columns of keys, partitions, ordering and deletes.
    """
    roots = {name.split(".")[0] for name in fixed}
    for name, rule in rules:
        if name not in schema.names:
            msg = f"merge_rules names {name!r}, which is not a column of the table"
            raise ConfigError(msg, hint=f"The columns are {', '.join(schema.names)}.")
        if name in roots:
            msg = f"merge_rules has {name}:{rule}, but the column orders or identifies records"
            raise ConfigError(msg, hint="Leave key, partition, ordering and delete columns out.")
        field = schema.field(name)
        reason = _unfit_type(rule, field.type)
        if reason:
            msg = f"merge_rules has {name}:{rule}, but {name!r} is {field.type}"
            raise ConfigError(msg, hint=reason)
        if not field.nullable:
            msg = f"merge_rules has {name}:{rule}, but {name!r} cannot be null"
            raise ConfigError(msg, hint="Make the column nullable: null leaves it unchanged.")


def _unfit_type(rule: RuleName, kind: pa.DataType) -> str | None:
    """Return which types a rule needs, None if this is one."""
    match rule:
        case "sum":
            tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
            return None if any(test(kind) for test in tests) else "sum needs a number."
        case "max" | "min":
            return f"{rule} needs a type with an order." if pa.types.is_nested(kind) else None
        case "append" | "union":
            if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
                return f"{rule} needs a list."
            plain = rule == "append" or not pa.types.is_nested(kind.value_type)
            return None if plain else "union needs elements without parts; append takes any list."
        case _:
            return None


def check_changes(rules: ColumnRules, changes: Iterable[Change]) -> None:
    """Raise `UnsupportedTableFeature` for a change that a column's rule does not survive."""
    rule_of = dict(rules)
    for change in changes:
        rule = rule_of.get(change.path)
        if rule is None:
            continue
        if isinstance(change, (Rename, Drop)) or (
            isinstance(change, ChangeType) and _unfit_type(rule, change.data_type)
        ):
            raise UnsupportedTableFeature(
                f"{MERGE_RULES} has {change.path}:{rule}: the column cannot be renamed, dropped "
                "or get a type that the rule does not have",
                hint="Create a table with other rules, and copy the rows.",
            )


def check_assignments(rules: ColumnRules, columns: Iterable[str]) -> None:
    """Raise `UnsupportedTableFeature` if an update sets a column that a rule combines."""
    rule_of = dict(rules)
    for name in columns:
        if name in rule_of:
            raise UnsupportedTableFeature(
                f"{MERGE_RULES} has {name}:{rule_of[name]}: this column cannot be set",
                hint="Leave the column out and upsert values to combine, or delete the rows and "
                "insert them again.",
            )


def leave_unchanged(rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Return rows with nulls in the columns that have a rule."""
    for name in columns:
        position = rows.schema.get_field_index(name)
        field: pa.Field[Any] = rows.schema.field(position)
        rows = rows.set_column(position, field, pa.nulls(rows.num_rows, field.type))
    return rows
