"""Type checks of the arguments of public calls, done before anything else.

A value of the wrong type raises a `ConfigError` that names the argument. Whether the value matches
the table is checked where it is used.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from operator import index
from typing import Any, TypeVar, cast

import pyarrow as pa

from pyhudi.config.formatting import type_text
from pyhudi.errors import ConfigError
from pyhudi.suggestions import did_you_mean

Call = TypeVar("Call", bound=Callable[..., Any])
Check = Callable[[str, Any], None]
"""A check that raises `ConfigError` for an invalid value; it gets the argument's name and the
value."""


def check_arguments(**checks: Check) -> Callable[[Call], Call]:
    """Check the arguments that are passed to a function, by the annotations of its parameters.

    checks: for parameters that do not accept all that `_BY_ANNOTATION` accepts, by name.
    """

    def decorate(call: Call) -> Call:
        @cache  # Most functions are never called, and a signature takes a while.
        def prepare() -> tuple[inspect.Signature, _Parameters, dict[str, Check]]:
            signature = inspect.signature(call)
            return signature, _Parameters(signature), _checks_of(signature, checks)

        @wraps(call)
        def checking(*args: Any, **more: Any) -> Any:
            signature, parameters, check_by_name = prepare()
            passed = parameters.by_name(args, more)
            if passed is None:
                try:
                    passed = signature.bind(*args, **more).arguments
                except TypeError as error:
                    raise _misuse(call, signature, error, more) from None
                if parameters.has_options:
                    _check_options(call, signature, more)
            for name, check in check_by_name.items():
                if name in passed:
                    check(name, passed[name])
            return call(*args, **more)

        return cast("Call", checking)

    return decorate


def check_fields(record: Any) -> None:
    """Check the fields of a dataclass by their annotations, as `check_arguments` does."""
    for name, check in _checks_of(inspect.signature(type(record)), {}).items():
        check(name, getattr(record, name))


def _checks_of(signature: inspect.Signature, checks: Mapping[str, Check]) -> dict[str, Check]:
    """Return the check of each parameter whose type is checked."""
    result = {}
    for name, parameter in signature.parameters.items():
        annotation = str(parameter.annotation)
        value_type = annotation.removesuffix(" | None")
        if value_type.startswith("Literal["):
            value_type = "str"
        check = checks.get(name) or _BY_NAME.get(name) or _BY_ANNOTATION.get(value_type)
        if check is not None:
            result[name] = _or_none(check) if annotation.endswith(" | None") else check
    return result


class _Parameters:
    """The parameters of a call: binds the usual arguments faster than its signature."""

    def __init__(self, signature: inspect.Signature) -> None:
        by_name = signature.parameters
        kinds = {name: each.kind for name, each in by_name.items()}
        self._positional = [n for n, kind in kinds.items() if kind is _POSITIONAL_OR_KEYWORD]
        self._names = {n for n, kind in kinds.items() if kind in _PASSED_BY_NAME}
        self._required = {n for n, each in by_name.items() if each.default is each.empty}
        self.has_options = inspect.Parameter.VAR_KEYWORD in kinds.values()
        """Whether the call passes options on to a library."""
        self._is_usual = len(self._names) == len(by_name)

    def by_name(self, args: tuple[Any, ...], more: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the arguments by name; None if the signature has to bind them."""
        passed = {**dict(zip(self._positional, args, strict=False)), **more}
        is_complete = len(passed) == len(args) + len(more) and self._required <= passed.keys()
        return passed if self._is_usual and is_complete and passed.keys() <= self._names else None


