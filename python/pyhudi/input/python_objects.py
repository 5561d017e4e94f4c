"""Rows that are Python objects: a list of dicts, or a dict of columns.

Types come from the table's schema if it has the column, else from the values. pyarrow alone would
truncate a float to an integer, and skip struct fields that the type does not have; so the objects
are checked first. Errors name the row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain
from numbers import Integral, Number, Real
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.types as at

from pyhudi.clock import is_numpy_time, python_time
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature, without_hint
from pyhudi.input.exact_casts import cast_exactly, sure_below

Column: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any]"

_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""The errors of pyarrow for a value."""
_HINT = "Give each column values of one type."
_FLAT = (str, bytes, bytearray, memoryview)
"""Types that have items in Python and are one value."""
_SINGLE = (*_FLAT, Number, date, time, dict, type(None))
"""Types that are not a column of values."""
_ARRAYS = (("pandas", "Series"), ("pandas", "Index"), ("numpy", "ndarray"))
"""Classes that hold values of one column, besides Arrow's arrays."""
_ROWS_AND_ITEMS = 2
"""Dimensions of an array that has a list in each row."""
_MOST_LEVELS = 128
"""Maximum levels of nested Python objects. A map's entries are pairs in a list: two levels."""
_NO_VALUES = ("NAType", "NaTType")
"""The missing values of pandas, besides None and NaN."""


def table_from_dicts(rows: Sequence[Any], like: pa.Schema | None, *, uneven: bool) -> pa.Table:
    """Convert a list of dicts to a table; a key that only some rows have is null in the others.

    like: the table's columns. uneven: rows may have different keys. Raises `SchemaMismatch` for a
    value that does not fit, `ConfigError` for input that is not rows.
    """
    _check_dicts(rows)
    if not rows:
        if like is None:
            raise ConfigError("the list is empty, so it has no columns", hint="Give a schema.")
        return like.empty_table()
    keys = set(chain.from_iterable(rows))
    if not uneven and set(map(len, rows)) != {len(keys)}:
        at_fault = next(n for n, row in enumerate(rows) if len(row) < len(keys))
        lacking = ", ".join(sorted(repr(key) for key in keys - set(rows[at_fault])))
        msg = f"row {at_fault} has no {lacking}, which other rows have"
        raise ConfigError(msg, hint="Give all rows the same keys, None where there is no value.")
    names = _in_order(keys, like)
    return pa.table({name: _column([row.get(name) for row in rows], name, like) for name in names})


def table_from_columns(columns: Mapping[Any, Any], like: pa.Schema | None) -> pa.Table:
    """Convert a dict of lists or arrays to a table. Raises as `table_from_dicts` does."""
    names = _in_order(dict.fromkeys(columns), like)
    arrays = {}
    for name in names:
        values = columns[name]
        if isinstance(values, (list, tuple)):
            arrays[name] = _column(values, name, like)
        elif is_of_objects(getattr(values, "dtype", None)):
            arrays[name] = _of_object_array(values, name, like)
        else:
            arrays[name] = _as_array(values, name)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise ConfigError(f"the columns differ in length: {shown}")
    return pa.table(arrays)


def of_objects(column: Any, name: str, like: pa.Schema | None) -> Column:
    """Convert a pandas column of objects; NaN is null, but not within lists and structs.

    Raises as `table_from_dicts` does.
    """
    _check_levels(column, name)
    guess = _attempt(column, from_pandas=True)
    if guess is not None and not _is_to_be_checked(guess.type):
        if not guess.type.num_fields:
            return guess
        guess = _attempt(_null_for_nan(column), from_pandas=not _has_reals(guess.type))
        if guess is not None:
            return guess
    return _column(_null_for_nan(column), name, like)


def is_of_objects(kind: Any) -> bool:
    """Return whether a NumPy or pandas type means Python objects."""
    return str(kind) == "object"


def by_column(data: Any, names: Sequence[str]) -> Any:
    """Return the values of one column by its name, if there is one name; other data unchanged.

    Raises `ConfigError` for a single value.
    """
    if isinstance(data, (str, Number, date, time)):
        raise ConfigError(f"{data!r} is one value, and no rows", hint=f"Give a list: [{data!r}].")
    return {names[0]: data} if len(names) == 1 and _are_values(data) else data


