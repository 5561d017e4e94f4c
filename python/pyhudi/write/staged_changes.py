"""The rows that the statements of a transaction have changed, before one commit writes them.

A later statement sees the table's snapshot without the rows of earlier statements, and these rows.
Every changed row has the file group of its stored row. So the commit writes each key of a file
group once, and an upsert of a row that the transaction deleted goes to the same file group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import SchemaMismatch, UnsupportedTableFeature
from pyhudi.index import tagging
from pyhudi.index.duplicate_keys import duplicate_keys_error
from pyhudi.index.protocol import TagResult
from pyhudi.input.conform import data_schema
from pyhudi.schema.payloads import merges_batches_like_commits
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ReadTask
from pyhudi.slices.row_selection import SelectedRows
from pyhudi.slices.tagged_rows import group_values, row_numbers
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.txn.conflicts import CommitCheck
from pyhudi.write.assigned_rows import AssignedLocalRows, DeletedKeys, GroupRows
from pyhudi.write.commit_validation import check_keys_still_missing
from pyhudi.write.execute import TAG_STAGE
from pyhudi.write.merge_planning import tasks_for_groups
from pyhudi.write.write_context import WriteContext

_GROUP = "_pyhudi_group"
"""The number of the row's file group; null for a row that gets one at the commit."""
_UNMERGED = "_pyhudi_unmerged"
"""Whether the row still has to be merged with a stored row of its key."""
_ORDER = "_pyhudi_order"


@dataclass(frozen=True)
class KeyRowsTask:
    """Read the rows of a slice that have one of some keys."""

    read: ReadTask
    keys: pa.Array[Any] | None
    """None for all rows."""


def read_key_rows(task: KeyRowsTask, _attempt: Attempt) -> pa.Table:
    """Return the rows in the columns of the read task."""
    schema = pa.schema([task.read.schema.field(name) for name in task.read.output])
    batches = [schema.empty_table()]
    for batch in read_task(task.read):
        rows = pa.Table.from_batches([batch])
        if task.keys is not None:
            rows = rows.filter(pc.is_in(rows.column(RECORD_KEY), value_set=task.keys))
        batches.append(rows.cast(schema))
    return pa.concat_tables(batches)


