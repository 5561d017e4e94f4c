"""Prints results: tables, names and values for people, JSON for programs.

Results go to standard output, everything else to standard error. rich draws tables and colors; it
omits colors if there is no terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from json import dumps
from typing import TYPE_CHECKING, Any, Literal

from pyhudi.cli.plain_grid import MAX_WIDTH, plain_grid
from pyhudi.config.formatting import count_text, duration_text, printable, size_text

if TYPE_CHECKING:  # Help needs none of it, JSON not all.
    import pyarrow as pa
    from rich.console import Console
    from rich.table import Table

_SIZES = ("size", "bytes", "base_size", "log_size")


@dataclass(frozen=True)
class Printer:
    """Prints the results and messages of one command."""

    json: bool
    quiet: bool

    def listing(self, rows: pa.Table) -> None:
        """Print rows that pyhudi itself lists; byte columns are printed as sizes."""
        self.rows(rows, sizes=_SIZES)

    def rows(self, rows: pa.Table, *, sizes: Collection[str] = ()) -> None:
        """Print all rows of a table; one value per line if rows are too wide for the terminal."""
        if self.json:
            self.lines(rows.to_batches())
            return
        from pyhudi.cli.json_writer import cell_text  # noqa: PLC0415 - help does not need it
        from pyhudi.input.type_tests import is_number  # noqa: PLC0415 - as above

        columns = [
            _sizes(rows.column(name)) if name in sizes else cell_text(rows.column(name))
            for name in rows.column_names
        ]
        right = [is_number(column.type) for column in rows.schema]
        named = zip(rows.column_names, columns, strict=True)
        self.grid([[name, *cells] for name, cells in named], right=right)

    def grid(self, columns: Sequence[Sequence[str]], *, right: Sequence[bool]) -> None:
        """Print columns of text, the name of each first; see `rows`.

        right: whether the numbers of each column are aligned to the right.
        """
        texts = [list(map(printable, column)) for column in columns]
        text = plain_grid(texts, right=right, head=True)
        if text is not None:
            sys.stdout.write(text)
            return
        grid, console = rich_grid(texts, right), _console()
        full_width = console.options.update(width=MAX_WIDTH)
        if console.measure(grid, options=full_width).maximum <= console.width:
            _draw(grid)
            return
        names = [column[0] for column in texts]
        for cells in zip(*(column[1:] for column in texts), strict=True):
            _draw_pairs(zip(names, cells, strict=True))
            console.print()

    def lines(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Print rows as JSON, one per line, as they arrive."""
        from pyhudi.cli.json_writer import json_lines  # noqa: PLC0415 - help does not need it

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
        text = dumps(to_json(value)) if self.json else printable(str(value))
        sys.stdout.write(f"{text}\n")

    def print_properties(self, values: Mapping[str, Any]) -> None:
        """Print names and values, the names as words."""
        if self.json:
            sys.stdout.write(f"{dumps(to_json(values))}\n")
            return
        labels = (name.removesuffix("_ms").replace("_", " ") for name in values)
        cells = (_format_value(name, value) for name, value in values.items())
        _draw_pairs(zip(labels, cells, strict=True))

    def properties(self, properties: Mapping[str, str]) -> None:
        """Print names and values unchanged."""
        if self.json:
            self.print_properties(properties)
        else:
            _draw_pairs(properties.items())

    def result(self, result: Any) -> None:
        """Print the result of a method; empty fields are omitted for people."""
        values = {field.name: getattr(result, field.name) for field in fields(result)}
        if getattr(result, "committed", False):
            values["position"] = result.position
        if self.json:
            self.print_properties(values)
        elif not self.quiet:
            values.pop("metrics", None)
            self.print_properties(
                {name: value for name, value in values.items() if not _is_empty(value)}
            )

    def text(self, text: str, result: Any) -> None:
        """Print the text of a result for people, or the result for programs."""
        if self.json:
            self.print_properties(to_json(result))
        else:
            _say(text)

    def print_done(self, text: str, **properties: Any) -> None:
        """Print what was done: a sentence for people, names and values for programs."""
        if self.json:
            self.print_properties(properties)
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
        """Print an error and its hint, with options and commands in it."""
        _say(f"error: {text}", stderr=True, style="bold red")
        if hint:
            from pyhudi.config.hint_spelling import for_commands  # noqa: PLC0415 - for errors

            _say(f"hint: {for_commands(hint)}", stderr=True)

    @contextmanager
    def counting(self, label: str) -> Iterator[Any]:
        """Draw a row count while the block runs; yields a function to call with additional rows."""
        from rich import progress  # noqa: PLC0415 - few commands count

        console = _console(stderr=True)
        text = progress.TextColumn("{task.description}")
        parts = (progress.SpinnerColumn(), text, progress.TimeElapsedColumn())
        is_drawn = console.is_terminal and not self.quiet
        with progress.Progress(
            *parts, console=console, transient=True, disable=not is_drawn
        ) as bar:
            task, count = bar.add_task(label), 0

            def add_rows(rows: int) -> None:
                nonlocal count
                count += rows
                bar.update(task, description=f"{label}: {count_text(count, 'row')}")

            yield add_rows


