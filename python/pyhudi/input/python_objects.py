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
from pyhudi.config.formatting import type_text
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature, without_hint
from pyhudi.input.exact_casts import cast_exactly, exact_integer_bound
from pyhudi.input.type_tests import is_list, is_real

Column: TypeAlias = "pa.Array[Any] | pa.ChunkedArray[Any]"

_FAILURES = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""The errors of pyarrow for a value."""
_HINT = "Give each column values of one type."
_STRINGS = (str, bytes, bytearray, memoryview)
"""Types whose values have items in Python, but are single values."""
_CONTAINERS = (Mapping, list, tuple)
_SINGLE_VALUES = (*_STRINGS, Number, date, time, dict, type(None))
"""Types that are not a column of values."""
_ARRAYS = (("pandas", "Series"), ("pandas", "Index"), ("numpy", "ndarray"))
"""Classes that hold values of one column, other than Arrow's arrays."""
_ROWS_AND_ITEMS = 2
"""Dimensions of an array that has a list in each row."""
_MAX_LEVELS = 128
"""Maximum levels of nested Python objects. A map's entries are pairs in a list: two levels."""
_MISSING_VALUES = ("NAType", "NaTType")
"""Types of missing values in pandas, other than None and NaN."""


def table_from_dicts(
    rows: Sequence[Any], table_schema: pa.Schema | None, *, allow_missing_keys: bool
) -> pa.Table:
    """Convert a list of dicts to a table; a key that only some rows have is null in the others.

    table_schema: the table's columns. allow_missing_keys: rows may have different keys. Raises
    `SchemaMismatch` for a value that does not fit, `ConfigError` for input that is not rows.
    """
    _check_dicts(rows)
    if not rows:
        if table_schema is None:
            raise ConfigError("the list is empty, so it has no columns", hint="Pass a schema.")
        return table_schema.empty_table()
    keys = set(chain.from_iterable(rows))
    if not allow_missing_keys and set(map(len, rows)) != {len(keys)}:
        at_fault = next(n for n, row in enumerate(rows) if len(row) < len(keys))
        missing = ", ".join(sorted(repr(key) for key in keys - set(rows[at_fault])))
        msg = f"row {at_fault} has no {missing}, which other rows have"
        raise ConfigError(msg, hint="Give all rows the same keys, None where there is no value.")
    names = _order_names(keys, table_schema)
    return pa.table(
        {name: _column([row.get(name) for row in rows], name, table_schema) for name in names}
    )


def table_from_columns(columns: Mapping[Any, Any], table_schema: pa.Schema | None) -> pa.Table:
    """Convert a dict of lists or arrays to a table. Raises as `table_from_dicts` does."""
    names = _order_names(dict.fromkeys(columns), table_schema)
    arrays = {}
    for name in names:
        values = columns[name]
        if isinstance(values, (list, tuple)):
            arrays[name] = _column(values, name, table_schema)
        elif holds_objects(getattr(values, "dtype", None)):
            arrays[name] = _object_array_column(values, name, table_schema)
        else:
            arrays[name] = _array_column(values, name)
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        described = ", ".join(f"{name!r} has {length}" for name, length in lengths.items())
        raise ConfigError(f"the columns differ in length: {described}")
    return pa.table(arrays)


def object_column(column: Any, name: str, table_schema: pa.Schema | None) -> Column:
    """Convert a pandas column of objects; NaN is null, but not within lists and structs.

    Raises as `table_from_dicts` does.
    """
    _check_levels(column, name)
    inferred = _try_convert(column, from_pandas=True)
    if inferred is not None and not _may_have_changed(inferred.type):
        if not inferred.type.num_fields:
            return inferred
        inferred = _try_convert(_null_for_nan(column), from_pandas=not _has_reals(inferred.type))
        if inferred is not None:
            return inferred
    return _column(_null_for_nan(column), name, table_schema)


def holds_objects(data_type: Any) -> bool:
    """Return whether a NumPy or pandas type means Python objects."""
    return str(data_type) == "object"


def by_column(data: Any, names: Sequence[str]) -> Any:
    """Return the values of one column by its name, if there is one name; other data unchanged.

    Raises `ConfigError` for a single value.
    """
    if isinstance(data, (str, Number, date, time)):
        raise ConfigError(f"{data!r} is one value, and no rows", hint=f"Pass a list: [{data!r}].")
    return {names[0]: data} if len(names) == 1 and _are_values(data) else data


def _are_values(data: Any) -> bool:
    if isinstance(data, (list, tuple)):
        return bool(data) and isinstance(data[0], (str, Number, date, time))
    python_type = type(data)
    name = (python_type.__module__.split(".")[0], python_type.__name__)
    return isinstance(data, (pa.Array, pa.ChunkedArray)) or name in _ARRAYS


