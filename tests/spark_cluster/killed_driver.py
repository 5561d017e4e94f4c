"""A driver that upserts rows, and pauses in a phase of the commit until it is killed.

python -m tests.spark_cluster.killed_driver BASE URL FOLDER PHASE
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark import cloudpickle

import pyhudi
from tests.spark_cluster import pausing
from tests.spark_cluster.cluster_table import rows_of
from tests.spark_cluster.pausing import Pause, PausingEngine, pause_before_file
from tests.spark_cluster.standalone import session_at

_NEXT_FILE = {
    "requested": r"/\d+\.((delta)?commit\.)?inflight$",
    "metadata table": r"(?<!/metadata)/\.hoodie/(timeline/)?\d+(_\d+)?\.(delta)?commit$",
}
"""The file that the driver does not create any more, by phase."""


def main(base: str, url: str, folder: str, phase: str) -> None:
    spark = session_at(url, Path(folder) / "driver")
    pause, engine = Pause(Path(folder) / "control"), None
    if phase == "tasks":
        cloudpickle.register_pickle_by_value(pausing)  # executors do not have the tests
        engine = PausingEngine(spark, pause, "marked")
    else:
        pause_before_file(pause, _NEXT_FILE[phase])
    pyhudi.open_table(base, engine=engine).upsert(rows_of(spark, 200, 500, 2))


if __name__ == "__main__":
    main(*sys.argv[1:])
