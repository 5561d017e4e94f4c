"""The rows of a table compared with those of a model or of other Arrow data, in any order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi import ConfigError
from pyhudi.testing.table_layout import check_table
from pyhudi.testing.table_model import TableModel

if TYPE_CHECKING:
    from pyhudi import HudiTable

_SHOWN = 5


def comparable_rows(data: Any) -> list[str]:
    """Return the rows of Arrow data as Python prints them, sorted.

    Two data sets have the same rows if the lists are equal; NaN is equal to NaN, 0.0 not to -0.0.

    Args:
        data: a `pyarrow.Table`, a scan, or other Arrow data.

    Returns:
        The rows.

    Raises:
        ConfigError: the argument is no Arrow data.
    """
    try:
        rows = pa.table(data)
    except (TypeError, ValueError) as error:
        hint = "Pass a pyarrow.Table, a HudiTable or a scan."
        raise ConfigError(f"{type(data).__name__} is no Arrow data: {error}", hint=hint) from error
    return sorted(map(repr, rows.to_pylist()))


def assert_matches(table: HudiTable, model: TableModel) -> None:
    """Raise `AssertionError` if a table does not hold the rows of a model.

    The message names the keys that are missing, extra, there several times or different, and for
    these the columns with both values.

    Args:
        table: the table, which is reloaded.
        model: the model.

    Raises:
        AssertionError: the rows differ.
        ConfigError: an argument is not of its type.
    """
    check_table(table)
    if not isinstance(model, TableModel):
        hint = "Pass a TableModel, to which you have applied the operations."
        raise ConfigError(f"{model!r:.60} is not a TableModel", hint=hint)
    columns = model.layout.schema.names
    stored = table.refresh().to_arrow(columns=columns).to_pylist()
    expected = {model.place(row): row for row in model.rows()}
    by_place = {model.place(row): row for row in stored}
    counts = Counter(map(model.place, stored))
    names = model.layout.key if model.layout.has_global_keys else ()
    names = names or (*model.layout.key, *model.layout.partition_by)

    def title(place: tuple[Any, ...]) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in zip(names, place, strict=True))

    missing = [f"{title(at)}: {row}" for at, row in expected.items() if at not in by_place]
    extra = [f"{title(at)}: {row}" for at, row in by_place.items() if at not in expected]
    several = [f"{title(at)}: {count} rows" for at, count in counts.items() if count > 1]
    different = [
        f"{title(at)}: {difference}"
        for at, row in by_place.items()
        if at in expected and (difference := _difference(row, expected[at]))
    ]
    groups = {"missing": missing, "extra": extra, "duplicate": several, "different": different}
    if any(groups.values()):
        raise AssertionError(_message(table.uri, groups))


def _difference(stored: Mapping[str, Any], expected: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name} is {stored[name]!r}, expected {expected[name]!r}"
        for name in expected
        # As text, by which NaN is equal to itself, also in a list.
        if repr(stored[name]) != repr(expected[name])
    )


def _message(uri: str, groups: Mapping[str, list[str]]) -> str:
    counts = ", ".join(f"{len(lines)} {name}" for name, lines in groups.items() if lines)
    text = [f"{uri} differs from the model: {counts}"]
    for name, lines in groups.items():
        text += [f"  {name}: {line}" for line in lines[:_SHOWN]]
        text += [f"  {name}: {len(lines) - _SHOWN} more"] if len(lines) > _SHOWN else []
    return "\n".join(text)
