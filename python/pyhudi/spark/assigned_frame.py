"""Rows of a DataFrame by destination: the driver counts them, executors write them by file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pyhudi.config.meta_columns import PARTITION_PATH
from pyhudi.spark.executor_steps import (
    CachedFrames,
    RemoteContext,
    arrow_schema,
    collect,
    map_batches,
)
from pyhudi.spark.file_routing import (
    ROUTE,
    Route,
    WriteRoute,
    check_all_written,
    route_names,
    shuffle_partitions,
)
from pyhudi.spark.internal_columns import (
    ACTION,
    AT,
    BYTES,
    COUNTED,
    CROSSED,
    DELETED,
    DESTINATION,
    EXISTING,
    GROUP,
    MEASURED,
    NEW,
    NUMBERED,
    REMOVE,
    STRETCH,
    TASK,
    UPDATE,
    with_fields,
)
from pyhudi.spark.key_steps import Count
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.conflicts import FileGroups
from pyhudi.write.assigned_rows import WRITE_LABEL, WRITE_STAGE
from pyhudi.write.file_assignment import Counts, PlannedFile, Updates
from pyhudi.write.row_sizes import RowRange
from pyhudi.write.write_context import WriteContext

_MOVED = "moved"
_DROPPED = "dropped"


@dataclass(frozen=True)
class AssignedFrame:
    """Assigned rows, see `write.row_protocols.AssignedRows`."""

    context: WriteContext
    frame: DataFrame
    schema: pa.Schema
    """Schema of the rows, with record key and partition path in front."""
    counts: Counts
    names: Sequence[tuple[str, str]] = ()
    """For each file group, the values of `DESTINATION` and `GROUP` in its rows."""
    in_other_partition: int = 0
    """Number of rows that go to another partition than they name."""
    cross_partition_duplicates: int = 0
    inserted_duplicates: int = 0
    order: tuple[str, ...] = ()
    """Columns that sort the rows of a new file."""
    firsts: Mapping[tuple[str, int], int] | None = None
    """For append-only rows: see `Route`."""
    groups_read: FileGroups = frozenset()
    sizes: Mapping[str, Sequence[RowRange]] = field(default_factory=dict)
    """For append-only rows: see `AssignedRows.row_ranges`."""

    @classmethod
    def of_tagged(
        cls,
        context: WriteContext,
        tagged: DataFrame,
        schema: pa.Schema,
        *,
        order: tuple[str, ...] = (),
        rewrite: bool = False,
    ) -> AssignedFrame:
        """Return rows with `ASSIGNED` columns, counted.

        rewrite: the write replaces the existing file groups, so rows go to new buckets.
        """
        in_other_partition = (sf.col(DESTINATION) != sf.col(PARTITION_PATH)).cast("long")
        dropped = sf.col(CROSSED) if CROSSED in tagged.columns else sf.lit(0)
        counted = tagged.groupBy(DESTINATION, GROUP, ACTION, DELETED).agg(
            sf.count("*").alias("count"),
            sf.sum(in_other_partition).alias(_MOVED),
            sf.sum(dropped).alias(_DROPPED),
            _count_existing(tagged),
        )
        rows = collect(counted, "find where rows are", context.engine)
        new = [row for row in rows if row[ACTION] == NEW]
        assigned = [row for row in rows if row[ACTION] != NEW]
        locations = sorted({(row[DESTINATION], row[GROUP]) for row in assigned})
        paths = sorted({row[DESTINATION] for row in rows})
        groups = [] if rewrite else context.groups(paths)[0]
        groups = context.index.with_new_groups(context, groups, locations)
        names = [context.index.location_of(group.slice) for group in groups]
        numbers = {name: number for number, name in enumerate(names)}
        updates: dict[int, Updates] = {}
        deleted_keys: dict[int, int] = {}
        for row in assigned:
            number, count = numbers[row[DESTINATION], row[GROUP]], row["count"]
            if row[ACTION] == REMOVE:
                deleted_keys[number] = deleted_keys.get(number, 0) + count
                continue
            before = updates.get(number, Updates(0))
            deletes = before.deletes + (count if row[DELETED] else 0)
            updates[number] = Updates(before.rows + count, deletes)
        inserts = dict.fromkeys(sorted(row[DESTINATION] for row in new), 0)
        for row in new:
            inserts[row[DESTINATION]] += row["count"]
        away_rows = [
            row[_MOVED] or 0 for row in assigned if row[ACTION] == UPDATE and not row[DELETED]
        ]
        # A row that changes its partition comes twice: one of the two is to be removed.
        crossed = sum(row[_DROPPED] for row in rows if row[ACTION] != REMOVE)
        counts = Counts(groups, updates, deleted_keys, inserts)
        counts_existing = sum(row[EXISTING] for row in new)
        return cls(
            context, tagged, schema, counts, names, sum(away_rows), crossed, counts_existing, order
        )

    @classmethod
    def of_new(
        cls,
        context: WriteContext,
        keep: CachedFrames,
        rows: DataFrame,
        schema: pa.Schema,
        order: tuple[str, ...],
        *,
        counts_existing: bool = False,
    ) -> AssignedFrame:
        """Return rows for new files only, numbered by partition path, before the recovery.

        counts_existing: count rows whose keys are in the table.
        """
        existing_field = pa.schema([(EXISTING, pa.bool_())] if counts_existing else [])
        counted = with_fields(with_fields(with_fields(schema, NUMBERED), existing_field), COUNTED)
        counted = with_fields(counted, MEASURED)
        remote = RemoteContext.of(context, None if counts_existing else ())
        frame = keep.keep(map_batches(rows, Count(remote, counts_existing), counted))
        by = frame.groupBy(PARTITION_PATH, TASK, STRETCH)
        counts_by_stretch = by.agg(sf.count(AT), sf.sum(BYTES), _count_existing(frame))
        rows_of = collect(counts_by_stretch, "make keys", context.engine)
        # Rows that delete are in no stretch, and are not counted.
        row_ranges = sorted(
            (row[0], row[1], -1 if row[2] is None else row[2], RowRange(row[3], row[4] or 0))
            for row in rows_of
        )
        firsts, totals = _firsts([(path, task, at.rows) for path, task, _, at in row_ranges])
        sizes: dict[str, list[RowRange]] = {path: [] for path in totals}
        for path, _, _, stretch in row_ranges:
            sizes[path].append(stretch)
        counts = Counts((), inserts=totals)
        live = frame.where(sf.col(AT).isNotNull()).drop(STRETCH, BYTES)
        existing_rows = sum(row[EXISTING] for row in rows_of)
        context = context.recover()
        new = cls(
            context,
            live,
            schema,
            counts,
            inserted_duplicates=existing_rows,
            order=order,
            firsts=firsts,
        )
        return replace(new, sizes=sizes)

    def with_partitions(self, partitions: Iterable[str]) -> AssignedFrame:
        """Return the rows with more partitions; see `AssignedLocalRows.with_partitions`."""
        inserts = {**dict.fromkeys(partitions, 0), **self.counts.inserts}
        return replace(self, counts=replace(self.counts, inserts=inserts))

    @property
    def kept_in_partition(self) -> int:
        """Number of rows that stay in another partition than they name.

        It is 0 if the index moves rows.
        """
        index = self.context.index
        return (
            self.in_other_partition if index.is_global and not index.updates_partition_path else 0
        )

    @property
    def deleted_keys(self) -> Mapping[int, pa.Array[Any] | None]:
        """None for each file group from which keys are deleted."""
        return dict.fromkeys(self.counts.deletes)

    @property
    def missing_keys(self) -> None:
        """None: the driver has no keys."""
        return

    def row_ranges(self) -> Mapping[str, Sequence[RowRange]]:
        """Return the row_ranges of append-only rows; see `AssignedRows`."""
        return {path: self.sizes.get(path, ()) for path in self.counts.inserts}

    def write(self, files: Sequence[PlannedFile], instant: str) -> list[tuple[WriteStat, ...]]:  # noqa: ARG002
        """Route the rows to their files and write them."""
        if not files:
            return []
        existing = self._count_existing(files)
        route = Route(
            {self.names[file.group]: n for n, file in enumerate(files) if file.group is not None},
            _ranges(files),
            self.firsts,
            route_names(len(files), shuffle_partitions(self.frame.sparkSession)),
        )
        schema = pa.schema([*arrow_schema(self.frame), (ROUTE, pa.string())])
        written = self.context.engine.exchange(
            map_batches(self.frame, route, schema),
            ROUTE,
            WriteRoute(tuple(files), existing, self.schema, self.order),
            stage=WRITE_STAGE,
            label=WRITE_LABEL,
        )
        total = sum(existing) + sum(self.counts.inserts.values())
        check_all_written(sum(written.rows for written in written), total)
        return [written.stats for written in written]

    def _count_existing(self, files: Sequence[PlannedFile]) -> tuple[int, ...]:
        """Return for each file the number of rows and keys that are not new."""
        updates, deleted_keys = self.counts.updates, self.counts.deletes
        return tuple(
            updates.get(file.group, Updates(0)).rows + deleted_keys.get(file.group, 0)
            if file.group is not None
            else 0
            for file in files
        )


def _count_existing(frame: DataFrame) -> Column:
    """Return the number of rows whose keys are in the table."""
    counts_existing = sf.col(EXISTING).cast("long") if EXISTING in frame.columns else sf.lit(0)
    return sf.sum(counts_existing).alias(EXISTING)


def _ranges(files: Sequence[PlannedFile]) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return the mapping for `Route.files`."""
    stops_by_path: dict[str, list[tuple[int, int]]] = {}
    for number, file in enumerate(files):
        if file.inserts:
            stops_by_path.setdefault(file.task.partition, []).append((file.inserts.stop, number))
    return {path: tuple(sorted(stops)) for path, stops in stops_by_path.items()}


def _firsts(
    counts: list[tuple[str, int, int]],
) -> tuple[dict[tuple[str, int], int], dict[str, int]]:
    """Return the offset of each task's first row among all of its path, and the total rows."""
    firsts: dict[tuple[str, int], int] = {}
    totals: dict[str, int] = {}
    for path, task, count in counts:
        firsts.setdefault((path, task), totals.get(path, 0))
        totals[path] = totals.get(path, 0) + count
    return firsts, totals
