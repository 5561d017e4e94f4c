"""Exceptions of Spark whose executors have another Python, and the error that replaces them."""

from __future__ import annotations

import sys

import pytest

from pyhudi.spark.executor_environment import find_environment_error

WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "pyhudi/spark/engine.py", line 27, in <module>
"""
OTHER_VERSION = "[PYTHON_VERSION_MISMATCH] Python in worker has different version"
IO_ERROR = "Lost task 0.0 in stage 0.0 (TID 0): java.io.IOException: Cannot run program"


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        (f"{WORKER}ModuleNotFoundError: No module named 'pyarrow'", "has no package 'pyarrow'"),
        (f"{WORKER}ModuleNotFoundError: No module named 'pyhudi.slices'", "no package 'pyhudi'"),
        (
            f"{OTHER_VERSION}: 3.10 than that in driver: 3.12, PySpark cannot run",
            "executors run Python 3.10, the driver 3.12",
        ),
        (
            f"{OTHER_VERSION} (3, 10) than that in driver 3.12, PySpark cannot run",
            "executors run Python 3.10, the driver 3.12",
        ),
        (
            f'{IO_ERROR} "env/bin/python": error=2, No such file or directory',
            "executors cannot start the Python interpreter 'env/bin/python'",
        ),
    ],
)
def test_environment_error_names_the_cause(message: str, problem: str) -> None:
    error = find_environment_error(message)
    assert error is not None
    assert problem in str(error)
    assert sys.executable in str(error)
    assert "PYSPARK_PYTHON" in error.hint


@pytest.mark.parametrize(
    "message", ["ModuleNotFoundError: No module named 'cv2'", "ValueError: no module"]
)
def test_environment_error_is_none_for_other_causes(message: str) -> None:
    assert find_environment_error(message) is None
