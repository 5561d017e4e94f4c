"""Tables in a pipe are those that rich draws there."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from pyhudi.cli.plain_grid import MAX_WIDTH, plain_grid

CELLS = (
    "",
    "a",
    "some words",
    "  led",
    "trailing  ",
    "two\nlines",
    "end\n",
    "x" * 30,
    "12",
    "-1.5",
)


def by_rich(columns: list[list[str]], right: list[bool], *, head: bool) -> str:
    if head:
        grid: Any = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
        for column, is_right in zip(columns, right, strict=True):
            grid.add_column(column[0], justify="right" if is_right else "left", overflow="fold")
        rows = [column[1:] for column in columns]
    else:
        grid, rows = Table(box=None, show_header=False, pad_edge=False), columns
        for at in range(len(columns)):
            grid.add_column(no_wrap=not at, overflow="fold" if at else "ellipsis")
    for cells in zip(*rows, strict=True):
        grid.add_row(*cells)
    console = Console(markup=False, highlight=False, emoji=False, width=MAX_WIDTH)
    with console.capture() as captured:
        console.print(grid)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def test_plain_grid_equals_rich() -> None:
    rng, drawn = random.Random(7), 0
    for _ in range(300):
        head, rows = rng.random() < 0.5, rng.randint(1, 4)
        right = [head and rng.random() < 0.3 for _ in range(rng.randint(1, 4))]
        columns = [
            [
                rng.choice(("7", "-12.5", "2.9 KiB", "")) if is_right else rng.choice(CELLS)
                for _ in range(rows)
            ]
            for is_right in right
        ]
        text = plain_grid(columns, right=right, head=head)
        if text is not None:
            drawn += 1
            assert text == by_rich(columns, right, head=head)
    assert drawn > 200


@pytest.mark.parametrize(
    "columns", [[], [[""]], [["ü"]], [["a\tb"]], [["漢字"]], [["x" * MAX_WIDTH], ["y"]]]
)
def test_plain_grid_leaves_unusual_tables_to_rich(columns: list[list[str]]) -> None:
    assert plain_grid(columns) is None


def test_plain_grid_leaves_terminals_to_rich(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain_grid([["a"]]) == "a\n"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert plain_grid([["a"]]) is None
