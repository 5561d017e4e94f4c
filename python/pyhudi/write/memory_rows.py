"""Rows of a write that are in memory: see `rows.py` for what its methods mean."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.index import tagging
from pyhudi.index.tag_result import Located
from pyhudi.schema.key_generator import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.row_selection import SelectedRows
from pyhudi.slices.tagged_rows import Tagged, row_numbers, split, untagged
from pyhudi.write.assigned_rows import GroupRows, LeavingKeys, PlacedRows, in_partition
from pyhudi.write.existing_keys import known_count, without_known
from pyhudi.write.partial_update import whole_rows
from pyhudi.write.row_counters import Tally
from pyhudi.write.rows import Placed, Rows
from pyhudi.write.write_context import WriteContext


@dataclass(frozen=True)
class MemoryRows:
    """Rows in one table."""

    context: WriteContext
    rows: pa.Table
    """With record key and partition path in front."""
    tally: Tally | None = None
    """See `Rows`."""

    def combined(self) -> Rows:
        """See `Rows`."""
        kept = tagging.combined(self.context, self.rows)
        if self.tally is not None:
            crossed = tagging.cross_partition_duplicates(self.context, self.rows, kept)
            self.tally.cross_partition_duplicates += pc.sum(crossed).as_py() or 0
        return self._left(kept)

    def unknown(self, *, fail: bool) -> Rows:
        """See `Rows`."""
        return self._left(without_known(self.context, self.rows, fail=fail))

    def known_counted(self) -> MemoryRows:
        """See `Rows`."""
        if self.tally is not None:
            self.tally.known += known_count(self.context, self.rows)
        return self

    def _left(self, rows: pa.Table) -> MemoryRows:
        if self.tally is not None:
            self.tally.left(self.rows, rows)
        return replace(self, rows=rows)

    def completed(self) -> Rows:
        """See `Rows`."""
        context = self.context.recovered()
        return replace(self, context=context, rows=whole_rows(context, self.rows))

    def for_upsert(self) -> Placed:
        """See `Rows`."""
        context, rows = self.context.recovered(), self.rows
        marked = context.marked_deleted(rows)
        located = tagging.for_upsert(context, rows, marked)
        kept_away = tagging.kept_away(context, rows, marked, located)
        return replace(placed(context, rows, marked, located), kept_away=kept_away)

    def for_insert(
        self,
        order: tuple[str, ...] = (),
        *,
        whole: bool = False,  # noqa: ARG002 - all rows are here
    ) -> Placed:
        """See `Rows`."""
        return self._placed(tagging.for_insert, order)

    def for_new_buckets(self) -> Placed:
        """See `Rows`."""
        return self._placed(tagging.look_up_anew, ()).also_in(self._marked_paths())

    def _placed(self, find: Any, order: tuple[str, ...]) -> PlacedRows:
        rows = self._live()
        if order:
            rows = rows.take(_sorted(rows, order))
        context = self.context.recovered()
        none = pa.repeat(pa.scalar(value=False), rows.num_rows)
        return placed(context, rows, none, find(context, rows, none))

    def for_new_files(
        self,
        order: tuple[str, ...] = (),
        *,
        whole: bool = False,  # noqa: ARG002 - all rows are here
        counted: bool = True,  # noqa: ARG002 - counting costs nothing
    ) -> PlacedRows:
        """See `Rows`."""
        rows = self._live()
        paths, numbers = _paths(rows), row_numbers(rows.num_rows)
        if order:
            numbers = _sorted(rows, order)
            paths = paths.take(numbers)
        inserts = {
            partition: rows.take(part) if order else SelectedRows(rows, part)
            for partition, part in split(paths, numbers)
        }
        placed = PlacedRows(self.context.recovered(), inserts=inserts)
        return placed.also_in(self._marked_paths())

    def _marked_paths(self) -> list[str]:
        """Partition paths of the rows that delete."""
        marked = self.context.marked_deleted(self.rows)
        paths: list[str] = _paths(self.rows).filter(marked).unique().to_pylist()
        return paths

    def _live(self) -> pa.Table:
        marked = self.context.marked_deleted(self.rows)
        return self.rows.filter(pc.invert(marked)) if pc.any(marked).as_py() else self.rows


def _sorted(rows: pa.Table, order: tuple[str, ...]) -> pa.Array[Any]:
    keys = [(name, "ascending") for name in order]
    return pc.sort_indices(rows, sort_keys=keys).cast(pa.int64())


def _paths(rows: pa.Table) -> pa.Array[Any]:
    return rows.column(PARTITION_PATH).combine_chunks()


def placed(
    context: WriteContext, rows: pa.Table, marked_deleted: pa.Array[Any], located: Located
) -> PlacedRows:
    """Rows by what an index said of them. Deletes of keys that are nowhere fall away.

    marked_deleted: for each row whether it deletes its key.
    """
    tagged, groups = located.tagged, located.groups
    new = untagged(rows.num_rows, tagged)
    new = new.filter(pc.invert(marked_deleted.take(new)))
    updates, leaving = dict(tagged.by_group()), tagged.leaving()
    if updates or leaving:
        # One chunk, since taking rows from many goes through all of them for each group.
        rows = rows.combine_chunks()
    keys, base_rows = rows.column(RECORD_KEY), tagged.base_rows_by_group()
    return PlacedRows(
        context,
        groups,
        updates={
            number: GroupRows(
                in_partition(rows.take(at), groups[number].slice.partition),
                len(at),
                pc.sum(marked_deleted.take(at)).as_py() or 0,
                base_rows.get(number),
            )
            for number, at in updates.items()
        },
        leaving={
            number: LeavingKeys(keys.take(at).combine_chunks()) for number, at in leaving.items()
        },
        inserts={
            path: SelectedRows(rows, part) for path, part in split(_paths(rows).take(new), new)
        },
        absent=_absent(rows, tagged),
    )


def _absent(keys: pa.Table, tagged: Tagged) -> pa.Table:
    """Keys that are nowhere. They are a copy, since the rows go file by file."""
    return keys.select([RECORD_KEY, PARTITION_PATH]).take(untagged(keys.num_rows, tagged))


def placed_deletes(context: WriteContext, keys: pa.Table, *, in_partitions: bool) -> PlacedRows:
    """Keys to be deleted, by what the index of a cleaned-up table says of them.

    keys: columns record key and partition path, of which the first alone counts unless keys are to
    be looked for `in_partitions`.
    """
    located = tagging.for_delete(context, keys, in_partitions=in_partitions)
    texts, base_rows = keys.column(RECORD_KEY).combine_chunks(), located.tagged.base_rows_by_group()
    leaving = {
        number: LeavingKeys(texts.take(at), base_rows.get(number))
        for number, at in located.tagged.by_group()
    }
    absent = _absent(keys, located.tagged)
    if not in_partitions:
        absent = absent.drop_columns([PARTITION_PATH])
    return PlacedRows(context, located.groups, leaving=leaving, absent=absent)
