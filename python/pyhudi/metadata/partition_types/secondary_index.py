"""`secondary_index_…`: for each value of a column, the keys of the records that have it.

An entry is a value with the key of a record that has it. The entries of a file group before and
after are compared where its rows are read; nothing passes through the driver. Rules:
`SecondaryIndexRecordGenerationUtils`, `HoodieSparkIndexClient` (Hudi 1.0.2 and 1.2.0).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.metadata_names import RECORD_INDEX
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError
from pyhudi.metadata.changed_groups import find_changed_groups
from pyhudi.metadata.changed_slices import read_columns
from pyhudi.metadata.index_definitions import (
    SECONDARY_INDEX,
    Definitions,
    IndexDefinition,
    new_definition,
)
from pyhudi.metadata.index_request import IndexRequest
from pyhudi.metadata.initial_records import InitialPartition, Source
from pyhudi.metadata.partition_types.base import (
    Change,
    DefinitionContext,
    DisplayRecords,
    MetadataPartitionType,
    StatisticsColumn,
    check_log_support,
)
from pyhudi.metadata.partitioned_record_index import is_partitioned
from pyhudi.metadata.pruning_context import PruningContext, SliceLookup
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.record_tasks import RecordTask
from pyhudi.metadata.slice_pruning import slices_with_values
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read import open_slice
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.storage.storage import Storage

_ROW_PRESERVING_OPERATIONS = frozenset({"COMPACT", "CLUSTER"})
"""Operations that change files, but no values."""


@dataclass(frozen=True)
class SecondaryTask(RecordTask):
    """The entries of one file group in one index."""

    index: str
    hashed_by_value: bool
    """The value alone decides the file group of an entry (index version 2)."""
    before: ReadTask | None
    after: ReadTask | None
    """The read of record key and the index's column; None for no rows."""

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Yield a record for each entry that was added or removed."""
        before = None if self.before is None else open_slice(self.before)
        after = None if self.after is None else open_slice(self.after)
        yield self.task_context.record_builder().secondary(
            self.index, hashed_by_value=self.hashed_by_value, before=before, after=after
        )


class SecondaryIndex(MetadataPartitionType):
    """One for each indexed column; it needs a record index over the whole table."""

    name = f"{SECONDARY_INDEX}_"
    has_names = True
    needs_definitions = True
    depends_on_column_names = True
    index_type_name = SECONDARY_INDEX
    needs = RECORD_INDEX
    lookup_cost = 2
    prevents_replace = True
    """`HoodieBackedTableMetadataWriter.updateSecondaryIndexIfPresent` (1.0.2 and 1.2.0)."""

    def define(self, storage: Storage, config: TableConfig, request: IndexRequest) -> Definitions:
        name = self.name + request.name_for(config)
        if RECORD_INDEX not in config.metadata_partitions or is_partitioned(storage, config):
            msg = "a secondary index needs a record index over the whole table"
            raise ConfigError(msg, hint='Create one with table.create_index("record_index").')
        options = request.options
        return new_definition(config, name, SECONDARY_INDEX, "identity", request.columns, options)

    def find_unsupported(self, name: str, table: DefinitionContext) -> str | None:
        """Support strings and integers only: how Hudi formats other types depends on its engine."""
        definition = table.definitions.get(name)
        if definition is None or definition.index_type != SECONDARY_INDEX:
            return "the index definitions do not contain it"
        if len(definition.columns) != 1 or definition.columns[0] not in table.schema.names:
            return f"it is of {', '.join(definition.columns)}, which is not a column"
        data_type = table.schema.field(definition.columns[0]).type
        if not (at.is_string(data_type) or at.is_int32(data_type) or at.is_int64(data_type)):
            return f"it is of {definition.columns[0]}, which is {data_type}"
        return check_log_support(table.config)

    def initial(self, source: Source, name: str) -> InitialPartition:
        """Return records for as many file groups as in a record index.

        Source: `initializeSecondaryIndexPartition`.
        """
        definition = source.definitions[name]
        records = sum(source.counts())
        groups = source.options.record_groups(records)
        task_context, columns = source.task_context({name: groups}), _columns_read(definition)
        tasks = [
            SecondaryTask(
                task_context,
                name,
                definition.version > 1,
                None,
                read_columns(source.table, slice_, columns),
            )
            for slice_ in source.slices
        ]
        return InitialPartition(name, groups, tasks, source.rounds(records, groups))

    def catch_up(
        self, before: Source, now: Source, name: str, groups: Sequence[FileGroup]
    ) -> Sequence[RecordTask]:
        """Return the entries of added and removed slices; an entry in both exists."""
        definition, task_context = now.definitions[name], now.task_context({name: len(groups)})
        columns, changed = _columns_read(definition), find_changed_groups(before, now)
        old_slices, new_slices = (
            {slice_.key: slice_ for slice_ in source.slices} for source in (before, now)
        )

        def read(source: Source, slice_: FileSlice | None) -> ReadTask | None:
            return None if slice_ is None else read_columns(source.table, slice_, columns)

        return [
            SecondaryTask(
                task_context,
                name,
                definition.version > 1,
                read(before, old_slices.get(group)),
                read(now, new_slices.get(group)),
            )
            for group in sorted(changed)
        ]

    def on_commit(self, change: Change, name: str) -> Iterator[SecondaryTask]:
        """Return entries that were added and removed, one task for each file group."""
        definition = change.definitions.get(name)
        if definition is None or change.metadata.operation_type in _ROW_PRESERVING_OPERATIONS:
            return
        columns, rows = _columns_read(definition), change.rows
        for group in rows.changes:
            before, after = rows.task(group.before, columns), rows.task(group.after, columns)
            yield SecondaryTask(change.task_context, name, definition.version > 1, before, after)

    def lookups(self, context: PruningContext, name: str) -> Iterator[tuple[str, SliceLookup]]:
        definition = context.definitions.get(name)
        if not (context.reads_current_snapshot and context.has_stable_names and definition):
            return
        if definition.index_type == SECONDARY_INDEX and len(definition.columns) == 1:
            values = context.strings(definition.columns[0])
            if values is None or not context.has_unique_keys:
                return
            # 1.0.2 does not escape null characters; 1.2.0 does, and would not find its entries.
            if definition.version > 1 or not any("\0" in value for value in values):
                yield name, partial(slices_with_values, definition=definition, values=values)

    def to_display(
        self, table: MetadataTable, name: str, column: StatisticsColumn
    ) -> DisplayRecords:
        definition = table.definitions.get(name)
        if definition is None:
            return None
        return table.partition(name).secondary(hashed_by_value=definition.version > 1)


def _columns_read(definition: IndexDefinition) -> tuple[str, ...]:
    """Return the columns from which entries are built."""
    return (RECORD_KEY, definition.columns[0])
