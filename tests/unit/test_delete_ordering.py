"""Ordering values of deletes that arrive late are written and read like those of rows."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import HudiTable, _native
from pyhudi.config.meta_columns import IS_DELETED
from tests.helpers import log_bytes
from tests.helpers.core_files import write_base_file
from tests.helpers.log_bytes import Ordering
from tests.helpers.table_builder import set_delete_marker, with_deletes


def ids(table: HudiTable) -> str:
    return "".join(sorted(table.refresh().scan(["id"]).to_arrow()["id"].to_pylist()))


def in_year(year: int) -> dt.datetime:
    return dt.datetime(year, 1, 1)  # noqa: DTZ001


def at(hour: int) -> dt.time:
    return dt.time(hour)


TIMES = [
    (pa.timestamp("ms", "UTC"), in_year(2020), in_year(2021), in_year(2022)),
    (pa.timestamp("ms"), in_year(2020), in_year(2021), in_year(2022)),
    (pa.timestamp("us", "UTC"), in_year(2020), in_year(2021), in_year(2022)),
    (pa.time32("ms"), at(1), at(2), at(3)),
]


@pytest.mark.parametrize("version", [6, 8, 9])
@pytest.mark.parametrize("gone", [{IS_DELETED: True}, {"op": "D"}], ids=["flag", "marker"])
@pytest.mark.parametrize(
    ("kind", "early", "middle", "late"), TIMES, ids=[str(case[0]) for case in TIMES]
)
def test_late_delete_keeps_newer_rows(
    tmp_path: Path,
    kind: pa.DataType,
    early: Any,
    middle: Any,
    late: Any,
    gone: dict[str, Any],
    version: int,
) -> None:
    builder = with_deletes("ts", ts=kind)
    builder.make(tmp_path / "t", version=version)
    table = set_delete_marker(tmp_path / "t", "op", "D")
    table.insert(builder.rows("abcd", ts=middle))
    table.upsert(builder.rows("a", ts=late))
    when = {"a": middle, "b": late, "c": early, "d": middle}
    table.upsert(builder.rows("abcd", ts=when.get, **gone))
    assert ids(table) == "ac"
    table.compact()
    assert ids(table) == "ac"


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("version", [6, 8, 9])
def test_moments_are_counted_as_the_releases_of_hudi_compare_them(
    tmp_path: Path, version: int, zone: str | None
) -> None:
    builder = with_deletes("ts", ts=pa.timestamp("ms", zone))
    builder.make(tmp_path / "t", version=version)
    table = set_delete_marker(tmp_path / "t", "op", "D")
    table.insert(builder.rows("k", ts=in_year(2020)))
    table.upsert(builder.rows("k", ts=in_year(2021), op="D"))
    (log,) = (tmp_path / "t").glob(".*.log.*")
    moment = 1_609_459_200_000 * (1 if version == 6 and zone else 1000)
    assert log_bytes.delete_content([("k", "", ("long", moment))]) in log.read_bytes()


KEY = "_hoodie_record_key"


def kept(folder: Path, base: pa.Table, orderings: list[str], delete: Ordering) -> bool:
    """Whether a base row outlives a delete with that ordering value."""
    store, avro = _native.Store(str(folder)), _native.avro_schema(base.schema, "r", "n")
    write_base_file(store, "b.parquet", base, avro_schema=avro)
    store.put(".l", log_bytes.delete_block(log_bytes.headers("2", avro), [("k", "", delete)]))
    reader, _ = _native.read_slice(
        store,
        base="b.parquet",
        logs=[".l"],
        schema=base.schema,
        columns=base.schema.names,
        merge_mode="EVENT_TIME_ORDERING",
        ordering_fields=orderings,
    )
    return len(reader.read_all()) == 1


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize(
    ("delete", "wins"),
    [
        (("long", 1_600_000_000_000), False),
        (("long", 1_800_000_000_000), True),
        (("long", 1_600_000_000_000_000), False),
        (("long", 1_800_000_000_000_000), True),
        (("timestamp", 1_600_000_000_000_000), False),
        (("timestamp", 1_800_000_000_000_000), True),
        (("timestamp", 1_600_000_000), False),
    ],
)
def test_size_of_number_tells_milliseconds_from_microseconds(
    tmp_path: Path, zone: str | None, delete: Ordering, *, wins: bool
) -> None:
    """As Hudi tells them on Spark, where it writes microseconds for columns of milliseconds."""
    ts = pa.array([1_700_000_000_000], pa.timestamp("ms", zone))
    assert kept(tmp_path, pa.table({KEY: ["k"], "ts": ts}), ["ts"], delete) is not wins


@pytest.mark.parametrize(
    ("parts", "wins"),
    [
        ([("long", 5), ("int", 0)], False),
        ([("long", 5), ("null", None)], False),
        ([("long", 5), ("boolean", True)], False),
        ([("long", 10), ("null", None)], False),
        ([("long", 15), ("null", None)], True),
        ([("int", 0), ("string", "z")], False),
        ([("null", None), ("null", None)], True),
        ([("int", 0), ("int", 0)], True),
    ],
)
def test_delete_keeps_order_if_some_ordering_values_are_null(
    tmp_path: Path, parts: list[Ordering], *, wins: bool
) -> None:
    """Only a delete without any value is one that the commit time decides."""
    base = pa.table({KEY: ["k"], "ts": [10], "name": ["x"]})
    assert kept(tmp_path, base, ["ts", "name"], ("array", parts)) is not wins


def test_zeros_of_whole_numbers_are_values(tmp_path: Path) -> None:
    base = pa.table({KEY: ["k"], "a": pa.array([0], pa.int32()), "b": pa.array([1], pa.int32())})
    assert kept(tmp_path, base, ["a", "b"], ("array", [("int", 0), ("int", 0)]))


def test_deletes_with_a_null_among_their_ordering_values(tmp_path: Path) -> None:
    kinds = {"a": pa.int64(), "b": pa.int64(), "name": pa.string()}
    builder = with_deletes(list(kinds), **kinds)
    table = builder.make(tmp_path / "t")
    table.insert(builder.rows("wxyz", a=10, b=5, name="n"))
    table.upsert(builder.rows("w", a=20, b=5, name="n"))
    when = {"w": 15, "x": 5, "y": 10, "z": 15}
    table.upsert(builder.rows("wxyz", a=when.get, **{IS_DELETED: True}))
    assert ids(table) == "wxy"
    zeros = [("long", 0), ("string", "")]
    gone = [(key, "", ("array", [("long", at), *zeros])) for key, at in when.items()]
    logs = b"".join(path.read_bytes() for path in (tmp_path / "t").glob(".*.log.*"))
    assert log_bytes.delete_content(gone) in logs, "Hudi fails on a null among them"
