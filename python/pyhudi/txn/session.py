"""A table as one write sees it: opened, checked, cleaned up, and its file groups found.

What the verbs do with it is `operations.py`'s part.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from pyhudi import _native
from pyhudi.clock import Clock, SystemClock
from pyhudi.config import TableConfig
from pyhudi.errors import SchemaMismatch
from pyhudi.index import simple
from pyhudi.index.simple import KeySource
from pyhudi.keys import PARTITION_PATH, RECORD_KEY, KeySpec, add_keys, key_spec, needs_existing_key
from pyhudi.plan.write import FileGroup, WriteTarget
from pyhudi.schema import table_schema
from pyhudi.timeline import Timeline
from pyhudi.txn import guard, targets
from pyhudi.txn.options import WriteOptions
from pyhudi.txn.rows import cast_column, conform, data_schema, to_table
from pyhudi.txn.transaction import Writer, recover
from pyhudi.view.filesystem_view import FileSystemView

if TYPE_CHECKING:
    from pyhudi.engine.protocol import Engine
    from pyhudi.merge_config import BuiltInMode
    from pyhudi.schema import TableSchema
    from pyhudi.storage import Storage


class WritableTable(Protocol):
    """What the verbs need of a table handle."""

    @property
    def storage(self) -> Storage:
        """Where the table lies."""
        ...

    @property
    def engine(self) -> Engine:
        """What runs the tasks."""
        ...

    @property
    def options(self) -> Mapping[str, str]:
        """`hoodie.…` options of the handle."""
        ...


@dataclass(frozen=True)
class Session:
    """A table as one write sees it."""

    engine: Engine
    writer: Writer
    options: WriteOptions
    timeline: Timeline
    schema: TableSchema

    @classmethod
    def open(cls, table: WritableTable, clock: Clock | None) -> Session:
        """Reads what the table is now, and refuses what pyhudi does not write to."""
        clock = clock or SystemClock()
        storage = table.storage
        config = TableConfig.load(storage, clock)
        timeline = Timeline.load(storage, config)
        guard.check_writable(storage, config, timeline)
        return cls(
            engine=table.engine,
            writer=Writer.of(storage, config, clock),
            options=WriteOptions.of(table.options),
            timeline=timeline,
            schema=table_schema(storage, config, timeline),
        )

    def recovered(self) -> Session:
        """After the clean-up that comes before a write."""
        return replace(self, timeline=recover(self.writer))

    @property
    def storage(self) -> Storage:
        """Where the table lies."""
        return self.writer.storage

    @property
    def config(self) -> TableConfig:
        """The table's configuration."""
        return self.writer.config

    @property
    def merge_mode(self) -> BuiltInMode | None:
        """How rows of one key are combined; None never gets past the guard."""
        mode = self.config.merge.mode
        return None if mode == "CUSTOM" else mode

    @property
    def key_source(self) -> KeySource:
        """How the keys of the table's files are read."""
        if not self.config.version.blocks_need_commit_check:
            return KeySource(self.storage, self.schema.arrow)
        committed = tuple(instant.requested for instant in self.timeline.commits)
        return KeySource(self.storage, self.schema.arrow, committed, self.timeline.blocks_start)

    def with_keys(self, data: Any) -> pa.Table:
        """The data as rows of the table, with record key and partition path in front."""
        rows = conform(to_table(data), data_schema(self.schema.arrow))
        return add_keys(rows, self.key_spec())

    def key_spec(self) -> KeySpec:
        """How this table's keys are made."""
        existing = None
        if needs_existing_key(self.config):
            view = FileSystemView(self.storage, self.config, self.timeline)
            existing = simple.first_key(self.key_source, view.slices())
        return key_spec(self.config, existing_key=existing)

    def delete_keys(self, keys: Any) -> tuple[pa.Table, bool]:
        """Distinct record keys with partition paths, and whether the keys name partitions."""
        spec = self.key_spec()
        given = to_table(keys)
        guard.check_known_columns(given.column_names, self.schema.arrow)
        named = [field for field in spec.partition_fields if field in given.column_names]
        in_partitions = len(named) == len(spec.partition_fields)
        if named and not in_partitions:
            missing = set(spec.partition_fields) - set(named)
            msg = f"the keys have partition columns, but lack {', '.join(sorted(missing))}"
            raise SchemaMismatch(msg, hint="Give all partition columns, or none to look in all.")
        fields = dict.fromkeys((*spec.key_fields, *named))
        columns = self._key_columns(given, fields)
        if not in_partitions:
            spec = replace(spec, partition_fields=())
        keyed = add_keys(columns, spec).select([RECORD_KEY, PARTITION_PATH])
        return keyed.group_by([RECORD_KEY, PARTITION_PATH]).aggregate([]), in_partitions

    def _key_columns(self, given: pa.Table, names: Iterable[str]) -> pa.Table:
        columns = {}
        for name in names:
            if name not in given.column_names:
                msg = f"the keys lack the key column {name!r}"
                raise SchemaMismatch(msg)
            columns[name] = cast_column(given.column(name), self.schema.arrow.field(name))
        return pa.table(columns)

    def groups(self, partitions: Sequence[str] | None) -> tuple[list[FileGroup], list[Any]]:
        """The file groups of partitions (None for all), and of each the slice that is read."""
        view = FileSystemView(self.storage, self.config, self.timeline, partitions)
        slices = view.slices()
        guard.check_not_bucketed([slice_.file_id for slice_ in slices])
        return targets.file_groups(self.timeline, view.unmerged_slices(), slices), slices

    def target(self, instant: str) -> WriteTarget:
        """What all tasks of the write share."""
        return WriteTarget(
            storage=self.storage,
            version=self.config.version,
            instant=instant,
            merge_on_read=self.config.is_merge_on_read,
            schema=self.schema.arrow,
            avro_schema=_native.with_meta_fields(self.schema.avro),
            merge=self.config.merge,
            ordering_fields=self.config.ordering_fields,
            options=self.options,
        )
