"""The filter of a scan, and what an index proves for its rows.

A slice is pruned only if no merged row of it can match. A merged row takes each value from one of
the slice's files, so a condition excludes a slice if it excludes every file of it; conditions are
not combined, because partial updates merge columns of several files. Indexes of the current
snapshot (record index, partition statistics) prove nothing for base files only, or for older
snapshots. A handle shows an older snapshot once another writer has
committed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.cached_property import cached_property
from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.metadata_names import COLUMN_STATS, RECORD_INDEX
from pyhudi.config.options import ReadOptions
from pyhudi.metadata.fallback_reader import MetadataAccess
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.slice_pruning import record_locations_of
from pyhudi.schema.key_predicates import find_allowed_values, find_record_keys
from pyhudi.schema.predicates import Conjunct
from pyhudi.schema.table_schema import field_at, first_schema, is_meta
from pyhudi.slices.file_slices import FileSlices
from pyhudi.slices.read_tasks import ScanRequest
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.key_uniqueness import keys_are_unique

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

PRUNING_FALLBACK = "fewer files are pruned"
_SCHEMA_HISTORY = ".hoodie/.schema"

SliceLookup = Callable[[MetadataTable, FileSlices], "pa.BooleanArray | list[bool] | None"]
"""Returns which slices may match; None if the index has no information."""


@dataclass(frozen=True)
class PruningContext:
    """One scan of a table."""

    table: TableSnapshot
    request: ScanRequest
    access: MetadataAccess

    @cached_property
    def conjuncts(self) -> tuple[Conjunct, ...]:
        """The conditions of the filter."""
        if self.request.where is None or not ReadOptions.of(self.table.options).data_skipping:
            return ()
        return self.request.where.conjuncts

    @cached_property
    def converted_columns(self) -> frozenset[str]:
        """Columns whose values in files may differ from those that the filter sees."""
        return frozenset((*self.table.as_text, *self.table.config.partition_fields))

    @cached_property
    def stored_conjuncts(self) -> list[Conjunct]:
        """The conditions on columns as they are stored."""
        return [
            conjunct for conjunct in self.conjuncts if conjunct[0] not in self.converted_columns
        ]

    @cached_property
    def keys(self) -> list[str] | None:
        """Every record key that a matching row can have; None if the filter does not list keys."""
        return find_record_keys(self.table.config, self.conjuncts, self.converted_columns)

    @cached_property
    def key_locations(self) -> set[tuple[str, str]] | None:
        """Partition and file id of every record with one of the keys.

        None if the record index does not describe the rows of the scan, or is partitioned.
        """
        keys = self.keys
        if keys is None or not self.access.has(RECORD_INDEX):
            return None
        if not (self.reads_current_snapshot and self.has_unique_keys):
            return None
        return self.access.use(PRUNING_FALLBACK, lambda table: record_locations_of(table, keys))

    @cached_property
    def remaining_conjuncts(self) -> list[Conjunct]:
        """The stored conditions that the record index has not decided for every slice."""
        if self.key_locations is None:
            return self.stored_conjuncts
        keys = {RECORD_KEY, *self.table.config.record_key_fields}
        return [conjunct for conjunct in self.stored_conjuncts if conjunct[0] not in keys]

    def strings(self, column: str) -> list[str] | None:
        """Return strings of a column's possible values; None if the filter does not list them."""
        return find_allowed_values(self.conjuncts, column, self.converted_columns)

    @property
    def reads_current_snapshot(self) -> bool:
        """Return whether the scan reads merged rows of the current snapshot."""
        merged = not (self.request.read_optimized and self.table.config.is_merge_on_read)
        return (
            merged and self.table.timeline.bound is None and self.access.newer_data_timeline is None
        )

    @property
    def has_custom_merge(self) -> bool:
        """Return whether merging may create values that are in no file."""
        config = self.table.config
        return config.is_merge_on_read and config.merge.mode == "CUSTOM"

    @cached_property
    def has_stable_names(self) -> bool:
        """Return whether a column has the same name in all files: not after renames."""
        evolved = self.table.schema.evolution is not None
        return not evolved and not self.table.storage.list_dir(_SCHEMA_HISTORY)[1]

    @cached_property
    def has_unique_keys(self) -> bool:
        """Return whether each key has only one location, as in a record index."""
        return keys_are_unique(self.table.timeline)

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """The table's index definitions by name."""
        return self.access.use(PRUNING_FALLBACK, lambda table: table.definitions) or {}

    def always_had_type(self, column: str, data_type: pa.DataType) -> bool:
        """Return whether a column certainly had this type since the table was created."""
        definition = None if self._first_schema is None else field_at(self._first_schema, column)
        return is_meta(column) or (definition is not None and definition.type == data_type)

    @cached_property
    def _first_schema(self) -> pa.Schema | None:
        return first_schema(self.table.config, self.table.timeline)

    def has_statistics_of(self, column: str) -> bool:
        """Return whether statistics of a column are maintained; without a definition they are."""
        definition = self.definitions.get(COLUMN_STATS)
        return definition is None or not definition.columns or column in definition.columns

    @property
    def statistics_have_types(self) -> bool:
        """Return whether statistics have types of values (version 2; not Hudi 1.0.2)."""
        definition = self.definitions.get(COLUMN_STATS)
        return definition is not None and definition.version > 1

    def without_custom_merges(self, lookup: SliceLookup) -> SliceLookup:
        """Keep all slices with log files, because a custom merger may change any value."""
        if not self.has_custom_merge:
            return lookup

        def keep_merged(table: MetadataTable, slices: FileSlices) -> pa.BooleanArray | None:
            keep = lookup(table, slices)
            if keep is None:
                return None
            return pc.or_(pa.array(keep, pa.bool_()), slices.native.have_logs())

        return keep_merged
