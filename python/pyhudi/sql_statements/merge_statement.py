"""MERGE INTO without Spark, through the merge of a table by record key.

The ON condition has to compare the key columns. It names the columns of the source that have the
key, and those of the partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from pyhudi.api.merge_builder import Merge
from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature
from pyhudi.input.batches import read_batches
from pyhudi.schema.sql_parser import SqlTree, parse_one
from pyhudi.sql_statements.changed_rows import NamedColumns
from pyhudi.sql_statements.column_names import (
    Side,
    column_path,
    find_side,
    match_name,
    own_name,
    resolve_names,
)
from pyhudi.sql_statements.duckdb_queries import QueryRows
from pyhudi.sql_statements.relations import Relations
from pyhudi.sql_statements.statement_parser import (
    column_to_set,
    is_query,
    name_of_source,
    query_of_source,
)
from pyhudi.sql_statements.statements import Assignment, Clause, MergeInto
from pyhudi.sql_statements.subqueries import conjuncts, with_values
from pyhudi.sql_statements.table_references import find_tables
from pyhudi.sql_statements.tokens import quote_name
from pyhudi.txn.result import WriteResult
from pyhudi.write.merge_clauses import SOURCE, TARGET

_BY_KEY = "A MERGE matches rows by the record key: ON t.id = s.id."


def run_merge(statement: MergeInto, table: HudiTable, relations: Relations) -> WriteResult:
    """Run MERGE INTO.

    Raises as `Merge.execute` does, and `ConfigError` for a condition that does not compare the
    key.
    """
    config = table.config
    if not config.record_key_fields:
        raise UnsupportedTableFeature(
            "hoodie.table.recordkey.fields is not set: a MERGE matches rows by their key",
            hint="Use INSERT, UPDATE or DELETE.",
        )
    rows = _source(statement, table, relations)
    columns = read_batches(rows)[0].names
    by_path = statement.table.path is not None
    target_name = statement.alias or (None if by_path else statement.table.parts[-1])
    source_name = statement.source_alias or name_of_source(statement.source, "standard")
    if target_name and source_name and target_name.lower() == source_name.lower():
        raise ConfigError(
            f"table and source are both called {target_name!r}", hint="Give each an alias with AS."
        )
    target = Side.of(table.schema.names, target_name, TARGET)
    matched = _columns_of_condition(statement, target, Side.of(columns, source_name, SOURCE))
    key, partition = config.record_key_fields, config.partition_fields
    missing = [name for name in key if name not in matched]
    if missing:
        raise ConfigError(f"ON does not compare the key column {missing[0]!r}", hint=_BY_KEY)
    other = [name for name in matched if name not in {*key, *partition}]
    if other:
        raise ConfigError(
            f"ON compares {other[0]!r}, which is not part of the key or partition",
            hint="Move the condition into the WHEN clauses: WHEN MATCHED AND ...",
        )
    source = Side.of(columns, source_name, SOURCE)
    matched.update(_partition_columns(statement, table, source, matched))
    names = _names_in_table(columns, matched)
    source = Side({columns[at]: name for name, at in reversed(names)}, source_name, SOURCE)
    plan = _Plan(statement, table, relations, target, source, matched)
    merge = table.merge(NamedColumns(rows, names))
    for clause in statement.clauses:
        merge = plan.add(merge, clause)
    return merge.execute()


def _source(statement: MergeInto, table: HudiTable, relations: Relations) -> Any:
    """Return the rows of the source; a table that needs no query is read without DuckDB."""
    if not is_query(statement.source, "standard"):
        (reference,) = find_tables(f"TABLE {statement.source}", "standard")
        rows = relations.find(reference.table)
        if reference.as_of is None and not isinstance(rows, (HudiTable, type(None))):
            return rows
    return QueryRows(query_of_source(statement.source, "standard"), relations, table)


def _columns_of_condition(statement: MergeInto, target: Side, source: Side) -> dict[str, str]:
    """Return the source's column that ON compares with each column of the table."""
    matched: dict[str, str] = {}
    for condition in conjuncts(parse_one(statement.condition, "ON")):
        pair = _columns_of_equality(condition, target, source)
        if pair is None:
            raise ConfigError(
                f"ON has {condition.sql()}, which does not compare a column of the table with one "
                "of the source",
                hint=_BY_KEY + " Compute values in the source, other conditions in WHEN.",
            )
        own, other = pair
        if matched.setdefault(own, other) != other:
            raise ConfigError(f"ON compares the column {own!r} twice", hint=_BY_KEY)
    return matched


def _columns_of_equality(condition: Any, target: Side, source: Side) -> tuple[str, str] | None:
    """Return the table's and the source's column of an equality; None for another condition."""
    if type(condition) is not exp.EQ:
        return None
    columns: dict[str, str] = {}
    for operand in (condition.this, condition.expression):
        if not isinstance(operand, exp.Column):
            return None
        path = column_path(operand)
        if not path:
            return None
        side, names = find_side(path, [target, source], "ON")
        column = side.find(names[0])
        if len(names) > 1 or column is None:
            return None
        columns[side.prefix or ""] = column
    return (columns[TARGET], columns[SOURCE]) if len(columns) > 1 else None


