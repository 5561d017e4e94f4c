"""The commands `catalog`: configured catalogs, their databases and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from pyhudi.cli.arguments import Location, Yes
from pyhudi.cli.command import Call, Group
from pyhudi.errors import ConfigError

if TYPE_CHECKING:  # Help needs none of it.
    from pyhudi.api.named_catalog import NamedCatalog

Catalog = Annotated[str, typer.Argument(metavar="CATALOG", help="Name of a configured catalog.")]
Database = Annotated[
    str, typer.Argument(metavar="CATALOG.DATABASE", help="A database, such as prod.sales.")
]
Name = Annotated[
    str, typer.Argument(metavar="CATALOG.DATABASE.TABLE", help="A table, such as prod.sales.trips.")
]

_DATABASE, _TABLE = 2, 3
"""Numbers of parts of the names."""


def list_catalogs(call: Call) -> None:
    """List the configured catalogs with their connections."""
    import pyarrow as pa  # noqa: PLC0415 - help does not need it

    from pyhudi.catalog.catalog_settings import settings_of  # noqa: PLC0415 - as above
    from pyhudi.catalog.config_file import read_catalogs  # noqa: PLC0415 - as above

    catalogs = [settings_of(name) for name in sorted(read_catalogs())]
    rows = [
        {
            "catalog": settings.name,
            "type": settings.type,
            "connection": [f"{key}={each}" for key, each in settings.displayed_properties.items()],
        }
        for settings in catalogs
    ]
    types = [pa.string(), pa.string(), pa.list_(pa.string())]
    schema = pa.schema(list(zip(("catalog", "type", "connection"), types, strict=True)))
    call.out.rows(pa.Table.from_pylist(rows, schema))


def list_databases(call: Call, catalog: Catalog) -> None:
    """List the databases of a catalog."""
    _print_names(call, "database", _load(catalog).list_databases())


def list_tables(call: Call, database: Database) -> None:
    """List the Hudi tables of a database, without read-optimized views."""
    catalog, name = _parts(database, _DATABASE)
    _print_names(call, "table", _load(catalog).list_tables(name))


def show(
    call: Call,
    name: Name,
    *,
    properties: Annotated[
        bool, typer.Option("--properties", help="Print the entry's parameters instead.")
    ] = False,
) -> None:
    """Show the entry of a table in its catalog: location, columns, partitions, last sync."""
    import pyarrow as pa  # noqa: PLC0415 - help does not need it

    from pyhudi.catalog.registration import LAST_COMMIT, is_hudi, is_read_optimized  # noqa: PLC0415 - as above
    from pyhudi.errors import TableNotFound  # noqa: PLC0415 - as above
    from pyhudi.storage.options import mask_credentials  # noqa: PLC0415 - as above

    catalog, database, table = _parts(name, _TABLE)
    store = _load(catalog).store
    entry = store.get_table(database, table)
    if entry is None:
        hint = f"pyhudi catalog tables {catalog}.{database} lists the tables."
        raise TableNotFound(f"the catalog {catalog!r} has no table {database}.{table}", hint=hint)
    out = call.out
    if properties:
        out.properties(entry.parameters)
        return
    description = {
        "name": f"{catalog}.{database}.{entry.name}",
        "location": mask_credentials(entry.location),
        "hudi_table": is_hudi(entry),
        "read_optimized_view": is_read_optimized(entry),
        "input_format": entry.input_format,
        "partitions": len(store.get_partitions(database, table)) if entry.partition_keys else None,
        "last_synced_commit": entry.parameters.get(LAST_COMMIT),
    }
    columns = [
        {"column": column.name, "type": column.type, "role": role, "comment": column.comment}
        for role, group in (("", entry.columns), ("partition", entry.partition_keys))
        for column in group
    ]
    if out.json:
        out.print_properties({**description, "columns": columns})
        return
    out.print_properties(description)
    fields = [(field, pa.string()) for field in ("column", "type", "role", "comment")]
    out.rows(pa.Table.from_pylist(columns, pa.schema(fields)))


def create_database(
    call: Call,
    database: Database,
    location: Annotated[
        str | None, typer.Option("--location", help="Where its new tables are created.")
    ] = None,
) -> None:
    """Create a database. `pyhudi create` then creates tables in it by name."""
    catalog, name = _parts(database, _DATABASE)
    _load(catalog).create_database(name, location=location)
    call.out.print_done(f"created the database {database}", database=database, location=location)


def register(call: Call, name: Name, table: Location) -> None:
    """Register an existing table under a name; with a registered name, update the entry."""
    catalog, database, entry = _parts(name, _TABLE)
    registered = _load(catalog).register_table(
        f"{database}.{entry}", table, storage_options=call.storage_options, options=call.options
    )
    message = f"registered {registered.uri} as {name}"
    call.out.print_done(message, name=name, location=registered.uri)


def drop(
    call: Call,
    name: Name,
    *,
    purge: Annotated[
        bool, typer.Option("--purge", help="Also remove the table's files with its history.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Remove a table from its catalog, with its views. Its files stay, unless you pass --purge."""
    catalog, database, entry = _parts(name, _TABLE)
    loaded, table = _load(catalog), f"{database}.{entry}"
    if loaded.store.get_table(database, entry) is None:
        yes = True  # There is nothing to confirm: the error names the missing table.
    if purge:
        call.confirm(lambda: f"Remove the table {name} with all its files?", yes=yes)
    else:
        call.confirm(lambda: f"Remove {name} from the catalog? Its files stay.", yes=yes)
    loaded.drop_table(table, purge=purge)
    message = f"dropped {name}" + (" and its files" if purge else "")
    call.out.print_done(message, name=name, purged=purge)


