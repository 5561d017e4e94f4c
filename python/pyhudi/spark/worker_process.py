"""Makes Spark's own work between the tasks of a Python worker cheap.

A worker runs many small tasks. Spark's own work between them took more processor time than that of
pyhudi: a tenth of a second a task.
"""

from __future__ import annotations

import gc
import re
import sys
from zipimport import zipimporter

_OF_SPARK = re.compile(r"[/\\](?:pyspark\.zip|py4j-[\w.]+-src\.zip|spark-core_[\w.-]+\.jar)$")
"""Archives that Spark puts on the Python path of its workers (`PythonUtils.sparkPythonPath`)."""
_frozen_modules = 0
"""Number of modules at the last freeze."""


def trim_worker() -> None:
    """Make Spark's work around the tasks of this process cheap. Call it in each task."""
    freeze_modules()
    forget_archives()


def freeze_modules() -> None:
    """Exclude from garbage collection what imports created.

    Spark collects garbage after every task (`pyspark/daemon.py`, 3.5 to 4.3) and visits all objects
    of pyspark, pyarrow, pandas and pyhudi. It has just done so when a task begins: little but these
    objects is left.
    """
    global _frozen_modules  # noqa: PLW0603 - a state of the process, as that of the collector
    if len(sys.modules) != _frozen_modules:
        _frozen_modules = len(sys.modules)
        gc.freeze()


def forget_archives() -> None:
    """Drop the import system's readers of Spark's own archives; the next import creates new ones.

    Spark invalidates import caches before every task (`pyspark/worker.py`, 3.5 to 4.3), and each
    reader would read the directory of its archive again, in Python (`zipimport`, Python 3.10 to
    3.12).
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter) and _OF_SPARK.search(finder.archive):
            del sys.path_importer_cache[path]
