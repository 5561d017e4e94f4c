"""Rows that are written with an options map equal those of Apache Hudi's own Spark writer.

The rows are Arrow rows, as in the format "pyhudi": no Spark session is needed.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import pyhudi
from pyhudi.engine.local import LocalEngine
from pyhudi.spark.hudi_operations import ArrowRows, Target, run_write
from pyhudi.spark.hudi_options import WriteRequest
from tests.helpers.options_maps import cases, load, normalize_rows, properties, writes

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


@pytest.mark.parametrize("case", load())
def test_write_with_options_map_equals_hudis(case: str, tmp_path: Path) -> None:
    expected, options = load()[case], cases()[case]
    target = Target(str(tmp_path), LocalEngine(1))
    for rows, options_of_write in writes(options):
        data = ArrowRows(pa.Table.from_pylist(rows, SCHEMA))
        run_write(data, WriteRequest.of(options_of_write), target, "append")
    found = pyhudi.open_table(tmp_path).scan(meta_fields=True).to_arrow().to_pylist()
    assert normalize_rows(found, options) == expected.rows
    assert properties(tmp_path) == expected.properties
