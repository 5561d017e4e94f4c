"""Types of the values that several clauses set in one column.

Spark gives all values of an expression one type. It may change values, such as integers next to a
double, before pyhudi can check that they match the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from pyhudi.errors import SchemaMismatch
from pyhudi.spark.executor_steps import arrow_schema

ClauseValues = Sequence[tuple[int, Column]]
"""Values of a column with the numbers of their clauses."""

_DIGITS = {st.ByteType: 3, st.ShortType: 5, st.IntegerType: 10, st.LongType: 19}
_FLOATING = {st.FloatType: (5, 6), st.DoubleType: (10, 15)}
"""Digits of integers and of decimals that the type stores exactly."""


def by_clause(values: ClauseValues, chosen: Column) -> Column:
    """Return for each row the value of its clause; null for clauses without a value.

    values: at least one.
    """
    (first, value), *rest = values
    result = sf.when(chosen == first, value)
    for at, value in rest:
        result = result.when(chosen == at, value)
    return result


def cast_values(
    rows: DataFrame,
    by_column: Mapping[str, ClauseValues],
    types: Mapping[str, st.DataType],
    chosen: Column,
) -> dict[str, ClauseValues]:
    """Return the values, with casts if they have several types, or only nulls.

    Timestamps with and without a zone are converted as Spark casts them, with the session's zone.
    Raises `SchemaMismatch` if no type holds the values of all clauses.

    types: the table's types.
    """
    values = [(name, at, value) for name, column in by_column.items() for at, value in column]
    schema = rows.select(*(value.alias(str(n)) for n, (_, _, value) in enumerate(values))).schema
    types_by_column: dict[str, list[st.DataType]] = {name: [] for name in by_column}
    result: dict[str, ClauseValues] = {name: [] for name in by_column}
    for (name, at, value), field in zip(values, schema, strict=True):
        value_type = _match_time_zones(field.dataType, types[name])
        same = value_type == field.dataType
        result[name] = [*result[name], (at, value if same else value.cast(value_type))]
        if not isinstance(value_type, st.NullType):
            types_by_column[name].append(value_type)
    for name, own in types_by_column.items():
        # A value that is always null has no type.
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


def store_values(
    rows: DataFrame,
    by_column: Mapping[str, ClauseValues],
    types: Mapping[str, st.DataType],
    chosen: Column,
    kept: Sequence[Column],
    clauses: int,
) -> tuple[DataFrame, dict[str, ClauseValues]]:
    """Return rows with each clause's value as a column, cast as Spark casts what is inserted.

    A value that does not fit raises Spark's error when it is computed. Raises `SchemaMismatch` for
    a type that cannot be stored in the column's.

    types: the table's types.
    kept: columns of the rows that are returned with the values.
    clauses: the number of clauses; a value with this number is that of the other rows.
    """
    values = [(name, at, value) for name, column in by_column.items() for at, value in column]
    named = [f"_pyhudi_value_{number}" for number in range(len(values))]
    computed = rows.select(
        *kept,
        *(
            # Only for the rows of the clause: its condition may rule out an error.
            (sf.when(chosen == at, value) if at < clauses else value).alias(column)
            for column, (_, at, value) in zip(named, values, strict=True)
        ),
    )
    schema = computed.schema
    target = {column: types[name] for column, (name, _, _) in zip(named, values, strict=True)}
    stored = to_types_of(
        computed,
        st.StructType(
            [
                st.StructField(field.name, target.get(field.name, field.dataType), True)
                for field in schema
            ]
        ),
    )
    result: dict[str, ClauseValues] = {name: [] for name in by_column}
    for column, (name, at, _) in zip(named, values, strict=True):
        result[name] = [*result[name], (at, sf.col(column))]
    return stored, result


def to_types_of(frame: DataFrame, schema: st.StructType) -> DataFrame:
    """Return the columns of a schema, cast as Spark casts what is inserted into a table.

    Columns that the frame does not have are null. A value that does not fit raises Spark's error
    when it is computed.

    Raises `SchemaMismatch` for a column whose type cannot be stored in the other one,
    `UnsupportedTableFeature` for a type that no table can have, such as a string with a collation.
    """
    arrow_schema(frame)
    try:
        cast = frame.to(schema)
        _ = cast.schema  # A Connect session finds errors here.
    except AnalysisException as error:
        cause = str(error).split("\n", 1)[0]
        raise SchemaMismatch(
            f"the values do not match the table: {cause}", hint="Cast them in the statement."
        ) from error
    return cast


def _match_time_zones(data_type: st.DataType, target: st.DataType) -> st.DataType:
    """Return a type with its timestamps zoned as in another type."""
    match data_type, target:
        case (st.TimestampType(), st.TimestampNTZType()) | (
            st.TimestampNTZType(),
            st.TimestampType(),
        ):
            return target
        case st.ArrayType(), st.ArrayType():
            return st.ArrayType(
                _match_time_zones(data_type.elementType, target.elementType), data_type.containsNull
            )
        case st.MapType(), st.MapType():
            key = _match_time_zones(data_type.keyType, target.keyType)
            value = _match_time_zones(data_type.valueType, target.valueType)
            return st.MapType(key, value, data_type.valueContainsNull)
        case st.StructType(), st.StructType():
            target_types = {field.name: field.dataType for field in target}
            return st.StructType(
                [
                    st.StructField(
                        field.name,
                        _match_time_zones(
                            field.dataType, target_types.get(field.name, field.dataType)
                        ),
                        field.nullable,
                    )
                    for field in data_type
                ]
            )
        case _:
            return data_type


def _try_common_type(
    rows: DataFrame, values: ClauseValues, own: Sequence[st.DataType], chosen: Column
) -> bool:
    if not all(isinstance(value_type, st.NumericType) for value_type in own):
        return False
    common = rows.select(by_clause(values, chosen)).schema[0].dataType
    return all(carries(value_type, common) for value_type in own)


def carries(data_type: st.DataType, wider: st.DataType) -> bool:
    """Return whether each value of a type is also a value of another type."""
    if isinstance(data_type, st.NullType) or data_type.simpleString() == wider.simpleString():
        return True
    match data_type, wider:
        case st.ArrayType(), st.ArrayType():
            return carries(data_type.elementType, wider.elementType)
        case st.MapType(), st.MapType():
            return carries(data_type.keyType, wider.keyType) and carries(
                data_type.valueType, wider.valueType
            )
        case st.StructType(), st.StructType():
            return data_type.names == wider.names and all(
                carries(field.dataType, wider_field.dataType)
                for field, wider_field in zip(data_type, wider, strict=True)
            )
        case st.FloatType(), st.DoubleType():
            return True
        case st.DecimalType(), st.DecimalType():
            return data_type.scale <= wider.scale and _integer_digits(data_type) <= _integer_digits(
                wider
            )
        case st.DecimalType(), _ if type(wider) in _FLOATING:
            return int(data_type.precision) <= _FLOATING[type(wider)][1]
        case _ if type(data_type) in _DIGITS:
            return _DIGITS[type(data_type)] <= _integer_digits(wider)
        case _:
            return False


def _integer_digits(data_type: st.DataType) -> int:
    """Return the number of digits up to which all integers are values of a type."""
    if isinstance(data_type, st.DecimalType):
        return int(data_type.precision - data_type.scale)
    if type(data_type) in _FLOATING:
        return _FLOATING[type(data_type)][0]
    return _DIGITS.get(type(data_type), 0)
