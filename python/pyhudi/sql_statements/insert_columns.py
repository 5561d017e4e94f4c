"""The columns that an INSERT fills, for any engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.sql_statements.statements import Insert


def columns_to_fill(
    statement: Insert,
    query_columns: Sequence[str],
    table_columns: Sequence[str],
    partition_fields: Sequence[str],
    own_name: Callable[[str], str],
) -> tuple[list[str], dict[str, str]]:
    """Return the table's column for each column of the query, and the PARTITION clause's values.

    Raises `ConfigError` for a PARTITION clause that does not name the partition columns,
    `SchemaMismatch` if the query has more or fewer columns than it fills.

    own_name: returns the table's column that a name of the statement means.
    """
    spec = {own_name(name): value for name, value in statement.partition.items()}
    if spec and set(spec) != set(partition_fields):
        raise ConfigError(
            f"PARTITION names {', '.join(spec)}",
            hint=f"The partition columns are {', '.join(partition_fields) or 'none'}.",
        )
    static = {name: value for name, value in spec.items() if value is not None}
    if statement.by_name:
        columns = [own_name(name) for name in query_columns]
    elif statement.columns is not None:
        columns = [own_name(name) for name in statement.columns]
    else:
        columns = [name for name in table_columns if name not in spec]
        columns += [name for name in spec if name not in static]
    if len(columns) != len(query_columns) or len({*columns, *static}) < len(columns) + len(static):
        raise SchemaMismatch(
            f"the query has {count_text(len(query_columns), 'column')} for {', '.join(columns)}",
            hint="Name each column once, and give each one value.",
        )
    return columns, static
