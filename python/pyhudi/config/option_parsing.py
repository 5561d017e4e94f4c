"""Parses the text of `hoodie.…` options: booleans, numbers and enums, with the same errors.

If several names are passed, the first one that is set counts. A dataclass of options declares each
of its fields once: names, default, bounds and meaning. `list_options` and `parse_fields` derive
from these fields, and so do the options pages (`scripts/generate_docs.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from math import inf
from typing import TYPE_CHECKING, Any, TypeVar

from pyhudi.errors import ConfigError, UnsupportedTableFeature

if TYPE_CHECKING:
    from typing_extensions import Self

Default = TypeVar("Default")
Group = TypeVar("Group")


def parse_bool(options: Mapping[str, str], *names: str, default: Default) -> bool | Default:
    """Return true or false. Raises `ConfigError` for anything else."""
    name = _lookup(options, names)
    if name is None:
        return default
    value = options[name].strip().lower()
    if value not in ("true", "false"):
        raise ConfigError(f"{name} is {options[name]!r}, expected true or false")
    return value == "true"


def check_one_switch(options: Mapping[str, str], first: str, second: str) -> None:
    """Raise `ConfigError` if two switches are both on; both are off by default."""
    if all(parse_bool(options, name, default=False) for name in (first, second)):
        raise ConfigError(f"{first} and {second} are both true", hint="Set one.")


def parse_int(
    options: Mapping[str, str],
    *names: str,
    default: int,
    minimum: int = 1,
    maximum: int | None = None,
) -> int:
    """Return an integer within bounds. Raises `ConfigError` for anything else."""
    name = _lookup(options, names)
    if name is None:
        return default
    digits = options[name].strip()
    value = int(digits) if digits.isdecimal() else -1
    if value < minimum or (maximum is not None and value > maximum):
        bounds = f"of at least {minimum}" if maximum is None else f"from {minimum} to {maximum}"
        msg = f"{name} is {options[name]!r}, not an integer {bounds}"
        raise ConfigError(msg, hint=f"Pass an integer {bounds}.")
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


def parse_duration(text: str) -> float | None:
    """Return the seconds of text such as `500ms` or `10 m`; None for any other text."""
    match = _DURATION.fullmatch(text)
    return float(match[1]) * _SECONDS[match[2].lower()] if match else None


_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h)\s*", re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}


def parse_enum(options: Mapping[str, str], name: str, allowed: Sequence[str], default: str) -> str:
    """Return one of the allowed values, in any case. Raises `ConfigError` for anything else."""
    value = options.get(name, default).strip().lower()
    match = next((choice for choice in allowed if choice.lower() == value), None)
    if match is None:
        hint = f"Choose one of {', '.join(allowed)}."
        raise ConfigError(f"{name} is {options[name]!r}", hint=hint)
    return match


def parse_names(options: Mapping[str, str], name: str) -> tuple[str, ...]:
    """Return strings that are separated by commas."""
    return tuple(part.strip() for part in options.get(name, "").split(",") if part.strip())


def parse_class(
    options: Mapping[str, str],
    name: str,
    supported: Sequence[str],
    default: str = "",
    *,
    package: str = "",
    why: str = "",
) -> str:
    """Return the simple name of a class. Raises `UnsupportedTableFeature` for an unsupported one.

    package: the only one that is accepted; "" for any.
    why: begins the hint.
    """
    class_path = options.get(name, default).strip()
    class_name = class_path.removeprefix(package) if package else class_path.rsplit(".", 1)[-1]
    if class_name not in (*supported, default):
        raise refusal(options, name, f"{why}Choose one of {', '.join(supported)}.")
    return class_name


def refusal(options: Mapping[str, str], name: str, hint: str) -> UnsupportedTableFeature:
    """Return the error for an option whose value pyhudi does not support."""
    msg = f"{name} is {options[name]!r}, which pyhudi does not support"
    return UnsupportedTableFeature(msg, hint=hint)


_PARSE, _DOCUMENTED = "parse", "documented"


@dataclass(frozen=True)
class Option:
    """An option as the pages show it."""

    names: tuple[str, ...]
    """The name, and older names or others with the same meaning."""
    meaning: str
    default: str
    """The value without the option, or in words what that depends on; "" for none."""


Names = str | tuple[str, ...]


def option(names: Names, meaning: str, default: object = "") -> Option:
    """Declare how the pages show an option."""
    displayed = str(default).lower() if isinstance(default, bool) else str(default)
    return Option(as_tuple(names), meaning, displayed)


def flag(names: Names, meaning: str, *, default: bool | None, displayed: str = "") -> Any:
    """Declare a field that is true or false.

    names: the name, with its older names.
    displayed: the default in the docs, if it is not this value; also in the functions below.
    """
    return custom(
        lambda options: parse_bool(options, *as_tuple(names), default=default),
        option(names, meaning, displayed or default),
    )


def integer(
    names: Names, meaning: str, *, default: int, minimum: int = 1, maximum: int | None = None
) -> Any:
    """Declare a field that is an integer within bounds."""
    return custom(
        lambda options: parse_int(
            options, *as_tuple(names), default=default, minimum=minimum, maximum=maximum
        ),
        option(names, meaning, default),
    )


def decimal(
    name: str, meaning: str, fits: Callable[[float], bool], what: str, *, default: float
) -> Any:
    """Declare a field that is a number that `fits`. what: describes the valid numbers."""
    return custom(
        lambda options: number(options, name, fits, what, default), option(name, meaning, default)
    )


def choice(
    name: str, meaning: str, allowed: Sequence[str], *, default: str, displayed: str = ""
) -> Any:
    """Declare a field that is one of the allowed values."""
    return custom(
        lambda options: parse_enum(options, name, allowed, default),
        option(name, meaning, displayed or default),
    )


def text(name: str, meaning: str, *, default: str = "", displayed: str = "") -> Any:
    """Declare a field that is any string."""
    return custom(
        lambda options: options.get(name, default), option(name, meaning, displayed or default)
    )


def name_list(name: str, meaning: str, *, displayed: str = "") -> Any:
    """Declare a field of strings that are separated by commas."""
    return custom(lambda options: parse_names(options, name), option(name, meaning, displayed))


def pattern(name: str, meaning: str, *, displayed: str = "") -> Any:
    """Declare a field that is a regular expression."""

    def parse(options: Mapping[str, str]) -> str:
        regex = options.get(name, "")
        try:
            re.compile(regex)
        except re.error as error:
            raise ConfigError(f"{name} is not a regular expression: {error}") from error
        return regex

    return custom(parse, option(name, meaning, displayed))


def custom(parse: Callable[[Mapping[str, str]], object], *documented: Option) -> Any:
    """Declare a field that a function reads from one or several options.

    The default is what it returns without options.
    """
    metadata = {_PARSE: parse, _DOCUMENTED: documented}
    default = parse({})
    if isinstance(default, dict):
        return field(default_factory=dict, metadata=metadata)
    return field(default=default, metadata=metadata)


def check_only(check: Callable[[Mapping[str, str]], object], *documented: Option) -> Any:
    """Declare options that no field holds: the function raises for what is not supported."""
    metadata = {_PARSE: check, _DOCUMENTED: documented}
    return field(default=None, init=False, repr=False, compare=False, metadata=metadata)


def list_options(group: type[Any]) -> tuple[Option, ...]:
    """Return all options that the fields of a dataclass declare."""
    declared = fields(group) if is_dataclass(group) else ()
    return tuple(each for field in declared for each in field.metadata.get(_DOCUMENTED, ()))


def option_names(group: type[Any]) -> tuple[str, ...]:
    """Return the names of all options that the fields of a dataclass declare."""
    return tuple(name for each in list_options(group) for name in each.names)


def parse_fields(group: type[Any], options: Mapping[str, str]) -> dict[str, Any]:
    """Return the values of all declared fields. Raises `ConfigError` for an invalid value."""
    values = {each: each.metadata[_PARSE](options) for each in fields(group) if each.metadata}
    return {each.name: value for each, value in values.items() if each.init}


_DEFAULTS: dict[type[Any], Any] = {}
"""The instance of each group without options."""


class OptionGroup:
    """Base class of dataclasses whose fields are all declared options."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Self:
        """Read the options from `hoodie.…` names; options of other groups are ignored.

        Raises `ConfigError` for an invalid value, `UnsupportedTableFeature` for an unsupported one.
        """
        if not options:
            # A commit reads two dozen groups.
            defaults: Self | None = _DEFAULTS.get(cls)
            if defaults is None:
                defaults = _DEFAULTS[cls] = cls(**parse_fields(cls, {}))
            return defaults
        return cls(**parse_fields(cls, options))


POSITIVE: tuple[Callable[[float], bool], str] = (lambda value: 0 < value < inf, "above 0")
"""The arguments `fits` and `what` of a finite number above 0."""


def as_tuple(names: Names) -> tuple[str, ...]:
    """Return names as a tuple, also a single one."""
    return (names,) if isinstance(names, str) else names


def _lookup(options: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in options), None)
