"""Operator precedence where parsers disagree.

sqlglot parses `a % b * c` in one way or another by its release, and `a = b IS NULL` differently
from Spark. Such an expression needs parentheses here: it is refused, never read by chance.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from pyhudi.errors import ConfigError

_ADDING = (exp.Add, exp.Sub, exp.DPipe)
_MULTIPLYING = (exp.Mul, exp.Div, exp.Mod)
_TELLING = (
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.Is,
    exp.Between,
    exp.In,
    exp.Like,
    exp.ILike,
    exp.RegexpLike,
)
_SIDES = ("this", "expression", "low", "high")


AND_OR = "SQL says AND and OR, where Python says & and |."


def has_bits(tree: Any) -> bool:
    """Return whether it has bit operators, which users of data frames take for AND and OR."""
    return tree.find(exp.BitwiseAnd, exp.BitwiseOr) is not None


def check_order(tree: Any, what: str) -> None:
    """Raise `ConfigError` for nested operators that need parentheses."""
    for node in tree.walk():
        for side in _SIDES:
            operand = node.args.get(side)
            if isinstance(operand, _within(type(node), side)) or _is_put(node, side, operand):
                raise ConfigError(
                    f"{what}: {node.sql()} is ambiguous",
                    hint=AND_OR
                    if has_bits(node)
                    else "Put parentheses around the operands, and one with IS to the left.",
                )


def _is_put(node: Any, side: str, operand: Any) -> bool:
    """Match `a = (b IS NULL)`: some releases add these parentheses where the caller had none."""
    if not isinstance(node, _TELLING) or side == "this" or not isinstance(operand, exp.Paren):
        return False
    return isinstance(operand.this, exp.Is)


def _within(node_type: type[Any], side: str) -> tuple[type[Any], ...]:
    """Return the operators that need parentheses as an operand of this one."""
    if node_type in _MULTIPLYING:
        if side != "this":
            return (*_ADDING, *_MULTIPLYING)
        return (*_ADDING, *(_MULTIPLYING if node_type is exp.Mod else (exp.Mod,)))
    if node_type in _ADDING:
        return () if side == "this" else _ADDING
    if node_type is exp.Neg:
        return (*_ADDING, *_MULTIPLYING)
    if node_type is exp.And:
        return (exp.Or,)
    return (*_TELLING, exp.Not) if node_type in _TELLING else ()
