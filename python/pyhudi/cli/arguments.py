"""Arguments that several commands share, their parsing, and the creation of a table from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pyhudi.errors import ConfigError, without_hint

if TYPE_CHECKING:  # Most commands need none of it.
    import pyarrow as pa

    from pyhudi.api.table import HudiTable
    from pyhudi.cli.command import Call


def pair_option(
    *names: str,
    help: str,  # noqa: A002 - typer's name for it
    metavar: str = "NAME=VALUE",
    panel: str | None = None,
) -> Any:
    """Declare an option of pairs, for `parse_pairs`."""
    text = f"{help} Repeatable."
    return typer.Option(*names, metavar=metavar, help=text, rich_help_panel=panel)


Location = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="A path, a URI such as s3://bucket/prefix, or a name such as prod.sales.trips.",
    ),
]
DataFile = Annotated[
    Path,
    typer.Argument(
        exists=True,
        dir_okay=False,
        help="A Parquet, CSV, JSON lines or Arrow file.",
    ),
]
Where = Annotated[
    str | None,
    typer.Option("--where", "-w", metavar="SQL", help="Only rows that match this condition."),
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", "-c", metavar="A,B", help="Only these columns, in this order."),
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="Read the table as of this instant or time."),
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=0, help="Maximum number of rows.")]
Start = Annotated[
    str | None,
    typer.Option(
        "--start", metavar="TIME", help="Read commits after this time; default: from the first."
    ),
]
End = Annotated[
    str | None,
    typer.Option(
        "--end", metavar="TIME", help="Read commits up to this time; default: to the last."
    ),
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be done without doing it.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Memory = Annotated[
    str | None,
    typer.Option(
        "--memory-limit", metavar="SIZE", help="Maximum memory for rows: bytes, or such as 512MiB."
    ),
]
Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="PATH", help="Only this partition path. Repeatable."),
]
Schedule = Annotated[bool, typer.Option(help="Plan the work that is due.")]
Execute = Annotated[bool, typer.Option(help="Execute pending plans.")]


@dataclass(frozen=True)
class CommitArguments:
    """The arguments of all commands that write rows."""

    commit_id: Annotated[
        str | None,
        typer.Option("--commit-id", help="Id of the commit: a second run with it writes nothing."),
    ] = None
    commit_metadata: Annotated[
        list[str] | None,
        pair_option("--commit-metadata", help="Extra metadata of the commit."),
    ] = None
    memory_limit: Memory = None

    def keywords(self, call: Call) -> dict[str, Any]:
        """Return the arguments that all methods for writing have."""
        return {
            "memory_limit": self.memory_limit,
            "commit_metadata": parse_pairs(self.commit_metadata, "--commit-metadata") or None,
            "commit_id": self.commit_id,
            "progress": call.progress,
        }


class Format(str, Enum):
    """Formats of files that are read and written."""

    parquet = "parquet"
    csv = "csv"
    json = "json"
    arrow = "arrow"


FileFormat = Annotated[
    Format | None,
    typer.Option("--format", help="Format of the file; default: by its extension."),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHARACTER",
        help="Delimiter of a CSV file; default: comma, or tab for .tsv files.",
    ),
]

_EXTENSIONS = {
    ".parquet": Format.parquet,
    ".csv": Format.csv,
    ".tsv": Format.csv,
    ".json": Format.json,
    ".jsonl": Format.json,
    ".ndjson": Format.json,
    ".arrow": Format.arrow,
    ".ipc": Format.arrow,
    ".feather": Format.arrow,
}


def format_of(path: Path, requested: Format | None) -> Format:
    """Return the format of a file: the requested one, else by its extension.

    Raises `BadParameter` if neither determines it.
    """
    result = requested or _EXTENSIONS.get(path.suffix.lower())
    if result is None:
        raise typer.BadParameter(f"{path}: the file extension shows no format; give --format")
    return result


def delimiter_of(path: Path, file_format: Format, requested: str | None) -> str:
    r"""Return the delimiter of a CSV file: the requested one, else by its extension; `\t` is a tab.

    Raises `BadParameter` for an invalid delimiter, and for files of other formats.
    """
    if requested is None:
        return "\t" if path.suffix.lower() == ".tsv" else ","
    delimiter = "\t" if requested == "\\t" else requested
    if file_format is not Format.csv:
        raise typer.BadParameter(f"{path} is not a CSV file", param_hint="--delimiter")
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n':
        msg = f"{requested!r} is not a delimiter; give one ASCII character"
        raise typer.BadParameter(msg, param_hint="--delimiter")
    return delimiter


def parse_names(value: str | None) -> list[str] | None:
    """Return the names in `a,b` as a list; None for None."""
    if value is None:
        return None
    return [name.strip() for name in value.split(",") if name.strip()]


def parse_pairs(
    values: Sequence[str] | None, option: str, example: str | None = None, *, is_last: bool = False
) -> dict[str, str]:
    """Return `name=value` arguments by name.

    example: a pair whose value must not be empty. is_last: the name ends at the last equals sign,
    not at the first. Raises `BadParameter` for an argument without `=`, and for a name that is used
    twice.
    """
    pairs: dict[str, str] = {}
    for pair in values or ():
        name, sign, value = pair.rpartition("=") if is_last else pair.partition("=")
        if not sign or not name.strip() or (example and not value.strip()):
            raise typer.BadParameter(f"{option} is {pair!r}; give {example or 'name=value'}")
        if name.strip() in pairs:
            raise typer.BadParameter(f"{option} names {name.strip()!r} twice")
        pairs[name.strip()] = value
    return pairs


def number_or_text(value: str | None) -> float | str | None:
    """Return a budget of `maintain`: `90` as a number, `10m` unchanged."""
    if value is None:
        return None
    try:
        return float(value)
    except ValueError:
        return value


class TableType(str, Enum):
    """Table types."""

    cow = "cow"
    mor = "mor"


class CreateMode(str, Enum):
    """The action if a table exists."""

    error = "error"
    ignore = "ignore"
    overwrite = "overwrite"


@dataclass(frozen=True)
class TableArguments:
    """The arguments of all commands that may create a table."""

    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            "-k",
            metavar="A,B",
            help="Record key columns; a new table needs --key or --no-key.",
        ),
    ] = None
    partition_by: Annotated[
        str | None,
        typer.Option("--partition-by", "-p", metavar="A,B", help="Partition columns."),
    ] = None
    order_by: Annotated[
        str | None,
        typer.Option(
            "--order-by",
            metavar="A,B",
            help="Ordering columns: of rows with the same key, the largest wins.",
        ),
    ] = None
    table_type: Annotated[
        TableType, typer.Option("--type", help="Table type: copy-on-write or merge-on-read.")
    ] = TableType.cow
    version: Annotated[int, typer.Option("--table-version", help="Table version: 6, 8 or 9.")] = 9
    index: Annotated[
        str | None,
        typer.Option("--index", help="Index of writes, such as record_index or bucket."),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """Return the arguments that all functions for new tables have."""
        return {
            "key": parse_names(self.key),
            "partition_by": parse_names(self.partition_by),
            "order_by": parse_names(self.order_by),
            "type": self.table_type.value,
            "version": self.version,
            "index": self.index,
        }


NoKey = Annotated[
    bool, typer.Option("--no-key", help="Create an append-only table with generated keys.")
]
Rename = Annotated[
    list[str] | None,
    pair_option("--rename", metavar="OLD=NEW", help="Rename a column of the input."),
]
MergeRules = Annotated[
    list[str] | None,
    pair_option(
        "--merge-rule",
        metavar="COLUMN=RULE",
        help="Combine a column's values, such as clicks=sum.",
    ),
]
Constraints = Annotated[
    list[str] | None,
    pair_option(
        "--constraint",
        metavar="NAME=CONDITION",
        help="A SQL condition that rows must satisfy.",
    ),
]
Generated = Annotated[
    list[str] | None,
    pair_option(
        "--generated",
        metavar="COLUMN=EXPRESSION",
        help="A column computed from others, such as 'day=CAST(at AS DATE)'.",
    ),
]
Mode = Annotated[
    CreateMode,
    typer.Option("--mode", help="If the table exists: fail, keep it if it matches, or replace it."),
]


def new_table(
    call: Call,
    location: str,
    columns: pa.Schema,
    new: TableArguments,
    *,
    no_key: bool,
    mode: CreateMode = CreateMode.error,
    merge_rules: Sequence[str] = (),
    constraints: Sequence[str] = (),
    generated: Sequence[str] = (),
    fill: Callable[[HudiTable], object] | None = None,
) -> HudiTable:
    """Create a table without rows, or with those that `fill` writes into it.

    Raises `ArgumentError` without a key, unless `no_key` says so: a key cannot be added later.
    """
    check_key(new.key, no_key=no_key)
    from pyhudi.api.create import create_and_fill  # noqa: PLC0415 - other commands start sooner

    return create_and_fill(
        location,
        columns,
        None if fill is None else lambda table, _: fill(table),
        mode=mode.value,
        merge_rules=parse_pairs(merge_rules, "--merge-rule", "n=sum", is_last=True),
        constraints=parse_pairs(constraints, "--constraint", "'positive=fare >= 0'"),
        generated=parse_pairs(generated, "--generated", "'day=CAST(at AS DATE)'"),
        options=call.options,
        storage_options=call.storage_options,
        **new.keywords(),
    )


def check_key(key: str | None, *, no_key: bool) -> None:
    """Raise `ArgumentError` for neither --key nor --no-key, `BadParameter` for both."""
    check_one_key(key, no_key=no_key)
    if not no_key and not parse_names(key):
        from pyhudi.config.argument_checks import missing_key  # noqa: PLC0415 - it needs pyarrow

        raise missing_key()


def check_one_key(key: str | None, *, no_key: bool) -> None:
    """Raise `BadParameter` for both --key and --no-key."""
    if key is not None and no_key:
        raise typer.BadParameter("give --key or --no-key, not both")


def parse_schema(columns: str) -> pa.Schema:
    """Return the columns of a list in Spark SQL, such as `id string, n long not null`.

    Raises `BadParameter` if the text is no such list.
    """
    # These are slow to import, and other commands do not need them.
    import pyarrow as pa  # noqa: PLC0415

    from pyhudi.schema.sql_types import columns_of  # noqa: PLC0415

    try:
        return pa.schema(columns_of(columns))
    except ConfigError as error:
        raise typer.BadParameter(f"--schema: {without_hint(error)}") from error
