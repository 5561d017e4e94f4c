"""Errors of the executors' Python, found in the text of Spark's exception.

A task that fails before pyhudi runs raises no exception of pyhudi: the executors have another
interpreter, or one without the packages. Spark then shows a trace of the worker's start.
"""

from __future__ import annotations

import re
import sys

from pyhudi.errors import ConfigError

PACKAGES = ("numpy", "pandas", "pyarrow", "pyhudi", "pyspark", "sqlglot")
"""Packages that an executor imports for the tasks of pyhudi."""

_MISSING = re.compile(r"ModuleNotFoundError: No module named '(\w+)[.\w]*'")
_OTHER_PYTHON = re.compile(
    # PySpark 3.5 shows the first version as a tuple.
    r"in worker has different version:? \(?(\d+)(?:\.|, )(\d+)\)? than that in driver:? (\d+\.\d+)"
)
_NO_PYTHON = re.compile(r'Cannot run program "([^"]+)"')


def find_environment_error(message: str) -> ConfigError | None:
    """Return the error that names the cause, None if Spark's exception has another one."""
    if match := _OTHER_PYTHON.search(message):
        return _error(f"executors run Python {match[1]}.{match[2]}, the driver {match[3]}")
    if match := _NO_PYTHON.search(message):
        return _error(f"executors cannot start the Python interpreter {match[1]!r}")
    if (match := _MISSING.search(message)) and match[1] in PACKAGES:
        return _error(f"the executors' Python has no package {match[1]!r}")
    return None


def _error(problem: str) -> ConfigError:
    return ConfigError(
        f"{problem}; the driver's interpreter is {sys.executable}",
        hint="On one machine, set the environment variable PYSPARK_PYTHON to the driver's "
        "interpreter before you create the session. On a cluster, send the environment with "
        "--archives, and set PYSPARK_PYTHON to the interpreter in it.",
    )
