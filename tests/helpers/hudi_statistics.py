"""Statistics as Hudi would have written them, in place of those that pyhudi writes.

Some records of Hudi's say less than the files hold, and pyhudi never writes such.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

from pyhudi import _native
from pyhudi.metadata.partition_types.file_stats import FileStatsTask

_INDEX = "expr_index_i"
_KEY_OF_COLUMN = 12
"""Characters of its hash, with which the keys of its records begin."""


@dataclass(frozen=True)
class Told:
    """What is said of a column's values."""

    column: str
    least: Any
    greatest: Any
    values: int
    nulls: int = 0
    size: int = 0
    """Bytes of the values, uncompressed."""


@contextmanager
def hudi_says(told: Told, *partitions: str) -> Iterator[None]:
    """In place of what is written meanwhile.

    partitions: of the metadata table.
    """
    facts_of = FileStatsTask._statistics_of

    def replaced(task: FileStatsTask, files: tuple[tuple[str, bool], ...]) -> pa.RecordBatch:
        found = facts_of(task, files)
        column, record = _record(task, told)
        rows = zip(found["route"].to_pylist(), found["key"].to_pylist(), strict=True)
        wanted = [r.startswith(partitions) and k.startswith(column) for r, k in rows]
        pairs = zip(found["value"].to_pylist(), wanted, strict=True)
        values = pa.array([record if is_it else value for value, is_it in pairs], pa.binary())
        return found.set_column(found.schema.get_field_index("value"), "value", values)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FileStatsTask, "_statistics_of", replaced)
        yield


def _record(task: FileStatsTask, told: Told) -> tuple[str, bytes]:
    """The beginning of its keys, and a record of a partition."""
    values = {
        "name": ["f"],
        # The recorder doubles it.
        "size": pa.array([told.size // 2], pa.int64()),
        "nulls": pa.array([told.nulls], pa.int64()),
        "values": pa.array([told.values], pa.int64()),
        "min": [told.least],
        "max": [told.greatest],
    }
    made = _native.MetadataRecorder(task.task_context.avro_schema, {_INDEX: 1}).expression_stats(
        _INDEX,
        told.column,
        task.partition,
        pa.RecordBatch.from_pydict(values),
        value_types=task.value_types,
        tight=task.value_types,
    )
    key: str = made["key"][-1].as_py()
    record: bytes = made["value"][-1].as_py()
    return key[:_KEY_OF_COLUMN], record
