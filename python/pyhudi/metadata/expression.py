"""Records of expression indexes: bounds, or a bloom filter, of an expression's values in a file.

Which functions there are and how their values are made is `expression_values.py`'s part. Every file
has records of its own, a log file too, as if it were alone. Rules: `SparkMetadataWriterUtils` (Hudi
1.0.2 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pyhudi.config.bloom_options import FilterOptions
from pyhudi.metadata.changed_slices import SliceRows, alone, read_columns
from pyhudi.metadata.definitions import BLOOM_FILTERS, COLUMN_STATS, IndexDefinition
from pyhudi.metadata.expression_values import Bounds, filter_values, refused_value, value_bounds
from pyhudi.metadata.records import Recording, RecordTask
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask, TableState

PREFIX = "expr_index_"
"""Of the names of its partitions."""


@dataclass(frozen=True)
class ExpressionTask(RecordTask):
    """The files of one data partition in one index."""

    definition: IndexDefinition
    partition: str
    files: tuple[tuple[str, int, ReadTask], ...]
    """Name, bytes, and the reading of the column in this file alone."""
    instant: str
    tight: bool
    """The files are all that the partition holds."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A filter for each file, or bounds of each file and of the partition."""
        yield from (_filters if self.definition.kind == BLOOM_FILTERS else _statistics)(self)


def _filters(task: ExpressionTask) -> Iterator[pa.RecordBatch]:
    """A filter for each file with rows."""
    options = FilterOptions.of(task.definition.options)
    for name, _, read in task.files:
        values = filter_values(task.definition, open_slice(read))
        if values is None:
            continue
        yield task.recording.recorder().expression_filter(
            task.definition.name,
            task.partition,
            name,
            task.instant,
            values.texts,
            simple=options.simple,
            entries=options.entries,
            fpp=options.fpp,
            max_entries=options.max_entries,
            passes_all=values.more,
        )


def _statistics(task: ExpressionTask) -> Iterator[pa.RecordBatch]:
    """Those of each file with rows, and of the partition."""
    read = (
        (name, size, value_bounds(task.definition, open_slice(one)))
        for name, size, one in task.files
    )
    found = [(name, size, bounds) for name, size, bounds in read if bounds is not None]
    if not found:
        return
    yield task.recording.recorder().expression_stats(
        task.definition.name,
        task.definition.columns[0],
        task.partition,
        _batch(found),
        value_types=task.definition.version > 1,
        tight=task.tight,
    )


def _batch(found: list[tuple[str, int, Bounds]]) -> pa.RecordBatch:
    kind = found[0][2].kind
    columns: dict[str, pa.Array[Any]] = {
        "name": pa.array([name for name, _, _ in found], pa.string()),
        "size": pa.array([size for _, size, _ in found], pa.int64()),
        "nulls": pa.array([one.nulls for _, _, one in found], pa.int64()),
        "values": pa.array([one.values for _, _, one in found], pa.int64()),
        "min": pa.array([one.min for _, _, one in found], kind),
        "max": pa.array([one.max for _, _, one in found], kind),
    }
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def expression_tasks(
    recording: Recording, definitions: Iterable[IndexDefinition], rows: SliceRows, instant: str
) -> Iterator[ExpressionTask]:
    """What a commit's files add, a task for each index and data partition."""
    for one in definitions:
        for partition, files in rows.files.items():
            read = tuple((name, size, rows.read(file, one.columns)) for name, size, file in files)
            yield ExpressionTask(recording, one, partition, read, instant, tight=False)


def initial_tasks(
    recording: Recording,
    definition: IndexDefinition,
    state: TableState,
    slices: Iterable[FileSlice],
    instant: str,
) -> Iterator[ExpressionTask]:
    """What a new index tells, a task for each data partition."""
    by_partition: dict[str, list[tuple[str, int, ReadTask]]] = {}
    for one in slices:
        files = by_partition.setdefault(one.partition, [])
        for name, size, file in alone(one):
            files.append((name, size, read_columns(state, file, definition.columns)))
    for partition, files in by_partition.items():
        yield ExpressionTask(recording, definition, partition, tuple(files), instant, tight=True)


def maintained(
    definitions: Mapping[str, IndexDefinition], partitions: Iterable[str]
) -> list[IndexDefinition]:
    """The table's expression indexes by the partitions that it has."""
    found = (definitions.get(name) for name in partitions if name.startswith(PREFIX))
    return [one for one in found if one is not None]


def refusal(definition: IndexDefinition | None, schema: pa.Schema) -> str | None:
    """Why an index cannot be made or kept up to date, None where it can."""
    if definition is None:
        return "the index definitions lack it"
    if definition.kind not in (COLUMN_STATS, BLOOM_FILTERS):
        return f"it is of kind {definition.kind}"
    if len(definition.columns) != 1 or definition.columns[0] not in schema.names:
        return f"it is of {', '.join(definition.columns)}, which is no column"
    reason = refused_value(definition, schema.field(definition.columns[0]).type)
    if reason is None and definition.kind == BLOOM_FILTERS:
        reason = FilterOptions.refusal(definition.options)
    return reason
