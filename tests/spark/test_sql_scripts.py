"""Statements of Spark SQL have the same results on pyhudi as on Apache Hudi."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pyhudi.spark import sql
from tests.helpers.sql_scripts import (
    SCRIPTS,
    TYPES,
    create_statement,
    load,
    normalize_rows,
    steps,
)

pytestmark = [pytest.mark.spark35, pytest.mark.filterwarnings("ignore")]


@pytest.mark.parametrize(
    ("name", "table_type"),
    [(name, TYPES[at % 2]) for at, name in enumerate(SCRIPTS)] + [("merge", "cow")],
)
def test_sql_script_has_hudis_rows(
    name: str, table_type: str, spark: SparkSession, tmp_path: Path
) -> None:
    sql(spark, create_statement(tmp_path / "trips", table_type))
    expected = load()[f"{name}-{table_type}"]
    for (statement, query), rows in zip(steps(name), expected, strict=True):
        if statement is not None:
            sql(spark, statement)
        found = [row.asDict(recursive=True) for row in sql(spark, query).collect()]
        assert normalize_rows(found) == rows, statement or query