def _partition_columns(
    statement: MergeInto, table: HudiTable, source: Side, matched: dict[str, str]
) -> dict[str, str]:
    """Return the source's columns of partition columns that ON does not compare.

    It is the one that all INSERT clauses take, else the one of the same name.
    """
    result = {}
    for name in table.config.partition_fields:
        if name in matched:
            continue
        inserted = {
            column
            for clause in statement.clauses
            for assignment in (clause.assignments if clause.action == "insert" else None) or ()
            if own_name(column_to_set(assignment, statement), table.schema.names) == name
            for column in [_source_column(assignment.value, source)]
        }
        column = inserted.pop() if len(inserted) == 1 else None
        column = column or source.find(name)
        if column is None:
            raise SchemaMismatch(
                f"the source does not have the partition column {name!r}",
                hint=f"Add it to the source, and AND t.{name} = s.{name} to ON.",
            )
        result[name] = column
    return result


def _source_column(value: str, source: Side) -> str | None:
    """Return the column of the source whose value is meant; None for a computed value."""
    tree = parse_one(value, "VALUES")
    path = column_path(tree) if isinstance(tree, exp.Column) else ()
    if not path:
        return None
    _, names = find_side(path, [source], "VALUES")
    return source.find(names[0]) if len(names) == 1 else None


def _names_in_table(columns: Sequence[str], matched: dict[str, str]) -> list[tuple[str, int]]:
    """Return the columns of the source, those of key and partition with the table's names.

    Raises `ConfigError` if another column of the source has one of these names.
    """
    names = {column: column for column in columns}
    more_names = []
    for own, column in matched.items():
        taken = match_name(own, [each for each in columns if each != column])
        if taken is not None and taken not in matched.values():
            raise ConfigError(
                f"the source has a column {taken!r}, but {own!r} of the table is compared with "
                f"{column!r}",
                hint=f"Leave {taken!r} out of the source.",
            )
        if names[column] in matched and names[column] != own:
            more_names.append((own, columns.index(column)))
        else:
            names[column] = own
    return [*((names[column], at) for at, column in enumerate(columns)), *more_names]


@dataclass(frozen=True)
class _Plan:
    """The clauses of a statement in terms of the merge builder."""

    statement: MergeInto
    table: HudiTable
    relations: Relations
    target: Side
    source: Side
    matched: dict[str, str]
    """Columns of the source, by the table's columns that must equal them."""

    def add(self, merge: Merge[WriteResult], clause: Clause) -> Merge[WriteResult]:
        """Return the merge with a clause more."""
        sides = {
            "matched": [self.target, self.source],
            "not_matched": [self.source],
            "not_matched_by_source": [self.target],
        }[clause.when]
        where = None if clause.condition is None else self._resolve(clause.condition, sides, "WHEN")
        match clause.when, clause.action:
            case "matched", "delete":
                return merge.when_matched_delete(where=where)
            case "matched", _:
                return merge.when_matched_update(self._updates(clause, sides), where=where)
            case _, "delete":
                return merge.when_not_matched_by_source_delete(where=where)
            case _, "update":
                values = self._updates(clause, sides)
                return merge.when_not_matched_by_source_update(values, where=where)
            case _:
                return merge.when_not_matched_insert(self._inserts(clause, sides), where=where)

    def _updates(self, clause: Clause, sides: Sequence[Side]) -> dict[str, str]:
        if clause.assignments is None:
            return self._all_columns(
                [name for name in self.table.schema.names if name not in self.matched]
            )
        values: dict[str, str] = {}
        for name, assignment in self._assignments_by_column(clause.assignments):
            if name not in self.matched:
                values[name] = self._resolve(assignment.value, sides, f"SET {name}")
            elif not self._keeps(name, assignment.value, sides):
                raise ConfigError(
                    f"UPDATE sets {name!r} to {assignment.value}: it is part of the record key or "
                    "partition path",
                    hint=f"Leave it out, or set it to {self.matched[name]!r} of the source.",
                )
        return values

    def _inserts(self, clause: Clause, sides: Sequence[Side]) -> dict[str, str]:
        if clause.assignments is None:
            return self._all_columns(self.table.schema.names)
        return {
            name: self._resolve(assignment.value, sides, f"VALUES for {name}")
            for name, assignment in self._assignments_by_column(clause.assignments)
        }

    def _assignments_by_column(
        self, assignments: Sequence[Assignment]
    ) -> list[tuple[str, Assignment]]:
        """Return assignments with the table's columns."""
        names: list[tuple[str, Assignment]] = []
        for assignment in assignments:
            name = own_name(column_to_set(assignment, self.statement), self.table.schema.names)
            if any(name == other for other, _ in names):
                raise ConfigError(f"a clause sets the column {name!r} twice")
            names.append((name, assignment))
        return names

    def _all_columns(self, names: Sequence[str]) -> dict[str, str]:
        """Return the values of `*`: the source's columns of the same names."""
        values = {}
        for name in names:
            column = self.source.find(name) or (name if name in self.matched else None)
            if column is None:
                raise SchemaMismatch(
                    f"the source does not have the column {name!r}",
                    hint="Name the columns that are set, or add it to the source.",
                )
            values[name] = f"{SOURCE}.{quote_name(column)}"
        return values

    def _keeps(self, name: str, value: str, sides: Sequence[Side]) -> bool:
        """Return whether a value of a key or partition column is its own."""
        tree = parse_one(value, "SET")
        path = column_path(tree) if isinstance(tree, exp.Column) else ()
        if not path:
            return False
        side, names = find_side(path, sides, "SET")
        return len(names) == 1 and (
            (side is self.target and side.find(names[0]) == name)
            or (
                side is self.source
                and match_name(names[0], list(self.source.columns)) == self.matched[name]
            )
        )

    def _resolve(self, sql: str, sides: Sequence[Side], what: str) -> SqlTree:
        return resolve_names(with_values(sql, self.relations, self.table), sides, what)
