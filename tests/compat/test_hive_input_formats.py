"""Hudi's input formats for Hive return the rows of tables that pyhudi wrote and registers."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pyhudi
from tests.helpers import written_tables
from tests.helpers.hive_reader.reader import HiveReader
from tests.helpers.java_lines import JavaError

MICROSECOND = datetime.timedelta(microseconds=1)
TIMESTAMPS = "hoodie.datasource.hive_sync.support_timestamp"
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HiveReader]:
    hive = HiveReader(tmp_path_factory.mktemp("hive"))
    yield hive
    hive.close()


@pytest.mark.parametrize(
    ("version", "kind", "layout", "history"),
    [
        (6, "cow", "plain", "cluster"),
        (6, "mor", "plain", "compact"),
        (8, "mor", "no partitions", "delete"),
        (9, "cow", "no metadata", "overwrite"),
        (9, "mor", "record index", "compact"),
    ],
)
def test_input_formats_read_what_pyhudi_wrote(
    version: int, kind: Any, layout: str, history: str, hive: HiveReader, tmp_path: Path
) -> None:
    table = written_tables.write(tmp_path / "t", version, kind, layout, history)
    scan = table.scan(meta_fields=True, read_optimized=True)
    expected = [_as_in_hive(row) for row in scan.to_arrow().to_pylist()]
    assert _sorted(hive.read(table, realtime=False)) == _sorted(expected)
    if kind == "mor":
        # This view fails with a timestamp that is registered as a bigint, and cuts others to
        # milliseconds.
        table = pyhudi.open_table(table.uri, options={TIMESTAMPS: "true"})
        scan = table.scan(meta_fields=True)
        expected = [
            {**_as_in_hive(row), "at": f"{row['at']:%Y-%m-%d %H:%M:%S}.0"}
            for row in scan.to_arrow().to_pylist()
        ]
        assert _sorted(hive.read(table, realtime=True)) == _sorted(expected)


def _as_in_hive(row: dict[str, Any]) -> dict[str, Any]:
    """Timestamps are microseconds, structs lists of values; bytes, dates and decimals text."""
    place, price = row["place"], f"{row['price']:f}"
    return {
        **row,
        "at": (row["at"] - EPOCH) // MICROSECOND,
        "price": price.rstrip("0").rstrip("."),
        "day": str(row["day"]),
        "data": row["data"].hex(),
        "place": None if place is None else [*place.values()],
        "counts": dict(row["counts"]),
    }


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: (str(row["id"]), str(row["_hoodie_commit_time"])))


def test_realtime_view_fails_with_timestamps_as_bigint(hive: HiveReader, tmp_path: Path) -> None:
    """Hudi's default for its sync; `docs/reference/readers.md` names the option."""
    table = written_tables.write(tmp_path / "t", 9, "mor", "no partitions", "update")
    with pytest.raises(JavaError, match="TimestampWritable cannot be cast"):
        hive.read(table, realtime=True)
