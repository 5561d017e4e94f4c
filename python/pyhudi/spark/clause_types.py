"""Types of the values that several clauses set in one column.

In one expression, Spark gives all values one type. It may change some of them, such as integers
together with a double, before pyhudi can check that they match the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pyhudi.errors import SchemaMismatch

Made = Sequence[tuple[int, Column]]
"""Values of a column with the numbers of their clauses."""

_DIGITS = {st.ByteType: 3, st.ShortType: 5, st.IntegerType: 10, st.LongType: 19}
_FLOATING = {st.FloatType: (5, 6), st.DoubleType: (10, 15)}
"""Digits of integers and of decimals that the type stores exactly."""


def by_clause(made: Made, chosen: Column) -> Column:
    """Return for each row the value of its clause; null for clauses without a value.

    made: at least one value.
    """
    (first, value), *rest = made
    result = sf.when(chosen == first, value)
    for at, value in rest:
        result = result.when(chosen == at, value)
    return result


def cast_values(
    rows: DataFrame, made: Mapping[str, Made], types: Mapping[str, st.DataType], chosen: Column
) -> dict[str, Made]:
    """Return the values, with casts if they have several types, or only nulls.

    Timestamps with and without a zone are converted as Spark casts them, with the session's zone.
    Raises `SchemaMismatch` if no type holds the values of all clauses.

    types: the table's types.
    """
    values = [(name, at, value) for name, each in made.items() for at, value in each]
    schema = rows.select(*(value.alias(str(n)) for n, (_, _, value) in enumerate(values))).schema
    types_by_column: dict[str, list[st.DataType]] = {name: [] for name in made}
    result: dict[str, Made] = {name: [] for name in made}
    for (name, at, value), field in zip(values, schema, strict=True):
        value_type = _match_time_zones(field.dataType, types[name])
        same = value_type == field.dataType
        result[name] = [*result[name], (at, value if same else value.cast(value_type))]
        if not isinstance(value_type, st.NullType):
            types_by_column[name].append(value_type)
    for name, own in types_by_column.items():
        # A value that is always null has no type of its own.
        if len({value_type.simpleString() for value_type in own}) == 1:
            continue
        if all(carries(value_type, types[name]) for value_type in own):
            result[name] = [(at, value.cast(types[name])) for at, value in result[name]]
        elif not _try_common_type(rows, result[name], own, chosen):
            listed = ", ".join(dict.fromkeys(value_type.simpleString() for value_type in own))
            raise SchemaMismatch(
                f"clauses give {name!r} values of the types {listed}, which have no common type",
                hint=f"Cast each to {types[name].simpleString()}.",
            )
    return result


def _match_time_zones(kind: st.DataType, wanted: st.DataType) -> st.DataType:
    """Return a type with its timestamps zoned as in another type."""
    match kind, wanted:
        case (st.TimestampType(), st.TimestampNTZType()) | (
            st.TimestampNTZType(),
            st.TimestampType(),
        ):
            return wanted
        case st.ArrayType(), st.ArrayType():
            return st.ArrayType(
                _match_time_zones(kind.elementType, wanted.elementType), kind.containsNull
            )
        case st.MapType(), st.MapType():
            key = _match_time_zones(kind.keyType, wanted.keyType)
            value = _match_time_zones(kind.valueType, wanted.valueType)
            return st.MapType(key, value, kind.valueContainsNull)
        case st.StructType(), st.StructType():
            known = {field.name: field.dataType for field in wanted}
            return st.StructType(
                [
                    st.StructField(
                        field.name,
                        _match_time_zones(field.dataType, known.get(field.name, field.dataType)),
                        field.nullable,
                    )
                    for field in kind
                ]
            )
        case _:
            return kind


def _try_common_type(
    rows: DataFrame, made: Made, own: Sequence[st.DataType], chosen: Column
) -> bool:
    if not all(isinstance(value_type, st.NumericType) for value_type in own):
        return False
    common = rows.select(by_clause(made, chosen)).schema[0].dataType
    return all(carries(value_type, common) for value_type in own)


def carries(kind: st.DataType, wider: st.DataType) -> bool:
    """Return whether each value of a type is also a value of another type."""
    if isinstance(kind, st.NullType) or kind.simpleString() == wider.simpleString():
        return True
    match kind, wider:
        case st.ArrayType(), st.ArrayType():
            return carries(kind.elementType, wider.elementType)
        case st.MapType(), st.MapType():
            return carries(kind.keyType, wider.keyType) and carries(kind.valueType, wider.valueType)
        case st.StructType(), st.StructType():
            return kind.names == wider.names and all(
                carries(ours.dataType, theirs.dataType)
                for ours, theirs in zip(kind, wider, strict=True)
            )
        case st.FloatType(), st.DoubleType():
            return True
        case st.DecimalType(), st.DecimalType():
            return kind.scale <= wider.scale and _whole_digits(kind) <= _whole_digits(wider)
        case st.DecimalType(), _ if type(wider) in _FLOATING:
            return int(kind.precision) <= _FLOATING[type(wider)][1]
        case _ if type(kind) in _DIGITS:
            return _DIGITS[type(kind)] <= _whole_digits(wider)
        case _:
            return False


def _whole_digits(kind: st.DataType) -> int:
    """Return the number of digits up to which all integers are values of a type."""
    if isinstance(kind, st.DecimalType):
        return int(kind.precision - kind.scale)
    if type(kind) in _FLOATING:
        return _FLOATING[type(kind)][0]
    return _DIGITS.get(type(kind), 0)
