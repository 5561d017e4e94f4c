"""Rows that are written with an options map equal those of Apache Hudi's own Spark writer.

The rows are Arrow rows, as in the format "pyhudi": no Spark session is needed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.engine.local import LocalEngine
from pyhudi.spark.hudi_operations import ArrowRows, Target, run_write
from pyhudi.spark.hudi_options import WriteRequest
from tests.helpers.options_maps import (
    cases,
    expected_rows,
    load,
    normalize_rows,
    properties,
    writes,
)

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
