"""A SQL statement on Spark commits only on the rows of the table that it read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.errors import CommitConflict
from pyhudi.spark import register, sql
from pyhudi.sql_statements.target_reads import TargetReads
from pyhudi.table.table_snapshot import TableSnapshot
from tests.helpers.target_reads import COUNTS, STATEMENTS, values, write_before_commits

SPARK_STATEMENTS = STATEMENTS | {
    "query of an insert": "INSERT INTO t (id, city, n) SELECT 'z', 'x', max(n) FROM t",
}


@pytest.fixture(autouse=True)
def _no_view_left(spark: SparkSession) -> Iterator[None]:
    """Drop the view of the table: other tests list those of the session."""
    yield
    spark.catalog.dropTempView("t")


@pytest.mark.parametrize("name", SPARK_STATEMENTS)
def test_statement_runs_again_if_rows_that_it_read_have_changed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The table is as if the statement had run after the other write."""
    base, expected = tmp_path / "t", tmp_path / "expected"
    change = COUNTS.rows("xy", n=5)
    COUNTS.make(expected).upsert(change)
    COUNTS.make(base)
    register(spark, "t", str(expected))
    sql(spark, SPARK_STATEMENTS[name])
    register(spark, "t", str(base))
    with monkeypatch.context() as patch:
        write_before_commits(patch, lambda _: pyhudi.open_table(base).upsert(change), 1)
        sql(spark, SPARK_STATEMENTS[name])
    assert values(base) == values(expected)


@pytest.mark.spark35
def test_statement_raises_commit_conflict_if_each_attempt_loses(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    COUNTS.make(tmp_path / "t")
    options = {"hoodie.write.num.retries.on.conflict.failures": "1"}
    register(spark, "t", str(tmp_path / "t"), options=options)

    add, attempts = TargetReads.add, [0]

    def add_and_write(reads: TargetReads, table: TableSnapshot) -> None:
        add(reads, table)
        attempts[0] += 1
        pyhudi.open_table(tmp_path / "t").upsert(COUNTS.rows("y", n=attempts[0]))

    with monkeypatch.context() as patch:
        patch.setattr(TargetReads, "add", add_and_write)
        with pytest.raises(CommitConflict, match="changed the table after the statement read it"):
            sql(spark, STATEMENTS["value of another row"])
    assert attempts[0] == 2
    assert values(tmp_path / "t")["x"] == 0
