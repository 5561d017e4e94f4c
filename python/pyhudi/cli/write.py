"""Commands that change rows. Data come from files, deletes and updates also from filters."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from pyhudi.api.table import HudiTable
from pyhudi.cli.arguments import (
    CommitId,
    CommitMetadata,
    DataFile,
    Delimiter,
    FileFormat,
    Location,
    Memory,
    Where,
    Yes,
    names,
    pairs,
    said,
)
from pyhudi.cli.command import Call, Work, commands
from pyhudi.cli.files import rows_of
from pyhudi.cli.table_arguments import (
    Index,
    Key,
    Kind,
    OrderBy,
    PartitionBy,
    Type,
    Version,
    new_table,
)
from pyhudi.errors import TableNotFound


class SchemaMode(str, Enum):
    """How a write may change the table's columns."""

    strict = "strict"
    merge = "merge"


class Sort(str, Enum):
    """How a bulk insert sorts."""

    none = "none"
    within = "partition"
    whole = "global"


Mode = Annotated[
    SchemaMode, typer.Option("--schema-mode", help="merge adds and widens columns of the table.")
]
Sorted = Annotated[Sort, typer.Option("--sort", help="How to sort rows.")]
SortBy = Annotated[
    str | None,
    typer.Option("--sort-by", metavar="A,B", help="Columns to sort by; default: the key."),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the application."""
    works: dict[str, Work] = {
        "upsert": upsert,
        "insert": insert,
        "bulk-insert": bulk_insert,
        "import": import_,
        "update": update,
        "delete": delete,
    }
    commands(app, works)


def upsert(
    call: Call,
    table: Location,
    file: DataFile,
    form: FileFormat = None,
    delimiter: Delimiter = None,
    schema_mode: Mode = SchemaMode.strict,
    commit_id: CommitId = None,
    commit_metadata: CommitMetadata = None,
    memory_limit: Memory = None,
    *,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="Partial update: columns missing in the file keep their values."
        ),
    ] = False,
) -> None:
    """Update rows whose keys exist, insert the others."""
    opened = call.open(table)
    result = opened.upsert(
        rows_of(file, form, delimiter, opened.schema),
        schema_mode=schema_mode.value,
        partial=partial,
        memory_limit=memory_limit,
        commit_metadata=said(commit_metadata),
        commit_id=commit_id,
        progress=call.progress,
    )
    call.out.result(result)


def insert(
    call: Call,
    table: Location,
    file: DataFile,
    form: FileFormat = None,
    delimiter: Delimiter = None,
    schema_mode: Mode = SchemaMode.strict,
    commit_id: CommitId = None,
    commit_metadata: CommitMetadata = None,
    memory_limit: Memory = None,
) -> None:
    """Insert rows without looking up their keys."""
    opened = call.open(table)
    result = opened.insert(
        rows_of(file, form, delimiter, opened.schema),
        schema_mode=schema_mode.value,
        memory_limit=memory_limit,
        commit_metadata=said(commit_metadata),
        commit_id=commit_id,
        progress=call.progress,
    )
    call.out.result(result)


def bulk_insert(
    call: Call,
    table: Location,
    file: DataFile,
    form: FileFormat = None,
    delimiter: Delimiter = None,
    sort: Sorted = Sort.none,
    sort_by: SortBy = None,
    schema_mode: Mode = SchemaMode.strict,
    commit_id: CommitId = None,
    commit_metadata: CommitMetadata = None,
    memory_limit: Memory = None,
) -> None:
    """Insert rows into new files, without looking up their keys."""
    opened = call.open(table)
    result = opened.bulk_insert(
        rows_of(file, form, delimiter, opened.schema),
        sort=sort.value,
        sort_columns=names(sort_by) or (),
        schema_mode=schema_mode.value,
        memory_limit=memory_limit,
        commit_metadata=said(commit_metadata),
        commit_id=commit_id,
        progress=call.progress,
    )
    call.out.result(result)


def import_(
    call: Call,
    table: Location,
    file: DataFile,
    key: Key = None,
    partition_by: PartitionBy = None,
    order_by: OrderBy = None,
    table_type: Type = Kind.cow,
    version: Version = 9,
    index: Index = None,
    form: FileFormat = None,
    delimiter: Delimiter = None,
    sort: Sorted = Sort.none,
    sort_by: SortBy = None,
    commit_id: CommitId = None,
    commit_metadata: CommitMetadata = None,
    memory_limit: Memory = None,
) -> None:
    """Bulk insert a file; create the table if it does not exist."""

    def fill(opened: HudiTable) -> None:
        result = opened.bulk_insert(
            rows_of(file, form, delimiter, opened.schema),
            sort=sort.value,
            sort_columns=names(sort_by) or (),
            memory_limit=memory_limit,
            commit_metadata=said(commit_metadata),
            commit_id=commit_id,
            progress=call.progress,
        )
        call.out.result(result)

    try:
        opened = call.open(table)
    except TableNotFound:
        columns = rows_of(file, form, delimiter).schema
        new_table(
            call,
            table,
            columns,
            key=key,
            partition_by=partition_by,
            order_by=order_by,
            table_type=table_type,
            version=version,
            index=index,
            fill=fill,
        )
        return
    _check_alike(opened, key=key, partition_by=partition_by, order_by=order_by)
    fill(opened)


def _check_alike(table: HudiTable, **options: str | None) -> None:
    """Raise `BadParameter` for options that differ from the existing table."""
    config = table.state.config
    actual = {
        "key": config.record_key_fields,
        "partition_by": config.partition_fields,
        "order_by": config.ordering_fields,
    }
    for name, columns in actual.items():
        requested = names(options[name])
        if requested is not None and tuple(requested) != tuple(columns):
            has = ", ".join(columns) or "none"
            msg = f"the table exists, and has {has}; leave the option out"
            raise typer.BadParameter(msg, param_hint=f"--{name.replace('_', '-')}")


def update(
    call: Call,
    table: Location,
    where: Annotated[str, typer.Option("--where", "-w", metavar="SQL", help="The rows to update.")],
    values: Annotated[
        list[str],
        typer.Option("--set", metavar="COLUMN=SQL", help="A new value, such as fare=fare*2."),
    ],
    commit_id: CommitId = None,
    commit_metadata: CommitMetadata = None,
    memory_limit: Memory = None,
) -> None:
    """Update the rows that match a filter."""
    result = call.open(table).update(
        where,
        pairs(values, "--set"),
        memory_limit=memory_limit,
        commit_metadata=said(commit_metadata),
        commit_id=commit_id,
        progress=call.progress,
    )
    call.out.result(result)


def delete(
    call: Call,
    table: Location,
    keys: Annotated[
        Path | None,
        typer.Argument(exists=True, dir_okay=False, help="A file of key columns."),
    ] = None,
    where: Where = None,
    form: FileFormat = None,
    delimiter: Delimiter = None,
    commit_id: CommitId = None,
    commit_metadata: CommitMetadata = None,
    memory_limit: Memory = None,
    *,
    yes: Yes = False,
) -> None:
    """Delete the rows with the keys in a file, or those that match --where."""
    if (keys is None) is (where is None):
        raise typer.BadParameter("give a file of keys, or --where")
    opened = call.open(table)
    metadata = said(commit_metadata)
    if keys is not None:
        result = opened.delete_keys(
            rows_of(keys, form, delimiter, opened.schema),
            memory_limit=memory_limit,
            commit_metadata=metadata,
            commit_id=commit_id,
            progress=call.progress,
        )
    else:
        call.confirm(lambda: f"Delete the rows where {where}?", yes=yes)
        result = opened.delete(
            where,
            memory_limit=memory_limit,
            commit_metadata=metadata,
            commit_id=commit_id,
            progress=call.progress,
        )
    call.out.result(result)