class StagedChanges:
    """The changes of a transaction so far, in memory.

    Rows have record key and partition path first, then the table's columns.
    """

    def __init__(self, context: WriteContext) -> None:
        """Start without changes. context: of the recovered table."""
        self.context = context
        self.kept_in_partition = 0
        """Number of rows that kept the partition of their stored rows."""
        meta = [pa.field(name, pa.string()) for name in (RECORD_KEY, PARTITION_PATH)]
        self.schema = pa.schema([*meta, *data_schema(context.schema.arrow)])
        """The schema of rows."""
        located = [*self.schema, pa.field(_GROUP, pa.int64())]
        self._rows = pa.schema([*located, pa.field(_UNMERGED, pa.bool_())]).empty_table()
        self._deleted = pa.schema([*meta, pa.field(_GROUP, pa.int64())]).empty_table()
        self._missing: list[pa.Table] = []
        self._groups: list[FileGroup] = []
        self._numbers: dict[tuple[str, str], int] = {}
        self._merges = merges_batches_like_commits(context.config)
        self._depends_on_stored = not self._merges or context.merge_mode != "COMMIT_TIME_ORDERING"

    # --- what statements read ---------------------------------------------------------------------

    def read(
        self,
        tasks: Sequence[ReadTask],
        groups: Sequence[FileGroup],
        keys: Sequence[pa.Array[Any]] | None = None,
    ) -> list[pa.Table]:
        """Read rows of the snapshot, without those that the transaction has changed.

        groups: the file group of each task. keys: of the rows to read by task; all by default.
        """
        engine = self.context.engine
        key_tasks = [
            KeyRowsTask(task, None if keys is None else keys[number])
            for number, task in enumerate(tasks)
        ]
        tables = engine.run(read_key_rows, key_tasks, stage=TAG_STAGE, label="find rows")
        changed = pa.concat_tables(
            [table.select([RECORD_KEY, _GROUP]) for table in (self._rows, self._deleted)]
        )
        result = []
        for table, number in zip(tables, self.add_groups(groups), strict=True):
            of_group = changed.filter(pc.equal(changed.column(_GROUP), number))
            old = of_group.column(RECORD_KEY).combine_chunks()
            is_changed = pc.is_in(table.column(RECORD_KEY), value_set=old)
            result.append(table.filter(pc.invert(is_changed)))
        return result

    def current_rows(self) -> pa.Table:
        """Return the changed rows as a reader would see them after the statements so far."""
        self._merge_with_stored()
        return self._rows.select(self.schema.names)

    def add_groups(self, groups: Sequence[FileGroup]) -> list[int]:
        """Return the numbers of file groups in this transaction."""
        numbers = []
        for group in groups:
            location = self.context.index.location_of(group.slice)
            number = self._numbers.setdefault(location, len(self._groups))
            if number == len(self._groups):
                self._groups.append(group)
            numbers.append(number)
        return numbers

    # --- what statements change -------------------------------------------------------------------

    def upsert(self, rows: pa.Table) -> None:
        """Add rows, at most one for each key, merged with the current rows of their keys.

        Raises `UnsupportedTableFeature` for rows that delete their keys, and if the table's merge
        rules for a batch are not those for commits; `SchemaMismatch` for a key that has several
        rows in the table.
        """
        self.check_no_markers(rows)
        staged = pc.index_in(self._identity(rows), value_set=self._unique_identities())
        self._merge_staged(rows.filter(pc.is_valid(staged)), staged.drop_null().cast(pa.int64()))
        self._upsert_unstaged(rows.filter(pc.is_null(staged)))

    def check_no_markers(self, rows: pa.Table) -> None:
        """Raise `UnsupportedTableFeature` for rows that delete their keys."""
        if pc.any(self.context.find_delete_markers(rows)).as_py():
            field = self.context.config.merge.delete_field
            msg = f"{field}: rows that delete their keys cannot be written in a transaction"
            raise UnsupportedTableFeature(msg, hint="Use delete_keys of the transaction.")

    def find_staged(self, rows: pa.Table) -> pa.Array[Any]:
        """Return for each row whether the transaction has a current row of its key."""
        return pc.is_in(self._identity(rows), value_set=self._identity(self._rows))

    def find_deleted(self, rows: pa.Table) -> pa.Array[Any]:
        """Return for each row whether the transaction has deleted its key."""
        return pc.is_in(self._identity(rows), value_set=self._identity(self._deleted))

    def change_stored(self, old: pa.Table, new: pa.Table, group: FileGroup) -> None:
        """Set new values in rows of a file group that `read` returned."""
        (number,) = self.add_groups([group])
        rows = self._winners(old, new) if self._merges else new
        unmerged = pa.repeat(pa.scalar(value=not self._merges), rows.num_rows)
        self._add(rows, _repeat(number, rows.num_rows), unmerged)

    def change_staged(self, is_changed: pa.Array[Any], new: pa.Table) -> None:
        """Set new values in rows of `current_rows`. is_changed: for each row; new: of these."""
        old, remaining = self._rows.filter(is_changed), self._rows.filter(pc.invert(is_changed))
        self._rows = remaining
        rows = self._winners(old.select(self.schema.names), new)
        self._add(rows, old.column(_GROUP), old.column(_UNMERGED))

    def replace_staged(self, new: pa.Table, deleted: pa.Table) -> None:
        """Set new values in rows of `current_rows` and delete others. deleted: their keys."""
        identities = self._unique_identities()
        self.delete_staged(pc.is_in(identities, value_set=self._identity(deleted)))
        identities, of_new = self._identity(self._rows), self._identity(new)
        at = pc.index_in(identities, value_set=of_new)
        if new.num_rows:
            self.change_staged(pc.is_valid(at), new.take(at.drop_null()))

    def expect_missing(self, keys: pa.Table) -> None:
        """Have the commit check that other writers add none of these keys.

        keys: columns record key and partition path.
        """
        self._missing.append(keys)

    def delete_stored(self, rows: pa.Table, group: FileGroup) -> None:
        """Delete rows of a file group that `read` returned."""
        (number,) = self.add_groups([group])
        self._delete(rows.column(RECORD_KEY), _repeat(number, rows.num_rows))

    def delete_staged(self, is_deleted: pa.Array[Any]) -> None:
        """Delete rows of `current_rows`."""
        deleted = self._rows.filter(is_deleted)
        self._rows = self._rows.filter(pc.invert(is_deleted))
        deleted = deleted.filter(pc.is_valid(deleted.column(_GROUP)))
        self._delete(deleted.column(RECORD_KEY), deleted.column(_GROUP))

    def delete_keys(self, keys: pa.Table, *, in_partitions: bool) -> None:
        """Delete keys wherever they are. keys, in_partitions: as for `tagging.tag_delete`."""
        names = [RECORD_KEY, PARTITION_PATH] if in_partitions else [RECORD_KEY]
        self.delete_staged(pc.is_in(_join(self._rows, names), value_set=_join(keys, names)))
        result = tagging.tag_delete(self.context, keys, in_partitions=in_partitions)
        tagged = result.tagged
        numbers = self._numbers_of(result, tagged.groups)
        found = keys.column(RECORD_KEY).take(tagged.rows)
        earlier = _locate(self._deleted.column(RECORD_KEY), self._deleted.column(_GROUP))
        is_new = pc.invert(pc.is_in(_locate(found, numbers), value_set=earlier))
        self._delete(found.filter(is_new), numbers.filter(is_new))
        at = pc.index_in(row_numbers(keys.num_rows), value_set=tagged.rows)
        self._missing.append(keys.filter(pc.is_null(at)).select(names))

    # --- the commit -------------------------------------------------------------------------------

    @property
    def only_deletes(self) -> bool:
        """Whether the transaction deletes rows, and has no new or changed row."""
        return bool(self._rows.num_rows == 0 < self._deleted.num_rows)

    def assign(self) -> AssignedLocalRows:
        """Assign the changes to their file groups."""
        rows = self._rows.combine_chunks()
        data, groups = rows.select(self.schema.names), rows.column(_GROUP).combine_chunks()
        located = pc.indices_nonzero(pc.is_valid(groups)).cast(pa.int64())
        new = pc.indices_nonzero(pc.is_null(groups)).cast(pa.int64())
        paths = rows.column(PARTITION_PATH).combine_chunks()
        deleted_keys = self._deleted.column(RECORD_KEY).combine_chunks()
        return AssignedLocalRows(
            self.context,
            self._groups,
            updates={
                number: GroupRows(data.take(at), len(at))
                for number, at in group_values(groups.take(located), located)
            },
            deletes={
                number: DeletedKeys(keys)
                for number, keys in group_values(
                    self._deleted.column(_GROUP).combine_chunks(), deleted_keys
                )
            },
            inserts={
                path: SelectedRows(data, part) for path, part in group_values(paths.take(new), new)
            },
        )

    def commit_checks(self) -> list[CommitCheck]:
        """Return checks that no concurrent commit has added a key that lookups did not find."""
        new = self._rows.filter(pc.is_null(self._rows.column(_GROUP)))
        tables = [*self._missing, new.select([RECORD_KEY, PARTITION_PATH])]
        return [
            check_keys_still_missing(self.context, keys.combine_chunks())
            for keys in tables
            if keys.num_rows
        ]

    # --- private ----------------------------------------------------------------------------------

    def _identity(self, rows: pa.Table) -> pa.Array[Any]:
        names = [RECORD_KEY] if self.context.index.is_global else [RECORD_KEY, PARTITION_PATH]
        return _join(rows, names)

    def _unique_identities(self) -> pa.Array[Any]:
        identities = self._identity(self._rows)
        _check_unique(identities, self._rows)
        return identities

    def _merge_staged(self, rows: pa.Table, at: pa.Array[Any]) -> None:
        """Merge rows with those of the transaction. at: the numbers of the staged rows."""
        if not rows.num_rows:
            return
        staged = self._rows.take(at)
        paths = staged.column(PARTITION_PATH)
        if not self.context.index.updates_partition_path:
            rows = rows.set_column(1, self.schema.field(1), paths)
        merged = self._winners(staged.select(self.schema.names), rows)
        remaining = pc.invert(pc.is_in(row_numbers(self._rows.num_rows), value_set=at))
        self._rows = self._rows.filter(remaining)
        moves = pc.not_equal(merged.column(PARTITION_PATH), paths).combine_chunks()
        left = staged.filter(pc.and_(moves, pc.is_valid(staged.column(_GROUP))))
        self._delete(left.column(RECORD_KEY), left.column(_GROUP))
        self._replace_deleted(merged.filter(moves))
        stays = pc.invert(moves)
        merged, staged = merged.filter(stays), staged.filter(stays)
        self._add(merged, staged.column(_GROUP), staged.column(_UNMERGED))

    def _upsert_unstaged(self, rows: pa.Table) -> None:
        """Add rows whose keys the transaction has no current row of."""
        is_deleted = self.find_deleted(rows)
        self._replace_deleted(rows.filter(is_deleted))
        rows = rows.filter(pc.invert(is_deleted))
        if not rows.num_rows:
            return
        context = self.context
        none = pa.repeat(pa.scalar(value=False), rows.num_rows)
        result = tagging.tag_upsert(context, rows, none)
        tagged = result.tagged
        _check_unique(tagged.rows, rows.take(tagged.rows))
        self.kept_in_partition += tagging.count_kept_in_partition(context, rows, none, result)
        groups = _native.scatter(
            tagged.rows, self._numbers_of(result, tagged.groups), rows.num_rows
        )
        if len(tagged.left_rows):
            left = rows.column(RECORD_KEY).take(tagged.left_rows)
            self._delete(left, self._numbers_of(result, tagged.left_groups))
        own = rows.column(PARTITION_PATH).combine_chunks()
        rows = rows.set_column(
            1, self.schema.field(1), pc.coalesce(self._paths().take(groups), own)
        )
        exists = pa.array([not group.is_new for group in self._groups], pa.bool_())
        unmerged = pc.fill_null(exists.take(groups), fill_value=False)
        self._add(rows, groups, unmerged if self._depends_on_stored else none)

    def _replace_deleted(self, rows: pa.Table) -> None:
        """Add rows whose keys the transaction has deleted before, in the same file group."""
        if not rows.num_rows:
            return
        names = [RECORD_KEY, PARTITION_PATH]
        deleted = _join(self._deleted, names)
        at = pc.index_in(_join(rows, names), value_set=deleted)
        groups = self._deleted.column(_GROUP).combine_chunks().take(at)
        numbers = row_numbers(self._deleted.num_rows)
        remaining = pc.invert(pc.is_in(numbers, value_set=at.drop_null().cast(pa.int64())))
        self._deleted = self._deleted.filter(remaining)
        if self._depends_on_stored:
            self._check_wins(rows, groups)
        self._add(rows, groups, pa.repeat(pa.scalar(value=False), rows.num_rows))

    def _check_wins(self, rows: pa.Table, groups: pa.Array[Any]) -> None:
        """Raise `SchemaMismatch` if the stored row of a deleted key would win over its new row.

        Readers merge by the ordering fields also after a delete in the same commit.
        """
        located = pc.is_valid(groups)
        rows, groups = rows.filter(located), groups.filter(located)
        stored = self._read_stored(rows, groups)
        both = pa.concat_tables([stored, rows])
        sides = pa.concat_arrays([
            _repeat(value, count)
            for value, count in ((0, stored.num_rows), (1, rows.num_rows))
        ])  # fmt: skip
        kept = self._combine(both.append_column(_ORDER, sides))
        lost = kept.filter(pc.equal(kept.column(_ORDER), 0))
        if lost.num_rows:
            key = lost.column(RECORD_KEY)[0].as_py()
            fields = ", ".join(self.context.config.ordering_fields)
            raise SchemaMismatch(
                f"the transaction deletes the row of the key {key!r} and writes one with a smaller "
                f"value of {fields}: the merge by {fields} would keep the deleted row",
                hint=f"Write a value of {fields} that is not smaller, or use two commits.",
            )

    def _merge_with_stored(self) -> None:
        """Merge rows with the stored rows of their keys, as readers will."""
        is_unmerged = self._rows.column(_UNMERGED).combine_chunks()
        if not pc.any(is_unmerged).as_py():
            return
        unmerged = self._rows.filter(is_unmerged)
        rows, groups = unmerged.select(self.schema.names), unmerged.column(_GROUP).combine_chunks()
        merged = self._winners(self._read_stored(rows, groups), rows)
        self._rows = self._rows.filter(pc.invert(is_unmerged))
        self._add(merged, groups, pa.repeat(pa.scalar(value=False), merged.num_rows))

    def _read_stored(self, rows: pa.Table, groups: pa.Array[Any]) -> pa.Table:
        """Read the stored rows of keys. groups: the numbers of their file groups."""
        by_group = dict(group_values(groups, rows.column(RECORD_KEY).combine_chunks()))
        tasks = [
            KeyRowsTask(read, keys)
            for read, keys in zip(
                tasks_for_groups(self.context, [self._groups[number] for number in by_group]),
                by_group.values(),
                strict=True,
            )
        ]
        tables = self.context.engine.run(
            read_key_rows, tasks, stage=TAG_STAGE, label="read stored rows"
        )
        stored = pa.concat_tables([self.schema.empty_table(), *map(self._in_schema, tables)])
        _check_unique(self._identity(stored), stored)
        return stored

    def _winners(self, older: pa.Table, newer: pa.Table) -> pa.Table:
        """Merge rows with older rows of their keys; return one for each newer row, in order."""
        if not self._depends_on_stored or not older.num_rows:
            return newer
        merged = self._combine(pa.concat_tables([older, self._in_schema(newer)]))
        identities = self._identity(merged)
        return merged.take(pc.index_in(self._identity(newer), value_set=identities))

    def _combine(self, rows: pa.Table) -> pa.Table:
        if not self._merges:
            mode = self.context.config.merge.mode
            msg = f"hoodie.record.merge.mode {mode}: a transaction cannot use a row that it wrote"
            hint = "Change each row once, after deletes and updates by a filter, or commit first."
            raise UnsupportedTableFeature(msg, hint=hint)
        return tagging.combine(self.context, rows.combine_chunks())

    def _numbers_of(self, result: TagResult, groups: pa.Array[Any]) -> pa.Array[Any]:
        return pa.array(self.add_groups(result.groups), pa.int64()).take(groups)

    def _add(self, rows: pa.Table, groups: Any, unmerged: Any) -> None:
        located = self._in_schema(rows).append_column(self._rows.schema.field(_GROUP), groups)
        located = located.append_column(self._rows.schema.field(_UNMERGED), unmerged)
        self._rows = pa.concat_tables([self._rows, located]).combine_chunks()

    def _delete(self, keys: Any, groups: Any) -> None:
        """Delete record keys from file groups. groups: the number of each key's group."""
        groups = pa.chunked_array([groups]) if isinstance(groups, pa.Array) else groups
        paths = self._paths().take(groups.combine_chunks())
        columns = [keys, pa.chunked_array([paths]), groups]
        located = pa.Table.from_arrays(columns, schema=self._deleted.schema)
        # A file group that the commit creates has nothing to delete.
        exists = pa.array([not group.is_new for group in self._groups], pa.bool_())
        located = located.filter(exists.take(groups.combine_chunks()))
        self._deleted = pa.concat_tables([self._deleted, located]).combine_chunks()

    def _paths(self) -> pa.Array[Any]:
        return pa.array([group.slice.partition for group in self._groups], pa.string())

    def _in_schema(self, rows: pa.Table) -> pa.Table:
        return rows.select(self.schema.names).cast(self.schema)


def _check_unique(identities: pa.Array[Any], rows: pa.Table) -> None:
    """Raise `SchemaMismatch` naming a key with several rows. identities: of the rows."""
    counts = pc.value_counts(identities)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    if len(repeated):
        at = pc.index(identities, repeated.field("values")[0]).as_py()
        key = rows.column(RECORD_KEY)[at].as_py()
        raise duplicate_keys_error(f"the table has duplicates of the key {key!r}")


def _repeat(number: int, count: int) -> pa.Array[Any]:
    return pa.repeat(pa.scalar(number, pa.int64()), count)


def _join(rows: pa.Table, names: Sequence[str]) -> pa.Array[Any]:
    """Return columns of strings as one: equal for equal rows only."""
    columns = [pc.fill_null(rows.column(name).combine_chunks(), "") for name in names]
    if len(columns) == 1:
        return columns[0]
    lengths = pc.binary_length(columns[0]).cast(pa.string())
    return pc.binary_join_element_wise(lengths, *columns, ":")


def _locate(keys: Any, groups: Any) -> pa.Array[Any]:
    """Return keys with their group numbers as one column."""
    table = pa.table({"group": groups.cast(pa.string()), "key": keys})
    return _join(table, ["group", "key"])
