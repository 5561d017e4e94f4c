"""Commands that inspect a table: properties, files, log blocks, metadata table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import AsOf, Location
from pyhudi.cli.command import FINDINGS, Call, CommandFunction

if TYPE_CHECKING:  # Help needs none of it.
    import pyarrow as pa

    from pyhudi.api.table import HudiTable


def show(
    call: Call,
    table: Location,
    as_of: AsOf = None,
    *,
    properties: Annotated[
        bool, typer.Option("--properties", help="Print the content of hoodie.properties instead.")
    ] = False,
) -> None:
    """Describe the table: type, version, keys, indexes, columns, commits, size."""
    opened = call.open(table, as_of)
    config, out = opened.config, call.out
    if properties:
        out.properties(config.properties)
        return
    partitions, commits = opened.inspect.partitions(), opened.inspect.commits()
    last = commits["requested"].to_pylist()[-1:]
    rules = [f"{column}={rule}" for column, rule in config.merge.column_rules]
    description = {
        "name": opened.name,
        "location": opened.uri,
        "type": opened.type,
        "version": opened.version,
        "key": config.record_key_fields,
        "partitioned_by": config.partition_fields,
        "ordered_by": config.ordering_fields,
        "merge_mode": config.merge.mode,
        **({"merge_rules": rules} if rules else {}),
        "change_data_capture": config.cdc_enabled,
        **({"constraints": opened.constraints} if opened.constraints else {}),
        **({"generated": opened.generated_columns} if opened.generated_columns else {}),
        "metadata_partitions": config.metadata_partitions,
        "commits": commits.num_rows,
        "last_commit": last[0] if last else None,
        "partitions": partitions.num_rows,
        "file_groups": sum(partitions["file_groups"].to_pylist()),
        "log_files": sum(partitions["log_files"].to_pylist()),
        "size": sum(partitions["size"].to_pylist()),
    }
    columns = {column.name: str(column.type) for column in opened.schema}
    if out.json:
        out.print_properties({**description, "columns": columns})
        return
    out.print_properties(description)
    out.rows(_columns(opened))


def schema(call: Call, table: Location, as_of: AsOf = None) -> None:
    """List the columns with their types and roles."""
    call.out.rows(_columns(call.open(table, as_of)))


def metadata(
    call: Call,
    table: Location,
    partition: Annotated[
        str, typer.Argument(help="Its partition: files, record_index, column_stats, …")
    ] = "files",
    *,
    column: Annotated[
        str | None, typer.Option("--column", help="Show the statistics of this column.")
    ] = None,
) -> None:
    """Show the content of a partition of the metadata table."""
    call.out.listing(call.open(table).inspect.metadata(partition, column))


def health(call: Call, table: Location) -> int:
    """Show statistics and due services; exit code 1 if any is due. `maintain` runs them."""
    result = call.open(table).inspect.health()
    call.out.text(str(result), result)
    return FINDINGS if result.advice else 0


def readers(call: Call, table: Location) -> None:
    """Show which engines can read the table, with what limits, and what to change."""
    result = call.open(table).inspect.readers()
    call.out.text(str(result), result)


def report(
    call: Call,
    table: Location,
    file: Annotated[
        Path, typer.Argument(help="The HTML file to write; replaces an existing file.")
    ],
    as_of: AsOf = None,
) -> None:
    """Write an HTML report about the table."""
    path = call.open(table, as_of).report(file)
    call.out.print_done(f"wrote {path}", file=path)


def _inspection(name: str, description: str) -> CommandFunction:
    def inspection(call: Call, table: Location, as_of: AsOf = None) -> None:
        call.out.listing(getattr(call.open(table, as_of).inspect, name)())

    inspection.__doc__ = description
    return inspection


files = _inspection(
    "files",
    "List all base and log files on storage, including replaced and uncommitted ones.",
)
slices = _inspection("slices", "List all committed file slices, newest first within a file group.")
partitions = _inspection("partitions", "List the partitions with the files that a snapshot reads.")
logs = _inspection("logs", "List the blocks of the log files that a snapshot reads.")


def _columns(table: HudiTable) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415 - help does not need it

    config = table.config
    roles = {
        "key": config.record_key_fields,
        "partition": config.partition_fields,
        "ordering": config.ordering_fields,
        "generated": table.generated_columns,
    }
    rows = [
        {
            "column": column.name,
            "type": str(column.type),
            "nullable": column.nullable,
            "role": [role for role, names in roles.items() if column.name in names],
        }
        for column in table.schema
    ]
    types = [pa.string(), pa.string(), pa.bool_(), pa.list_(pa.string())]
    names = ("column", "type", "nullable", "role")
    return pa.Table.from_pylist(rows, pa.schema(list(zip(names, types, strict=True))))