def _are_values(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return bool(data) and isinstance(data[0], (str, Number, date, time))
    kind = type(data)
    found = (kind.__module__.split(".")[0], kind.__name__)
    return isinstance(data, (pa.Array, pa.ChunkedArray)) or found in _ARRAYS


def _attempt(values: Any, *, from_pandas: bool) -> Column | None:
    try:
        return pa.array(values, from_pandas=from_pandas)
    except _FAILURES:
        return None


def _null_for_nan(column: Any) -> list[Any]:
    return [None if absent else value for value, absent in zip(column, column.isna(), strict=True)]


def _is_to_be_checked(kind: pa.DataType) -> bool:
    """Return whether pyarrow may have changed values to fit the type that it inferred."""
    if kind.num_fields:
        return any(_is_to_be_checked(kind.field(n).type) for n in range(kind.num_fields))
    tests = (at.is_date, at.is_time, at.is_timestamp, at.is_binary, at.is_fixed_size_binary)
    return any(test(kind) for test in tests)


def _has_reals(kind: pa.DataType) -> bool:
    """Return whether NaN is a number in this type; pyarrow reads it as null, as in pandas."""
    if kind.num_fields:
        return any(_has_reals(kind.field(n).type) for n in range(kind.num_fields))
    return bool(at.is_floating(kind) or at.is_decimal(kind) or at.is_null(kind))


def _check_dicts(rows: Sequence[Any]) -> None:
    odd = [kind for kind in set(map(type, rows)) if not issubclass(kind, dict)]
    if odd:
        row = next(n for n, given in enumerate(rows) if type(given) in odd)
        msg = f"cannot read rows from a list: item {row} is a {type(rows[row]).__qualname__}"
        raise ConfigError(msg, hint="Give a list of dicts, or of Arrow record batches.")


def _in_order(keys: Any, like: pa.Schema | None) -> list[str]:
    """Return the table's columns first, in its order, then others, sorted if they have no order."""
    for key in keys:
        if not isinstance(key, str):
            raise ConfigError(f"the key {key!r} is not a column name")
    known = [name for name in (like.names if like is not None else ()) if name in keys]
    others = [key for key in keys if key not in known]
    return [*known, *(sorted(others) if isinstance(keys, set) else others)]


def _of_object_array(values: Any, name: str, like: pa.Schema | None) -> Column:
    if hasattr(values, "isna"):
        return of_objects(values, name, like)
    return _column(values.tolist(), name, like)


def _as_array(values: Any, name: str) -> Column:
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, _SINGLE):
        msg = f"column {name!r} is one {type(values).__qualname__}, not a list of values"
        raise ConfigError(msg, hint="Give a list of rows, also of one: [row].")
    if is_of_objects(getattr(values, "dtype", None)):
        _check_levels(values, name)
    try:
        if is_tensor(values):
            return _of_tensor(values)
        return pa.array(values)
    except _FAILURES as error:
        raise SchemaMismatch(f"column {name!r} cannot be converted to Arrow: {error}") from error


def is_tensor(values: Any) -> bool:
    """Return whether values are a NumPy array of several dimensions, or a tensor of any library."""
    shape = getattr(values, "shape", None)
    is_array = hasattr(values, "__array__") or hasattr(values, "__dlpack__")
    foreign = type(values).__module__.split(".")[0] not in ("numpy", "pandas", "pyarrow", "polars")
    return is_array and isinstance(shape, tuple) and (foreign or len(shape) > 1)


def _of_tensor(values: Any) -> Column:
    """Convert one dimension to plain values, two to a list of a fixed size in each row."""
    array = as_numpy(values)
    if array.ndim == 1:
        return pa.array(array)
    if array.ndim != _ROWS_AND_ITEMS:
        msg = f"it has {array.ndim} dimensions"
        raise ValueError(msg)
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array.shape[1])


def as_numpy(values: Any) -> Any:
    """Return a tensor as a NumPy array, without a copy if its library allows that."""
    import numpy as np  # noqa: PLC0415 - only who has tensors needs it

    if hasattr(values, "__array__"):
        return np.asarray(values)
    return np.from_dlpack(values)


def _check_levels(values: Any, name: str) -> None:
    """Raise `UnsupportedTableFeature` for values with too many nested lists and dicts.

    It runs before pyarrow: pyarrow recurses as deep as the values do, and ends the process.
    """
    level = _find_nested(values)
    for _ in range(_MOST_LEVELS):
        if not level:
            return
        parts = [value.values() if isinstance(value, Mapping) else value for value in level]
        level = _find_nested(list(chain.from_iterable(parts)))
    msg = f"column {name!r} has values with too many lists and dicts in one another"
    raise UnsupportedTableFeature(msg, hint="Store the inner value as a string, such as JSON.")


def _find_nested(values: Any) -> list[Any]:
    """Return the values that have values of their own, each once."""
    kinds = {kind for kind in set(map(type, values)) if issubclass(kind, (Mapping, list, tuple))}
    if not kinds:
        return []
    return list({id(value): value for value in values if type(value) in kinds}.values())


