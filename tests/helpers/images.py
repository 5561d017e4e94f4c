"""Change rows with their images as text, made comparable with what Apache Hudi gave."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.helpers.rows import canonical

Row = Mapping[str, Any]
SIDES = ("before", "after")


def image(text: str | None) -> dict[str, Any] | None:
    """The data columns of an image; Hudi's text "null" is a missing one."""
    found = None if text is None else json.loads(text)
    return found and {k: v for k, v in found.items() if not k.startswith("_hoodie_")}


def broken_columns(rows: Iterable[Row]) -> set[str]:
    """Columns of which Hudi makes nonsense: decimals, which it prints as objects or lists."""
    images = [image(row[side]) for row in rows for side in SIDES]
    return {k for one in images if one for k, v in one.items() if isinstance(v, dict | list)}


def comparable(rows: Iterable[Row], without: set[str], *, nulls: bool = True) -> list[str]:
    """One text for each change row, some columns of its images left out.

    nulls: whether a field that is null differs from one that is not there.
    """

    def data(text: str | None) -> dict[str, Any] | None:
        found = image(text)
        return found and {
            k: v for k, v in found.items() if k not in without and (nulls or v is not None)
        }

    return [canonical({**row, **{side: data(row[side]) for side in SIDES}}) for row in rows]
