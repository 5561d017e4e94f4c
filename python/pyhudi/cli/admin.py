"""Commands that administer a table: create, check, version, metadata, catalogs, indexes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pyhudi.cli.arguments import (
    Constraints,
    CreateMode,
    Delimiter,
    DryRun,
    FileFormat,
    Generated,
    Location,
    Memory,
    MergeRules,
    Mode,
    NoKey,
    TableArguments,
    Yes,
    check_key,
    new_table,
    pair_option,
    parse_names,
    parse_pairs,
    parse_schema,
)
from pyhudi.cli.command import FINDINGS, Call, Group
from pyhudi.cli.files import rows_of


def create(
    call: Call,
    table: Location,
    file: Annotated[
        Path | None,
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="A file with the columns of the table; its rows are not read.",
        ),
    ] = None,
    schema: Annotated[
        str | None,
        typer.Option("--schema", help="Columns of the table, such as 'id string, n long'."),
    ] = None,
    *,
    new: TableArguments,
    merge_rules: MergeRules = None,
    constraints: Constraints = None,
    generated: Generated = None,
    mode: Mode = CreateMode.error,
    file_format: FileFormat = None,
    delimiter: Delimiter = None,
    no_key: NoKey = False,
    yes: Yes = False,
) -> None:
    """Create an empty table with the columns of a file or of --schema."""
    if (file is None) is (schema is None):
        raise typer.BadParameter("give a file, or --schema")
    check_key(new.key, no_key=no_key)
    if mode is CreateMode.overwrite:
        call.confirm(lambda: f"Remove the table at {table} with all its rows?", yes=yes)
    if file is not None:
        columns = rows_of(file, file_format, delimiter).schema
    else:
        columns = parse_schema(schema or "")
    created = new_table(
        call,
        table,
        columns,
        new,
        no_key=no_key,
        mode=mode,
        merge_rules=merge_rules or (),
        constraints=constraints or (),
        generated=generated or (),
    )
    outcome = "found" if mode is CreateMode.ignore else "created"
    message = f"{outcome} table {created.name} at {created.uri}"
    call.out.print_done(
        message, name=created.name, location=created.uri, type=created.type, version=created.version
    )


def check(
    call: Call,
    table: Location,
    memory_limit: Memory = None,
    *,
    deep: Annotated[bool, typer.Option("--deep", help="Also check the contents of files.")] = False,
    repair: Annotated[
        bool, typer.Option("--repair", help="First remove files that belong to no commit.")
    ] = False,
) -> int:
    """Compare the timeline, files and metadata table; exit code 1 if there are findings."""
    result = call.open(table).check(deep=deep, repair=repair, memory_limit=memory_limit)
    if call.out.json or not call.out.quiet:
        call.out.text(str(result), result)
    return FINDINGS if result else 0


def sync(
    call: Call,
    table: Location,
    hive: Annotated[
        str | None,
        typer.Option("--hive", metavar="URI", help="Hive metastore, such as thrift://host:9083."),
    ] = None,
    glue: Annotated[
        str | None, typer.Option("--glue", metavar="REGION", help="AWS Glue in this region.")
    ] = None,
    database: Annotated[
        str | None, typer.Option("--database", help="Database in the catalog.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the table in the catalog.")
    ] = None,
) -> None:
    """Register the table in a catalog, or update it there."""
    if hive and glue:
        raise typer.BadParameter("--hive and --glue are two catalogs; give one")
    from pyhudi.catalog import Catalog, GlueCatalog  # noqa: PLC0415 - extras
    from pyhudi.catalog.configured import hive_catalog  # noqa: PLC0415 - as above

    opened = call.open(table)
    catalog: Catalog | None = None
    if hive:
        catalog = hive_catalog(hive, opened.options)
    if glue:
        catalog = GlueCatalog(glue)
    call.out.result(opened.sync(catalog, database=database, name=name))


def upgrade(
    call: Call,
    table: Location,
    to: Annotated[int, typer.Option("--to", help="Table version.")] = 9,
    *,
    dry_run: DryRun = False,
) -> None:
    """Upgrade the table to a later version."""
    call.out.result(call.open(table).upgrade(to, dry_run=dry_run))


def downgrade(
    call: Call,
    table: Location,
    to: Annotated[int, typer.Option("--to", help="Table version.")],
    *,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Downgrade the table to an earlier version."""
    opened = call.open(table)
    if not dry_run:
        call.confirm(lambda: f"Downgrade from version {opened.version} to {to}?", yes=yes)
    call.out.result(opened.downgrade(to, dry_run=dry_run))


def rebuild_metadata(call: Call, table: Location, memory_limit: Memory = None) -> None:
    """Rebuild the metadata table from the files on storage."""
    created = call.open(table).rebuild_metadata(memory_limit=memory_limit)
    call.out.print_done(f"created {', '.join(created) or 'nothing'}", created=created)


def index_list(call: Call, table: Location) -> int:
    """List the partitions of the metadata table; exit code 1 if it has none."""
    import pyarrow as pa  # noqa: PLC0415 - help does not need it

    partitions = call.open(table).config.metadata_partitions
    call.out.rows(pa.table({"index": pa.array(partitions, pa.string())}))
    return 0 if partitions else FINDINGS


def index_create(
    call: Call,
    table: Location,
    kind: Annotated[
        str, typer.Argument(help="column_stats, bloom_filters, record_index or secondary_index.")
    ],
    columns: Annotated[
        str | None, typer.Option("--columns", "-c", metavar="A,B", help="Columns of the index.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of a secondary or expression index.")
    ] = None,
    function: Annotated[
        str | None,
        typer.Option("--function", help="Function of an expression index, such as lower."),
    ] = None,
    index_option: Annotated[
        list[str] | None,
        pair_option("--index-option", help="Option of the expression."),
    ] = None,
    *,
    partitioned: Annotated[
        bool,
        typer.Option("--partitioned", help="Record index whose keys are unique per partition."),
    ] = False,
    concurrently: Annotated[
        bool, typer.Option("--concurrently", help="Build the index while other writers continue.")
    ] = False,
) -> None:
    """Create an index, which every later write keeps up to date."""
    created = call.open(table).create_index(
        kind,
        parse_names(columns) or (),
        name=name,
        function=function,
        options=parse_pairs(index_option, "--index-option") or None,
        partitioned=partitioned,
        concurrently=concurrently,
    )
    call.out.print_done(f"created {', '.join(created)}", created=created)


def index_drop(
    call: Call,
    table: Location,
    name: Annotated[
        str, typer.Argument(help="Name of the index; `files` drops the whole metadata table.")
    ],
    *,
    yes: Yes = False,
) -> None:
    """Drop an index."""
    opened = call.open(table)
    call.confirm(lambda: f"Drop the index {name}?", yes=yes)
    dropped = opened.drop_index(name)
    call.out.print_done(f"dropped {', '.join(dropped)}", dropped=dropped)


index = Group(
    "List, create and drop indexes of the metadata table.",
    {"list": index_list, "create": index_create, "drop": index_drop},
)
