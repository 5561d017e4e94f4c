"""Commands that change rows, from files or by a condition."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import (
    CommitArguments,
    DataFile,
    Delimiter,
    FileFormat,
    Location,
    NoKey,
    Rename,
    TableArguments,
    Where,
    Yes,
    check_key,
    new_table,
    pair_option,
    parse_names,
    parse_pairs,
)
from pyhudi.cli.command import Call
from pyhudi.cli.files import ColumnChanges, rows_of
from pyhudi.errors import TableNotFound

if TYPE_CHECKING:  # Help needs none of it.
    from pyhudi.api.table import HudiTable


class SchemaMode(str, Enum):
    """How a write may change the table's columns."""

    strict = "strict"
    merge = "merge"


class Sort(str, Enum):
    """How a bulk insert sorts."""

    none = "none"
    by_partition = "partition"
    global_ = "global"


SchemaModeOption = Annotated[
    SchemaMode,
    typer.Option("--schema-mode", help="merge adds missing columns to the table and widens types."),
]
Sorted = Annotated[Sort, typer.Option("--sort", help="How to sort the rows.")]
SortBy = Annotated[
    str | None,
    typer.Option("--sort-by", metavar="A,B", help="Columns to sort by; default: the record key."),
]


def upsert(
    call: Call,
    table: Location,
    file: DataFile,
    requested_format: FileFormat = None,
    delimiter: Delimiter = None,
    schema_mode: SchemaModeOption = SchemaMode.strict,
    *,
    commit: CommitArguments,
    partial: Annotated[
        bool,
        typer.Option(
            "--partial", help="Partial update: columns missing in the file keep their values."
        ),
    ] = False,
) -> None:
    """Update rows with existing keys, and insert the others."""
    opened = call.open(table)
    result = opened.upsert(
        rows_of(file, requested_format, delimiter, opened.schema),
        schema_mode=schema_mode.value,
        partial=partial,
        **commit.keywords(call),
    )
    call.out.result(result)


def insert(
    call: Call,
    table: Location,
    file: DataFile,
    requested_format: FileFormat = None,
    delimiter: Delimiter = None,
    schema_mode: SchemaModeOption = SchemaMode.strict,
    *,
    commit: CommitArguments,
) -> None:
    """Insert rows without looking up their keys."""
    opened = call.open(table)
    result = opened.insert(
        rows_of(file, requested_format, delimiter, opened.schema),
        schema_mode=schema_mode.value,
        **commit.keywords(call),
    )
    call.out.result(result)


def bulk_insert(
    call: Call,
    table: Location,
    file: DataFile,
    requested_format: FileFormat = None,
    delimiter: Delimiter = None,
    sort: Sorted = Sort.none,
    sort_by: SortBy = None,
    schema_mode: SchemaModeOption = SchemaMode.strict,
    *,
    commit: CommitArguments,
) -> None:
    """Insert rows into new files, without looking up their keys."""
    opened = call.open(table)
    result = opened.bulk_insert(
        rows_of(file, requested_format, delimiter, opened.schema),
        sort=sort.value,
        sort_columns=parse_names(sort_by) or (),
        schema_mode=schema_mode.value,
        **commit.keywords(call),
    )
    call.out.result(result)


def import_(
    call: Call,
    table: Location,
    file: DataFile,
    *,
    new: TableArguments,
    requested_format: FileFormat = None,
    delimiter: Delimiter = None,
    sort: Sorted = Sort.none,
    sort_by: SortBy = None,
    commit: CommitArguments,
    no_key: NoKey = False,
    rename: Rename = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(
            "--drop", metavar="COLUMN", help="Leave out a column of the file. Repeatable."
        ),
    ] = None,
) -> None:
    """Bulk insert a file; create the table if it does not exist."""
    changes = ColumnChanges(parse_pairs(rename, "--rename"), frozenset(drop or ()))

    def fill(opened: HudiTable) -> None:
        result = opened.bulk_insert(
            changes.rows_of(file, requested_format, delimiter, opened.schema),
            sort=sort.value,
            sort_columns=parse_names(sort_by) or (),
            **commit.keywords(call),
        )
        call.out.result(result)

    try:
        opened = call.open(table)
    except TableNotFound:
        check_key(new.key, no_key=no_key)
        columns = changes.rows_of(file, requested_format, delimiter).schema
        new_table(
            call,
            table,
            columns,
            new,
            no_key=no_key,
            fill=fill,
        )
        return
    _check_matches(opened, new)
    fill(opened)


def _check_matches(table: HudiTable, new: TableArguments) -> None:
    """Raise `BadParameter` for options that differ from the existing table."""
    config = table.state.config
    actual = {
        "key": config.record_key_fields,
        "partition_by": config.partition_fields,
        "order_by": config.ordering_fields,
    }
    for name, columns in actual.items():
        requested = parse_names(getattr(new, name))
        if requested is not None and tuple(requested) != tuple(columns):
            has = ", ".join(columns) or "none"
            msg = f"the table exists, and has {has}; leave the option out"
            raise typer.BadParameter(msg, param_hint=f"--{name.replace('_', '-')}")


def update(
    call: Call,
    table: Location,
    where: Annotated[
        str,
        typer.Option("--where", "-w", metavar="SQL", help="Update rows that match this condition."),
    ],
    values: Annotated[
        list[str],
        pair_option("--set", metavar="COLUMN=SQL", help="Set a column, such as fare=fare*2."),
    ],
    *,
    commit: CommitArguments,
) -> None:
    """Update the rows that match a condition."""
    result = call.open(table).update(
        where,
        parse_pairs(values, "--set"),
        **commit.keywords(call),
    )
    call.out.result(result)


def delete(
    call: Call,
    table: Location,
    keys: Annotated[
        Path | None,
        typer.Argument(
            exists=True, dir_okay=False, help="A file with the keys of the rows to delete."
        ),
    ] = None,
    where: Where = None,
    requested_format: FileFormat = None,
    delimiter: Delimiter = None,
    *,
    commit: CommitArguments,
    yes: Yes = False,
) -> None:
    """Delete the rows whose keys are in a file, or that match --where."""
    if (keys is None) is (where is None):
        raise typer.BadParameter("give a file of keys, or --where")
    opened = call.open(table)
    arguments = commit.keywords(call)
    if keys is not None:
        rows = rows_of(keys, requested_format, delimiter, opened.schema)
        result = opened.delete_keys(rows, **arguments)
    else:
        call.confirm(lambda: f"Delete the rows where {where}?", yes=yes)
        result = opened.delete(where, **arguments)
    call.out.result(result)
