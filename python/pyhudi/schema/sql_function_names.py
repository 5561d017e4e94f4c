"""Calls of functions in a syntax tree, by name.

sqlglot has nodes of its own for some functions, which differ between its releases; here both kinds
are told alike.
"""

from __future__ import annotations

from typing import Any

from sqlglot import exp

_FORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "Lower": ("lower", ("this",)),
    "Upper": ("upper", ("this",)),
    "Trim": ("trim", ("this", "expression")),
    "Length": ("length", ("this",)),
    "Substring": ("substring", ("this", "start", "length")),
    "Concat": ("concat", ("expressions",)),
    "DPipe": ("concat", ("this", "expression")),
    "Abs": ("abs", ("this",)),
    "Coalesce": ("coalesce", ("this", "expressions")),
    "Round": ("round", ("this", "decimals")),
    "Floor": ("floor", ("this",)),
    "Ceil": ("ceil", ("this",)),
    "Year": ("year", ("this",)),
    "Month": ("month", ("this",)),
    "Day": ("day", ("this",)),
    "DayOfMonth": ("day", ("this",)),
    "Hour": ("hour", ("this",)),
    "Minute": ("minute", ("this",)),
    "Second": ("second", ("this",)),
    "DateTrunc": ("date_trunc", ("unit", "this")),
    "StartsWith": ("starts_with", ("this", "expression")),
    "EndsWith": ("ends_with", ("this", "expression")),
    "Contains": ("contains", ("this", "expression")),
    "RegexpLike": ("rlike", ("this", "expression")),
    "Greatest": ("greatest", ("this", "expressions")),
    "Least": ("least", ("this", "expressions")),
}
_OTHER_NAMES = {
    "startswith": "starts_with",
    "endswith": "ends_with",
    "regexp": "rlike",
    "char_length": "length",
    "character_length": "length",
    "dayofmonth": "day",
}
_IGNORED = {"safe", "is_nvl", "is_null", "ignore_nulls", "position"}
"""Arguments of nodes that say how a dialect treats a function, or that are looked at apart."""


def call_of(node: Any) -> tuple[str, list[Any]] | None:
    """Name and arguments of a call; None for what is none, or has arguments that are not known."""
    if type(node) is exp.Anonymous:
        name = str(node.this).lower()
        return _OTHER_NAMES.get(name, name), list(node.expressions)
    form = _FORMS.get(type(node).__name__)
    if form is None:
        return None
    name, keys = form
    if any(value for key, value in node.args.items() if key not in (*keys, *_IGNORED)):
        return None
    if name == "trim":
        position = node.args.get("position")
        name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(position or "").upper(), name)
    arguments: list[Any] = []
    for key in keys:
        value = node.args.get(key)
        if value is not None:
            arguments += value if isinstance(value, list) else [value]
    return name, arguments
