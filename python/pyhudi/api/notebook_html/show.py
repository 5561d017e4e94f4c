"""Arrow tables as a notebook or a terminal displays them; a timeline comes with a picture."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.api.notebook_html.html import Html, note, rows_grid, value_text, with_far_times
from pyhudi.api.notebook_html.style import fragment
from pyhudi.api.notebook_html.timeline_picture import timeline_picture
from pyhudi.api.outputs import Outputs
from pyhudi.config import argument_checks as arg
from pyhudi.config.actions import Instant, State
from pyhudi.config.formatting import count_text, printable, type_text
from pyhudi.errors import ConfigError
from pyhudi.input.type_tests import is_number
from pyhudi.table.table_snapshot import TableSnapshot

_TIMELINE = {"requested", "action", "state", "completed"}
_HISTORY = {"instant", "action", "state", "completed", "operation"}
_WIDEST = 32


class View:
    """Rows to display: `print` them, or let a notebook display them."""

    def __init__(self, rows: pa.Table, n: int) -> None:
        self.rows = rows
        """All rows of a table that was passed, or the first rows of a scan."""
        self._shown = n

    def __repr__(self) -> str:
        few = with_far_times(self.rows.slice(0, self._shown))
        columns = [_column(few, at) for at in range(few.num_columns)]
        lines = ["  ".join(cells).rstrip() for cells in zip(*columns, strict=True)]
        more = self.rows.num_rows - self._shown
        return "\n".join([*lines, *([f"and {count_text(more, 'more row')}"] if more > 0 else [])])

    def _repr_html_(self) -> str:
        grid = rows_grid(self.rows, self._shown)
        return fragment(*_pictures(self.rows), grid)


@arg.check_arguments()
def show(rows: Any, n: int = 20) -> View:
    """Display rows: as short text, or as a table in a notebook.

    `history()` and `inspect.timeline()` come with a picture of the timeline.

    Args:
        rows: an Arrow table, a `HudiTable`, a `Scan` or other lazy rows, or any object with an
            Arrow stream. Of lazy rows only the first are read.
        n: number of rows to display.

    Returns:
        An object that `print` and notebooks display; its `rows` are the Arrow table.

    Raises:
        ConfigError: `rows` has no Arrow stream, or `n` is negative.
    """
    if n < 0:
        raise ConfigError(f"n is {n}; it must not be negative")
    if isinstance(rows, pa.Table):
        return View(rows, n)
    if isinstance(rows, Outputs) or hasattr(rows, "scan"):  # the latter is a HudiTable
        return View(rows.head(n), n)
    if not hasattr(rows, "__arrow_c_stream__"):
        raise ConfigError(f"rows is {type_text(type(rows))}; it must give an Arrow stream")
    return View(pa.table(rows), n)


def timeline_html(table: TableSnapshot) -> str:
    """Return the notebook HTML of a table's timeline."""
    timeline = table.timeline
    instants = count_text(len(timeline.instants), "instant")
    return fragment(
        timeline_picture(
            timeline.instants,
            {},
            merge_on_read=table.config.is_merge_on_read,
            with_ends=timeline.completes_in_names,
        ),
        note(f"The active timeline of {table.config.name}: {instants}."),
    )


def _pictures(rows: pa.Table) -> list[Html]:
    names = set(rows.column_names)
    if not (names >= _TIMELINE or names >= _HISTORY):
        return []
    time = "requested" if names >= _TIMELINE else "instant"
    columns = rows.select([time, "action", "state", "completed"]).to_pydict()
    instants = sorted(
        (
            Instant(requested, action, State(state), completed, "")
            for requested, action, state, completed in zip(*columns.values(), strict=True)
        ),
        key=lambda instant: instant.requested,
    )
    operations: dict[str, str] = {}
    if "operation" in names:
        pairs = zip(columns[time], rows.column("operation").to_pylist(), strict=True)
        operations = {instant: operation for instant, operation in pairs if operation}
    return [timeline_picture(instants, operations, merge_on_read=False, with_ends=False)]


def _column(rows: pa.Table, at: int) -> list[str]:
    """Return a column's name and values, padded to one width."""
    values = [value_text(value) for value in rows.column(at).to_pylist()]
    cells = [rows.column_names[at], *("" if value is None else str(value) for value in values)]
    texts = [printable(" ".join(cell.split())) for cell in cells]
    texts = [cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 3]}..." for cell in texts]
    width = max(map(len, texts))
    is_right = is_number(rows.schema.field(at).type)
    return [cell.rjust(width) if is_right else cell.ljust(width) for cell in texts]
