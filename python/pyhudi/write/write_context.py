"""The table of one write: opened, checked, recovered, with its file groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pyarrow as pa

from pyhudi.cached_property import cached_property
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.actions import RESTORE
from pyhudi.config.constraints import read_generated_columns
from pyhudi.config.file_names import plain_file_id
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.merge_mode import BuiltInMode
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.protocol import Engine
from pyhudi.errors import HistoryUnavailable, SchemaMismatch, retryable_conflict, without_hint
from pyhudi.index.key_encoding_detection import (
    check_date_separators,
    check_key_format,
    keys_are_prefixed,
)
from pyhudi.index.key_reader import KeySource
from pyhudi.index.protocol import Index
from pyhudi.index.selection import choose, with_partition_moves
from pyhudi.input.conform import conform, data_schema, read_table
from pyhudi.input.exact_casts import cast_exactly
from pyhudi.input.row_rules import RowRules
from pyhudi.metadata.index_definitions import index_definitions
from pyhudi.metadata.write_checks import check_indexes, columns_with_index
from pyhudi.schema import commit_schema
from pyhudi.schema.commit_schema import CommitSchema
from pyhudi.schema.delete_field import check_delete_field, find_delete_markers, with_marker
from pyhudi.schema.evolution import check_mode, evolve
from pyhudi.schema.key_generator import (
    KeySpec,
    add_keys,
    as_stored,
    column_at,
    depends_on_rows,
    input_types,
    key_spec,
)
from pyhudi.schema.partial_update_checks import IgnoredUpdateValues
from pyhudi.schema.payloads import field_merge
from pyhudi.schema.row_rules import build_generated_columns, row_rules
from pyhudi.schema.supported_types import check_written
from pyhudi.schema.table_schema import TableSchema
from pyhudi.slices import combine
from pyhudi.slices.file_groups import file_groups
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import ListedOnce
from pyhudi.slices.missing_files import check_complete
from pyhudi.slices.write_tasks import FileGroup, WriteTarget
from pyhudi.storage.prefetch import forget
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import Timeline
from pyhudi.timeline.staleness import check_listing_complete
from pyhudi.txn.locks.foreign_locks import check_no_other_lock
from pyhudi.txn.recovery import recover
from pyhudi.txn.write_target import write_target
from pyhudi.write import checks
from pyhudi.write.table_opening import (
    Handle,
    WritableTable,
    list_definition_files,
    list_directories_of_write,
    open_for_change,
)

_MAX_PLAN_AGE_MS = 1000
"""Age up to which a loaded timeline is reused to plan a write."""


@contextmanager
def retry_if_stale() -> Iterator[None]:
    """A block that plans on a snapshot; the write is retried if files of the snapshot are lost."""
    try:
        yield
    except HistoryUnavailable as error:
        raise retryable_conflict(
            f"the write's plan is out of date: {without_hint(error)}"
        ) from error


@dataclass(frozen=True)
class WriteContext:
    """The table of one write."""

    table: TableSnapshot
    options: WriteOptions
    started_ms: int = 0
    """The start of the write, in the clock's ticks."""
    task_memory: int | None = None
    """Bytes that one task may use for the records it merges, None for no limit."""
    is_recovered: bool = False
    """Whether recovery from failed writers has run."""
    selected_index: Index | None = None
    """The index that finds keys, if it was selected already."""
    index_names: Mapping[str, str] = field(default_factory=dict)
    """The name of the index over each indexed column."""

    @classmethod
    def open(
        cls, table: WritableTable, clock: Clock | None, config: TableConfig | None = None
    ) -> WriteContext:
        """Read the table's current state and complete a pending restore.

        config: if it was just read. Raises for a table that pyhudi does not write to.
        """
        clock = clock or SystemClock()
        handle = Handle.of(table, clock)
        storage = table.storage
        config = config or TableConfig.load(storage, clock)
        folders = list_directories_of_write(storage, config)
        with storage.prefetch(files=list_definition_files(config), folders=folders):
            return cls._open(handle, config, clock)

    @classmethod
    def _open(cls, handle: Handle, config: TableConfig, clock: Clock) -> WriteContext:
        storage = handle.storage
        config = config.with_delete_marks(handle.options)
        timeline = Timeline.load(storage, config)
        if config.metadata_partitions:
            _ = timeline.may_have_archived  # Uses the prefetched listing.
        checks.check_writable(storage, config, timeline)
        check_no_other_lock(storage, config, timeline, LockOptions.of(handle.options), clock)
        options = WriteOptions.of(handle.options, config.base_extension)
        if timeline.pending(RESTORE):
            # Otherwise the write would be planned on commits that the restore reverts.
            timeline = recover(
                open_for_change(handle, clock, config),
                partial(checks.check_writable, storage, config),
            )
        opened = open_for_change(handle, clock, config, timeline)
        definitions = index_definitions(storage, config) if config.metadata_partitions else {}
        check_written(opened.schema.arrow, options)
        check_indexes(storage, config, opened.schema, definitions)
        commit_schema.check_ids(opened.schema, config)
        selected_index = choose(storage, config, timeline, options.index, definitions)
        selected_index = with_partition_moves(selected_index, config, handle.options)
        context = cls(
            table=opened,
            options=options,
            started_ms=clock.ticks_ms(),
            selected_index=selected_index,
            index_names=columns_with_index(config, definitions),
        )
        checks.check_no_files_outside_partitions(storage, config)
        checks.check_virtual_writes(config, opened.schema.arrow, context.index, options)
        check_delete_field(opened.schema.arrow, config.merge.delete_field)
        checks.check_log_blocks(context.options, config, context.schema.arrow)
        return context

    def recover(self) -> WriteContext:
        """Return the context after recovery from failed writers, which runs once."""
        if self.is_recovered:
            return self
        table = self.table
        check = partial(checks.check_writable, table.storage, table.config)
        is_recent = table.clock.ticks_ms() - self.started_ms < _MAX_PLAN_AGE_MS
        timeline = recover(table, check, table.timeline if is_recent else None)
        # The selection of the index depends on commits and on leftovers of failed writers.
        selected_index = (
            self.selected_index if timeline.instants == table.timeline.instants else None
        )
        return replace(
            self,
            table=table.with_timeline(timeline),
            is_recovered=True,
            selected_index=selected_index,
        )

    @property
    def storage(self) -> Storage:
        """The storage of the table."""
        return self.table.storage

    @property
    def config(self) -> TableConfig:
        """The table's configuration."""
        return self.table.config

    @property
    def schema(self) -> TableSchema:
        """The table's schema, with the columns that the write adds."""
        return self.table.schema

    @property
    def timeline(self) -> Timeline:
        """The timeline that the write is planned on."""
        return self.table.timeline

    @property
    def engine(self) -> Engine:
        """The engine that runs the tasks."""
        return self.table.engine

    @property
    def handle_options(self) -> Mapping[str, str]:
        """The options of the table's handle, as strings."""
        return self.table.options

    @cached_property
    def index(self) -> Index:
        """The index that finds keys. Raises as `choose` does."""
        if self.selected_index is not None:
            return self.selected_index
        index = choose(self.storage, self.config, self.timeline, self.options.index)
        return with_partition_moves(index, self.config, self.handle_options)

    @property
    def merge_mode(self) -> BuiltInMode | None:
        """The rule for several records of one key; None if a user's function decides."""
        rule = field_merge(self.config)
        mode = self.config.merge.mode if rule is None else rule.mode
        return None if mode == "CUSTOM" else mode

    @cached_property
    def ignored_values(self) -> IgnoredUpdateValues | None:
        """Values that an update cannot set; or None."""
        return IgnoredUpdateValues.of(self.config, self.schema)

    @cached_property
    def row_rules(self) -> RowRules:
        """The rules for new rows."""
        schema = data_schema(self.schema.arrow)
        return row_rules(self.config, schema, null_elements=self.options.null_elements)

    def combine(self, rows: pa.Table) -> pa.Table:
        """Combine the rows of each key by the table's merge rules."""
        return combine.combine(self.storage, self.config, self.schema, rows)

    def find_delete_markers(self, rows: pa.Table) -> pa.Array[Any]:
        """Return for each row whether it deletes its key."""
        merge = self.config.merge
        return find_delete_markers(rows, merge.delete_field, merge.delete_marker)

    @property
    def commit_schema(self) -> CommitSchema:
        """The schema that the write's commit records."""
        return commit_schema.commit_schema(self.schema, self.config)

    def new_file_id(self) -> str:
        """Return the id of a new file group."""
        return plain_file_id(self.table.clock.uuid())

    @property
    def key_source(self) -> KeySource:
        """The reader of the keys of the table's files."""
        positions = (
            self.config.is_merge_on_read
            and self.config.version.writes_positions
            and self.options.positions
        )
        return KeySource.of(self.table, positions=positions)

    def evolve(self, data: Any, mode: str) -> tuple[WriteContext, pa.Table]:
        """Return the context with the schema after the write, and the data in its types.

        mode: "strict" keeps the table's columns, "merge" adds new columns of the data (`evolve`).
        The new schema is committed with the rows.
        """
        check_mode(mode)
        rows = as_stored(read_table(data, self.input_types), self.config, self.schema.arrow)
        if mode == "strict":
            return self, rows
        generated = read_generated_columns(self.config).keys() - set(rows.column_names)
        schema, rows = evolve(self.schema, self.config, rows, self.index_names)
        # They are computed, not null as other missing columns.
        return self.with_schema(schema), rows.drop_columns(sorted(generated))

    def with_schema(self, schema: TableSchema) -> WriteContext:
        """Return the context of a write that changes the table's schema.

        Raises `UnsupportedTableFeature` for columns that cannot be written.
        """
        check_written(schema.arrow, self.options)
        return replace(self, table=self.table.with_schema(schema))

    @property
    def input_types(self) -> pa.Schema:
        """The types of input values that have no type, such as Python objects."""
        return input_types(self.config, self.schema.arrow)

    def with_keys(
        self,
        data: Any,
        mode: str = "strict",
        *,
        instant: str | None = None,
        position: tuple[int, int] = (0, 0),
    ) -> pa.Table:
        """Convert the data to rows of the table, with record key and partition path first.

        mode: as in `evolve`, which returned this context. instant, position: see `add_keys`.
        """
        _, rows = self.evolve(data, mode)
        rows = conform(rows, data_schema(self.schema.arrow), rules=self.row_rules)
        rows = with_marker(rows, self.config.merge)
        return add_keys(rows, self.key_spec(), instant=instant, position=position)

    def key_instant(self) -> str:
        """Return a unique prefix of generated keys: an instant and a random number."""
        self.table.generator.observe(self.timeline)
        random_number = int(self.table.clock.uuid()[:8], 16)
        return f"{self.table.generator.next()}{random_number:010d}"

    def key_spec(self) -> KeySpec:
        """Return the rules for this table's keys."""
        return self._spec

    @cached_property
    def _spec(self) -> KeySpec:
        prefixed = keys_are_prefixed(self.table) if depends_on_rows(self.config) else None
        spec = key_spec(self.config, prefixed=prefixed, options=self.handle_options)
        check_date_separators(self.table, spec)
        check_key_format(self.table, spec)
        return spec

    @property
    def virtual_keys(self) -> KeySpec | None:
        """The rules for keys of stored rows without keys; None if keys are stored."""
        return None if self.config.populate_meta_fields else self.key_spec()

    def delete_keys(self, keys: Any) -> tuple[pa.Table, bool]:
        """Return record keys with partition paths, and whether the keys have partition columns.

        Duplicates are dropped unless `hoodie.combine.before.delete` is false.
        """
        spec = self.key_spec()
        if spec.keys_are_generated:
            add_keys(self.schema.arrow.empty_table(), spec)
        _, table = self.evolve(keys, "strict")
        checks.check_known_columns(table.column_names, self.schema.arrow)
        table = self.with_generated(table, (*spec.key_fields, *spec.partition_fields))
        named_fields = [field for field in spec.partition_fields if field in table.column_names]
        in_partitions = len(named_fields) == len(spec.partition_fields)
        # A partition column that is part of the key says nothing about the others.
        if not in_partitions and not set(named_fields) <= set(spec.key_fields):
            missing = set(spec.partition_fields) - set(named_fields)
            msg = f"the keys have partition columns, but not {', '.join(sorted(missing))}"
            raise SchemaMismatch(
                msg, hint="Give all partition columns, or none to search all partitions."
            )
        fields = dict.fromkeys((*spec.key_fields, *named_fields))
        for name in fields:
            if name.split(".")[0] not in table.column_names:
                msg = f"the keys do not have the key column {name!r}"
                raise SchemaMismatch(msg)
        columns = self.key_columns(table, fields)
        if not in_partitions:
            spec = replace(spec, partition_fields=())
        keyed = add_keys(columns, spec).select([RECORD_KEY, PARTITION_PATH])
        if not self.options.combine_deletes:
            return keyed, in_partitions
        return keyed.group_by([RECORD_KEY, PARTITION_PATH]).aggregate([]), in_partitions

    def key_columns(self, rows: pa.Table, names: Iterable[str]) -> pa.Table:
        """Return columns and struct fields by name, in the table's types.

        Raises `SchemaMismatch` if one is missing or has another type.
        """
        columns = {}
        for name in names:
            field = column_at(self.schema.arrow.empty_table(), name)
            columns[name] = cast_exactly(column_at(rows, name), pa.field(name, field.type))
        return pa.table(columns)

    def with_generated(self, rows: pa.Table, names: Iterable[str]) -> pa.Table:
        """Return rows with generated columns among `names` that they do not have, if possible."""
        for column in build_generated_columns(self.config, data_schema(self.schema.arrow)):
            has_sources = set(column.sources) <= set(rows.column_names)
            if column.name in names and column.name not in rows.column_names and has_sources:
                values = column.compute(self.key_columns(rows, column.sources))
                rows = rows.append_column(column.name, values)
        return rows

    def groups(self, partitions: Sequence[str] | None) -> tuple[list[FileGroup], list[Any]]:
        """Return the file groups of partitions (None for all) and their current slices."""
        view = self.view(partitions)
        slices = list(view.slices())
        return file_groups(self.timeline, view.iter_newest_slices(), slices), slices

    def view(
        self, partitions: Sequence[str] | None = None, *, may_miss_files: bool = False
    ) -> FileSystemView:
        """Return the files of partitions (None for all) on which the write is planned.

        may_miss_files: for an operation that removes the rows unread. Otherwise the view raises
        `MissingFile` if storage has lost files.
        """
        check = None if may_miss_files else partial(check_complete, self.table)
        return FileSystemView(
            self.storage, self.config, self.timeline, partitions, self.files, check=check
        )

    def check_files(self, stale: Collection[str] = ()) -> None:
        """Raise `MissingFile` if storage has lost files. stale: see `check_complete`."""
        check_complete(self.table, self.view(may_miss_files=True), stale=stale)

    @cached_property
    def files(self) -> ListedOnce:
        """The files on which the write is planned; each partition is listed once.

        In a later listing, a file group that a cleaner removed would look as if it never existed.
        """

        def check() -> None:
            # Prefetched reads may be older than the listing.
            forget()
            with retry_if_stale():
                check_listing_complete(self.storage, self.config, self.timeline)

        return ListedOnce(self.storage, check)

    def target(self, instant: str) -> WriteTarget:
        """Return the settings of all tasks of the write."""
        return write_target(self.table, self.options, instant, self.task_memory)
