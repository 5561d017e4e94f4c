"""Execution of the tasks of a pack, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from pyhudi.slices.task_packing import Pack


def read_pack(pack: Pack[Any]) -> Iterator[pa.RecordBatch]:
    """The rows of all tasks of a pack, in their order."""
    for task in pack.tasks:
        yield from pack.work(task)