def rich_grid(
    columns: Sequence[Sequence[str]],
    right: Sequence[bool],
    folded: Collection[str] | None = None,
) -> Table:
    """Return columns of text, the name of each first, as a table of rich.

    folded: names of the columns that are folded if the terminal is too narrow, before cells of
    others are cut; None for all.
    """
    from rich import box  # noqa: PLC0415 - pipes do not need it
    from rich.table import Table  # noqa: PLC0415 - as above

    grid = Table(box=box.SIMPLE_HEAD, header_style="bold cyan", pad_edge=False, show_edge=False)
    for column, is_right in zip(columns, right, strict=True):
        justify: Literal["left", "right"] = "right" if is_right else "left"
        is_cut = folded is not None and column[0] not in folded
        overflow: Literal["ellipsis", "fold"] = "ellipsis" if is_cut else "fold"
        grid.add_column(column[0], justify=justify, overflow=overflow, no_wrap=is_cut)
    for cells in zip(*(column[1:] for column in columns), strict=True):
        grid.add_row(*cells)
    return grid


def to_json(value: Any) -> Any:
    """Return a result in JSON's types; a value of another type becomes a string."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_json(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        if all(isinstance(name, str) for name in value):
            return {name: to_json(item) for name, item in value.items()}
        return [[to_json(name), to_json(item)] for name, item in value.items()]
    if isinstance(value, (tuple, list, set, frozenset)):
        return [to_json(item) for item in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


def live_console() -> Console:
    """Return the console of a view that is redrawn in the terminal."""
    return _console()


def _console(*, stderr: bool = False) -> Console:
    """Return a console that prints text unchanged, without a width limit outside of a terminal."""
    from rich.console import Console  # noqa: PLC0415 - JSON does not need it

    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = MAX_WIDTH
    return console


def _say(text: str, *, stderr: bool = False, style: str | None = None) -> None:
    _console(stderr=stderr).print(printable(text), style=style)


def _draw_pairs(pairs: Iterable[tuple[str, str]]) -> None:
    """Print names and values, one pair per line; names without a value are omitted."""
    texts = [(printable(name), printable(value)) for name, value in pairs if value]
    text = plain_grid(list(zip(*texts, strict=True)))
    if text is not None:
        sys.stdout.write(text)
        return
    from rich.table import Table  # noqa: PLC0415 - pipes do not need it

    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold cyan", no_wrap=True)
    grid.add_column(overflow="fold")
    for row in texts:
        grid.add_row(*row)
    _draw(grid)


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


def _is_empty(value: Any) -> bool:
    return value is None or value is False or value in (0, "", (), {}, [])


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
        return "\n".join(f"{key}={item}" for key, item in value.items()) or "-"
    if isinstance(value, (tuple, list)):
        return ", ".join(map(str, value)) or "-"
    return str(value)
