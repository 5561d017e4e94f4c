"""SQL row filters: the pyarrow expression, and the comparisons in it that prune files.

`sql_evaluator.py` translates expressions. This module adds the rules of filters. A comparison of a
column with constants prunes files. Constants are computed once, not per row. Equalities of one
column joined by OR are one list.

The dialect is standard SQL: strings in single quotes, names with odd characters in double quotes.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence
from contextlib import suppress
from functools import reduce
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.schema.predicate_comparisons import boolean
from pyhudi.schema.predicate_literals import parse_literal
from pyhudi.schema.predicates import Path, Where, check_size, column_type
from pyhudi.schema.sql_casts import DAY_AND_TIME
from pyhudi.schema.sql_evaluator import COMPARISONS, Evaluator, compute_constant
from pyhudi.schema.sql_expressions import Literal, Operand, Value
from pyhudi.schema.sql_operators import truth
from pyhudi.schema.sql_parser import parse_one, too_deep

_TIME_TYPES = ("DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "DATETIME")
_COMPARES_FIRST = (exp.Between, exp.In, exp.Is, exp.Like, exp.NullSafeEQ)
"""Nodes other than `COMPARISONS` that can compare a column with constants."""
_NO_CALLS = (exp.Column, exp.Identifier, exp.Literal, exp.Paren, exp.DataType, exp.DataTypeParam)


def parse_sql_filter(sql: str, schema: pa.Schema) -> Where:
    """Translate a SQL filter. Raises `ConfigError` and `SchemaMismatch`."""
    try:
        tree = parse_one(sql, "where")
        names = {_path(column)[0] for column in tree.find_all(exp.Column)}
        filter_ = _Filter(schema)
        outcome = filter_.translate(tree)
    except RecursionError:
        raise too_deep("where") from None
    check_size(filter_.comparisons)
    columns = tuple(name for name in schema.names if name in names)
    return Where(outcome.expression, columns, outcome.conjuncts)


class _Filter(Evaluator):
    """Translates one filter for a schema."""

    def __init__(self, schema: pa.Schema) -> None:
        super().__init__(self._column, "where")
        self._schema = schema
        self._in_comparison = False
        """The current node is in a comparison of a column with constants, which become literals."""
        self.comparisons = 0
        """The number of comparisons and calls."""

    def translate(self, node: Any) -> Value:
        """Translate a condition, with the conjuncts of its comparisons."""
        node = _bare(node)
        if isinstance(node, (exp.And, exp.Or)):
            return self._translate_chain(node, exp.And if isinstance(node, exp.And) else exp.Or)
        if isinstance(node, exp.Not):
            self._check(node)
            return Value(~self.translate(node.this).expression, pa.bool_())
        if _is_constant(node):
            self.comparisons += 1
            return Value(boolean(self._truth_of_constant(node)), pa.bool_())
        if isinstance(node, exp.Column):
            node = exp.EQ(this=node, expression=exp.true())
        if _is_comparison(node):
            return self._translate_comparison(node)
        self.comparisons += max(sum(not isinstance(part, _NO_CALLS) for part in node.walk()), 1)
        outcome = truth(self.read(node), node, "where")
        try:
            self._schema.empty_table().filter(outcome.expression)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            raise SchemaMismatch(f"where: {node.sql()} cannot be computed: {error}") from error
        return Value(outcome.expression, pa.bool_())

    def _translate_chain(self, node: Any, connector: type[exp.Connector]) -> Value:
        """Translate a chain of one connector, which the tree nests to the left."""
        parts: list[Any] = []
        pending = [node]
        while pending:
            part = _bare(pending.pop())
            if isinstance(part, connector):
                self._check(part)
                pending += (part.expression, part.this)
            else:
                parts.append(part)
        if connector is exp.And:
            values = [self.translate(part) for part in parts]
            conjuncts = tuple(conjunct for value in values for conjunct in value.conjuncts)
        else:
            parts = _merge_equalities(parts)
            values = [self.translate(part) for part in parts]
            conjuncts = values[0].conjuncts if len(values) == 1 else ()
        join = operator.and_ if connector is exp.And else operator.or_
        return Value(reduce(join, (v.expression for v in values)), pa.bool_(), conjuncts=conjuncts)

    def _translate_comparison(self, node: Any) -> Value:
        self._in_comparison = True
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
            node = exp.NullSafeEQ(this=node.this, expression=node.expression)
        self.comparisons += 2 if isinstance(node, (exp.Between, exp.NullSafeEQ)) else 1
        if isinstance(node, exp.Like) and not isinstance(self._value(node.expression), str):
            self._refuse(node)
        outcome = truth(self.read(node), node, "where")
        self._in_comparison = False
        return outcome

    def read(self, node: Any) -> Operand:
        """Translate a node; constants of a comparison become literals."""
        if self._in_comparison and _is_constant(node):
            return Literal(self._value(node))
        return super().read(node)

    def _column(self, column: Any) -> Value:
        path = _path(column)
        if self._in_comparison:
            return Value(pc.field(*path), column_type(path, self._schema), column=path)
        if column.this.args.get("quoted") and len(path) == 1 and path[0] not in self._schema.names:
            string = exp.Literal.string(path[0]).sql()
            raise ConfigError(
                f"where: there is no column {column.sql()}; double quotes mark a column name",
                hint=f"Put strings into single quotes: {string}.",
            )
        data_type = column_type(path, self._schema, "Put strings into single quotes.")
        return Value(pc.field(*path), data_type)

    # --- constants --------------------------------------------------------------------------------

    def _truth_of_constant(self, node: Any) -> bool | None:
        """Compute a condition without a column, as programs that generate SQL write it."""
        if isinstance(node, exp.Null):
            return None
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        self._in_comparison = True
        if type(node) not in COMPARISONS:
            self._refuse(node)
        self._check(node)
        self._in_comparison = False
        outcome: bool | None = _compute(node)
        return outcome

    def _value(self, node: Any) -> Any:
        """Compute a tree without columns."""
        node = _bare(node)
        if isinstance(node, exp.Cast) and node.to.this.name in _TIME_TYPES:
            self._check(node)
            value = self._value(node.this)
            if isinstance(value, str):
                return self._time(value, node)
        return _compute(node)

    def _time(self, string: str, node: Any) -> Any:
        """Parse a date or timestamp; a timestamp has a zone if the string has one."""
        data_types: tuple[pa.DataType, ...] = (pa.timestamp("us"), pa.timestamp("us", "UTC"))
        if node.to.this.name == "DATE":
            string, data_types = re.sub(DAY_AND_TIME, r"\1", string.strip()), (pa.date32(),)
        for data_type in data_types:
            with suppress(OverflowError, ValueError):
                return parse_literal(string, data_type).as_py()
        return self._refuse(node)

    def _refuse(self, node: Any, hint: str = "") -> NoReturn:
        if self._in_comparison:
            self._hint = (
                "Compare a column, or what is computed from one, with a value or another column."
            )
        super()._refuse(node, hint)


def _path(column: Any) -> Path:
    """Return the qualifiers of a column and its name. Raises `ConfigError` for `*`."""
    parts = [column.args.get(name) for name in ("catalog", "db", "table", "this")]
    names = [part for part in parts if part is not None]
    if not all(isinstance(name, exp.Identifier) for name in names):
        raise ConfigError(
            f"where: {column.sql()} cannot be used here", hint="Name one column, or a struct field."
        )
    return tuple(str(name.this) for name in names)


def _bare(node: Any) -> Any:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def _is_constant(node: Any) -> bool:
    return node.find(exp.Column) is None


def _compute(node: Any) -> Any:
    """Compute a tree without columns. Raises `ConfigError` and `SchemaMismatch`."""
    operand = Evaluator(_no_column, "where").read(node)
    if isinstance(operand, Literal):
        return operand.value
    return compute_constant(operand, node, "where")


def _no_column(column: Any) -> Value:
    raise AssertionError(column)


def _is_comparison(node: Any) -> bool:
    """Return whether a node compares a column with constants."""
    if type(node) in COMPARISONS:
        return _column_and_constant(node) is not None
    if type(node) not in _COMPARES_FIRST or not isinstance(_bare(node.this), exp.Column):
        return False
    children = [child for child in node.iter_expressions() if child is not node.this]
    return all(map(_is_constant, children))


def _column_and_constant(node: Any) -> tuple[Any, Any] | None:
    """Return the column and the constant of a binary comparison; None for other operands."""
    left, right = _bare(node.this), _bare(node.expression)
    for column, constant in ((left, right), (right, left)):
        if isinstance(column, exp.Column) and _is_constant(constant):
            return column, constant
    return None


def _merge_equalities(parts: Sequence[Any]) -> list[Any]:
    """Return alternatives with the equalities of each column as one `IN`."""
    merged: dict[Path, tuple[Any, list[Any]]] = {}
    others = []
    for part in parts:
        column, constants = _equality(part)
        if constants:
            merged.setdefault(_path(column), (column, []))[1].extend(constants)
        else:
            others.append(part)
    return others + [
        exp.EQ(this=column, expression=constants[0])
        if len(constants) == 1
        else exp.In(this=column, expressions=constants)
        for column, constants in merged.values()
    ]


def _equality(node: Any) -> tuple[Any, list[Any]]:
    """Return a column and the constants that it equals; no constants for another condition."""
    if isinstance(node, exp.Column):
        return node, [exp.true()]
    if type(node) is exp.EQ:
        column, constant = _column_and_constant(node) or (None, None)
        return column, [constant] if column is not None else []
    if type(node) is exp.In and not node.args.get("query") and _is_comparison(node):
        return _bare(node.this), node.expressions
    return None, []
