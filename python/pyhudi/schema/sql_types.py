"""Parses types and columns in the syntax of Spark SQL: `decimal(10,2)`, `n long not null`."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from pyhudi.errors import ConfigError
from pyhudi.schema.supported_types import MAX_DIGITS

_SqlType = exp.DataType.Type
_TYPES = {
    _SqlType.BOOLEAN: pa.bool_(),
    _SqlType.INT: pa.int32(),
    _SqlType.BIGINT: pa.int64(),
    _SqlType.FLOAT: pa.float32(),
    _SqlType.DOUBLE: pa.float64(),
    _SqlType.TEXT: pa.string(),
    _SqlType.BINARY: pa.binary(),
    _SqlType.DATE: pa.date32(),
    _SqlType.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    _SqlType.TIMESTAMP: pa.timestamp("us", "UTC"),
    _SqlType.TIMESTAMPNTZ: pa.timestamp("us"),
}


def type_of(sql: str) -> pa.DataType:
    """Parse a type. Raises `ConfigError` for an invalid one."""
    try:
        sql_type = parse_one(sql, into=exp.DataType, dialect="spark")
    except SqlglotError as error:
        msg = f"{sql!r} is not a type"
        raise ConfigError(msg, hint="Pass 'string', for example, or a pyarrow type.") from error
    try:
        return _type(sql_type)
    except ConfigError as error:
        raise ConfigError(f"{sql!r} names {error}") from error


def columns_of(sql: str) -> list[pa.Field]:
    """Parse columns with types. Raises `ConfigError` for an invalid list, and for an empty one."""
    try:
        # The line end also ends a comment.
        parsed = parse_one(f"CREATE TABLE t ({sql}\n)", dialect="spark")
    except SqlglotError:
        raise ConfigError(f"{sql!r} is not a list of columns; give 'id string, n long'") from None
    definitions = parsed.this.expressions if isinstance(parsed.this, exp.Schema) else []
    if not definitions:
        raise ConfigError(f"{sql!r} has no columns; give 'id string, n long'")
    return [field_of(column) for column in definitions]


def type_name(data_type: pa.DataType) -> str:
    """Return a type in the syntax of Spark SQL; pyarrow's name for a type that Spark has not."""
    types = pa.types
    if types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if types.is_map(data_type):
        return f"map<{type_name(data_type.key_type)},{type_name(data_type.item_type)}>"
    if types.is_list(data_type) or types.is_large_list(data_type):
        return f"array<{type_name(data_type.value_type)}>"
    if types.is_struct(data_type):
        fields = ",".join(f"{field.name}:{type_name(field.type)}" for field in data_type)
        return f"struct<{fields}>"
    if types.is_timestamp(data_type):
        return "timestamp_ntz" if data_type.tz is None else "timestamp"
    return _NAMES.get(data_type, str(data_type))


_NAMES = {
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
}


def field_of(column: exp.Expression) -> pa.Field:
    """Parse a column definition of `CREATE TABLE`. Raises `ConfigError` for an invalid one."""
    sql_type = column.args.get("kind")
    if not isinstance(column, exp.ColumnDef) or sql_type is None:
        raise ConfigError(f"{column.sql('spark')!r}, which is not a column with a type")
    constraints = column.args["constraints"] or ()
    for constraint in constraints:
        if not isinstance(constraint.kind, exp.NotNullColumnConstraint):
            msg = f"{constraint.sql('spark')!r} of column {column.name!r} is not supported"
            raise ConfigError(f"{msg}; give a type, and NOT NULL")
    required = any(not constraint.kind.args.get("allow_null") for constraint in constraints)
    return pa.field(column.name, _type(sql_type), nullable=not required)


def _type(sql_type: exp.Expression) -> pa.DataType:
    inner = sql_type.expressions
    if sql_type.this is _SqlType.DECIMAL:
        return _decimal(sql_type)
    if sql_type.this is _SqlType.ARRAY and inner:
        return pa.list_(_type(inner[0]))
    if sql_type.this is _SqlType.MAP and inner:
        return pa.map_(_type(inner[0]), _type(inner[1]))
    if sql_type.this is _SqlType.STRUCT and inner:
        return pa.struct([field_of(column) for column in inner])
    if sql_type.this not in _TYPES:
        raise ConfigError(f"the type {sql_type.sql('spark')!r} is not supported")
    return _TYPES[sql_type.this]


def _decimal(sql_type: exp.Expression) -> pa.DataType:
    parameters = [part.name for part in sql_type.expressions] or ["10"]
    numbers = [int(parameter) if parameter.isdecimal() else -1 for parameter in parameters]
    digits, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if len(numbers) > 2 or not 1 <= digits <= MAX_DIGITS or not 0 <= scale <= digits:
        msg = f"the type {sql_type.sql('spark')!r}"
        raise ConfigError(f"{msg}; a decimal has at most {MAX_DIGITS} digits, such as (10,2)")
    return pa.decimal128(digits, scale)
