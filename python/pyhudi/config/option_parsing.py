"""Parses the text of `hoodie.…` options: booleans, numbers and enums, with the same errors.

If several names are passed, the first one that is set counts. A dataclass of options declares each
of its fields once, with `flag`, `integer`, `decimal` or `choice`: names, default and bounds.
`option_names` and `parse_fields` derive from these fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, fields
from typing import Any, TypeVar

from pyhudi.errors import ConfigError

Default = TypeVar("Default")


def parse_bool(options: Mapping[str, str], *names: str, default: Default) -> bool | Default:
    """Return true or false. Raises `ConfigError` for anything else."""
    name = _lookup(options, names)
    if name is None:
        return default
    text = options[name].strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(f"{name} is {options[name]!r}, expected true or false")
    return text == "true"


def one_switch(options: Mapping[str, str], first: str, second: str) -> tuple[bool, bool]:
    """Return two switches of which at most one is on; both are off by default.

    Raises `ConfigError` for anything else.
    """
    switches = parse_bool(options, first, default=False), parse_bool(options, second, default=False)
    if all(switches):
        raise ConfigError(f"{first} and {second} are both true", hint="Set one.")
    return switches


def parse_int(
    options: Mapping[str, str], *names: str, default: int, least: int = 1, most: int | None = None
) -> int:
    """Return an integer within bounds. Raises `ConfigError` for anything else."""
    name = _lookup(options, names)
    if name is None:
        return default
    text = options[name].strip()
    value = int(text) if text.isdecimal() else -1
    if value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise ConfigError(f"{name} is {options[name]!r}, not an integer {bounds}")
    return value


def number(
    options: Mapping[str, str], name: str, fits: Callable[[float], bool], what: str, default: float
) -> float:
    """Return a number that `fits`. Raises `ConfigError` for anything else.

    what: describes the valid numbers.
    """
    if name not in options:
        return default
    try:
        value = float(options[name])
    except ValueError:
        value = float("nan")
    if not fits(value):
        raise ConfigError(f"{name} is {options[name]!r}, not a number {what}")
    return value


def parse_enum(options: Mapping[str, str], name: str, allowed: Sequence[str], default: str) -> str:
    """Return one of the allowed values, in any case. Raises `ConfigError` for anything else."""
    text = options.get(name, default).strip().lower()
    match = next((choice for choice in allowed if choice.lower() == text), None)
    if match is None:
        hint = f"One of {', '.join(allowed)}."
        raise ConfigError(f"{name} is {options[name]!r}", hint=hint)
    return match


def flag(*names: str, default: bool | None) -> Any:
    """Declare a field that is true or false, under its name and its older names."""
    return _declare(names, default, lambda options: parse_bool(options, *names, default=default))


def integer(*names: str, default: int, least: int = 1, most: int | None = None) -> Any:
    """Declare a field that is an integer within bounds."""
    return _declare(
        names,
        default,
        lambda options: parse_int(options, *names, default=default, least=least, most=most),
    )


def decimal(name: str, fits: Callable[[float], bool], what: str, *, default: float) -> Any:
    """Declare a field that is a number. The arguments are those of `number`."""
    return _declare((name,), default, lambda options: number(options, name, fits, what, default))


def choice(name: str, allowed: Sequence[str], *, default: str) -> Any:
    """Declare a field that is one of the allowed values."""
    return _declare((name,), default, lambda options: parse_enum(options, name, allowed, default))


def option_names(group: type[Any]) -> tuple[str, ...]:
    """Return the names of all options that the fields of a dataclass declare."""
    return tuple(name for each in fields(group) for name in each.metadata.get(_NAMES, ()))


def parse_fields(group: type[Any], options: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of all declared fields. Raises `ConfigError` for an invalid value."""
    return {each.name: each.metadata[_PARSE](options) for each in fields(group) if each.metadata}


_NAMES, _PARSE = "names", "parse"


def _declare(
    names: tuple[str, ...], default: object, parse: Callable[[Mapping[str, str]], object]
) -> Any:
    return field(default=default, metadata={_NAMES: names, _PARSE: parse})


def _lookup(options: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in options), None)