def _column(values: Sequence[Any], name: str, like: pa.Schema | None) -> Column:
    _check_levels(values, name)
    kind = like.field(name).type if like is not None and name in like.names else None
    made = _infer_column if kind is None else _column_builder(kind, name)
    values = _plain(values)
    try:
        return made(values)
    except _FAILURES as error:
        row, first = _first_failure(made, values, error)
        msg = (
            f"row {row} does not fit column {name!r}, {_mismatch_text(kind, values[:row])}: {first}"
        )
        raise SchemaMismatch(msg, hint=_hint(values[row], first)) from first


def _hint(value: Any, error: Exception) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "Give None where there is no value."
    if isinstance(error, OverflowError):
        return "Give whole numbers beyond 64 bits as decimals."
    # This text contains the hint already.
    return "" if type(error) is ValueError else _HINT


def _mismatch_text(kind: pa.DataType | None, before: Sequence[Any]) -> str:
    if kind is not None:
        return f"which is {kind}"
    if all(value is None for value in before):
        return "whose type comes from it"
    return f"which is {pa.infer_type(before)} in the rows before"


def _plain(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values with None for missing values of pandas, and NumPy's times as Python's."""
    kinds = set(map(type, values))
    absent = {kind for kind in kinds if _is_no_value(kind)}
    if absent:
        values = [None if type(each) in absent else each for each in values]
    tensors = {kind for kind in kinds if _is_of_tensors(kind)}
    if tensors:
        values = [as_numpy(each) if type(each) in tensors else each for each in values]
    times = {kind for kind in kinds if is_numpy_time(kind)}
    if times:
        values = [python_time(each) if type(each) in times else each for each in values]
    return values


def _is_of_tensors(kind: type) -> bool:
    """Return whether values of a type are tensors of another library than NumPy."""
    is_array = hasattr(kind, "__array__") or hasattr(kind, "__dlpack__")
    known = ("numpy", "pandas", "pyarrow", "polars")
    return is_array and kind.__module__.split(".")[0] not in known


def _is_no_value(kind: type) -> bool:
    return kind.__name__ in _NO_VALUES and kind.__module__.split(".")[0] == "pandas"


def _first_failure(
    made: Callable[[Sequence[Any]], Column], values: Sequence[Any], error: Exception
) -> tuple[int, Exception]:
    """Return the first faulty value: the shortest failing prefix ends with it."""
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            made(values[:middle])
        except _FAILURES as found:
            bad, error = middle, found
        else:
            good = middle
    return bad - 1, error


def _infer_column(values: Sequence[Any]) -> Column:
    array = pa.array(values)
    if _is_to_be_checked(array.type):
        _read_as(values, array.type)
    return array


def _column_builder(kind: pa.DataType, name: str) -> Callable[[Sequence[Any]], Column]:
    def build_column(values: Sequence[Any]) -> Column:
        array = pa.array(values, _read_as(values, kind), from_pandas=not _has_reals(kind))
        given = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        try:
            return cast_exactly(given, pa.field(name, kind))
        except SchemaMismatch as error:
            raise ValueError(without_hint(error)) from error

    return build_column


def _read_as(values: Sequence[Any], kind: pa.DataType) -> pa.DataType:
    """Return the type as which pyarrow reads the values: the given one, except for some reals.

    Raises `TypeError` or `ValueError` for a value that pyarrow would change to fit.
    """
    present = _present(values)
    if at.is_struct(kind):
        _check_kinds(present, (dict,))
        known = {field.name for field in kind}
        unknown = set(chain.from_iterable(present)) - known
        if unknown:
            raise ValueError(f"there is no field {', '.join(sorted(map(repr, unknown)))}")
        return pa.struct(
            [
                field.with_type(_read_as([value.get(field.name) for value in present], field.type))
                for field in kind
            ]
        )
    if at.is_map(kind):
        _refuse(present, _FLAT, "a dict or pairs")
        entries = [
            entry
            for value in present
            for entry in (value.items() if isinstance(value, dict) else value)
        ]
        keys = _read_as([key for key, _ in entries], kind.key_type)
        return pa.map_(keys, _read_as([item for _, item in entries], kind.item_type))
    if at.is_list(kind) or at.is_large_list(kind) or at.is_fixed_size_list(kind):
        _refuse(present, (*_FLAT, dict), "a list")
        items = _read_as(list(chain.from_iterable(present)), kind.value_type)
        return kind if items == kind.value_type else pa.list_(items)
    if at.is_integer(kind):
        _check_integers(present)
    elif at.is_floating(kind) or at.is_decimal(kind):
        return _read_real_as(present, kind)
    elif at.is_timestamp(kind) and _is_of_one_unit(present):
        # Elements of a NumPy array, which pyarrow reads in any unit that it is given.
        return pa.from_numpy_dtype(present[0].dtype)
    else:
        _check_leaves(present, kind)
    return kind


def _present(values: Sequence[Any]) -> Sequence[Any]:
    present = [value for value in values if value is not None]
    absent = {kind for kind in set(map(type, present)) if _is_no_value(kind)}
    return [value for value in present if type(value) not in absent] if absent else present


def _refuse(values: Sequence[Any], kinds: tuple[type, ...], wanted: str) -> None:
    if any(isinstance(value, kinds) for value in values):
        raise TypeError(f"{wanted} was expected")


def _check_integers(values: Sequence[Any]) -> None:
    _check_kinds(values, (Integral, float), but=(bool,))
    floats = [value for value in values if isinstance(value, float)]
    if not all(value.is_integer() for value in floats):
        raise ValueError("expected an integer")
    if any(abs(value) >= sure_below(pa.float64()) for value in floats):
        raise ValueError("a float of this size may be a rounded integer")


def _read_real_as(values: Sequence[Any], kind: pa.DataType) -> pa.DataType:
    """Read floats and decimals as they are, for `cast_exactly` to check them."""
    _check_kinds(values, (Real, Decimal), but=(bool,))
    if at.is_decimal(kind):
        has_floats = not all(isinstance(value, (Integral, Decimal)) for value in values)
        return pa.float64() if has_floats else kind
    decimals = [value for value in values if isinstance(value, Decimal)]
    if decimals:
        # As wide as possible, because there may be integers too.
        return pa.decimal256(76, pa.infer_type(decimals).scale)
    if at.is_float32(kind) and any(map(_is_beyond_float32, values)):
        raise ValueError("the number is too large")
    return kind


def _check_leaves(values: Sequence[Any], kind: pa.DataType) -> None:
    if at.is_string(kind):
        _check_kinds(values, (str,))
    elif at.is_boolean(kind):
        _refuse(values, (float,), "True or False")
    elif at.is_binary(kind) or at.is_fixed_size_binary(kind):
        _check_kinds(values, (bytes, bytearray, memoryview))
    elif at.is_date(kind):
        _check_kinds(values, (date,))
        if any(isinstance(value, datetime) and not _is_day(value) for value in values):
            raise ValueError("the column holds dates, and the value has a time or a zone")
    elif at.is_timestamp(kind):
        _check_kinds(values, (datetime,))
        _check_times(values, kind)
    elif at.is_time(kind):
        _check_kinds(values, (time,))
        if any(value.tzinfo is not None for value in values):
            raise ValueError("the column holds times without a zone")
        if at.is_time32(kind) and any(value.microsecond % 1000 for value in values):
            raise ValueError("the column holds milliseconds")


def _is_of_one_unit(values: Sequence[Any]) -> bool:
    """Return whether all values are NumPy times of one unit."""
    kinds = set(map(type, values))
    return (
        len(kinds) == 1
        and is_numpy_time(kinds.pop())
        and len({value.dtype for value in values}) == 1
    )


def _check_times(values: Sequence[datetime], kind: pa.TimestampType) -> None:
    zoned = sum(value.tzinfo is not None for value in values)
    if kind.tz is None and zoned:
        raise ValueError("the column holds local times, and the value has a zone")
    if 0 < zoned < len(values):
        raise ValueError("some times of the column have a zone, others have none")
    if kind.unit != "ns" and any(map(_nanoseconds, values)):
        raise ValueError("nanoseconds would be lost: round them down, or store them as integers")
    cut = {"s": 1_000_000, "ms": 1000}.get(kind.unit, 1)
    if any(value.microsecond % cut for value in values):
        raise ValueError(f"the column has the precision {kind.unit}")


def _check_kinds(
    values: Sequence[Any], kinds: tuple[type, ...], *, but: tuple[type, ...] = ()
) -> None:
    for kind in set(map(type, values)):
        if not issubclass(kind, kinds) or issubclass(kind, but):
            raise TypeError(f"a {kind.__module__}.{kind.__qualname__}".replace("builtins.", ""))


def _is_beyond_float32(value: Any) -> bool:
    number = float(value)
    return math.isfinite(number) and abs(number) > _FLOAT32_MOST


def _is_day(value: datetime) -> bool:
    is_midnight = value.time() == time() and not _nanoseconds(value)
    return is_midnight and value.tzinfo is None


def _nanoseconds(value: datetime) -> int:
    """Return the nanoseconds below a microsecond, which pandas timestamps have."""
    return int(getattr(value, "nanosecond", 0))


_FLOAT32_MOST = float.fromhex("0x1.fffffep127")
