"""Two Spark drivers write to one table, and are killed, stopped and started again beside."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest

from tests.spark.drivers import drive

SECONDS = float(os.environ.get("PYHUDI_SOAK_SECONDS", "30"))


@pytest.mark.timeout(SECONDS * 2 + 600)
@pytest.mark.parametrize(("version", "kind"), [(9, "mor"), (6, "cow")])
def test_killed_drivers_write_each_batch_once(
    version: Literal[6, 9], kind: Literal["cow", "mor"], tmp_path: Path
) -> None:
    found = drive(tmp_path, SECONDS, type_=kind, version=version)
    assert found.findings == []
    assert found.batches
    assert found.reads
    assert found.done
