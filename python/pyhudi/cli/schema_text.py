"""A table's columns as text, `id string, n long not null`, in the types of Spark SQL."""

from __future__ import annotations

import pyarrow as pa
import typer
from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from pyhudi.errors import ConfigError, without_hint
from pyhudi.schema.sql_types import field_of


def schema_of(text: str) -> pa.Schema:
    """Return the columns that the text names. Raises `BadParameter` if it is not a column list."""
    try:
        # The line end also ends a comment.
        parsed = parse_one(f"CREATE TABLE t ({text}\n)", dialect="spark")
    except SqlglotError:
        raise typer.BadParameter(f"--schema is {text!r}; give 'id string, n long'") from None
    columns = parsed.this.expressions if isinstance(parsed.this, exp.Schema) else []
    if not columns:
        raise typer.BadParameter(f"--schema is {text!r}, which has no columns")
    try:
        return pa.schema([field_of(column) for column in columns])
    except ConfigError as error:
        raise typer.BadParameter(f"--schema has {without_hint(error)}") from error
