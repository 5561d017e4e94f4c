"""The random histories of `tests/compat`, with DataFrames: pyhudi on Spark and Apache Hudi in turn.

PYHUDI_DIFFERENTIAL_STEPS and _SEED are as there.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from pyhudi.spark import SparkEngine
from tests.helpers.differential import Setting, Writer
from tests.helpers.history import RELEASES, History
from tests.helpers.oracle.client import HudiOracle
from tests.spark.arrow import frame_of

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark's own warnings are not ours to mend

STEPS = int(os.environ.get("PYHUDI_DIFFERENTIAL_STEPS", "3"))
SEED = os.environ.get("PYHUDI_DIFFERENTIAL_SEED", "")
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
@pytest.mark.timeout(0 if STEPS > 20 else 600)
def test_history_in_turn(
    tmp_path: Path, hudi: HudiOracle, spark: SparkSession, setting: Setting
) -> None:
    engine = SparkEngine(spark)
    given = partial(_frame, spark)
    history = History(tmp_path / "t", hudi, setting, seed=SEED, engine=engine, given=given)
    history.begin()
    writers: tuple[Writer, Writer] = ("pyhudi", "hudi")
    for number in range(STEPS):
        step = history.take(writers[number % 2])
        history.check(f"step {number}: {step}")
    history.validate()


def _frame(spark: SparkSession, rows: pa.Table) -> DataFrame:
    return frame_of(spark, rows).repartition(2)