def _try_convert(values: Any, *, from_pandas: bool) -> Column | None:
    try:
        return pa.array(values, from_pandas=from_pandas)
    except _FAILURES:
        return None


def _null_for_nan(column: Any) -> list[Any]:
    return [
        None if missing else value for value, missing in zip(column, column.isna(), strict=True)
    ]


def _may_have_changed(data_type: pa.DataType) -> bool:
    """Return whether pyarrow may have changed values to fit the type that it inferred."""
    if data_type.num_fields:
        return any(_may_have_changed(data_type.field(n).type) for n in range(data_type.num_fields))
    tests = (at.is_date, at.is_time, at.is_timestamp, at.is_binary, at.is_fixed_size_binary)
    return any(test(data_type) for test in tests)


def _has_reals(data_type: pa.DataType) -> bool:
    """Return whether NaN is a number in this type; pyarrow reads it as null, as in pandas."""
    if data_type.num_fields:
        return any(_has_reals(data_type.field(n).type) for n in range(data_type.num_fields))
    return is_real(data_type) or bool(at.is_null(data_type))


def _check_dicts(rows: Sequence[Any]) -> None:
    others = _types(rows, lambda python_type: not issubclass(python_type, dict))
    if others:
        row = next(n for n, value in enumerate(rows) if type(value) in others)
        msg = f"cannot read rows from a list: item {row} is {type_text(type(rows[row]))}"
        raise ConfigError(msg, hint="Pass a list of dicts, or of Arrow record batches.")


def _order_names(keys: Any, table_schema: pa.Schema | None) -> list[str]:
    """Return the table's columns first, in its order, then others, sorted if they have no order."""
    for key in keys:
        if not isinstance(key, str):
            raise ConfigError(f"the key {key!r} is not a column name")
    of_table = [
        name for name in (table_schema.names if table_schema is not None else ()) if name in keys
    ]
    others = [key for key in keys if key not in of_table]
    return [*of_table, *(sorted(others) if isinstance(keys, set) else others)]


def _object_array_column(values: Any, name: str, table_schema: pa.Schema | None) -> Column:
    if hasattr(values, "isna"):
        return object_column(values, name, table_schema)
    return _column(values.tolist(), name, table_schema)


def _array_column(values: Any, name: str) -> Column:
    if isinstance(values, pa.ChunkedArray):
        return values
    if isinstance(values, _SINGLE_VALUES):
        msg = f"column {name!r} is one {type(values).__qualname__}, not a list of values"
        raise ConfigError(msg, hint="Pass a list, even for one row: [value].")
    if holds_objects(getattr(values, "dtype", None)):
        _check_levels(values, name)
    try:
        if is_tensor(values):
            return _tensor_column(values)
        return pa.array(values)
    except _FAILURES as error:
        raise SchemaMismatch(f"column {name!r} cannot be converted to Arrow: {error}") from error


def is_tensor(values: Any) -> bool:
    """Return whether values are a NumPy array of several dimensions, or a tensor of any library."""
    shape = getattr(values, "shape", None)
    is_array = hasattr(values, "__array__") or hasattr(values, "__dlpack__")
    foreign = type(values).__module__.split(".")[0] not in ("numpy", "pandas", "pyarrow", "polars")
    return is_array and isinstance(shape, tuple) and (foreign or len(shape) > 1)


def _tensor_column(values: Any) -> Column:
    """Convert one dimension to plain values, two to a list of a fixed size in each row."""
    array = as_numpy(values)
    if array.ndim == 1:
        return pa.array(array)
    if array.ndim != _ROWS_AND_ITEMS:
        raise ValueError(f"it has {array.ndim} dimensions")
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
    level = _find_containers(values)
    for _ in range(_MAX_LEVELS):
        if not level:
            return
        parts = [value.values() if isinstance(value, Mapping) else value for value in level]
        level = _find_containers(list(chain.from_iterable(parts)))
    msg = f"column {name!r} has values with too many nested lists and dicts"
    raise UnsupportedTableFeature(msg, hint="Store the inner value as a string, such as JSON.")


def _find_containers(values: Any) -> list[Any]:
    """Return the values that have values of their own, each once."""
    python_types = _types(values, lambda python_type: issubclass(python_type, _CONTAINERS))
    if not python_types:
        return []
    return list({id(value): value for value in values if type(value) in python_types}.values())


