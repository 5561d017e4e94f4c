"""Arguments of `create` and `import`, and the creation of a table from them."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated

import pyarrow as pa
import typer

from pyhudi.api.table import HudiTable
from pyhudi.cli.arguments import parse_names
from pyhudi.cli.command import Call
from pyhudi.errors import ConfigError, without_hint


class TableType(str, Enum):
    """Table types."""

    cow = "cow"
    mor = "mor"


class CreateMode(str, Enum):
    """What to do if a table exists."""

    error = "error"
    ignore = "ignore"
    overwrite = "overwrite"


Key = Annotated[
    str | None,
    typer.Option("--key", "-k", metavar="A,B", help="Record key columns; default: generated keys."),
]
PartitionBy = Annotated[
    str | None,
    typer.Option("--partition-by", "-p", metavar="A,B", help="Partition columns."),
]
OrderBy = Annotated[
    str | None,
    typer.Option(
        "--order-by",
        metavar="A,B",
        help="Ordering columns: of rows with the same key, the largest wins.",
    ),
]
Type = Annotated[
    TableType, typer.Option("--type", help="Table type: copy-on-write or merge-on-read.")
]
Version = Annotated[int, typer.Option("--table-version", help="Table version: 6, 8 or 9.")]
Index = Annotated[
    str | None,
    typer.Option("--index", help="Index of writes, such as record_index or bucket."),
]

Mode = Annotated[
    CreateMode,
    typer.Option("--mode", help="If the table exists: fail, keep it if it matches, or replace it."),
]


def new_table(
    call: Call,
    location: str,
    columns: pa.Schema,
    *,
    key: str | None,
    partition_by: str | None,
    order_by: str | None,
    table_type: TableType,
    version: int,
    index: str | None,
    mode: CreateMode = CreateMode.error,
    fill: Callable[[HudiTable], object] | None = None,
) -> HudiTable:
    """Create a table without rows, or with those that `fill` writes into it.

    It warns if the table has no key, because a key cannot be added later.
    """
    from pyhudi.api.create import create_and_fill  # noqa: PLC0415 - other commands start sooner

    created = create_and_fill(
        location,
        columns,
        None if fill is None else lambda table, _: fill(table),
        key=parse_names(key),
        partition_by=parse_names(partition_by),
        order_by=parse_names(order_by),
        type=table_type.value,
        version=version,
        index=index,
        mode=mode.value,
        options=call.options,
        storage_options=call.storage_options,
    )
    if not created.config.record_key_fields:
        call.out.warning(
            f"{location} has no key: rows cannot be upserted or deleted by key, and a key "
            "cannot be added later; create the table with --key"
        )
    return created


def parse_schema(columns: str) -> pa.Schema:
    """Return the columns of a list in Spark SQL, such as `id string, n long not null`.

    Raises `BadParameter` if the text is no such list.
    """
    # sqlglot is slow to import, and other commands do not need it.
    from sqlglot import exp, parse_one  # noqa: PLC0415
    from sqlglot.errors import SqlglotError  # noqa: PLC0415

    from pyhudi.schema.sql_types import field_of  # noqa: PLC0415

    try:
        # The line end also ends a comment.
        parsed = parse_one(f"CREATE TABLE t ({columns}\n)", dialect="spark")
    except SqlglotError:
        raise typer.BadParameter(f"--schema is {columns!r}; give 'id string, n long'") from None
    definitions = parsed.this.expressions if isinstance(parsed.this, exp.Schema) else []
    if not definitions:
        raise typer.BadParameter(f"--schema is {columns!r}, which has no columns")
    try:
        return pa.schema([field_of(column) for column in definitions])
    except ConfigError as error:
        raise typer.BadParameter(f"--schema has {without_hint(error)}") from error
