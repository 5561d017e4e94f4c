"""Output of results: tables and facts for people, JSON for programs.

Results go to standard output, everything else to standard error. rich draws colors and frames, and
omits colors without a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from json import dumps
from typing import Any

import pyarrow as pa
from rich import box
from rich.console import Console, ConsoleOptions
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from pyhudi.cli.json_writer import cell_text, json_lines
from pyhudi.config.formatting import count_text, duration_text, printable, size_text

_UNBOUNDED = 100_000
"""Width of a line that goes to a file or a pipe: nothing is cut or folded there."""
_SIZES = ("size", "bytes", "base_size", "log_size")


@dataclass(frozen=True)
class Output:
    """The output of one command."""

    json: bool
    quiet: bool

    def listing(self, rows: pa.Table) -> None:
        """Print rows that pyhudi itself lists; byte columns are printed as sizes."""
        self.rows(rows, sizes=_SIZES)

    def rows(self, rows: pa.Table, *, sizes: Collection[str] = ()) -> None:
        """Print all rows of a table; each as a list of its values if lines would be too wide."""
        if self.json:
            self.lines(rows.to_batches())
            return
        grid = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", pad_edge=False, show_edge=False)
        for column in rows.schema:
            right = _is_number(column.type)
            name = printable(column.name)
            grid.add_column(name, justify="right" if right else "left", overflow="fold")
        columns = [
            _sizes(rows.column(name)) if name in sizes else cell_text(rows.column(name))
            for name in rows.column_names
        ]
        for cells in zip(*columns, strict=True):
            grid.add_row(*map(printable, cells))
        console = _console()
        if console.measure(grid, options=_full_width(console)).maximum <= console.width:
            _draw(grid)
            return
        for cells in zip(*columns, strict=True):
            _draw(_facts(zip(rows.column_names, cells, strict=True)))
            console.print()

    def lines(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Print rows as JSON, one a line, as they arrive."""
        for batch in batches:
            if batch.num_rows:
                sys.stdout.write(json_lines(batch))

    def stream(self, rows: Any) -> int:
        """Print lazy rows and return their number."""
        if not self.json:
            table = rows.to_arrow()
            self.rows(table)
            return int(table.num_rows)
        count = 0

        def count_rows() -> Iterator[pa.RecordBatch]:
            nonlocal count
            for batch in rows.to_reader():
                count += batch.num_rows
                yield batch

        self.lines(count_rows())
        return count

    def value(self, value: Any) -> None:
        """Print one value, such as a count."""
        text = dumps(plain(value)) if self.json else printable(str(value))
        sys.stdout.write(f"{text}\n")

    def facts(self, facts: Mapping[str, Any]) -> None:
        """Print names and values, the names as words."""
        if self.json:
            sys.stdout.write(f"{dumps(plain(facts))}\n")
            return
        labels = (name.removesuffix("_ms").replace("_", " ") for name in facts)
        values = (_format_value(name, value) for name, value in facts.items())
        _draw(_facts(zip(labels, values, strict=True)))

    def properties(self, properties: Mapping[str, str]) -> None:
        """Print names and values unchanged."""
        if self.json:
            self.facts(properties)
        else:
            _draw(_facts(properties.items()))

    def result(self, result: Any) -> None:
        """Print the result of a method; empty fields are omitted for people."""
        facts = {each.name: getattr(result, each.name) for each in fields(result)}
        if self.json:
            self.facts(facts)
        elif not self.quiet:
            self.facts({name: value for name, value in facts.items() if _is_something(value)})

    def text(self, text: str, result: Any) -> None:
        """Print the text of a result for people, or the result for programs."""
        if self.json:
            self.facts(plain(result))
        else:
            _say(text)

    def print_done(self, text: str, **facts: Any) -> None:
        """Print what was done, in a few words; for programs as facts."""
        if self.json:
            self.facts(facts)
        elif not self.quiet:
            _say(text)

    def note(self, text: str) -> None:
        """Print a remark in addition to the result."""
        if not self.quiet and not self.json:
            _say(text, stderr=True, style="dim")

    def warning(self, text: str) -> None:
        """Print a warning."""
        _say(f"warning: {text}", stderr=True, style="yellow")

    def error(self, text: str, hint: str) -> None:
        """Print an error and its hint."""
        _say(f"error: {text}", stderr=True, style="bold red")
        if hint:
            _say(f"hint: {hint}", stderr=True)

    @contextmanager
    def counting(self, label: str) -> Iterator[Any]:
        """Draw a row count while the block runs; yields a function to call with additional rows."""
        console = _console(stderr=True)
        parts = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        is_drawn = console.is_terminal and not self.quiet
        with Progress(*parts, console=console, transient=True, disable=not is_drawn) as bar:
            task, count = bar.add_task(label), 0

            def more(rows: int) -> None:
                nonlocal count
                count += rows
                bar.update(task, description=f"{label}: {count_text(count, 'row')}")

            yield more


def plain(value: Any) -> Any:
    """Return a result in JSON's own types; a value without such a type becomes a string."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value):
            return {name: plain(each) for name, each in value.items()}
        return [[plain(name), plain(each)] for name, each in value.items()]
    if isinstance(value, (tuple, list, set, frozenset)):
        return [plain(each) for each in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def _console(*, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged, without a width limit outside of a terminal."""
    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _UNBOUNDED
    return console


def _say(text: str, *, stderr: bool = False, style: str | None = None) -> None:
    _console(stderr=stderr).print(printable(text), style=style)


def _full_width(console: Console) -> ConsoleOptions:
    return console.options.update(width=_UNBOUNDED)


def _facts(pairs: Iterable[tuple[str, str]]) -> Table:
    """Return names and values, one pair a line; names without a value are omitted."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if value:
            grid.add_row(printable(name), printable(value))
    return grid


def _draw(grid: Table) -> None:
    """Print a table; in a file or a pipe without trailing blanks."""
    console = _console()
    if console.is_terminal:
        console.print(grid)
        return
    with console.capture() as captured:
        console.print(grid)
    for line in captured.get().splitlines():
        sys.stdout.write(f"{line.rstrip()}\n")


def _is_number(data_type: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(data_type)
        or pa.types.is_floating(data_type)
        or pa.types.is_decimal(data_type)
    )


def _is_something(value: Any) -> bool:
    return value is not None and value is not False and value not in (0, "", (), {}, [])


def _sizes(column: pa.ChunkedArray) -> Sequence[str]:
    return ["" if size is None else size_text(size) for size in column.to_pylist()]


def _format_value(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and ("bytes" in name or name == "size"):
        return size_text(value)
    if isinstance(value, int) and name.endswith("_ms"):
        return duration_text(value)
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, Mapping):
        return "\n".join(f"{key}={each}" for key, each in value.items()) or "-"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value)) or "-"
    return str(value)
