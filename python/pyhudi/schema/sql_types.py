"""Types and columns as strings, in the words of Spark SQL: `decimal(10,2)`, `n long not null`."""

from __future__ import annotations

import pyarrow as pa
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from pyhudi.errors import ConfigError
from pyhudi.schema.supported_types import MOST_DIGITS

_Kind = exp.DataType.Type
_TYPES = {
    _Kind.BOOLEAN: pa.bool_(),
    _Kind.INT: pa.int32(),
    _Kind.BIGINT: pa.int64(),
    _Kind.FLOAT: pa.float32(),
    _Kind.DOUBLE: pa.float64(),
    _Kind.TEXT: pa.string(),
    _Kind.BINARY: pa.binary(),
    _Kind.DATE: pa.date32(),
    _Kind.TIMESTAMPTZ: pa.timestamp("us", "UTC"),
    _Kind.TIMESTAMP: pa.timestamp("us", "UTC"),
    _Kind.TIMESTAMPNTZ: pa.timestamp("us"),
}


def type_of(text: str) -> pa.DataType:
    """Parse a type. Raises `ConfigError` for an invalid one."""
    try:
        kind = parse_one(text, into=exp.DataType, dialect="spark")
    except SqlglotError as error:
        msg = f"{text!r} is not a type"
        raise ConfigError(msg, hint="Give 'string', for example, or a pyarrow type.") from error
    try:
        return _type(kind)
    except ConfigError as error:
        raise ConfigError(f"{text!r} names {error}") from error


def field_of(column: exp.Expression) -> pa.Field:
    """Parse a column definition of `CREATE TABLE`. Raises `ConfigError` for an invalid one."""
    kind = column.args.get("kind")
    if not isinstance(column, exp.ColumnDef) or kind is None:
        raise ConfigError(f"{column.sql('spark')!r}, which is not a column with a type")
    said = column.args["constraints"] or ()
    for each in said:
        if not isinstance(each.kind, exp.NotNullColumnConstraint):
            msg = f"{each.sql('spark')!r} at {column.name!r}, which is not supported"
            raise ConfigError(f"{msg}; give a type, and NOT NULL")
    required = any(not each.kind.args.get("allow_null") for each in said)
    return pa.field(column.name, _type(kind), nullable=not required)


def _type(kind: exp.Expression) -> pa.DataType:
    inner = kind.expressions
    if kind.this is _Kind.DECIMAL:
        return _decimal(kind)
    if kind.this is _Kind.ARRAY and inner:
        return pa.list_(_type(inner[0]))
    if kind.this is _Kind.MAP and inner:
        return pa.map_(_type(inner[0]), _type(inner[1]))
    if kind.this is _Kind.STRUCT and inner:
        return pa.struct([field_of(column) for column in inner])
    if kind.this not in _TYPES:
        raise ConfigError(f"the type {kind.sql('spark')!r}, which is not supported")
    return _TYPES[kind.this]


def _decimal(kind: exp.Expression) -> pa.DataType:
    texts = [part.name for part in kind.expressions] or ["10"]
    numbers = [int(text) if text.isdecimal() else -1 for text in texts]
    digits, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    if len(numbers) > 2 or not 1 <= digits <= MOST_DIGITS or not 0 <= scale <= digits:
        msg = f"the type {kind.sql('spark')!r}"
        raise ConfigError(f"{msg}; a decimal has at most {MOST_DIGITS} digits, such as (10,2)")
    return pa.decimal128(digits, scale)
