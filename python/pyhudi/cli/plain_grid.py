"""Tables in a file or a pipe, as rich draws them there, without the import of rich."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

MAX_WIDTH = 100_000
"""Maximum width of a line in a file or a pipe. In narrower tables nothing is cut or folded."""
_FORCED = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JUPYTER_COLUMNS")
"""Variables that make rich draw for a terminal where it finds no terminal."""


def plain_grid(
    columns: Sequence[Sequence[str]], *, right: Sequence[bool] = (), head: bool = False
) -> str | None:
    """Return a table as text without trailing blanks.

    Args:
        columns: the cells of each column.
        right: whether the numbers of each column are aligned to the right; none by default.
        head: whether the first cell of each column is its name.

    Returns:
        None if only rich can draw the table: on a terminal, for characters whose width differs, and
        for very wide tables.
    """
    right = right or [False] * len(columns)
    if sys.stdout.isatty() or any(os.environ.get(name) for name in _FORCED):
        return None
    cells = [[cell.split("\n") for cell in column] for column in columns]
    if not all(map(_is_simple, columns, right)) or (
        head and any(len(cell[0]) > 1 for cell in cells)
    ):
        return None
    widths = [max((len(line) for cell in column for line in cell), default=0) for column in cells]
    gap = "   " if head else "  "
    width = sum(widths) + len(gap) * (len(widths) - 1)
    if not widths or not min(widths) or width > MAX_WIDTH:
        return None
    lines = []
    for number, row in enumerate(zip(*cells, strict=True)):
        for at in range(max(map(len, row))):
            parts = (cell[at] if at < len(cell) else "" for cell in row)
            aligned = map(_align, parts, widths, right)
            lines.append(gap.join(aligned).rstrip())
        if head and not number:
            lines.append("─" * width)
    return "".join(f"{line}\n" for line in lines)


def _is_simple(column: Sequence[str], right: bool) -> bool:  # noqa: FBT001 - of a pair
    """Return whether each character of a column takes one place."""
    text = "\n".join(column)
    if not text.isascii() or "\t" in text:
        return False
    return not right or all(cell == cell.strip() for cell in column)


def _align(text: str, width: int, right: bool) -> str:  # noqa: FBT001 - as above
    return text.rjust(width) if right else text.ljust(width)
