"""Rows of a DataFrame by where they go: counted on the driver, written where they meet by file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from pyhudi.config.meta_columns import PARTITION_PATH
from pyhudi.spark.executor_context import RemoteContext
from pyhudi.spark.executor_steps import CachedFrames, arrow_schema, collect, map_batches
from pyhudi.spark.file_routing import ROUTE, Route, WriteRoute, check_all_written
from pyhudi.spark.internal_columns import (
    ACTION,
    AT,
    BYTES,
    COUNTED,
    CROSSED,
    DELETED,
    DESTINATION,
    GROUP,
    KNOWN,
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
from pyhudi.spark.shuffle_balance import route_names, shuffle_partitions
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.conflicts import FileGroups
from pyhudi.write.assigned_rows import WRITE_STAGE
from pyhudi.write.file_assignment import Counts, PlannedFile, Updates
from pyhudi.write.row_sizes import Stretch
from pyhudi.write.write_context import WriteContext

_AWAY = "away"
_DROPPED = "dropped"


@dataclass(frozen=True)
class PlacedFrame:
    """See `write.rows.AssignedRows`."""

    context: WriteContext
    frame: DataFrame
    schema: pa.Schema
    """Of the rows, with record key and partition path in front."""
    counts: Counts
    names: Sequence[tuple[str, str]] = ()
    """Of each file group, what the rows that go there have as `DESTINATION` and `GROUP`."""
    away: int = 0
    """Rows for file groups in another partition than they say."""
    cross_partition_duplicates: int = 0
    known: int = 0
    order: tuple[str, ...] = ()
    """What the rows of a new file are sorted by."""
    firsts: Mapping[tuple[str, int], int] | None = None
    """Of rows that are only to be added: see `Route`."""
    seen: FileGroups = frozenset()
    sizes: Mapping[str, Sequence[Stretch]] = field(default_factory=dict)
    """Of rows that are only to be added: see `Placed.stretches`."""

    @classmethod
    def of_tagged(
        cls,
        context: WriteContext,
        tagged: DataFrame,
        schema: pa.Schema,
        *,
        order: tuple[str, ...] = (),
        anew: bool = False,
    ) -> PlacedFrame:
        """Rows with `PLACED` columns, counted.

        anew: the file groups that are there go, so rows go to buckets that are to be made.
        """
        away = (sf.col(DESTINATION) != sf.col(PARTITION_PATH)).cast("long")
        dropped = sf.col(CROSSED) if CROSSED in tagged.columns else sf.lit(0)
        counted = tagged.groupBy(DESTINATION, GROUP, ACTION, DELETED).agg(
            sf.count("*").alias("count"),
            sf.sum(away).alias(_AWAY),
            sf.sum(dropped).alias(_DROPPED),
            _count_existing(tagged),
        )
        found = collect(counted, "find where rows are")
        new = [row for row in found if row[ACTION] == NEW]
        placed = [row for row in found if row[ACTION] != NEW]
        places = sorted({(row[DESTINATION], row[GROUP]) for row in placed})
        paths = sorted({row[DESTINATION] for row in found})
        groups = [] if anew else context.groups(paths)[0]
        groups = context.index.with_new(context, groups, places)
        names = [context.index.place(group.slice) for group in groups]
        numbers = {name: number for number, name in enumerate(names)}
        updates: dict[int, Updates] = {}
        leaving: dict[int, int] = {}
        for row in placed:
            number, count = numbers[row[DESTINATION], row[GROUP]], row["count"]
            if row[ACTION] == REMOVE:
                leaving[number] = leaving.get(number, 0) + count
                continue
            before = updates.get(number, Updates(0))
            deletes = before.deletes + (count if row[DELETED] else 0)
            updates[number] = Updates(before.rows + count, deletes)
        inserts = dict.fromkeys(sorted(row[DESTINATION] for row in new), 0)
        for row in new:
            inserts[row[DESTINATION]] += row["count"]
        kept = [row[_AWAY] or 0 for row in placed if row[ACTION] == UPDATE and not row[DELETED]]
        # A row that moves is there twice: once to be removed.
        crossed = sum(row[_DROPPED] for row in found if row[ACTION] != REMOVE)
        counts = Counts(groups, updates, leaving, inserts)
        known = sum(row[KNOWN] for row in new)
        return cls(context, tagged, schema, counts, names, sum(kept), crossed, known, order)

    @classmethod
    def of_new(
        cls,
        context: WriteContext,
        keep: CachedFrames,
        rows: DataFrame,
        schema: pa.Schema,
        order: tuple[str, ...],
        *,
        known: bool = False,
    ) -> PlacedFrame:
        """Rows for new files alone, numbered by partition path, before the clean-up.

        known: those are counted whose keys the table has.
        """
        told = pa.schema([(KNOWN, pa.bool_())] if known else [])
        counted = with_fields(with_fields(with_fields(schema, NUMBERED), told), COUNTED)
        counted = with_fields(counted, MEASURED)
        remote = RemoteContext.of(context, None if known else ())
        frame = keep.keep(map_batches(rows, Count(remote, known), counted))
        by = frame.groupBy(PARTITION_PATH, TASK, STRETCH)
        rows_of = collect(by.agg(sf.count(AT), sf.sum(BYTES), _count_existing(frame)), "make keys")
        # Rows that delete are in no stretch, and are not counted.
        found = sorted(
            (row[0], row[1], -1 if row[2] is None else row[2], Stretch(row[3], row[4] or 0))
            for row in rows_of
        )
        firsts, totals = _firsts([(path, task, at.rows) for path, task, _, at in found])
        sizes: dict[str, list[Stretch]] = {path: [] for path in totals}
        for path, _, _, stretch in found:
            sizes[path].append(stretch)
        counts = Counts((), inserts=totals)
        live = frame.where(sf.col(AT).isNotNull()).drop(STRETCH, BYTES)
        copies = sum(row[KNOWN] for row in rows_of)
        context = context.recover()
        new = cls(context, live, schema, counts, known=copies, order=order, firsts=firsts)
        return replace(new, sizes=sizes)

    def also_in(self, partitions: Iterable[str]) -> PlacedFrame:
        """See `PlacedRows.also_in`."""
        inserts = {**dict.fromkeys(partitions, 0), **self.counts.inserts}
        return replace(self, counts=replace(self.counts, inserts=inserts))

    @property
    def kept_away(self) -> int:
        """Rows that keep another partition than they say, where rows may not move."""
        index = self.context.index
        return self.away if index.is_global and not index.moves else 0

    @property
    def leaving_keys(self) -> Mapping[int, pa.Array[Any] | None]:
        """None for each file group that keys leave."""
        return dict.fromkeys(self.counts.leaving)

    @property
    def absent(self) -> None:
        """The driver has no keys."""
        return

    def stretches(self) -> Mapping[str, Sequence[Stretch]]:
        """See `AssignedRows`; of rows that are only to be added."""
        return {path: self.sizes.get(path, ()) for path in self.counts.inserts}

    def write(self, files: Sequence[PlannedFile], instant: str) -> list[tuple[WriteStat, ...]]:
        """Brings the rows together by file and writes them."""
        if not files:
            return []
        known = self._count_existing(files)
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
            WriteRoute(tuple(files), known, self.schema, self.order),
            stage=WRITE_STAGE,
            label=f"write files of {instant}",
        )
        total = sum(known) + sum(self.counts.inserts.values())
        check_all_written(sum(written.rows for written in written), total)
        return [written.stats for written in written]

    def _count_existing(self, files: Sequence[PlannedFile]) -> tuple[int, ...]:
        """For each file how many rows and keys go to it that are not new."""
        updates, leaving = self.counts.updates, self.counts.leaving
        return tuple(
            updates.get(file.group, Updates(0)).rows + leaving.get(file.group, 0)
            if file.group is not None
            else 0
            for file in files
        )


def _count_existing(frame: DataFrame) -> Column:
    """Number of the rows whose keys the table has."""
    known = sf.col(KNOWN).cast("long") if KNOWN in frame.columns else sf.lit(0)
    return sf.sum(known).alias(KNOWN)


def _ranges(files: Sequence[PlannedFile]) -> dict[str, tuple[tuple[int, int], ...]]:
    """As `Route.files` has it."""
    found: dict[str, list[tuple[int, int]]] = {}
    for number, file in enumerate(files):
        if file.inserts:
            found.setdefault(file.task.partition, []).append((file.inserts.stop, number))
    return {path: tuple(sorted(stops)) for path, stops in found.items()}


def _firsts(
    found: list[tuple[str, int, int]],
) -> tuple[dict[tuple[str, int], int], dict[str, int]]:
    """The place of each task's first row of a path among all of the path, and their number."""
    firsts: dict[tuple[str, int], int] = {}
    totals: dict[str, int] = {}
    for path, task, count in found:
        firsts.setdefault((path, task), totals.get(path, 0))
        totals[path] = totals.get(path, 0) + count
    return firsts, totals
