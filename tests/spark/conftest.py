"""The Spark session of the tests."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark.session import spark_session


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return spark_session()


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.spark)
