"""Arguments of `create` and `import` that define a new table."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated

import pyarrow as pa
import typer

from pyhudi.api.table import HudiTable
from pyhudi.cli.arguments import names
from pyhudi.cli.command import Call


class Kind(str, Enum):
    """Types of tables."""

    cow = "cow"
    mor = "mor"


class CreateMode(str, Enum):
    """What to do if a table exists."""

    error = "error"
    ignore = "ignore"
    overwrite = "overwrite"


Key = Annotated[
    str | None,
    typer.Option(
        "--key", "-k", metavar="A,B", help="Columns that identify a row; default: generated keys."
    ),
]
PartitionBy = Annotated[
    str | None,
    typer.Option(
        "--partition-by", "-p", metavar="A,B", help="Columns that name the partition directories."
    ),
]
OrderBy = Annotated[
    str | None,
    typer.Option(
        "--order-by", metavar="A,B", help="The column whose larger value wins among rows of a key."
    ),
]
Type = Annotated[Kind, typer.Option("--type", help="Copy-on-write or merge-on-read.")]
Version = Annotated[int, typer.Option("--table-version", help="6, 8 or 9.")]
Index = Annotated[
    str | None,
    typer.Option("--index", help="The index of writers, such as record_index or bucket."),
]

Making = Annotated[
    CreateMode,
    typer.Option("--mode", help="If a table exists: fail, keep a matching one, or replace it."),
]


def new_table(
    call: Call,
    location: str,
    columns: pa.Schema,
    *,
    key: str | None,
    partition_by: str | None,
    order_by: str | None,
    table_type: Kind,
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
        key=names(key),
        partition_by=names(partition_by),
        order_by=names(order_by),
        type=table_type.value,
        version=version,
        index=index,
        mode=mode.value,
        options=call.options,
        storage_options=call.storage_options,
    )
    if not created.config.record_key_fields:
        call.out.warning(
            f"{location} has no key: rows cannot be upserted or deleted by key, and none can be "
            "added later; create the table with --key to have one"
        )
    return created
