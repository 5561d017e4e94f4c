"""Arguments that several commands share, and the parsing of their text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from pyhudi.errors import ConfigError

Location = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="The table's location: a path, or a URI such as s3://bucket/prefix.",
    ),
]
DataFile = Annotated[
    Path,
    typer.Argument(
        exists=True,
        dir_okay=False,
        help="Parquet, CSV, JSON lines or Arrow; the file extension decides.",
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
    typer.Option("--as-of", metavar="TIME", help="Time travel: an instant or a time."),
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=0, help="At most this many.")]
Start = Annotated[
    str | None,
    typer.Option("--start", metavar="TIME", help="After it; from the beginning by default."),
]
End = Annotated[
    str | None, typer.Option("--end", metavar="TIME", help="Up to it; the last commit by default.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be done; change nothing.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Memory = Annotated[
    int | None, typer.Option("--memory-limit", metavar="BYTES", help="Memory limit of the command.")
]
Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="PATH", help="Only this partition path; can be repeated."),
]
Schedule = Annotated[bool, typer.Option(help="Plan what is due.")]
Execute = Annotated[bool, typer.Option(help="Execute plans.")]
CommitId = Annotated[
    str | None,
    typer.Option("--commit-id", help="Write only once per id, however often the command runs."),
]
CommitMetadata = Annotated[
    list[str] | None,
    typer.Option("--commit-metadata", metavar="NAME=TEXT", help="Metadata for the commit."),
]


class UnreadableFile(ConfigError):
    """A file of rows that no table could hold: wrong use, like a damaged file."""


class Format(str, Enum):
    """Formats of files that are read and written."""

    parquet = "parquet"
    csv = "csv"
    json = "json"
    arrow = "arrow"


FileFormat = Annotated[
    Format | None,
    typer.Option("--format", help="The file's format, if its extension does not show it."),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHARACTER",
        help="The delimiter of a CSV file; default: a comma, in .tsv files a tab.",
    ),
]

_ENDS = {
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
    result = requested or _ENDS.get(path.suffix.lower())
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


def names(text: str | None) -> list[str] | None:
    """Return `a,b` as a list; None if there is no text."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Return `name=value` texts by name.

    Raises `BadParameter` for a text without `=` and for a name that is used twice.
    """
    values: dict[str, str] = {}
    for text in texts or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise typer.BadParameter(f"{option} is {text!r}; give name=value")
        if name.strip() in values:
            raise typer.BadParameter(f"{option} names {name.strip()!r} twice")
        values[name.strip()] = value
    return values


def said(texts: Sequence[str] | None) -> Mapping[str, str] | None:
    """Return commit metadata as the methods of a table accept them."""
    return pairs(texts, "--commit-metadata") or None


def number_or_text(text: str | None) -> float | str | None:
    """Return `90` as a number and `10m` unchanged: a budget of `maintain`."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text
