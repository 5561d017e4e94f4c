"""The engines that the contract suite runs on: Spark's too, where there is PySpark."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from tests.engine.faulty import FaultyEngine, TriedAgain


@dataclass(frozen=True)
class Bench:
    """An engine, and what a test must know to give it rows and to look at rows of it."""

    name: str
    engine: Engine
    retrying: Engine
    """One that runs a failed task again."""
    rows: Callable[[pa.Table], Any]
    """Arrow rows as `exchange` takes them."""
    counted: Callable[[pa.Table, str], Any]
    """The same, leaving a file in a folder each time that they are evaluated."""
    table: Callable[[Any], pa.Table]
    """All rows of a `scan`."""

    @property
    def on_spark(self) -> bool:
        return self.name == "spark"


def local_bench(name: str, threads: int) -> Bench:
    from tests.engine.jobs import leave

    def counted(table: pa.Table, folder: str) -> pa.RecordBatchReader:
        def batches() -> Any:
            assert leave(folder, "0.evaluated")
            yield from table.to_batches()

        return pa.RecordBatchReader.from_batches(table.schema, batches())

    engine = LocalEngine(threads)
    return Bench(
        name=name,
        engine=engine,
        retrying=FaultyEngine(engine, TriedAgain),
        rows=lambda table: table,
        counted=counted,
        table=lambda reader: reader.read_all(),
    )


NAMES = ["one thread", "threads", *(["spark"] if importlib.util.find_spec("pyspark") else [])]


@pytest.fixture(params=NAMES)
def bench(request: pytest.FixtureRequest) -> Bench:
    if request.param == "spark":
        from tests.spark.contract_bench import spark_bench

        return spark_bench()
    return local_bench(request.param, 1 if request.param == "one thread" else 4)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Where there is PySpark, they are among its tests."""
    if "spark" in NAMES:
        item.add_marker(pytest.mark.spark)