def _column(values: Sequence[Any], name: str, table_schema: pa.Schema | None) -> Column:
    _check_levels(values, name)
    schema = pa.schema([]) if table_schema is None else table_schema
    data_type = schema.field(name).type if name in schema.names else None
    build = _infer_column if data_type is None else _column_builder(data_type, name)
    values = _plain_values(values)
    try:
        return build(values)
    except _FAILURES as error:
        row, first = _first_failure(build, values, error)
        column = f"{name!r}, {_mismatch_text(data_type, values[:row])}"
        msg = f"row {row} does not fit column {column}: {first}"
        raise SchemaMismatch(msg, hint=_hint(values[row], first)) from first


def _hint(value: Any, error: Exception) -> str:
    if isinstance(value, float) and math.isnan(value):
        return "Give None where there is no value."
    if isinstance(error, OverflowError):
        return "Give whole numbers beyond 64 bits as decimals."
    # This text contains the hint already.
    return "" if type(error) is ValueError else _HINT


def _mismatch_text(data_type: pa.DataType | None, before: Sequence[Any]) -> str:
    if data_type is not None:
        return f"which is {data_type}"
    if all(value is None for value in before):
        return "whose type comes from it"
    return f"which is {pa.infer_type(before)} in the rows before"


def _plain_values(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values with None for missing values of pandas, and NumPy's times as Python's."""
    conversions: tuple[tuple[Callable[[type], bool], Callable[[Any], Any]], ...] = (
        (_is_missing_value, lambda _: None),
        (_is_of_tensors, as_numpy),
        (is_numpy_time, python_time),
    )
    for test, convert in conversions:
        matching = _types(values, test)
        if matching:
            values = [convert(value) if type(value) in matching else value for value in values]
    return values


def _types(values: Sequence[Any], test: Callable[[type], bool]) -> set[type]:
    """Return the types of the values that pass a test. There are few of them."""
    return set(filter(test, set(map(type, values))))


def _is_of_tensors(python_type: type) -> bool:
    """Return whether values of a type are tensors of another library than NumPy."""
    is_array = hasattr(python_type, "__array__") or hasattr(python_type, "__dlpack__")
    converted_by_pyarrow = ("numpy", "pandas", "pyarrow", "polars")
    return is_array and python_type.__module__.split(".")[0] not in converted_by_pyarrow


def _is_missing_value(python_type: type) -> bool:
    is_of_pandas = python_type.__module__.split(".")[0] == "pandas"
    return is_of_pandas and python_type.__name__ in _MISSING_VALUES


def _first_failure(
    build: Callable[[Sequence[Any]], Column], values: Sequence[Any], error: Exception
) -> tuple[int, Exception]:
    """Return the first faulty value: the shortest failing prefix ends with it."""
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            build(values[:middle])
        except _FAILURES as failure:
            bad, error = middle, failure
        else:
            good = middle
    return bad - 1, error


def _infer_column(values: Sequence[Any]) -> Column:
    array = pa.array(values)
    if _may_have_changed(array.type):
        _read_as(values, array.type)
    return array


def _column_builder(data_type: pa.DataType, name: str) -> Callable[[Sequence[Any]], Column]:
    def build_column(values: Sequence[Any]) -> Column:
        array = pa.array(values, _read_as(values, data_type), from_pandas=not _has_reals(data_type))
        chunks = array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
        try:
            return cast_exactly(chunks, pa.field(name, data_type))
        except SchemaMismatch as error:
            raise ValueError(without_hint(error)) from error

    return build_column


def _read_as(values: Sequence[Any], data_type: pa.DataType) -> pa.DataType:
    """Return the type as which pyarrow reads the values: `data_type`, except for some reals.

    Raises `TypeError` or `ValueError` for a value that pyarrow would change to fit.
    """
    present = _present(values)
    if at.is_struct(data_type):
        _check_types(present, (dict,))
        fields = {field.name for field in data_type}
        unknown = set(chain.from_iterable(present)) - fields
        if unknown:
            raise ValueError(f"there is no field {', '.join(sorted(map(repr, unknown)))}")
        return pa.struct(
            [
                field.with_type(_read_as([value.get(field.name) for value in present], field.type))
                for field in data_type
            ]
        )
    if at.is_map(data_type):
        _check_no_instance(present, _STRINGS, "a dict or pairs")
        entries = [
            entry
            for value in present
            for entry in (value.items() if isinstance(value, dict) else value)
        ]
        keys = _read_as([key for key, _ in entries], data_type.key_type)
        return pa.map_(keys, _read_as([item for _, item in entries], data_type.item_type))
    if is_list(data_type):
        _check_no_instance(present, (*_STRINGS, dict), "a list")
        items = _read_as(list(chain.from_iterable(present)), data_type.value_type)
        return data_type if items == data_type.value_type else pa.list_(items)
    if at.is_integer(data_type):
        _check_integers(present)
    elif is_real(data_type):
        return _read_real_as(present, data_type)
    elif at.is_timestamp(data_type) and _is_of_one_unit(present):
        # Elements of a NumPy array, which pyarrow reads in any unit that it is given.
        return pa.from_numpy_dtype(present[0].dtype)
    else:
        _check_leaves(present, data_type)
    return data_type


def _present(values: Sequence[Any]) -> Sequence[Any]:
    present = [value for value in values if value is not None]
    missing = _types(present, _is_missing_value)
    return [value for value in present if type(value) not in missing] if missing else present


def _check_no_instance(
    values: Sequence[Any], python_types: tuple[type, ...], expected: str
) -> None:
    if any(isinstance(value, python_types) for value in values):
        raise TypeError(f"{expected} was expected")


def _check_integers(values: Sequence[Any]) -> None:
    _check_types(values, (Integral, float), but=(bool,))
    floats = [value for value in values if isinstance(value, float)]
    if not all(value.is_integer() for value in floats):
        raise ValueError("expected an integer")
    if any(abs(value) >= exact_integer_bound(pa.float64()) for value in floats):
        raise ValueError("a float of this size may be a rounded integer")


def _read_real_as(values: Sequence[Any], data_type: pa.DataType) -> pa.DataType:
    """Read floats and decimals as they are, for `cast_exactly` to check them."""
    _check_types(values, (Real, Decimal), but=(bool,))
    if at.is_decimal(data_type):
        has_floats = not all(isinstance(value, (Integral, Decimal)) for value in values)
        return pa.float64() if has_floats else data_type
    decimals = [value for value in values if isinstance(value, Decimal)]
    if decimals:
        # As wide as possible, because there may be integers too.
        return pa.decimal256(76, pa.infer_type(decimals).scale)
    if at.is_float32(data_type) and any(map(_is_beyond_float32, values)):
        raise ValueError("the number is too large")
    return data_type


def _check_leaves(values: Sequence[Any], data_type: pa.DataType) -> None:
    if at.is_string(data_type):
        _check_types(values, (str,))
    elif at.is_boolean(data_type):
        _check_no_instance(values, (float,), "True or False")
    elif at.is_binary(data_type) or at.is_fixed_size_binary(data_type):
        _check_types(values, (bytes, bytearray, memoryview))
    elif at.is_date(data_type):
        _check_types(values, (date,))
        if any(isinstance(value, datetime) and not _is_day(value) for value in values):
            raise ValueError("the column holds dates, and the value has a time or a zone")
    elif at.is_timestamp(data_type):
        _check_types(values, (datetime,))
        _check_times(values, data_type)
    elif at.is_time(data_type):
        _check_types(values, (time,))
        if any(value.tzinfo is not None for value in values):
            raise ValueError("the column holds times without a zone")
        if at.is_time32(data_type) and any(value.microsecond % 1000 for value in values):
            raise ValueError("the column holds milliseconds")


def _is_of_one_unit(values: Sequence[Any]) -> bool:
    """Return whether all values are NumPy times of one unit."""
    python_types = set(map(type, values))
    return (
        len(python_types) == 1
        and is_numpy_time(python_types.pop())
        and len({value.dtype for value in values}) == 1
    )


def _check_times(values: Sequence[datetime], data_type: pa.TimestampType) -> None:
    zoned = sum(value.tzinfo is not None for value in values)
    if data_type.tz is None and zoned:
        raise ValueError("the column holds local times, and the value has a zone")
    if 0 < zoned < len(values):
        raise ValueError("some times of the column have a zone, others have none")
    if data_type.unit != "ns" and any(map(_nanoseconds, values)):
        raise ValueError("nanoseconds would be lost: round them down, or store them as integers")
    cut = {"s": 1_000_000, "ms": 1000}.get(data_type.unit, 1)
    if any(value.microsecond % cut for value in values):
        raise ValueError(f"the column has the precision {data_type.unit}")


def _check_types(
    values: Sequence[Any], python_types: tuple[type, ...], *, but: tuple[type, ...] = ()
) -> None:
    for python_type in set(map(type, values)):
        if not issubclass(python_type, python_types) or issubclass(python_type, but):
            raise TypeError(type_text(python_type))


def _is_beyond_float32(value: Any) -> bool:
    number = float(value)
    return math.isfinite(number) and abs(number) > _MAX_FLOAT32


def _is_day(value: datetime) -> bool:
    is_midnight = value.time() == time() and not _nanoseconds(value)
    return is_midnight and value.tzinfo is None


def _nanoseconds(value: datetime) -> int:
    """Return the nanoseconds below a microsecond, which pandas timestamps have."""
    return int(getattr(value, "nanosecond", 0))


_MAX_FLOAT32 = float.fromhex("0x1.fffffep127")
