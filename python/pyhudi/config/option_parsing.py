"""Parses the text of `hoodie.…` options: booleans, numbers and enums, with the same errors.

If several names are passed, the first one that is set counts. The options and their defaults are
defined where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

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


def _lookup(options: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in options), None)
