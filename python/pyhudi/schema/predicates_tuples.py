"""Filter tuples, as pyarrow takes them, as a condition tree. Types are not known here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.errors import ConfigError
from pyhudi.schema import predicates
from pyhudi.schema.predicate_literals import python_value


def from_tuples(filters: Any) -> predicates.Condition:
    """The condition of pyarrow-style filters. Raises `ConfigError` for any other shape."""
    if not _is_list(filters) or not filters:
        raise ConfigError(
            f"where: {filters!r} is not a filter",
            hint="Give a SQL expression, a pyarrow expression, or a list of (column, op, value).",
        )
    if isinstance(filters[0], str):
        msg = f"where: {filters!r} is one condition, not a list of them"
        raise ConfigError(msg, hint=f"Give a list: [{tuple(filters)!r}].")
    if all(_is_list(group) and group and _is_list(group[0]) for group in filters):
        return predicates.Or(tuple(_all_of(group) for group in filters))
    return _all_of(filters)


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _all_of(filters: Iterable[Any]) -> predicates.Condition:
    return predicates.And(tuple(_of_tuple(given) for given in filters))


def _of_tuple(given: Any) -> predicates.Condition:
    if not _is_list(given) or len(given) not in (2, 3) or not isinstance(given[0], str):
        raise ConfigError(f"where: {given!r} is not (column, op, value)")
    column, op = (given[0],), " ".join(str(given[1]).lower().split())
    if op in ("is null", "is not null") and (len(given) == 2 or given[2] is None):
        return (
            predicates.IsNull(column)
            if op == "is null"
            else predicates.Not(predicates.IsNull(column))
        )
    if len(given) == 2 or given[2] is None:
        raise ConfigError(
            f"where: {given!r} has no value", hint='Use (column, "is null") to find nulls.'
        )
    value = _plain(given[2])
    if op in ("in", "not in"):
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise ConfigError(f"where: {given!r} needs a list of values")
        found = predicates.In(column, tuple(map(_plain, value)))
        return found if op == "in" else predicates.Not(found)
    op = {"==": "=", "<>": "!="}.get(op, op)
    if op not in predicates.COMPARISONS:
        raise ConfigError(
            f"where: the operator {given[1]!r} is unknown",
            hint=f"One of {', '.join(predicates.COMPARISONS)}, in, not in, is null, is not null.",
        )
    return predicates.Compare(column, op, value)


def _plain(value: Any) -> Any:
    """A scalar of Arrow or NumPy as the value of Python that it is; any other as it stands."""
    try:
        if isinstance(value, pa.Scalar):
            return python_value(value)
        if getattr(value, "shape", None) == ():
            return pa.array(value.reshape(1))[0].as_py()
    except (pa.ArrowException, OverflowError, ValueError) as error:
        # It may not be printed either.
        raise ConfigError(
            f"where: a value cannot be converted to Python: {error}", hint="Give a Python value."
        ) from error
    return value
