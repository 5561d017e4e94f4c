"""Spark's reader and Hudi's statistics trust the bounds of floating numbers in pyhudi's footers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

import pyhudi
from tests.compat.test_alternating_writers import hudi_options
from tests.compat.test_metadata_writes import METADATA, STATISTICS
from tests.helpers.oracle.client import HudiOracle

Numbers = Mapping[str, list[float]]
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("city", pa.string()),
        ("f", pa.float64()),
        ("g", pa.float32()),
        ("ts", pa.int64()),
    ]
)
DDL = "id string, city string, f double, g float, ts long"
NAN = float("nan")
PLAIN = {"low": [-3.0, -2.0], "high": [1.0, 5.0, 9.0], "minus": [-0.0], "plus": [0.0]}
"""One base file a partition, without NaN: for files with it Hudi makes wrong statistics."""
WITH_NAN = {**PLAIN, "one": [1.5, NAN], "only": [NAN, NAN], "wide": [1.0, NAN, 9.0]}
# Spark loses a -0.0 that is without 0.0 in a dictionary, of Hudi's files as well.
OPTIONS = {
    "hoodie.table.name": "trips",
    "hoodie.metadata.enable": "false",
    "hoodie.parquet.dictionary.enabled": "false",
}
# Hudi's readers turn these in the session, and -0.0 is below 0.0 where Parquet filters single rows.
READER = {
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.recordLevelFilter.enabled": "false",
}
LISTED = {**READER, "hoodie.metadata.enable": "false", "hoodie.enable.data.skipping": "false"}
SKIPPING = {**READER, "hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
FILTERS: dict[str, Callable[[float], bool]] = {
    "> 5": lambda x: math.isnan(x) or x > 5,
    ">= 0": lambda x: math.isnan(x) or x >= 0,
    "< 0": lambda x: x < 0,
    "= 5": lambda x: x == 5,
    "= 0": lambda x: x == 0,
    "= 'NaN'": math.isnan,
}


def rows_of(numbers: Numbers) -> list[dict[str, Any]]:
    return [
        {"id": f"{city}{number}", "city": city, "f": value, "g": value, "ts": 1}
        for city, values in numbers.items()
        for number, value in enumerate(values)
    ]


def written(base: Path, version: int, kind: Literal["cow", "mor"], numbers: Numbers) -> None:
    table = pyhudi.create_table(
        base,
        SCHEMA,
        key="id",
        partition_by="city",
        order_by="ts",
        type=kind,
        version=version,
        options=OPTIONS,
    )
    table.upsert(pa.Table.from_pylist(rows_of(numbers), SCHEMA))


def answers(hudi: HudiOracle, base: Path, options: Mapping[str, str]) -> dict[str, list[str]]:
    """What Hudi finds by each filter: one query, in which each filter is pushed down by itself."""
    wheres = [f"{column} {test}" for column in "fg" for test in FILTERS]
    queries = [
        f"SELECT {number} AS q, id FROM {{table}} WHERE {where}"
        for number, where in enumerate(wheres)
    ]
    found = hudi.sql(base, " UNION ALL ".join(queries), options)["rows"]
    return {
        where: sorted(one["id"] for one in found if one["q"] == number)
        for number, where in enumerate(wheres)
    }


def model(numbers: Numbers) -> dict[str, list[str]]:
    return {
        f"{column} {test}": sorted(one["id"] for one in rows_of(numbers) if holds(one[column]))
        for column in "fg"
        for test, holds in FILTERS.items()
    }


@pytest.mark.hudi("1.2.0")
@pytest.mark.parametrize(("version", "kind"), [(6, "mor"), (9, "cow")])
def test_hudi_finds_every_number_in_a_base_file(
    tmp_path: Path, hudi: HudiOracle, version: int, kind: Literal["cow", "mor"]
) -> None:
    written(tmp_path / "trips", version, kind, WITH_NAN)
    assert answers(hudi, tmp_path / "trips", LISTED) == model(WITH_NAN)


@pytest.mark.hudi("1.2.0")
def test_hudi_makes_right_statistics_of_footers(tmp_path: Path, hudi: HudiOracle) -> None:
    base = tmp_path / "trips"
    written(base, 9, "cow", PLAIN)
    more = {"more": [5.0]}
    options = {**hudi_options("cow", partitioned=True), **METADATA, **STATISTICS}
    hudi.write(base, rows=rows_of(more), schema=DDL, options=options, operation="upsert")
    assert "column_stats" in pyhudi.open_table(base).config.metadata_partitions
    assert answers(hudi, base, SKIPPING) == model({**PLAIN, **more})