def rename(
    call: Call,
    name: Name,
    new_name: Annotated[
        str, typer.Argument(metavar="NEW_NAME", help="Its new name in the same database.")
    ],
) -> None:
    """Rename a table in its catalog, with its views. Its files stay where they are."""
    catalog, database, entry = _parts(name, _TABLE)
    if "." in new_name:
        other, new_database, new_entry = _parts(new_name, _TABLE)
        if other != catalog:
            msg = f"{new_name} is in another catalog than {name}"
            raise ConfigError(msg, hint="Register the table there, then drop the old name.")
    else:
        new_database, new_entry = database, new_name
    _load(catalog).rename_table(f"{database}.{entry}", f"{new_database}.{new_entry}")
    renamed = f"{catalog}.{new_database}.{new_entry}"
    call.out.print_done(f"renamed {name} to {renamed}", name=renamed, renamed_from=name)


catalog = Group(
    "List and change the tables of configured catalogs.",
    {
        "list": list_catalogs,
        "databases": list_databases,
        "tables": list_tables,
        "show": show,
        "create-database": create_database,
        "register": register,
        "rename": rename,
        "drop": drop,
    },
)


def _load(name: str) -> NamedCatalog:
    from pyhudi.api.named_catalog import load_catalog  # noqa: PLC0415 - help does not need it

    return load_catalog(name)


def _parts(name: str, count: int) -> list[str]:
    """Return the parts of a name. Raises `ConfigError` for another number of them."""
    parts = name.split(".")
    if len(parts) != count or not all(parts):
        pattern = "CATALOG.DATABASE.TABLE" if count == _TABLE else "CATALOG.DATABASE"
        hint = "`pyhudi catalog list` lists the catalogs."
        raise ConfigError(f"{name!r} is not of the form {pattern}", hint=hint)
    return parts


def _print_names(call: Call, column: str, names: list[str]) -> None:
    import pyarrow as pa  # noqa: PLC0415 - help does not need it

    call.out.rows(pa.table({column: pa.array(names, pa.string())}))
