"""Tables that pyhudi writes for engines of others: a history of writes and services on a layout.

Columns are of all types that these engines have. Nothing here knows of an engine.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

import pyhudi
from pyhudi import HudiTable
from tests.helpers.table_builder import SMALL, Kind, TableBuilder, numbered

CITIES = ("oslo", "rome", "são paulo")
_START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)

ROWS = TableBuilder(
    {
        "id": (pa.string(), numbered(3)),
        "city": (pa.string(), lambda number: CITIES[number % 3]),
        "ts": (pa.int64(), 1),
        "count": (pa.int32(), lambda number: None if number % 7 == 0 else -number),
        "fare": (pa.float64(), lambda number: number / 4),
        "paid": (pa.bool_(), lambda number: number % 2 == 0),
        "price": (pa.decimal128(12, 2), lambda number: Decimal(number) / 4),
        "day": (pa.date32(), lambda number: (_START - datetime.timedelta(number)).date()),
        "at": (pa.timestamp("us", "UTC"), lambda number: _START + datetime.timedelta(0, number, 7)),
        "data": (pa.binary(), lambda number: bytes([number % 256, 0, 255])),
        "tags": (pa.list_(pa.string()), lambda number: ["a", "", "ü"][: number % 4]),
        "place": (
            pa.struct([("x", pa.float32()), ("name", pa.string())]),
            lambda number: None if number % 5 == 0 else {"x": number / 2, "name": f"p{number}"},
        ),
        "counts": (pa.map_(pa.string(), pa.int64()), lambda number: {f"c{number}": number}),
    },
    order_by="ts",
    first=range(40),
)
"""Rows are named by numbers, of which the city follows."""


def rows(numbers: Iterable[int], ts: int) -> pa.Table:
    """Rows of a later time, whose fares tell them from older ones."""
    return ROWS.rows(numbers, ts=ts, fare=lambda number: number + ts / 8)


# ---------------------------------------------------------------- layouts

LAYOUTS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"partition_by": "city"},
    "no partitions": {},
    "hive": {
        "partition_by": "city",
        "options": {"hoodie.datasource.write.hive_style_partitioning": "true"},
    },
    "two levels": {"partition_by": ["city", "paid"]},
    "bucket": {"partition_by": "city", "index": "bucket"},
    "record index": {"partition_by": "city", "index": "record_index"},
    "two keys": {"key": ["id", "city"], "partition_by": "city"},
    "no metadata": {"partition_by": "city", "metadata": False},
}
"""Axes of `TableBuilder`, by a name."""


def create(base: Path, version: int, kind: Kind, layout: str) -> HudiTable:
    """A table of 40 rows."""
    axes = {**LAYOUTS[layout]}
    axes["options"] = {**SMALL, **axes.get("options", {})}
    return ROWS.make(base, version=version, kind=kind, **axes)


# ---------------------------------------------------------------- histories


def _update(table: HudiTable) -> None:
    table.upsert(rows(range(30, 50), 2))
    table.upsert(rows(range(4), 3))


def _delete(table: HudiTable) -> None:
    _update(table)
    table.delete("id in ('k003', 'k010', 'k045')")
    table.upsert(rows([10], 4))


def _late(table: HudiTable) -> None:
    table.upsert(rows(range(20), 9))
    table.upsert(rows(range(30), 5))


def _compact(table: HudiTable) -> None:
    _delete(table)
    table.compact()
    table.upsert(rows([1, 2, 60], 6))


def _plan_compaction(table: HudiTable) -> None:
    _delete(table)
    table.compact(execute=False)


def _log_compact(table: HudiTable) -> None:
    _delete(table)
    table.log_compact(min_log_files=2)
    table.upsert(rows([1, 2], 6))


def _cluster(table: HudiTable) -> None:
    table.bulk_insert(rows(range(50, 60), 2))
    if table.type == "mor":
        table.compact()
    table.cluster(sort_by=["fare"])
    table.upsert(rows(range(48, 55), 3))


def _clean(table: HudiTable) -> None:
    for ts in range(2, 6):
        table.upsert(rows(range(ts, 40, 3), ts))
    if table.type == "mor":
        table.compact()
    table.clean(retain=1)


def _archive(table: HudiTable) -> None:
    for ts in range(2, 12):
        table.upsert(rows(range(3 * ts), ts))
        if table.type == "mor" and ts % 4 == 0:
            table.compact()
    table.clean(retain=1)
    table.archive(min_commits=2, max_commits=3)
    table.upsert(rows([5], 20))


def _overwrite(table: HudiTable) -> None:
    _update(table)
    table.overwrite(rows(range(100, 110), 4))
    table.upsert(rows([101, 130], 5))


def _overwrite_partitions(table: HudiTable) -> None:
    _update(table)
    table.overwrite_partitions(rows(range(300, 312, 3), 4))


def _delete_partitions(table: HudiTable) -> None:
    _update(table)
    table.delete_partitions([{"city": "rome"}])
    table.upsert(rows([1, 4], 5))


def _restore(table: HudiTable) -> None:
    _update(table)
    saved = table.savepoint()
    table.upsert(rows(range(20), 7))
    table.restore(saved)
    table.upsert(rows([2], 8))


def _roll_back(table: HudiTable) -> None:
    _update(table)
    table.rollback(table.state.timeline.commits[-1].requested)
    table.upsert(rows([3, 70], 8))


def _add_column(table: HudiTable) -> None:
    _update(table)
    more = rows([1, 90], 4)
    table.upsert(more.append_column("note", pa.array(["new", None])), schema_mode="merge")


def _partial(table: HudiTable) -> None:
    _update(table)
    table.upsert(rows([1, 2, 3], 4).select(["id", "city", "ts", "fare"]), partial=True)


HISTORIES: Mapping[str, Callable[[HudiTable], None]] = {
    "update": _update,
    "delete": _delete,
    "late": _late,
    "compact": _compact,
    "plan compaction": _plan_compaction,
    "log compact": _log_compact,
    "cluster": _cluster,
    "clean": _clean,
    "archive": _archive,
    "overwrite": _overwrite,
    "overwrite partitions": _overwrite_partitions,
    "delete partitions": _delete_partitions,
    "restore": _restore,
    "roll back": _roll_back,
    "add column": _add_column,
    "partial": _partial,
}
"""What is done to a table, by a name."""

_LOGS = ("compact", "plan compaction", "log compact")
_PARTITIONS = ("overwrite partitions", "delete partitions")


def is_possible(kind: str, layout: str, history: str) -> bool:
    """Whether pyhudi can write such a table."""
    return (
        (kind == "mor" or history not in _LOGS)
        and (layout not in ("no partitions", "two levels") or history not in _PARTITIONS)
        and (layout != "bucket" or history != "cluster")  # buckets are file groups
        and (layout != "two levels" or history != "partial")  # it lacks a partition column
    )


def write(base: Path, version: int, kind: Kind, layout: str, history: str) -> HudiTable:
    """A table with its history, as a reader finds it."""
    HISTORIES[history](create(base, version, kind, layout))
    return pyhudi.open_table(base)
