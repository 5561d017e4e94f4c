"""Hudi's showing procedures as table functions of SQL."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.errors import ConfigError
from pyhudi.spark import register_procedures
from tests.helpers.table_builder import TableBuilder, numbered

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

TABLE = TableBuilder({"id": (pa.string(), numbered())}, metadata=False)


def test_sql_shows_what_the_table_tells(spark: SparkSession, tmp_path: Path) -> None:
    TABLE.make(tmp_path, first=range(3))
    table = pyhudi.open_table(tmp_path)
    table.upsert(TABLE.rows(range(2, 5)))
    table.savepoint("kept")
    if spark.version.startswith("3."):
        with pytest.raises(ConfigError, match="PySpark 4"):
            register_procedures(spark)
        return
    assert "show_commits" in register_procedures(spark)

    def found(call: str) -> list[dict[str, object]]:
        return [row.asDict() for row in spark.sql(f"SELECT * FROM {call}").collect()]

    commits = table.inspect.commits().to_pylist()
    assert found(f"show_commits('{tmp_path}')") == commits[::-1]
    assert found(f"show_commits('{tmp_path}', 1)") == commits[-1:]
    assert found(f"show_timeline('{tmp_path}', 2)") == table.inspect.timeline().to_pylist()[:-3:-1]
    (saved,) = found(f"show_savepoints('{tmp_path}')")
    assert (saved["instant"], saved["comment"]) == (commits[-1]["requested"], "kept")
    properties = {row["key"]: row["value"] for row in found(f"show_table_properties('{tmp_path}')")}
    assert properties == dict(table.config.properties)
    with pytest.raises(Exception, match="is relative"):
        found("show_commits('here')")
