"""Small tables that pyhudi writes, by features that matter to engines: layout, version, history.

`Inspect.readers` predicts how engines read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi import HudiTable

ROWS = pa.table({"id": ["a", "b"], "city": ["oslo", "rome"], "fare": [1.0, 1.0], "ts": [1, 1]})
LATER = ROWS.set_column(2, "fare", pa.array([2.0, 2.0])).set_column(3, "ts", pa.array([2, 2]))
History = Callable[[HudiTable], None]


def _keep(table: HudiTable) -> None:
    """Leave the first rows."""


def _update(table: HudiTable) -> None:
    table.upsert(LATER)


def _plan(table: HudiTable) -> None:
    table.upsert(LATER)
    if table.type == "mor":
        table.compact(execute=False)
        table.upsert(LATER.set_column(3, "ts", pa.array([3, 3])))


def _compact(table: HudiTable) -> None:
    _plan(table)
    if table.type == "mor":
        table.compact()


def _cluster(table: HudiTable) -> None:
    table.bulk_insert(ROWS.set_column(0, "id", pa.array(["c", "d"])))
    table.cluster()


_HISTORIES = (_keep, _update, _plan, _compact, _cluster)
AXES: Mapping[str, Mapping[str, Any]] = {
    "simple": {},
    "custom": {"partition_by": ["city:simple"]},
    "consistent": {
        "index": "bucket",
        "options": {
            "hoodie.index.bucket.engine": "CONSISTENT_HASHING",
            "hoodie.bucket.index.num.buckets": "2",
        },
    },
    "orc": {"options": {"hoodie.table.base.file.format": "ORC"}},
}
"""Arguments of `create_table`, by a name."""


def cases() -> Iterator[Any]:
    """Parameters of a test: a name of `AXES`, version, kind and history."""
    for version in (6, 8, 9):
        for kind in ("cow", "mor"):
            for history in _HISTORIES:
                yield pytest.param("simple", version, kind, history)
            yield from (
                pytest.param(axes, version, kind, _update)
                for axes in AXES
                if axes != "simple" and (axes != "consistent" or kind == "mor")
            )


def write(base: Path, axes: str, version: int, kind: Any, history: History) -> HudiTable:
    """The table of a case, as a reader finds it."""
    arguments = {"partition_by": "city", **AXES[axes]}
    table = pyhudi.create_table(
        base, ROWS, key="id", order_by="ts", version=version, type=kind, **arguments
    )
    history(table)
    return pyhudi.open_table(base)


def is_equal(found: pa.Table, table: HudiTable) -> bool:
    """Whether an engine's rows are those of the table."""
    if found.num_columns == 0:
        return table.count() == 0
    return _rows(found) == _rows(table.to_arrow())


def _rows(table: pa.Table) -> list[str]:
    return sorted(map(str, table.select(ROWS.schema.names).to_pylist()))
