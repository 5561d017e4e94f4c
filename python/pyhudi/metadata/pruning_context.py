"""What a scan asks of the indexes: its filter, and what may be concluded from what they tell.

A slice may go only if no merged row of it can match. A merged row takes each value from one of the
slice's files, so a condition rules out a slice when it rules out every file of it; conditions are
not mixed, since partial updates bring columns of several files together. Indexes of the present
(record index, partition statistics) say nothing of base files alone or of times gone by, and a
table handle that others have written after shows such a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from pyhudi.cached_property import cached_property
from pyhudi.config.metadata_names import COLUMN_STATS, RECORD_INDEX
from pyhudi.config.option_parsing import parse_bool
from pyhudi.config.options import DATA_SKIPPING
from pyhudi.metadata.fallback_reader import MetadataAccess
from pyhudi.metadata.index_definitions import IndexDefinition
from pyhudi.metadata.reader import MetadataTable
from pyhudi.metadata.slice_pruning import places_of
from pyhudi.schema.key_predicates import RECORD_KEY, find_allowed_values, find_record_keys
from pyhudi.schema.predicates import Conjunct
from pyhudi.schema.table_schema import field_at, first_schema, is_meta
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import ScanRequest
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.key_uniqueness import keys_are_unique

INSTEAD = "fewer files are pruned"
_SCHEMA_HISTORY = ".hoodie/.schema"

Look = Callable[[MetadataTable, Sequence[FileSlice]], "list[bool] | None"]
"""Which slices may match; None when the index turns out to know nothing."""


@dataclass(frozen=True)
class PruningContext:
    """One scan of a table."""

    table: TableSnapshot
    request: ScanRequest
    access: MetadataAccess

    @cached_property
    def conjuncts(self) -> tuple[Conjunct, ...]:
        """The conditions of the filter."""
        skips = parse_bool(self.table.options, DATA_SKIPPING, default=True)
        if self.request.where is None or not skips:
            return ()
        return self.request.where.conjuncts

    @cached_property
    def converted_columns(self) -> frozenset[str]:
        """Columns whose values in files may differ from those that the filter sees."""
        return frozenset((*self.table.as_text, *self.table.config.partition_fields))

    @cached_property
    def stored(self) -> list[Conjunct]:
        """The conditions on columns as they are stored."""
        return [
            conjunct for conjunct in self.conjuncts if conjunct[0] not in self.converted_columns
        ]

    @cached_property
    def keys(self) -> list[str] | None:
        """Every record key that a wanted row can have, None when the filter does not tell."""
        return find_record_keys(self.table.config, self.conjuncts, self.converted_columns)

    @cached_property
    def key_locations(self) -> set[tuple[str, str]] | None:
        """Partition and file id of every record with one of the keys.

        None where the record index does not tell of the rows that are read, or by data partition.
        """
        keys = self.keys
        if keys is None or not self.access.has(RECORD_INDEX):
            return None
        if not (self.reads_current_snapshot and self.has_unique_keys):
            return None
        return self.access.use(INSTEAD, lambda table: places_of(table, keys))

    @cached_property
    def remaining_conjuncts(self) -> list[Conjunct]:
        """Those of the stored conditions that the record index has not answered for every slice."""
        if self.key_locations is None:
            return self.stored
        keys = {RECORD_KEY, *self.table.config.record_key_fields}
        return [conjunct for conjunct in self.stored if conjunct[0] not in keys]

    def texts(self, column: str) -> list[str] | None:
        """Texts of the values that a column may have, None when the filter does not list them."""
        return find_allowed_values(self.conjuncts, column, self.converted_columns)

    @property
    def reads_current_snapshot(self) -> bool:
        """Whether merged rows of the present are read, which is what some indexes are about."""
        merged = not (self.request.read_optimized and self.table.config.is_merge_on_read)
        return merged and self.table.timeline.bound is None and self.access.later is None

    @property
    def is_custom(self) -> bool:
        """Whether merging may make values that are in no file."""
        config = self.table.config
        return config.is_merge_on_read and config.merge.mode == "CUSTOM"

    @cached_property
    def bounds_hold(self) -> bool:
        """Whether a column's name means the same in all files: not after renames."""
        evolved = self.table.schema.evolution is not None
        return not evolved and not self.table.storage.list_dir(_SCHEMA_HISTORY)[1]

    @cached_property
    def has_unique_keys(self) -> bool:
        """Whether one place of a key is all there is, as a record index has it."""
        return keys_are_unique(self.table.timeline)

    @cached_property
    def definitions(self) -> Mapping[str, IndexDefinition]:
        """The table's index definitions by name."""
        return self.access.use(INSTEAD, lambda table: table.definitions) or {}

    def had_type(self, column: str, kind: pa.DataType) -> bool:
        """Whether a column surely had this type from the table's beginning on."""
        known = None if self._first_schema is None else field_at(self._first_schema, column)
        return is_meta(column) or (known is not None and known.type == kind)

    @cached_property
    def _first_schema(self) -> pa.Schema | None:
        return first_schema(self.table.config, self.table.timeline)

    def has_statistics_of(self, column: str) -> bool:
        """Whether statistics of a column are kept up; where nothing says so, they are."""
        known = self.definitions.get(COLUMN_STATS)
        return known is None or not known.columns or column in known.columns

    @property
    def statistics_have_types(self) -> bool:
        """Whether statistics name the types of values, which Hudi 1.0.2 does not (version 2)."""
        known = self.definitions.get(COLUMN_STATS)
        return known is not None and known.version > 1

    def without_custom_merges(self, look: Look) -> Look:
        """With somebody's own merger, only slices without anything to merge can be ruled out."""
        if not self.is_custom:
            return look

        def careful(table: MetadataTable, slices: Sequence[FileSlice]) -> list[bool] | None:
            keep = look(table, slices)
            pairs = zip(keep or (), slices, strict=False)
            return None if keep is None else [stays or bool(slice_.logs) for stays, slice_ in pairs]

        return careful
