"""Temporary views of tables, as they are and were."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.api.outputs import Outputs
from pyhudi.errors import ConfigError
from pyhudi.spark import register
from tests.helpers.tables import GoldenTables

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]

TABLE = "v9_mor_cdc_data_before_after"


def test_views_for_sql(spark: SparkSession, golden: GoldenTables) -> None:
    base = golden.unpack(TABLE)
    table = pyhudi.open_table(base)
    first, *_, last = table.state.timeline.commits
    start, end = str(first.completed), str(last.completed)
    wanted: list[tuple[dict[str, Any], Outputs]] = [
        ({}, table.scan()),
        (
            {"as_of": first.requested, "where": "age > 30"},
            table.scan(as_of=first.requested, where="age > 30"),
        ),
        ({"query": "read_optimized"}, table.scan(read_optimized=True)),
        ({"query": "incremental", "start": start}, table.incremental(start)),
        ({"query": "changes", "start": start, "end": end}, table.changes(start, end)),
        (
            {"query": "diff", "start": first.requested, "end": last.requested},
            table.diff(first.requested, last.requested),
        ),
    ]
    for how, rows in wanted:
        register(spark, "people", base, **how)
        assert spark.sql("SELECT count(*) FROM people").first()[0] == rows.count()
        assert spark.table("people").columns == rows.schema.names


@pytest.mark.parametrize("how", [{"start": "1"}, {"query": "diff"}, {"query": "nope"}], ids=str)
def test_wrong_arguments_are_told(
    spark: SparkSession, golden: GoldenTables, how: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError):
        register(spark, "people", golden.unpack(TABLE), **how)