_POSITIONAL_OR_KEYWORD = inspect.Parameter.POSITIONAL_OR_KEYWORD
_PASSED_BY_NAME = (_POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ArgumentError(ConfigError, TypeError):
    """A call with other arguments than it takes, which Python reports as a `TypeError`."""


_SYNONYMS = {
    "where": ("filter", "filters", "predicate", "condition", "row_filter", "expr"),
    "key": ("primary_key", "primary_keys", "record_key", "keys", "on"),
    "partition_by": ("partition_cols", "partition_columns", "partitions", "partitioned_by"),
    "order_by": ("precombine", "ordering", "sort_by"),
    "columns": ("select", "selected_fields", "projection"),
    "as_of": ("version", "timestamp", "at", "snapshot_id"),
    "options": ("config", "configuration", "properties"),
    "schema_mode": ("merge_schema",),
    "memory_limit": ("max_memory", "memory"),
    "storage_options": ("fs", "file_io", "io_config"),
}
"""Names that other libraries use for an argument."""
_EXAMPLES = {
    "storage_options": 'such as storage_options={"aws_region": "eu-west-1"}',
    "where": 'such as where="fare > 10"',
    "as_of": 'with an instant of table.history() or a time, such as as_of="2024-06-01"',
}
_KEY = (
    "Pass {key} with the columns that identify a row, or {no_key} for an append-only table with "
    "generated keys. A key cannot be added later."
)
KEY_HINT = _KEY.format(key='key="id"', no_key="key=None")
"""The hint of an error that a new table has neither a key nor None as its key."""
_OF_SCAN = ("where", "columns", "as_of")
"""Arguments that outputs do not have, because the scan has them."""


def _misuse(
    call: Callable[..., Any], signature: inspect.Signature, error: TypeError, more: Iterable[str]
) -> ArgumentError:
    """Return the error of a call with wrong arguments: it has the names that the call accepts."""
    name = call.__qualname__.rpartition(".")[2]
    parameters = [each for each in signature.parameters if each != "self"]
    unknown = next((each for each in more if each not in parameters), None)
    arguments = ", ".join(parameters) or "no arguments"
    if unknown is None:
        hint = KEY_HINT if "missing" in str(error) and "'key'" in str(error) else ""
        return ArgumentError(f"{name}(): {error}; it takes {arguments}", hint=hint)
    return ArgumentError(
        f"{name}() has no argument {unknown!r}; it takes {arguments}",
        hint=_hint(call, unknown, parameters),
    )


def missing_key(key: str = 'key="id"', no_key: str = "key=None") -> ArgumentError:
    """Return the error of a new table whose caller does not say whether it has a key.

    key, no_key: what the caller writes for a key, and for none.
    """
    hint = _KEY.format(key=key, no_key=no_key)
    return ArgumentError("create_table(): missing a required argument: 'key'", hint=hint)


def _check_options(
    call: Callable[..., Any], signature: inspect.Signature, more: Iterable[str]
) -> None:
    """Raise `ArgumentError` for an option that is the name of an argument in another library."""
    names = {name for synonyms in _SYNONYMS.values() for name in synonyms} | set(_OF_SCAN)
    unknown = [name for name in more if name in names - signature.parameters.keys()]
    if unknown:
        raise _misuse(call, signature, TypeError(), unknown)


def _hint(call: Callable[..., Any], unknown: str, parameters: Sequence[str]) -> str:
    meant = next((name for name, others in _SYNONYMS.items() if unknown in others), unknown)
    example = f", {_EXAMPLES[meant]}" if meant in _EXAMPLES else ""
    if meant in _OF_SCAN and meant not in parameters and ".to_" in call.__qualname__:
        return f"Pass {meant} to scan(){example}: the outputs of a scan have the same rows."
    question = did_you_mean(unknown, parameters, synonyms=_SYNONYMS)
    return question.removesuffix("?") + f"{example}?" if question and example else question


def _or_none(check_value: Check) -> Check:
    """Return a check that also accepts None."""

    def check(name: str, value: Any) -> None:
        if value is not None:
            check_value(name, value)

    return check


def text(name: str, value: Any) -> None:
    """Check for a string."""
    if not isinstance(value, str):
        raise _no(name, value, "a string")


def is_whole(text: str) -> bool:
    """Return whether a string has no unpaired surrogate, which no file could store."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def name(name: str, value: Any) -> None:
    """Check for a non-empty string."""
    text(name, value)
    if not value or not is_whole(value):
        raise _no(name, value, "a string that is not empty, without halves of surrogate pairs")


def flag(name: str, value: Any) -> None:
    """Check for true or false; strings such as "false" would count as true."""
    if not isinstance(value, bool):
        raise _no(name, value, "True or False")


def whole(name: str, value: Any) -> None:
    """Check for an integer, including NumPy's integers."""
    try:
        fits = not isinstance(value, bool) and abs(index(value)) < _MAX_INTEGER
    except TypeError:
        fits = False
    if not fits:
        raise _no(name, value, "an integer of at most 64 bits")


def memory_size(name: str, value: Any) -> None:
    """Check for a number of bytes, or text such as "512 MiB"."""
    from pyhudi.config.memory_size import parse_memory_size  # noqa: PLC0415 - few calls pass one

    parse_memory_size(value, name)


def pair(name: str, value: Any) -> None:
    """Check for two integers."""
    if not isinstance(value, (tuple, list)) or len(value) != 2:  # noqa: PLR2004 - a pair
        raise _no(name, value, "a pair of integers, such as (0, 4)")
    for each in value:
        whole(name, each)


def seconds(name: str, value: Any) -> None:
    """Check for a duration: a number that is not negative."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < _MAX_SECONDS:
        raise _no(name, value, "a number of seconds, 0 or more")


def names(name: str, value: Any) -> None:
    """Check for several strings, such as column names."""
    if isinstance(value, str):
        raise ConfigError(f"{name} is a string", hint=f"Pass a list: [{value!r}].")
    if isinstance(value, (Mapping, bytes)) or not isinstance(value, Iterable):
        raise _no(name, value, "a list of strings")
    # The check would exhaust an iterator.
    if iter(value) is value:
        raise _no(name, value, "a list of strings")
    for each in value:
        if not isinstance(each, str):
            raise ConfigError(f"{name} has {each!r}, which is not a string")


def name_or_names(name: str, value: Any) -> None:
    """Check for one string, or several."""
    if not isinstance(value, str):
        names(name, value)


def check_ordered_names(name: str, value: Any) -> None:
    """Check for one string, or several whose order the table stores."""
    if isinstance(value, (set, frozenset)):
        raise ConfigError(f"{name} is a set, which has no order", hint="Pass a list.")
    name_or_names(name, value)


def check_partition_columns(name: str, value: Any) -> None:
    """Check for ordered names, or objects with a name, such as `pyhudi.day("at")`."""
    if value is None:
        return
    entries = value if isinstance(value, (list, tuple)) else [value]
    if any(_is_transform(entry) for entry in entries):
        names_only = [entry.name if _is_transform(entry) else entry for entry in entries]
        check_ordered_names(name, names_only)
    else:
        check_ordered_names(name, value)


def check_table(name: str, value: Any) -> None:
    """Check for a table, its location, or None."""
    if value is not None and not hasattr(value, "uri"):
        location(name, value)


def check_expression(name: str, value: Any) -> None:
    """Check for a SQL expression, or an object such as `pyhudi.day("at")`."""
    if not _is_transform(value):
        text(name, value)


def _is_transform(value: Any) -> bool:
    return isinstance(getattr(value, "name", None), str) and callable(getattr(value, "sql", None))


def by_name(name: str, value: Any) -> None:
    """Check for a mapping whose keys are strings."""
    if not isinstance(value, Mapping):
        raise _no(name, value, "a mapping")
    for key in value:
        if not isinstance(key, str):
            raise ConfigError(f"{name} has the name {key!r}, which is not a string")


def location(name: str, value: Any) -> None:
    """Check for a path or URI as a string, or a path object."""
    if not isinstance(value, (str, os.PathLike)) or not isinstance(os.fspath(value), str):
        raise _no(name, value, "a path or URI as a string, or a pathlib.Path")
    path = os.fspath(value)
    if not path.strip() or "\0" in path or not is_whole(path):
        raise _no(name, value, "a path or URI")


def arrow_type(name: str, value: Any) -> None:
    """Check for a type of pyarrow, or its SQL name."""
    if not isinstance(value, (pa.DataType, str)):
        raise _no(
            name, value, "a pyarrow type such as pyarrow.int64(), or a string such as 'bigint'"
        )


def progress(name: str, value: Any) -> None:
    """Check for a flag, or a function to call with the progress."""
    if not isinstance(value, bool) and not callable(value):
        raise _no(name, value, "True, False or a function")


def engine(name: str, value: Any) -> None:
    """Check for an engine that runs tasks."""
    if not all(callable(getattr(value, verb, None)) for verb in ("run", "scan", "exchange")):
        raise _no(name, value, "an engine such as pyhudi.LocalEngine()")


def catalog(name: str, value: Any) -> None:
    """Check for a catalog of tables."""
    if not all(callable(getattr(value, verb, None)) for verb in ("get_table", "create_table")):
        raise _no(name, value, "a catalog such as pyhudi.catalog.HiveCatalog()")


def function(name: str, value: Any) -> None:
    """Check for a function."""
    if not callable(value):
        raise _no(name, value, "a function")


def duckdb_connection(name: str, value: Any) -> None:
    """Check for a connection that can register views."""
    if not callable(getattr(value, "register", None)):
        raise _no(name, value, "a DuckDB connection")


def _no(name: str, value: Any, expected: str) -> ConfigError:
    return ConfigError(f"{name} is {_describe(value)}; it must be {expected}")


def _describe(value: Any) -> str:
    """Return the value if it is short, else its type."""
    if isinstance(value, (str, bytes, int, float, type(None))):
        literal = ascii(value) if isinstance(value, str) and not is_whole(value) else repr(value)
        return literal if len(literal) <= _LONGEST else f"{literal[:_LONGEST]}..."
    return type_text(type(value))


_BY_NAME: dict[str, Check] = {"commit_id": name}
_BY_ANNOTATION: dict[str, Check] = {
    "Callable[[pa.DataType], Any]": function,
    "Catalog": catalog,
    "CreateMode": text,
    "Engine": engine,
    "Expressions": by_name,
    "HollowCommits": text,
    "MemorySize": memory_size,
    "Metric": text,
    "Progress": progress,
    "SchemaMode": text,
    "SortMode": text,
    "TableTypeName": text,
    "bool": flag,
    "duckdb.DuckDBPyConnection": duckdb_connection,
    "float": seconds,
    "int": whole,
    "pa.DataType | str": arrow_type,
    "str": text,
    "tuple[int, int]": pair,
    "str | Sequence[str]": name_or_names,
    "str | os.PathLike[str]": location,
    **dict.fromkeys(("Mapping[str, Any]", "Mapping[str, object]", "Mapping[str, str]"), by_name),
    "Sequence[str]": names,
}
"""Checks of values, by the annotation as it is written. Parameters of other types are not checked
here."""

_LONGEST = 60
_MAX_INTEGER = 1 << 63
_MAX_SECONDS = 1e9
