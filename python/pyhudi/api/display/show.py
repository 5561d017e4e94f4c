"""Arrow tables as a notebook or a terminal shows them, a timeline with its picture."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pyhudi.api.display.html import Html, note, rows_grid, value_text, with_far_times
from pyhudi.api.display.style import fragment
from pyhudi.api.display.timeline_picture import timeline_picture
from pyhudi.api.outputs import Outputs
from pyhudi.config import argument_checks as arg
from pyhudi.config.actions import Instant, State
from pyhudi.config.formatting import count_text, printable
from pyhudi.errors import ConfigError
from pyhudi.table.table_snapshot import TableSnapshot

_TIMELINE = {"requested", "action", "state", "completed"}
_HISTORY = {"instant", "action", "state", "completed", "operation"}
_WIDEST = 32


class View:
    """Some rows to look at: `print` it, or let a notebook show it."""

    def __init__(self, rows: pa.Table, n: int) -> None:
        self.rows = rows
        """All that were given, or the first of a scan."""
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


@arg.check_arguments(n=arg.whole)
def show(rows: Any, n: int = 20) -> View:
    """Rows as a person looks at them: a short text, in a notebook a table.

    `history()` and `inspect.timeline()` come with a picture of the timeline.

    Args:
        rows: an Arrow table, a `HudiTable`, a `Scan` or the like, or anything else that gives an
            Arrow stream. Of what is not read yet, only the first rows are.
        n: how many rows are shown.

    Returns:
        What `print` and notebooks show; `rows` of it has them.

    Raises:
        ConfigError: `rows` gives no Arrow stream, or `n` is no number of rows.
    """
    if n < 0:
        raise ConfigError(f"n is {n}; it must not be negative")
    if isinstance(rows, pa.Table):
        return View(rows, n)
    if isinstance(rows, Outputs) or hasattr(rows, "scan"):  # the latter is a HudiTable
        return View(rows.head(n), n)
    if not hasattr(rows, "__arrow_c_stream__"):
        raise ConfigError(f"rows is a {type(rows).__name__}; it must give an Arrow stream")
    return View(pa.table(rows), n)


def timeline_html(table: TableSnapshot) -> str:
    """What a notebook shows of the timeline of a table."""
    timeline = table.timeline
    return fragment(
        timeline_picture(
            timeline.instants,
            {},
            merge_on_read=table.config.is_merge_on_read,
            with_ends=timeline.completes_in_names,
        ),
        note(f"The active timeline of {table.config.name}: {len(timeline.instants):,} instants."),
    )


def _pictures(rows: pa.Table) -> list[Html]:
    names = set(rows.column_names)
    if not (names >= _TIMELINE or names >= _HISTORY):
        return []
    time = "requested" if names >= _TIMELINE else "instant"
    found = rows.select([time, "action", "state", "completed"]).to_pydict()
    instants = sorted(
        (
            Instant(requested, action, State(state), completed, "")
            for requested, action, state, completed in zip(*found.values(), strict=True)
        ),
        key=lambda instant: instant.requested,
    )
    operations: dict[str, str] = {}
    if "operation" in names:
        said = zip(found[time], rows.column("operation").to_pylist(), strict=True)
        operations = {instant: operation for instant, operation in said if operation}
    return [timeline_picture(instants, operations, merge_on_read=False, with_ends=False)]


def _column(rows: pa.Table, at: int) -> list[str]:
    """A column's name and values, padded to one width."""
    values = [value_text(value) for value in rows.column(at).to_pylist()]
    cells = [rows.column_names[at], *("" if value is None else str(value) for value in values)]
    cut = [printable(" ".join(cell.split())) for cell in cells]
    cut = [cell if len(cell) <= _WIDEST else f"{cell[: _WIDEST - 3]}..." for cell in cut]
    width = max(map(len, cut))
    is_number = pa.types.is_integer(rows.schema.field(at).type)
    return [cell.rjust(width) if is_number else cell.ljust(width) for cell in cut]
