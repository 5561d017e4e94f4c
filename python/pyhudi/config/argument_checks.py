"""What kind of value each argument of a public call takes, checked before anything else is done.

A value of another kind is a `ConfigError` that names the argument. Whether it fits the table is
found out where it is used.
"""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from operator import index
from typing import Any, TypeVar, cast

import pyarrow as pa

from pyhudi.errors import ConfigError

Call = TypeVar("Call", bound=Callable[..., Any])
Kind = Callable[[str, Any], None]
"""Raises `ConfigError` for a value that is none of the kind; gets the argument's name with it."""


def check_arguments(**kinds: Kind) -> Callable[[Call], Call]:
    """Checks some arguments of a function, by name, whenever it is called with them."""

    def of_call(call: Call) -> Call:
        signature = inspect.signature(call)

        @wraps(call)
        def checking(*args: Any, **more: Any) -> Any:
            try:
                given = signature.bind(*args, **more).arguments
            except TypeError as error:
                raise TypeError(_describe_misuse(call, signature, error, more)) from None
            for name, kind in kinds.items():
                if name in given:
                    kind(name, given[name])
            return call(*args, **more)

        return cast("Call", checking)

    return of_call


_OFTEN_MEANT = {
    "where": ("filter", "filters", "predicate", "condition", "row_filter"),
    "key": ("primary_key", "record_key", "keys", "on"),
    "partition_by": ("partition_cols", "partition_columns", "partitions", "partitioned_by"),
    "order_by": ("precombine", "ordering", "sort_by"),
    "columns": ("select", "selected_fields", "projection"),
    "as_of": ("version", "timestamp", "at", "snapshot_id"),
    "options": ("config", "configuration", "properties"),
    "schema_mode": ("merge_schema",),
}
"""What other libraries call arguments."""


def _describe_misuse(
    call: Callable[..., Any], signature: inspect.Signature, error: TypeError, more: Iterable[str]
) -> str:
    """What is wrong with the arguments of a call, and what there are."""
    name = call.__qualname__.rpartition(".")[2]
    known = [each for each in signature.parameters if each != "self"]
    said = f"{name}(): {error}"
    for unknown in (each for each in more if each not in known):
        said = f"{name}() has no argument {unknown!r}"
        meant = [each for each in known if unknown in _OFTEN_MEANT.get(each, ())]
        meant += difflib.get_close_matches(unknown, known, n=1)
        if meant:
            said += f", did you mean {meant[0]!r}?"
        break
    return (
        f"{said} It takes {', '.join(known)}."
        if said.endswith("?")
        else f"{said}; it takes {', '.join(known)}"
    )


def optional(kind: Kind) -> Kind:
    """The kind, or None."""

    def check(name: str, value: Any) -> None:
        if value is not None:
            kind(name, value)

    return check


def text(name: str, value: Any) -> None:
    """A string."""
    if not isinstance(value, str):
        raise _no(name, value, "text")


def is_whole(text: str) -> bool:
    """Not where a half of a surrogate pair stands alone, which no file could give back."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def name(name: str, value: Any) -> None:
    """A string that is not empty."""
    text(name, value)
    if not value or not is_whole(value):
        raise _no(name, value, "a string that is not empty, without halves of surrogate pairs")


def flag(name: str, value: Any) -> None:
    """True or false; texts such as "false" would count as true."""
    if not isinstance(value, bool):
        raise _no(name, value, "True or False")


def whole(name: str, value: Any) -> None:
    """A whole number, also one of NumPy's."""
    try:
        fits = not isinstance(value, bool) and abs(index(value)) < _GREATEST
    except TypeError:
        fits = False
    if not fits:
        raise _no(name, value, "an integer of at most 64 bits")


def names(name: str, value: Any) -> None:
    """Several texts, such as names of columns."""
    if isinstance(value, str):
        raise ConfigError(f"{name} is a string", hint=f"Give a list: [{value!r}].")
    if isinstance(value, (Mapping, bytes)) or not isinstance(value, Iterable):
        raise _no(name, value, "a list of strings")
    # An iterator would be used up by the check.
    if iter(value) is value:
        raise _no(name, value, "a list of strings")
    for each in value:
        if not isinstance(each, str):
            raise ConfigError(f"{name} has {each!r}, which is not a string")


def name_or_names(name: str, value: Any) -> None:
    """A text, or several."""
    if not isinstance(value, str):
        names(name, value)


def check_ordered_names(name: str, value: Any) -> None:
    """A text, or several whose order is kept with the table."""
    if isinstance(value, (set, frozenset)):
        raise ConfigError(f"{name} is a set, which has no order", hint="Give a list.")
    name_or_names(name, value)


def by_name(name: str, value: Any) -> None:
    """A mapping whose keys are text."""
    if not isinstance(value, Mapping):
        raise _no(name, value, "a mapping")
    for key in value:
        if not isinstance(key, str):
            raise ConfigError(f"{name} has the name {key!r}, which is not a string")


def location(name: str, value: Any) -> None:
    """A path or URI as text, or a path object."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise _no(name, value, "a path or URI as a string, or a pathlib.Path")
    path = os.fspath(value)
    if not path.strip() or "\0" in path or not is_whole(path):
        raise _no(name, value, "a path or URI")


def arrow_type(name: str, value: Any) -> None:
    """A type of pyarrow's, or its name in SQL."""
    if not isinstance(value, (pa.DataType, str)):
        raise _no(
            name, value, "a pyarrow type such as pyarrow.int64(), or a string such as 'bigint'"
        )


def progress(name: str, value: Any) -> None:
    """Whether to show how far a verb is, or what to call."""
    if not isinstance(value, bool) and not callable(value):
        raise _no(name, value, "True, False or a function")


def engine(name: str, value: Any) -> None:
    """What runs tasks."""
    if not all(callable(getattr(value, verb, None)) for verb in ("run", "scan", "exchange")):
        raise _no(name, value, "an engine such as pyhudi.LocalEngine()")


def catalog(name: str, value: Any) -> None:
    """What has tables by name."""
    if not all(callable(getattr(value, verb, None)) for verb in ("get_table", "create_table")):
        raise _no(name, value, "a catalog such as pyhudi.catalog.HiveCatalog()")


def duckdb_connection(name: str, value: Any) -> None:
    """What views can be registered with."""
    if not callable(getattr(value, "register", None)):
        raise _no(name, value, "a DuckDB connection")


def _no(name: str, value: Any, wanted: str) -> ConfigError:
    return ConfigError(f"{name} is {_describe(value)}; it must be {wanted}")


def _describe(value: Any) -> str:
    """The value if that is short, else its type."""
    if isinstance(value, (str, bytes, int, float, type(None))):
        shown = ascii(value) if isinstance(value, str) and not is_whole(value) else repr(value)
        return shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}..."
    return f"a {type(value).__module__}.{type(value).__qualname__}"


_LONGEST = 60
_GREATEST = 1 << 63
