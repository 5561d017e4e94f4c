"""Arguments that several commands share, and texts that become values."""

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
        help="The table's folder: a path, or a bucket's such as s3://bucket/prefix.",
    ),
]
DataFile = Annotated[
    Path,
    typer.Argument(
        exists=True, dir_okay=False, help="Parquet, CSV, JSON lines or Arrow, by its end."
    ),
]
Where = Annotated[
    str | None, typer.Option("--where", "-w", metavar="SQL", help="Only rows for which this holds.")
]
Columns = Annotated[
    str | None, typer.Option("--columns", "-c", metavar="A,B", help="Only these, in this order.")
]
AsOf = Annotated[
    str | None,
    typer.Option("--as-of", metavar="TIME", help="The table as it was: an instant or a time."),
]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=0, help="At most so many.")]
Start = Annotated[
    str | None,
    typer.Option("--start", metavar="TIME", help="After it; from the beginning by default."),
]
End = Annotated[
    str | None, typer.Option("--end", metavar="TIME", help="Up to it; the last commit by default.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done; change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
Memory = Annotated[
    int | None, typer.Option("--memory-limit", metavar="BYTES", help="What it may hold in memory.")
]
Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="PATH", help="Only this partition path; can be repeated."),
]
Schedule = Annotated[bool, typer.Option(help="Plan what is due.")]
Execute = Annotated[bool, typer.Option(help="Carry plans out.")]
CommitId = Annotated[
    str | None, typer.Option("--commit-id", help="Write once under this name, however often asked.")
]
CommitMetadata = Annotated[
    list[str] | None,
    typer.Option("--commit-metadata", metavar="NAME=TEXT", help="What the commit says besides."),
]


class UnreadableFile(ConfigError):
    """A file of rows that no table could hold: wrong use, as a file that is damaged."""


class Format(str, Enum):
    """Formats of files that are read and written."""

    parquet = "parquet"
    csv = "csv"
    json = "json"
    arrow = "arrow"


FileFormat = Annotated[
    Format | None, typer.Option("--format", help="The file's format, where its end does not tell.")
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        metavar="CHARACTER",
        help="What parts the values of a CSV file; a comma by default, in .tsv files a tab.",
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


def format_of(path: Path, given: Format | None) -> Format:
    """What a file is: as said, else by its end. Raises `BadParameter` where neither tells."""
    found = given or _ENDS.get(path.suffix.lower())
    if found is None:
        raise typer.BadParameter(f"{path}: the end of the name tells no format; give --format")
    return found


def delimiter_of(path: Path, form: Format, given: str | None) -> str:
    r"""What parts the values of a CSV file: as said, else by its end; `\t` is a tab.

    Raises `BadParameter` for what cannot part values, and for files of other formats.
    """
    if given is None:
        return "\t" if path.suffix.lower() == ".tsv" else ","
    found = "\t" if given == "\\t" else given
    if form is not Format.csv:
        raise typer.BadParameter(f"{path} is no CSV file", param_hint="--delimiter")
    if len(found) != 1 or not found.isascii() or found in '"\r\n':
        msg = f"{given!r} cannot part values; give one character of ASCII"
        raise typer.BadParameter(msg, param_hint="--delimiter")
    return found


def names(text: str | None) -> list[str] | None:
    """`a,b` as a list; None for nothing."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """`name=value` texts by name. Raises `BadParameter` for one without `=`, or a name twice."""
    found: dict[str, str] = {}
    for text in given or ():
        name, sign, value = text.partition("=")
        if not sign or not name.strip():
            raise typer.BadParameter(f"{option} is {text!r}; give name=value")
        if name.strip() in found:
            raise typer.BadParameter(f"{option} names {name.strip()!r} twice")
        found[name.strip()] = value
    return found


def said(given: Sequence[str] | None) -> Mapping[str, str] | None:
    """Commit metadata as verbs take them."""
    return pairs(given, "--commit-metadata") or None


def number_or_text(text: str | None) -> float | str | None:
    """`90` as a number, `10m` as it is: a budget as `maintain` takes it."""
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        return text
