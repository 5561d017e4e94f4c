"""Rows that are written with an options map equal those of Apache Hudi's own Spark writer.

Each map is written as Arrow rows without a session. With a session, every other one is written as a
DataFrame, the others with the format "pyhudi".
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.engine.local import LocalEngine
from pyhudi.spark import register_source, write
from pyhudi.spark.hudi_operations import ArrowRows, Target, run_write
from pyhudi.spark.hudi_options import WriteRequest
from tests.helpers.options_maps import (
    COLUMNS,
    RELEASE,
    cases,
    expected_rows,
    load,
    normalize_rows,
    properties,
    third_write,
    writes,
)
from tests.helpers.oracle.client import HudiOracle
from tests.spark.arrow import frame_of

pytestmark = pytest.mark.filterwarnings("ignore")  # Of duplicates, and of defaults.

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int32()),
        ("p", pa.string()),
        ("day", pa.int64()),
        ("v", pa.int64()),
        ("ts", pa.int64()),
    ]
)


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows, SCHEMA)


VALUES = ("_hoodie_partition_path", "id", "v", "ts")


def values(table: HudiTable) -> list[tuple[Any, ...]]:
    rows = table.scan(meta_fields=True).to_arrow().to_pylist()
    return sorted(tuple(row[name] for name in VALUES) for row in rows)


def check_equals_hudis(base: Path, case: str) -> None:
    rows = pyhudi.open_table(base).scan(meta_fields=True).to_arrow().to_pylist()
    assert normalize_rows(rows, cases()[case], base) == expected_rows(case)
    assert properties(base) == load()[case].properties


def write_arrow(base: Path, rows: list[dict[str, Any]], options: dict[str, str]) -> None:
    target = Target(str(base), LocalEngine(1))
    run_write(ArrowRows(arrow(rows)), WriteRequest.of(options), target, "append")


@pytest.mark.parametrize("case", load())
def test_write_with_options_map_equals_hudis(case: str, tmp_path: Path) -> None:
    for rows, options in writes(cases()[case]):
        write_arrow(tmp_path, rows, options)
    check_equals_hudis(tmp_path, case)


OF_FRAMES, OF_FORMAT = list(load())[::2], list(load())[1::2]


@pytest.mark.parametrize("case", OF_FRAMES)
def test_write_of_frame_with_options_map_equals_hudis(
    case: str, spark: SparkSession, tmp_path: Path
) -> None:
    for rows, options in writes(cases()[case]):
        write(frame_of(spark, arrow(rows)), tmp_path, options, mode="append")
    check_equals_hudis(tmp_path, case)


@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 3.5 has no data sources in Python")
@pytest.mark.parametrize("case", OF_FORMAT)
def test_write_of_format_with_options_map_equals_hudis(
    case: str, spark: SparkSession, tmp_path: Path
) -> None:
    register_source(spark)
    for rows, options in writes(cases()[case]):
        frame = frame_of(spark, arrow(rows))
        frame.write.format("pyhudi").options(**options).mode("append").save(str(tmp_path))
    check_equals_hudis(tmp_path, case)


CONTINUED = (
    "-bucket-payload-custom-cow",
    "-global_simple-ordered-complex-mor",
    "-record_index--timestamp-cow",
    "delete---custom-cow",
    "delete-global_bloom-payload-simple-mor",
    "delete_partition-bucket-ordered-simple-mor",
    "insert---generated-cow",
    "insert_overwrite_table-record_index-ordered-custom-mor",
)


@pytest.mark.parametrize("hudi", [RELEASE], indirect=True)
@pytest.mark.parametrize("case", CONTINUED)
def test_hudi_writes_to_table_with_same_options_map(
    case: str, hudi: HudiOracle, tmp_path: Path
) -> None:
    """Apache Hudi and pyhudi each write a further batch to a copy of the table."""
    own, hudis, options = tmp_path / "own", tmp_path / "hudis", cases()[case]
    for rows, options_of_write in writes(options):
        write_arrow(own, rows, options_of_write)
    shutil.copytree(own, hudis)
    more = third_write(options)
    write_arrow(own, more, options)
    hudi.write(hudis, more, COLUMNS, operation=None, options=options)
    expected = values(pyhudi.open_table(own))
    assert values(pyhudi.open_table(hudis)) == expected
    for base in (own, hudis):
        rows = hudi.read(base, meta=True)["rows"]
        assert sorted(tuple(row[name] for name in VALUES) for row in rows) == expected
    assert properties(hudis) == properties(own)
