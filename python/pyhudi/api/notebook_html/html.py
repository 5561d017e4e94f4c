"""HTML that is safe by its type: anything that is not `Html` is escaped inside an element.

Names and values come from tables and are not trusted. Nothing here depends on a table.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from pyhudi.input.exact_casts import with_leaves
from pyhudi.input.type_tests import is_number

_VOID = frozenset({"br", "meta", "input"})
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""Characters that HTML does not allow, or that UTF-8 cannot encode."""
_LONGEST = 80


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()

    def __html__(self) -> Html:
        """Return the text, for templates."""
        return self


def escape(text: object) -> Html:
    """Escape text for HTML; text of a type with `__html__` is HTML already."""
    if hasattr(text, "__html__"):
        return Html(text.__html__())
    return Html(html.escape(_UNSEEN.sub("\ufffd", str(text)), quote=True))


def join(parts: Iterable[object], between: str = "") -> Html:
    """Join parts into one HTML text."""
    return Html(between.join(map(escape, parts)))


def tag(element: str, *inner: object, **attributes: object) -> Html:
    """Return an element; None omits an attribute. `class_` becomes `class`, `data_v` `data-v`."""
    pairs = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    if element in _VOID:
        return Html(f"<{element}{pairs}>")
    return Html(f"<{element}{pairs}>{join(inner)}</{element}>")


def property_grid(pairs: Mapping[str, object]) -> Html:
    """Return names and their values, one pair below the other."""
    rows = [tag("tr", tag("th", name), tag("td", value)) for name, value in pairs.items()]
    return tag("table", tag("tbody", *rows), class_="facts")


def grid(
    names: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    numbers: Sequence[int] = (),
    sortable: bool = False,
) -> Html:
    """Return a table with a header. numbers: columns that are aligned to the right."""
    classes = ["num" if column in numbers else None for column in range(len(names))]
    head = [tag("th", name, class_=class_) for name, class_ in zip(names, classes, strict=True)]
    body = [tag("tr", *map(_cell, row, classes)) for row in rows]
    table = tag(
        "table",
        tag("thead", tag("tr", *head)),
        tag("tbody", *body),
        class_="grid sortable" if sortable else "grid",
    )
    return tag("div", table, class_="scroll")


def _cell(value: object, class_: str | None) -> Html:
    shown, key = value if isinstance(value, tuple) else (value, None)
    if isinstance(shown, int) and not isinstance(shown, bool):
        shown, key = f"{shown:,}", shown
    return tag("td", nothing() if shown is None else shown, class_=class_, data_v=key)


def nothing(text: str = "null") -> Html:
    """Return the placeholder of a missing value."""
    return tag("span", text, class_="none")


def rows_grid(table: pa.Table, max_rows: int) -> Html:
    """Return the first rows of an Arrow table as a grid."""
    few = with_far_times(table.slice(0, max_rows))
    names = few.column_names
    numbers = [at for at, field in enumerate(few.schema) if is_number(field.type)]
    # Columns may share a name, so rows cannot be mappings.
    columns = [few.column(at).to_pylist() for at in range(few.num_columns)]
    rows = [[value_text(value) for value in row] for row in zip(*columns, strict=True)]
    result = grid(names, rows, numbers=numbers)
    if table.num_rows <= max_rows:
        return result
    return join([result, note(f"the first {max_rows:,} of {table.num_rows:,} rows")])


def with_far_times(rows: pa.Table) -> pa.Table:
    """Return the rows, with text for dates and times that Python's types cannot hold."""
    columns = [_with_far_times(column) for column in rows.columns]
    return pa.Table.from_arrays(columns, rows.column_names)


def _with_far_times(column: pa.ChunkedArray[Any]) -> pa.ChunkedArray[Any]:
    try:
        column.to_pylist()
    except (OverflowError, ValueError):
        return column.cast(with_leaves(column.type, _as_text))
    return column


def _as_text(data_type: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_temporal(data_type) else data_type


def value_text(value: Any) -> object:
    """Return a value of a row, shortened if it is long; None stays None."""
    if value is None:
        return None
    text = value.hex() if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def note(text: object) -> Html:
    """Return a remark."""
    return tag("p", text, class_="note")


def badge(text: object, kind: str = "") -> Html:
    """Return a short label."""
    return tag("span", text, class_=f"badge {kind}".strip())
