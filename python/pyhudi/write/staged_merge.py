"""A merge as one of the statements of a transaction: its rules are those of `merge.py`.

The clauses see the rows that the statements before it have left: rows of the snapshot that the
transaction has not changed, and rows that it has.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.index import tagging
from pyhudi.input.conform import data_schema
from pyhudi.slices.tagged_rows import group_values, row_numbers
from pyhudi.slices.write_tasks import FileGroup
from pyhudi.txn.conflicts import CommitCheck
from pyhudi.write.commit_validation import check_file_groups_unchanged, check_partitions_unchanged
from pyhudi.write.merge_clauses import Clause
from pyhudi.write.merge_match import Matched, Matcher
from pyhudi.write.merge_planning import (
    MergeClause,
    add_source_keys,
    build_inserts,
    check_clauses,
    check_once,
    matcher,
    tasks_for_groups,
)
from pyhudi.write.pending_clustering import check_update_allowed
from pyhudi.write.staged_changes import StagedChanges
from pyhudi.write.update_delete import current_groups, plan_filter
from pyhudi.write.write_context import WriteContext


@dataclass(frozen=True)
class Merge:
    """`HudiTable.merge` in a transaction. All of its clauses see the same rows."""

    source: pa.Table
    clauses: tuple[MergeClause, ...]

    def check(self, context: WriteContext) -> None:
        """See `Statement`."""
        _Sides.of(context, self)

    def run(self, changes: StagedChanges) -> CommitCheck:
        """See `Statement`."""
        sides = _Sides.of(changes.context, self)
        stored = [*sides.match_stored(changes), *sides.match_absent_stored(changes)]
        staged = [*sides.match_staged(changes)]
        inserted = sides.build_inserts([*(each.matched for each in stored), *staged])
        for each in (*(change.matched for change in stored), *staged):
            changes.check_no_markers(each.updated)
        for change in stored:
            change.apply(changes)
        for matched in staged:
            changes.replace_staged(matched.updated, matched.deleted)
        changes.upsert(inserted)
        if sides.by_source:
            return check_partitions_unchanged(None)
        changes.expect_missing(sides.keyed)
        groups = (change.group.slice for change in stored)
        return check_file_groups_unchanged(
            frozenset((slice_.partition, slice_.file_id) for slice_ in groups)
        )


@dataclass(frozen=True)
class _StoredChange:
    """The effect of the clauses on rows of a file group."""

    rows: pa.Table
    group: FileGroup
    matched: Matched
    """Its numbers are those of all rows of the source."""

    def apply(self, changes: StagedChanges) -> None:
        updated, deleted = self.matched.updated, self.matched.deleted
        changes.delete_stored(deleted, self.group)
        if updated.num_rows:
            keys = updated.column(RECORD_KEY).combine_chunks()
            old = self.rows.filter(pc.is_in(self.rows.column(RECORD_KEY), value_set=keys))
            changes.change_stored(old, updated, self.group)


@dataclass(frozen=True)
class _Sides:
    """The rows of the source, and the clauses of each type."""

    context: WriteContext
    source: pa.Table
    keyed: pa.Table
    """Record key and partition path of the source's rows."""
    on_match: tuple[Clause, ...]
    on_absence: tuple[Clause, ...]
    by_source: tuple[Clause, ...]

    @classmethod
    def of(cls, context: WriteContext, merge: Merge) -> _Sides:
        """Check the source and the clauses of a merge. Raises as `merge.merge` does."""
        source, clauses = merge.source, merge.clauses
        keyed = add_source_keys(context, source)
        check_once(context, keyed)
        return cls(
            context,
            source,
            keyed,
            check_clauses(context, source, clauses, matched=True),
            check_clauses(context, source, clauses, matched=False),
            check_clauses(context, source, clauses, matched=True, by_source=True),
        )

    def match_stored(self, changes: StagedChanges) -> Iterator[_StoredChange]:
        """Match the source with rows of the snapshot that the transaction has not changed."""
        context = self.context
        deletes = any(clause.values is None for clause in self.on_match)
        result = tagging.tag_merge(context, self.keyed, deletes=deletes)
        by_group = [(result.groups[n], rows) for n, rows in result.tagged.by_group()]
        by_group = [(group, rows) for group, rows in by_group if not group.is_new]
        groups = [group for group, _ in by_group]
        check_update_allowed(context, groups)
        matchers = [self._matcher(rows, self.on_match) for _, rows in by_group]
        tables = changes.read(
            tasks_for_groups(context, groups), groups, [each.keys for each in matchers]
        )
        for table, (group, rows), each in zip(tables, by_group, matchers, strict=True):
            yield _StoredChange(table, group, _renumber(each.match(table), rows))

    def match_absent_stored(self, changes: StagedChanges) -> Iterator[_StoredChange]:
        """Run the clauses for rows of the snapshot that have no row of the source."""
        if not self.by_source:
            return
        tasks = plan_filter(self.context, "true", tuple(changes.schema.names))
        groups = current_groups(self.context, [task.slice for task in tasks])
        tables = changes.read(tasks, groups)
        for task, group, table in zip(tasks, groups, tables, strict=True):
            rows = self._in_partition(task.slice.partition)
            matched = self._matcher(rows, self.by_source).match_absent(table)
            if matched.updated.num_rows or matched.deleted.num_rows:
                yield _StoredChange(table, group, matched)

    def match_staged(self, changes: StagedChanges) -> Iterator[Matched]:
        """Match the source with rows that the transaction has changed."""
        staged = changes.current_rows()
        paths = staged.column(PARTITION_PATH).combine_chunks()
        parts = [(None, staged)]
        if not self.context.index.is_global:
            numbers = row_numbers(staged.num_rows)
            parts = [(path, staged.take(at)) for path, at in group_values(paths, numbers)]
        for path, table in parts:
            rows = self._in_partition(path)
            yield _renumber(self._matcher(rows, self.on_match).match(table), rows)
            if self.by_source:
                yield self._matcher(rows, self.by_source).match_absent(table)

    def build_inserts(self, matches: list[Matched]) -> pa.Table:
        """Return the rows that clauses insert for rows of the source without a match."""
        numbers = row_numbers(self.keyed.num_rows)
        matched = pa.concat_arrays([numbers.slice(0, 0), *(each.matched for each in matches)])
        unmatched = numbers.filter(pc.invert(pc.is_in(numbers, value_set=matched)))
        return build_inserts(self.context, self.source, self.keyed, unmatched, self.on_absence).rows

    def _matcher(self, rows: pa.Array[Any], clauses: tuple[Clause, ...]) -> Matcher:
        """Return the matcher of some rows of the source."""
        schema = data_schema(self.context.schema.arrow)
        keys = self.keyed.column(RECORD_KEY).take(rows).combine_chunks()
        return matcher(self.context, schema, keys, self.source.take(rows), clauses)

    def _in_partition(self, path: str | None) -> pa.Array[Any]:
        """Return the numbers of the source's rows whose keys rows of a partition match."""
        numbers = row_numbers(self.keyed.num_rows)
        if path is None or self.context.index.is_global:
            return numbers
        return numbers.filter(pc.equal(self.keyed.column(PARTITION_PATH), path).combine_chunks())


def _renumber(matched: Matched, rows: pa.Array[Any]) -> Matched:
    """Return a result with the numbers of the source's rows. rows: those of the matcher."""
    return replace(matched, matched=rows.take(matched.matched))
