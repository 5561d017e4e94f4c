"""The Spark session of the tests, in which small writes run on the driver or on executors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from pyhudi.spark.engine import SMALL_CALL_OPTION
from tests.spark.session import spark_session

SMALL_CALLS = "PYHUDI_SMALL_CALLS"
"""Where small writes run: "driver" or "executors". By default it changes with test and part."""


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    return spark_session()


@pytest.fixture(autouse=True)
def small_calls(request: pytest.FixtureRequest) -> Iterator[None]:
    """Half of the tests write their rows as a user's large writes: on executors."""
    if "spark" not in request.fixturenames:
        yield
        return
    where = os.environ.get(SMALL_CALLS)
    if request.node.get_closest_marker("on_executors"):
        where = "executors"
    if where is None:
        seed = f"{request.node.nodeid} {os.environ.get('PYHUDI_PART', '')}"
        where = ("driver", "executors")[crc32(seed.encode()) % 2]
    session = spark_session()
    if where == "executors":
        session.conf.set(SMALL_CALL_OPTION, "0")
    yield
    session.conf.unset(SMALL_CALL_OPTION)


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.spark)
