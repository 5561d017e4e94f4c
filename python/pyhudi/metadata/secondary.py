"""Records of secondary indexes: what a commit changes in the values of a column.

An entry is a value with the key of a record that has it. The entries of a file group before and
after are told apart where its rows are read; nothing passes the driver. Rules:
`SecondaryIndexRecordGenerationUtils` (Hudi 1.0.2 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.types as at

from pyhudi.metadata.changed_slices import SliceRows
from pyhudi.metadata.definitions import SECONDARY_INDEX, IndexDefinition
from pyhudi.metadata.records import Recording, RecordTask
from pyhudi.schema.record_keys import RECORD_KEY
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask

PREFIX = "secondary_index_"
"""Of the names of its partitions."""


@dataclass(frozen=True)
class SecondaryTask(RecordTask):
    """The entries of one file group in one index."""

    index: str
    hashed_by_value: bool
    """The file group of an entry follows from the value alone (index version 2)."""
    before: ReadTask | None
    after: ReadTask | None
    """Record key and the index's column; None for no rows."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """A record for each entry that came or went."""
        before = None if self.before is None else open_slice(self.before)
        after = None if self.after is None else open_slice(self.after)
        yield self.recording.recorder().secondary(
            self.index, hashed_by_value=self.hashed_by_value, before=before, after=after
        )


def secondary_tasks(
    recording: Recording, definitions: Iterable[IndexDefinition], rows: SliceRows
) -> Iterator[SecondaryTask]:
    """What a commit changes, a task for each index and file group."""
    for definition in definitions:
        columns = columns_read(definition)
        for change in rows.changes:
            before, after = rows.task(change.before, columns), rows.task(change.after, columns)
            yield _task(recording, definition, before, after)


def initial_tasks(
    recording: Recording, definition: IndexDefinition, reads: Iterable[ReadTask]
) -> Iterator[SecondaryTask]:
    """All entries of a new index. reads: of `columns_read`, a task for each slice of a snapshot."""
    return (_task(recording, definition, None, read) for read in reads)


def columns_read(definition: IndexDefinition) -> tuple[str, ...]:
    """The columns that entries are made of."""
    return (RECORD_KEY, definition.columns[0])


def _task(
    recording: Recording,
    definition: IndexDefinition,
    before: ReadTask | None,
    after: ReadTask | None,
) -> SecondaryTask:
    return SecondaryTask(recording, definition.name, definition.version > 1, before, after)


def maintained(
    definitions: Mapping[str, IndexDefinition], partitions: Iterable[str]
) -> list[IndexDefinition]:
    """The table's secondary indexes by the partitions that it has."""
    found = (definitions.get(name) for name in partitions if name.startswith(PREFIX))
    return [one for one in found if one is not None and one.kind == SECONDARY_INDEX]


def refusal(definition: IndexDefinition | None, schema: pa.Schema) -> str | None:
    """Why an index cannot be kept up to date, None where it can.

    How Hudi writes other values than text and whole numbers depends on its engine.
    """
    if definition is None or definition.kind != SECONDARY_INDEX:
        return "the index definitions lack it"
    if len(definition.columns) != 1 or definition.columns[0] not in schema.names:
        return f"it is of {', '.join(definition.columns)}, which is no column"
    kind = schema.field(definition.columns[0]).type
    if at.is_string(kind) or at.is_int32(kind) or at.is_int64(kind):
        return None
    return f"it is of {definition.columns[0]}, which is {kind}"
