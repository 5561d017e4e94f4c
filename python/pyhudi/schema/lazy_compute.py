"""`pyarrow.compute`, imported at the first use of one of its names.

Its import takes longer than that of all of pyhudi, and a scan without a filter does not need it.
Modules that scans import take functions from here, and types from `pyarrow.compute`.
"""

from __future__ import annotations

import importlib
from typing import Any


def __getattr__(name: str) -> Any:
    return getattr(importlib.import_module("pyarrow.compute"), name)
