"""Values that several clauses give one column: in one expression Spark gives all of them one type.

It may change some of them, such as whole numbers beside one that is a double, before anybody sees
that they do not fit the table.
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
"""So many digits of whole numbers and of decimals come back from them as they were."""


def by_clause(made: Made, chosen: Column) -> Column:
    """For each row what its clause has made; null for clauses that have made nothing.

    made: at least one value.
    """
    (first, value), *rest = made
    found = sf.when(chosen == first, value)
    for at, value in rest:
        found = found.when(chosen == at, value)
    return found


def cast_values(
    rows: DataFrame, made: Mapping[str, Made], types: Mapping[str, st.DataType], chosen: Column
) -> dict[str, Made]:
    """The values, with casts where they have several types, or none but that of null.

    Moments and times without a zone become each other as Spark casts them, by the session's zone.

    types: the table's. Raises `SchemaMismatch` where no type holds the values of all clauses.
    """
    values = [(name, at, value) for name, each in made.items() for at, value in each]
    schema = rows.select(*(value.alias(str(n)) for n, (_, _, value) in enumerate(values))).schema
    kinds: dict[str, list[st.DataType]] = {name: [] for name in made}
    found: dict[str, Made] = {name: [] for name in made}
    for (name, at, value), field in zip(values, schema, strict=True):
        kind = _match_time_zones(field.dataType, types[name])
        same = kind == field.dataType
        found[name] = [*found[name], (at, value if same else value.cast(kind))]
        if not isinstance(kind, st.NullType):
            kinds[name].append(kind)
    for name, own in kinds.items():
        # What is nothing but null has no type of its own.
        if len({kind.simpleString() for kind in own}) == 1:
            continue
        if all(carries(kind, types[name]) for kind in own):
            found[name] = [(at, value.cast(types[name])) for at, value in found[name]]
        elif not _try_common_type(rows, found[name], own, chosen):
            listed = ", ".join(dict.fromkeys(kind.simpleString() for kind in own))
            raise SchemaMismatch(
                f"clauses give {name!r} values of the types {listed}, which have no common type",
                hint=f"Cast each to {types[name].simpleString()}.",
            )
    return found


def _match_time_zones(kind: st.DataType, wanted: st.DataType) -> st.DataType:
    """A type with times as another type has them, with or without a zone."""
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
    if not all(isinstance(kind, st.NumericType) for kind in own):
        return False
    common = rows.select(by_clause(made, chosen)).schema[0].dataType
    return all(carries(kind, common) for kind in own)


def carries(kind: st.DataType, wider: st.DataType) -> bool:
    """Whether each value of a type is one of another type, too."""
    if isinstance(kind, st.NullType) or kind.simpleString() == wider.simpleString():
        return True
    match kind, wider:
        case st.ArrayType(), st.ArrayType():
            return carries(kind.elementType, wider.elementType)
        case st.MapType(), st.MapType():
            return carries(kind.keyType, wider.keyType) and carries(kind.valueType, wider.valueType)
        case st.StructType(), st.StructType():
            return kind.names == wider.names and all(
                carries(one.dataType, other.dataType)
                for one, other in zip(kind, wider, strict=True)
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
    """Whole numbers of so many digits are values of a type."""
    if isinstance(kind, st.DecimalType):
        return int(kind.precision - kind.scale)
    if type(kind) in _FLOATING:
        return _FLOATING[type(kind)][0]
    return _DIGITS.get(type(kind), 0)
