"""Tables in a bucket: executors reach it by the options they are sent, or by their environment."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

import pyhudi
from pyhudi.spark import read
from tests.cloud.conftest import Bucket, no_variables, s3_bucket, s3_server  # noqa: F401  fixtures
from tests.helpers.tables import GoldenTables

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

TABLE = "v9_mor_part_avro"


@pytest.mark.parametrize("given", [True, False], ids=["options", "environment"])
def test_executors_reach_a_bucket(
    spark: SparkSession,
    golden: GoldenTables,
    s3_bucket: Bucket,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    given: bool,
) -> None:
    base = golden.unpack(TABLE)
    uri = s3_bucket.upload(base, "table")
    if not given:
        for name, value in s3_bucket.options.items():
            if name.startswith("aws_"):
                monkeypatch.setenv(name.upper(), value)
                # Of this process for planning, of the executors for reading.
                monkeypatch.setitem(spark.sparkContext.environment, name.upper(), value)
    frame = read(
        spark, uri, columns=["id", "ts"], storage_options=s3_bucket.options if given else None
    )
    wanted = pyhudi.open_table(base).scan(["id", "ts"]).to_arrow().to_pylist()
    found = [row.asDict() for row in frame.collect()]
    assert sorted(map(str, found)) == sorted(map(str, wanted))
