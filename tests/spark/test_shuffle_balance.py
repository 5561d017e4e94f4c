"""Routes are spread evenly over the partitions of Spark's shuffle."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from pyhudi.spark.file_routing import route_names, route_number, shuffle_partitions, spark_hash

pytestmark = [
    pytest.mark.spark35,
    pytest.mark.filterwarnings("ignore"),  # PySpark's own warnings are not ours to mend
]


def test_balance_hash_equals_spark_hash(spark: SparkSession) -> None:
    names = route_names(40, 7)
    frame = spark.createDataFrame([(name,) for name in names], "name string")
    found = {row[0]: row[1] for row in frame.selectExpr("name", "hash(name)").collect()}
    assert found == {name: spark_hash(name.encode()) for name in names}


@pytest.mark.parametrize(("count", "partitions"), [(4, 4), (3, 200), (100, 200), (1000, 8), (5, 1)])
def test_balance_partitions_have_similar_sizes(count: int, partitions: int) -> None:
    names = route_names(count, partitions)
    assert [route_number(name) for name in names] == list(range(count))
    slots = [spark_hash(name.encode()) % partitions for name in names]
    loads = [slots.count(slot) for slot in range(partitions)]
    assert max(loads) <= -(-count // partitions) + 1
    if count <= partitions:
        assert max(loads) == 1


def test_balance_uses_session_partition_count(spark: SparkSession) -> None:
    assert shuffle_partitions(spark) == int(spark.conf.get("spark.sql.shuffle.partitions"))
