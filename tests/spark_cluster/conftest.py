"""One cluster for all tests of a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark import cloudpickle

from tests.spark_cluster import pausing
from tests.spark_cluster.standalone import Cluster


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    cloudpickle.register_pickle_by_value(pausing)  # executors have the wheel, not the tests
    started = Cluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.spark)
