"""What a partition path tells of the values of its columns, in scans and in incremental reads."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.slices.partition_values import partition_filter, path_values
from pyhudi.table.scan_columns import text_columns

NULL = "__HIVE_DEFAULT_PARTITION__"
HIVE = {"hoodie.datasource.write.hive_style_partitioning": "true"}
ENCODED = {"hoodie.datasource.write.partitionpath.urlencode": "true"}
DROPPED = {"hoodie.datasource.write.drop.partition.columns": "true"}
SLASHES = {"hoodie.datasource.write.slash.separated.date.partitioning": "true"}
VERSION_4 = {"hoodie.table.version": "4"}
SLASHED_TIME = {"hoodie.keygen.timebased.output.dateformat": "yyyy/MM/dd"}


def table(fields: str, generator: str = "COMPLEX", **more: str) -> TableConfig:
    lines = {
        "hoodie.table.name": "t",
        "hoodie.table.version": "9",
        "hoodie.table.partition.fields": fields,
        "hoodie.table.keygenerator.type": generator,
        **more,
    }
    return TableConfig.parse("\n".join(f"{k}={v}" for k, v in lines.items()).encode())


def values(config: TableConfig, path: str, *, incremental: bool = False, **types: Any) -> Any:
    found = path_values(config, pa.schema(types), path, incremental=incremental)
    return {name: scalar.as_py() for name, scalar in found.items()}


def test_partition_value_levels_use_column_types() -> None:
    config = table("n,day,x,b,f", **HIVE)
    types: dict[str, pa.DataType] = {
        "n": pa.int32(),
        "day": pa.date32(),
        "x": pa.decimal128(10, 2),
        "b": pa.bool_(),
        "f": pa.float64(),
    }
    told = values(config, "n=-2/day=2024-02-29/x=-0.05/b=true/f=1.0E10", **types)
    day = datetime.date(2024, 2, 29)
    assert told == {"n": -2, "day": day, "x": Decimal("-0.05"), "b": True, "f": 1e10}
    nulls = "/".join(f"{name}={NULL}" for name in types)
    assert values(config, nulls, **types) == dict.fromkeys(types)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("city=a.b", "a.b"),
        ("city=é漢", "é漢"),
        ("city=q=1", "q=1"),
        ("city=50%", "50%"),
        ("city=default", "default"),
        (f"city={NULL}", None),
    ],
)
def test_odd_texts_are_themselves(path: str, told: str | None) -> None:
    assert values(table("city", "SIMPLE", **HIVE), path, city=pa.string()) == {"city": told}


@pytest.mark.parametrize("path", ["city=", "city=a%2Fb", "town=x"])
def test_ambiguous_partition_value_is_read_from_files(path: str) -> None:
    assert values(table("city", "SIMPLE", **HIVE), path, city=pa.string()) == {}


@pytest.mark.parametrize(
    ("path", "kind", "told"),
    [
        ("2024/02/29", pa.string(), "2024-02-29"),
        ("2024/02/29", pa.date32(), datetime.date(2024, 2, 29)),
        ("us east", pa.string(), "us east"),
        (NULL, pa.string(), None),
    ],
)
def test_dates_with_slashes_are_told_with_dashes(path: str, kind: pa.DataType, told: Any) -> None:
    assert values(table("day", "SIMPLE", **SLASHES), path, day=kind) == {"day": told}


@pytest.mark.parametrize("more", [HIVE, ENCODED])
def test_dates_with_slashes_that_writers_spell_otherwise_are_left_to_the_files(
    more: dict[str, str],
) -> None:
    config = table("day", "SIMPLE", **SLASHES, **more)
    prefix = "day=" if more == HIVE else ""
    assert values(config, f"{prefix}2024/02/29", day=pa.string()) == {}


def test_url_encoded_values_are_decoded_but_in_incremental_reads() -> None:
    config = table("city,kind", **ENCODED)
    path = f"a%2Fb%3D1/{NULL}"
    both = {"city": pa.string(), "kind": pa.string()}
    assert values(config, path, **both) == {"city": "a/b=1", "kind": None}
    assert values(config, path, incremental=True, **both) == {"city": "a%2Fb%3D1", "kind": None}


def test_plain_levels_of_a_custom_generator_are_told_and_its_times_are_not() -> None:
    config = table("city:SIMPLE,at:TIMESTAMP,kind:SIMPLE", "CUSTOM")
    types = {"city": pa.string(), "at": pa.int64(), "kind": pa.string()}
    assert values(config, f"x/20240229/{NULL}", **types) == {"city": "x", "kind": None}
    # The table does not keep the format of the time: any folder could belong to it.
    assert values(config, "x/2024/02/29/p", **types) == {}
    known = table("city:SIMPLE,at:TIMESTAMP,kind:SIMPLE", "CUSTOM", **SLASHED_TIME)
    assert values(known, "x/2024/02/29/p", **types) == {"city": "x", "kind": "p"}
    assert values(known, "x/2024/02/29", **types) == {}


@pytest.mark.parametrize("generator", ["CUSTOM", "TIMESTAMP", "USER_PROVIDED", "NON_PARTITION"])
def test_generators_that_do_not_say_more_tell_nothing(generator: str) -> None:
    assert values(table("city", generator), "x", city=pa.string()) == {}


def test_timestamp_partition_value_is_read_from_files() -> None:
    instant = {"at": pa.timestamp("us", "UTC")}
    assert values(table("at", "SIMPLE", **HIVE), "at=-1", **instant) == {}
    dropped = table("at", "SIMPLE", **HIVE, **DROPPED)
    second = datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.timezone.utc)
    assert values(dropped, "at=1000000", **instant) == {"at": second}
    assert values(dropped, "at=1000", at=pa.timestamp("ms", "UTC")) == {"at": second}


def test_dropped_columns_take_what_the_path_says() -> None:
    text = {"at": pa.string()}
    assert values(table("at", "SIMPLE", **DROPPED), "default", **text) == {"at": "default"}
    assert values(table("at", "TIMESTAMP", **DROPPED), "2024/02/29", **text) == {"at": "2024/02/29"}
    day = {"at": pa.date32()}
    dates = table("at", "SIMPLE", **DROPPED, **SLASHES)
    assert values(dates, "2024/02/29", **day) == {"at": datetime.date(2024, 2, 29)}


@pytest.mark.parametrize(
    ("config", "path", "kind"),
    [
        (table("at", "TIMESTAMP", **DROPPED), "2024-02-29", pa.int64()),
        (table("at", "SIMPLE", **DROPPED), "noon", pa.timestamp("us")),
        (table("at", "SIMPLE", **DROPPED), "", pa.string()),
    ],
)
def test_dropped_partition_value_missing_in_path_is_refused(
    config: TableConfig, path: str, kind: pa.DataType
) -> None:
    with pytest.raises(UnsupportedTableFeature, match=r"drop\.partition\.columns"):
        values(config, path, at=kind)


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("day = '2024-02-29'", ["2024-02-29/true"]),
        ("day < '2024-03-01' AND b = true", ["2024-02-29/true"]),
        ("day != '2024-02-29'", ["2024-03-01/false"]),
        ("day >= '2024-02-29'", ["2024-02-29/true", "2024-03-01/false"]),
        ("day IN ('2024-03-01', '1970-01-01')", ["2024-03-01/false"]),
        ("b = false", ["2024-03-01/false", "odd/false"]),
    ],
)
def test_partitions_are_left_out_by_dates_and_booleans(where: str, kept: list[str]) -> None:
    schema = pa.schema({"day": pa.date32(), "b": pa.bool_()})
    test = partition_filter(table("day,b"), schema, parse_where(where, schema).conjuncts)
    paths = ["2024-02-29/true", "2024-03-01/false", f"{NULL}/{NULL}", "odd/false"]
    assert test is not None
    possible = [path for path in paths if test(path)]
    assert [path for path in possible if path != "odd/false" or "b" in where] == kept
    assert test("odd/true") == ("false" not in where)


def test_encoded_and_custom_levels_are_pruned_by_their_values() -> None:
    schema = pa.schema({"city": pa.string(), "at": pa.int64()})
    conjuncts = parse_where("city = 'a/b'", schema).conjuncts
    encoded = table("city:SIMPLE,at:TIMESTAMP", "CUSTOM", **ENCODED)
    scan = partition_filter(encoded, schema, conjuncts)
    changes = partition_filter(encoded, schema, conjuncts, incremental=True)
    assert scan is not None
    assert changes is not None
    paths = ["a%2Fb/20240229", "b/20240229"]
    assert [path for path in paths if scan(path)] == paths[:1]
    # An incremental read shows the encoded text, which the literal is not.
    assert not [path for path in paths if changes(path)]
    times = parse_where("at = 5", schema).conjuncts
    assert partition_filter(encoded, schema, times) is None


def test_partition_text_is_only_for_timestamp_generators() -> None:
    schema = pa.schema({"at": pa.int64(), "city": pa.string()})
    assert text_columns(table("at", "TIMESTAMP"), schema) == ("at",)
    assert text_columns(table("city", "TIMESTAMP"), schema) == ()
    assert text_columns(table("at:TIMESTAMP", "CUSTOM"), schema) == ()


def test_partitions_of_dates_with_slashes_are_left_out(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a", "b", "c"], "day": ["2024-01-05", "2024-01-06", None]})
    made = pyhudi.create_table(tmp_path, rows, key="id", partition_by="day", options=SLASHES)
    days = made.scan(columns=["id", "day"]).to_arrow().sort_by("id")["day"]
    assert days.to_pylist() == ["2024-01-05", "2024-01-06", None]
    scan = made.scan(where="day = '2024-01-06'")
    assert scan.to_arrow()["id"].to_pylist() == ["b"]
    assert set(scan.explain().pruned["partition"].to_pylist()) == {NULL, "2024/01/05"}


def test_scan_returns_partition_timestamps_of_files(tmp_path: Path) -> None:
    at = pa.array([1709209800000000, -1, None], pa.timestamp("us", "UTC"))
    rows = pa.table({"id": ["a", "b", "c"], "at": at, "ts": [1, 1, 1]})
    opened = pyhudi.create_table(str(tmp_path / "t"), rows, key="id", partition_by="at", version=6)
    assert opened.scan(columns=["id", "at"]).to_arrow().sort_by("id") == rows.select(["id", "at"])
    found = opened.scan(where="at < '1970-01-01T00:00:00Z'").to_arrow()
    assert found["id"].to_pylist() == ["b"]


@pytest.mark.parametrize("value", ["", NULL])
@pytest.mark.parametrize("version", [6, 9])
def test_texts_with_the_path_of_null_are_no_partition_values(
    tmp_path: Path, value: str, version: int
) -> None:
    """They would be read as null, as Hudi reads them."""
    rows = pa.table({"id": ["a", "b"], "day": pa.array([None, "2024-01-05"]), "v": ["", NULL]})
    made = pyhudi.create_table(tmp_path, rows, key="id", partition_by="day", version=version)
    bad = pa.table({"id": ["c", "d"], "day": ["x", value], "v": ["", ""]})
    match = f"row 1: the partition column 'day' is '{value}'"
    for change in (made.insert, made.upsert, made.overwrite, made.delete_keys):
        with pytest.raises(SchemaMismatch, match=match):
            change(bad)
    with pytest.raises(SchemaMismatch, match=match):
        pyhudi.create_table(tmp_path / "t", bad, key="id", partition_by="day")
    assert made.scan().count() == 2
    assert not (tmp_path / "t" / ".hoodie").exists()
