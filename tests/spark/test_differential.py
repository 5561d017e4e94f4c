"""The random histories of `tests/compat`, with DataFrames that pyhudi writes on Spark."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark import SparkEngine
from tests.helpers.differential import Setting
from tests.helpers.history import RELEASES, SECONDS, History
from tests.helpers.oracle.client import HudiOracle
from tests.spark.arrow import frame_of

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

SETTINGS = [
    Setting(6, "cow", "GLOBAL_BLOOM", metadata=True),
    Setting(6, "mor", "BUCKET", metadata=False),
    Setting(8, "cow", "SIMPLE", metadata=True),
    Setting(8, "mor", "RECORD_INDEX", metadata=True),
    Setting(9, "cow", "RECORD_INDEX", metadata=True),
    Setting(9, "mor", "BLOOM", metadata=True),
]


@pytest.mark.parametrize(
    ("setting", "hudi"),
    [pytest.param(one, RELEASES[one.version], id=str(one)) for one in SETTINGS],
    indirect=["hudi"],
)
@pytest.mark.timeout(SECONDS)
def test_history_in_turn(
    tmp_path: Path, hudi: HudiOracle, spark: SparkSession, setting: Setting
) -> None:
    engine = SparkEngine(spark)
    given = partial(_frame, spark)
    History(tmp_path / "t", hudi, setting, engine=engine, given=given).run()


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    return frame_of(spark, rows).repartition(2)
