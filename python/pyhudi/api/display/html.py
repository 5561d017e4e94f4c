"""HTML as text that is safe by its type: what is no `Html` is escaped when it goes into an element.

Names and values come from tables, so from anybody. Nothing here knows a table.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.input.exact_casts import with_leaves

_VOID = frozenset({"br", "meta", "input"})
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that no HTML may have, or that UTF-8 cannot."""
_LONGEST = 80


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(text: object) -> Html:
    """Any text as HTML that shows it."""
    if isinstance(text, Html):
        return text
    return Html(html.escape(_UNSEEN.sub("\ufffd", str(text)), quote=True))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Pieces one after the other."""
    return Html(between.join(map(escape, parts)))


def tag(element: str, *inner: object, **attributes: object) -> Html:
    """An element. None as an attribute leaves it out; `class_` is `class`, `data_v` is `data-v`."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if element in _VOID:
        return Html(f"<{element}{written}>")
    return Html(f"<{element}{written}>{join(inner)}</{element}>")


def facts(pairs: Mapping[str, object]) -> Html:
    """Names with what there is to say of each, below each other."""
    rows = [tag("tr", tag("th", name), tag("td", value)) for name, value in pairs.items()]
    return tag("table", tag("tbody", *rows), class_="facts")


def grid(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[int] = (),
    sortable: bool = False,
) -> Html:
    """A table with a head. numbers: columns that stand to the right."""
    kinds = ["num" if column in numbers else None for column in range(len(names))]
    head = [tag("th", name, class_=kind) for name, kind in zip(names, kinds, strict=True)]
    body = [tag("tr", *map(_cell, row, kinds)) for row in rows]
    table = tag(
        "table",
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        class_="grid sortable" if sortable else "grid",
    )
    return tag("div", table, class_="scroll")


def _cell(value: object, kind: str | None) -> Html:
    shown, key = value if isinstance(value, tuple) else (value, None)
    if isinstance(shown, int) and not isinstance(shown, bool):
        shown, key = f"{shown:,}", shown
    return tag("td", nothing() if shown is None else shown, class_=kind, data_v=key)


def nothing(text: str = "null") -> Html:
    """What stands where there is no value."""
    return tag("span", text, class_="none")


def rows_grid(table: pa.Table, most: int) -> Html:
    """The first rows of an Arrow table."""
    few = with_far_times(table.slice(0, most))
    names = few.column_names
    numbers = [at for at, field in enumerate(few.schema) if _is_number(field.type)]
    # Columns may share a name, which rows as mappings would lose.
    columns = [few.column(at).to_pylist() for at in range(few.num_columns)]
    rows = [[value_text(value) for value in row] for row in zip(*columns, strict=True)]
    found = grid(names, rows, numbers=numbers)
    if table.num_rows <= most:
        return found
    return join([found, note(f"the first {most:,} of {table.num_rows:,} rows")])


def with_far_times(rows: pa.Table) -> pa.Table:
    """The rows, with dates and times as text where Python has no form of one."""
    columns = [_with_far_times(column) for column in rows.columns]
    return pa.Table.from_arrays(columns, rows.column_names)


def _with_far_times(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    try:
        column.to_pylist()
    except (OverflowError, ValueError):
        return column.cast(with_leaves(column.type, _as_text))
    return column


def _as_text(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_temporal(kind) else kind


def value_text(value: Any) -> object:
    """A value of a row, cut where it is long; None stays None."""
    if value is None:
        return None
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def note(text: object) -> Html:
    """A remark below something."""
    return tag("p", text, class_="note")


def badge(text: object, kind: str = "") -> Html:
    """A word or two that tell what something is."""
    return tag("span", text, class_=f"badge {kind}".strip())


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
