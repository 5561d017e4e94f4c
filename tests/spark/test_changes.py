"""Changes and differences through Spark have the rows that this process gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.api.outputs import Outputs
from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.spark import SparkEngine
from pyhudi.spark.types import to_wire, wire_schema
from tests.helpers.rows import canonical_rows, difference
from tests.helpers.tables import GoldenTables
from tests.spark.arrow import arrow_table

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

CHANGED = ["v6_cow_cdc_op_key_only", "v9_mor_cdc_data_before_after"]
MOVED = "v8_mor_global_simple"


def both(base: Path, spark: SparkSession) -> tuple[HudiTable, HudiTable]:
    return pyhudi.open_table(base), pyhudi.open_table(base, engine=SparkEngine(spark))


def assert_same(local: Outputs, remote: Outputs) -> None:
    wanted, found = local.to_arrow(), arrow_table(remote.to_spark())
    wire = wire_schema(wanted.schema)
    cast = pa.Table.from_batches([to_wire(batch, wire) for batch in wanted.to_batches()], wire)
    assert found.schema.names == wanted.schema.names
    assert wanted.num_rows > 0
    assert difference(canonical_rows(found), canonical_rows(cast)) is None


@pytest.mark.spark35
@pytest.mark.parametrize("name", CHANGED)
@pytest.mark.parametrize("arguments", [{}, {"where": "op = 'd'", "images": "json"}], ids=str)
def test_changes(
    spark: SparkSession, golden: GoldenTables, name: str, arguments: dict[str, Any]
) -> None:
    local, remote = both(golden.unpack(name), spark)
    assert_same(local.changes(**arguments), remote.changes(**arguments))


def test_records_that_moved_meet_by_a_shuffle(spark: SparkSession, golden: GoldenTables) -> None:
    local, remote = both(golden.unpack(MOVED), spark)
    instants = [instant.requested for instant in local.state.timeline.commits]
    first, last = instants[0], instants[-1]
    assert_same(local.diff(first, last), remote.diff(first, last))
    moved = [row for row in remote.diff(first, last).to_spark().collect() if row["op"] == "u"]
    assert any("city" in row["changed"] for row in moved)


def test_changes_limit_applies_over_all_tasks(spark: SparkSession, golden: GoldenTables) -> None:
    _, remote = both(golden.unpack(CHANGED[0]), spark)
    assert remote.changes(limit=3).to_spark().count() == 3


def test_other_engines_have_no_data_frames(golden: GoldenTables) -> None:
    with pytest.raises(ConfigError, match="SparkEngine"):
        pyhudi.open_table(golden.unpack(MOVED)).scan().to_spark()
