"""From rows of a DataFrame to committed files: count, plan, bring together, write, commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.config.index_options import BUCKET, INDEX_TYPE
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.index import bucket
from pyhudi.index.bucket import is_shared
from pyhudi.index.copies import groups_with_copies
from pyhudi.index.renewal import confirm_rings, in_place, renew_rings
from pyhudi.schema.record_keys import PARTITION_PATH
from pyhudi.slices.write_tasks import BaseFileTask, FileGroup, WriteTarget, WriteTask
from pyhudi.spark.balance import route_names, shuffle_partitions
from pyhudi.spark.columns import (
    ACTION,
    COUNTED,
    DELETED,
    GROUP,
    HIT,
    HOME,
    LEAVES,
    NEW,
    NUMBERED,
    TASK,
    identity,
    with_fields,
)
from pyhudi.spark.flow import arrow_schema, collected, mapped
from pyhudi.spark.keying import Count
from pyhudi.spark.remote import RemoteSession
from pyhudi.spark.routing import (
    ROUTE,
    TAGGED_ROWS,
    Expected,
    Route,
    Routes,
    WriteRoute,
    check_all_written,
    counted_deletes,
)
from pyhudi.spark.sample import sampled_row_size
from pyhudi.spark.write_rows import FrameRows
from pyhudi.timeline.commit_metadata import WriteStat
from pyhudi.txn.replace_commit import INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE
from pyhudi.txn.result import WriteResult
from pyhudi.txn.transaction import Transaction
from pyhudi.write import plan_partitioned, row_sizes
from pyhudi.write import plan_rows as plan
from pyhudi.write.execute import WRITE_STAGE, carry_out
from pyhudi.write.overwrite import groups_of
from pyhudi.write.plan_partitioned import UpdatePart
from pyhudi.write.upsert import told_kept
from pyhudi.write.write_context import Session

_AWAY = "away"


def write(
    rows: FrameRows,
    operation: str,
    *,
    merge_by_key: bool,
    partial: bool = False,
    tells_kept: bool = False,
    deletes: bool = False,
) -> WriteResult:
    """Writes rows that know where they go.

    tells_kept: of those that go to another partition than they say, as `operations.upsert`.
    deletes: every row of a key that leaves a file group goes, as `operations.delete_keys` has it.
    """
    placed = Placed.of(rows.session, rows.frame)
    if deletes:
        leaving: dict[int, pa.Array[Any] | None] = dict.fromkeys(placed.leaving)
        anew = groups_with_copies(rows.session, placed.groups, leaving)
        placed = replace(placed, anew=anew)
    with Transaction(rows.session.table, operation) as txn:
        target = replace(rows.session.target(txn.instant), partial=partial)
        result = _write_placed(rows, txn, placed, target, operation, merge_by_key=merge_by_key)
    index = rows.session.index
    tells_kept = tells_kept and index.is_global and not index.moves
    return told_kept(rows.session, result, placed.away if tells_kept else 0)


def write_to_buckets(rows: FrameRows, operation: str, order: tuple[str, ...]) -> WriteResult:
    """Adds rows to their buckets, as `bucketed.bulk_insert`. order: of the rows of each file."""
    placed = Placed.of(rows.session, rows.frame).beginning_with_base_files()
    with Transaction(rows.session.table, operation) as txn:
        target = rows.session.target(txn.instant)
        merge_by_key = not target.merge_on_read
        return _write_placed(
            rows, txn, placed, target, operation, merge_by_key=merge_by_key, order=order
        )


def write_buckets_anew(rows: FrameRows, operation: str) -> WriteResult:
    """Puts rows in place of the file groups of buckets, as `bucketed.overwrite`."""
    session = rows.session
    placed = Placed.of(session, rows.frame, anew=True).beginning_with_base_files()
    replaced = groups_of(session, None if operation == INSERT_OVERWRITE_TABLE else placed.homes)
    with Transaction(session.table, operation) as txn:
        renewed = renew_rings(session, replaced, txn.instant)
        txn.on_completed(lambda: confirm_rings(session.storage, renewed, txn.instant))
        placed = replace(placed, groups=in_place(placed.groups, renewed))
        target = session.target(txn.instant)
        return _write_placed(
            rows,
            txn,
            placed,
            target,
            operation,
            merge_by_key=not target.merge_on_read,
            replaced=replaced,
        )


def _write_placed(
    rows: FrameRows,
    txn: Transaction,
    placed: Placed,
    target: WriteTarget,
    operation: str,
    *,
    merge_by_key: bool,
    order: tuple[str, ...] = (),
    replaced: Mapping[str, tuple[str, ...]] | None = None,
) -> WriteResult:
    session = rows.session
    tasks = placed.tasks(session, target, merge_by_key=merge_by_key)
    routes = Routes.of(tasks)
    by_group = {
        name: routes.numbers[group.slice.partition, group.slice.file_id]
        for name, group in zip(placed.names, placed.groups, strict=True)
        if (group.slice.partition, group.slice.file_id) in routes.numbers
    }
    known = tuple(placed.known.get((task.partition, task.file_id), 0) for task in tasks)
    work = WriteRoute(routes.tasks, known, routes.added, rows.schema, order)
    total = sum(known) + sum(placed.inserts.values())
    return carry_out(
        session,
        txn,
        tasks,
        operation,
        replaced=replaced,
        write=lambda: _exchanged(rows, Route(by_group, routes.files), work, txn, total),
    )


def write_new_files(
    rows: FrameRows,
    operation: str,
    *,
    order: tuple[str, ...] = (),
    together: bool = False,
) -> WriteResult:
    """Writes rows to new files, which take the place of others in an overwriting operation."""
    session = rows.session
    if session.options.combine_inserts:
        rows = rows.combined()
    if together:
        columns = [sf.col(f"`{name}`").asc_nulls_last() for name in (PARTITION_PATH, *order)]
        rows = rows.with_frame(rows.frame.orderBy(*columns))
    schema = with_fields(with_fields(rows.schema, NUMBERED), COUNTED)
    rows = rows.with_frame(mapped(rows.frame, Count(RemoteSession.of(session)), schema)).kept()
    counts = rows.frame.groupBy(PARTITION_PATH, TASK).count()
    found = sorted((r[0], r[1], r[2]) for r in collected(counts, "make keys"))
    firsts, totals = _firsts(found)
    row_bytes = sampled_row_size(rows.frame, rows.schema, session.options)
    session = session.recovered()
    rows = replace(rows, session=session)
    replaced = None
    if operation in (INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE):
        paths = None if operation == INSERT_OVERWRITE_TABLE else list(totals)
        replaced = groups_of(session, paths)
    with Transaction(session.table, operation) as txn:
        tasks = plan_partitioned.plan_new_files(
            session.target(txn.instant),
            {path: Expected(path, 0, count) for path, count in totals.items()},
            row_bytes=row_bytes,
            new_file_id=session.new_file_id,
        )
        routes = Routes.of(tasks)
        work = WriteRoute(routes.tasks, (0,) * len(tasks), routes.added, rows.schema, order)
        route = Route({}, routes.files, firsts)
        total = sum(totals.values())
        return carry_out(
            session,
            txn,
            tasks,
            operation,
            replaced=replaced,
            write=lambda: _exchanged(rows, route, work, txn, total),
        )


def _firsts(
    found: list[tuple[str, int, int]],
) -> tuple[dict[tuple[str, int], int], dict[str, int]]:
    """The place of each task's first row of a path among all of the path, and their number."""
    firsts: dict[tuple[str, int], int] = {}
    totals: dict[str, int] = {}
    for path, task, count in found:
        firsts[path, task] = totals.get(path, 0)
        totals[path] = totals.get(path, 0) + count
    return firsts, totals


def _exchanged(
    rows: FrameRows, route: Route, work: WriteRoute, txn: Transaction, total: int
) -> list[tuple[WriteStat, ...]]:
    """Brings the rows together by file and writes them."""
    if not work.tasks:
        return []
    partitions = shuffle_partitions(rows.frame.sparkSession)
    route = replace(route, names=route_names(len(work.tasks), partitions))
    schema = pa.schema([*arrow_schema(rows.frame), (ROUTE, pa.string())])
    routed = mapped(rows.frame, route, schema)
    written = rows.session.engine.exchange(
        routed, ROUTE, work, stage=WRITE_STAGE, label=f"write files of {txn.instant}"
    )
    check_all_written(sum(one.rows for one in written), total)
    return [one.stats for one in written]


# --- what goes where, by count --------------------------------------------------------------------


@dataclass(frozen=True)
class Placed:
    """How many rows go where."""

    groups: list[FileGroup]
    """File groups that rows go to or leave, and those that new rows may go to."""
    names: list[tuple[str, str]]
    """Of each file group, what the rows that go there have as `HOME` and `GROUP`."""
    updates: dict[int, UpdatePart]
    """By number of the file group."""
    leaving: dict[int, int]
    inserts: dict[str, int]
    """By partition path."""
    away: int
    """Rows for file groups in another partition than they say."""
    anew: frozenset[int] = frozenset()
    """File groups that get a new base file also in a merge-on-read table."""

    @classmethod
    def of(cls, session: Session, tagged: DataFrame, *, anew: bool = False) -> Placed:
        """Counts tagged rows. Raises `CommitConflict` as `plan_rows` does.

        anew: the file groups that are there go, so rows go to buckets that are to be made.
        """
        away = (sf.col(HOME) != sf.col(PARTITION_PATH)).cast("long")
        counts = tagged.groupBy(HOME, GROUP, ACTION, DELETED).agg(
            sf.count("*").alias("count"), sf.sum(away).alias(_AWAY)
        )
        found = collected(counts, "find where rows are")
        places = sorted({(row[HOME], row[GROUP]) for row in found if row[ACTION] != NEW})
        inserts: dict[str, int] = {}
        for row in found:
            if row[ACTION] == NEW:
                inserts[row[HOME]] = inserts.get(row[HOME], 0) + row["count"]
        paths = sorted({home for home, _ in places} | set(inserts))
        groups = [] if anew else session.groups(paths)[0]
        groups = _with_new_buckets(session, groups, places)
        names = [
            (group.slice.partition, identity(session.index, group.slice.file_id))
            for group in groups
        ]
        numbers = {name: number for number, name in enumerate(names)}
        updates: dict[int, UpdatePart] = {}
        leaving: dict[int, int] = {}
        for row in found:
            if row[ACTION] == NEW:
                continue
            number, count = numbers[row[HOME], row[GROUP]], row["count"]
            if row[ACTION] == LEAVES:
                leaving[number] = leaving.get(number, 0) + count
                continue
            before = updates.get(number, UpdatePart(TAGGED_ROWS, 0))
            deletes = before.deletes + (count if row[DELETED] else 0)
            updates[number] = UpdatePart(TAGGED_ROWS, before.count + count, deletes)
        plan.check_not_clustered(groups[number] for number in {*updates, *leaving})
        kept = [row[_AWAY] or 0 for row in found if row[ACTION] == HIT and not row[DELETED]]
        return cls(groups, names, updates, leaving, dict(sorted(inserts.items())), sum(kept))

    def beginning_with_base_files(self) -> Placed:
        """File groups that are to be made get a base file first, no log file."""
        groups = [replace(group, starts_with_log=False) for group in self.groups]
        return replace(self, groups=groups)

    @property
    def homes(self) -> list[str]:
        """Paths of the partitions that rows go to."""
        return sorted({self.names[number][0] for number in self.updates} | set(self.inserts))

    @property
    def known(self) -> dict[tuple[str, str], int]:
        """How many rows go to or leave a file group, by partition path and file id."""
        counts = {number: part.count for number, part in self.updates.items()}
        for number, count in self.leaving.items():
            counts[number] = counts.get(number, 0) + count
        return {
            (self.groups[number].slice.partition, self.groups[number].slice.file_id): count
            for number, count in counts.items()
        }

    def tasks(
        self, session: Session, target: WriteTarget, *, merge_by_key: bool
    ) -> list[WriteTask]:
        """The tasks, without rows but with their counts."""
        none = pa.array([], pa.string())
        tasks = plan_partitioned.plan_parts(
            target,
            self.updates,
            {path: Expected(path, 0, count) for path, count in self.inserts.items()},  # type: ignore[misc]
            self.groups,
            leaving=dict.fromkeys(self.leaving, none),
            row_bytes=row_sizes.row_size(session.timeline, session.options),
            merge_by_key=merge_by_key,
            new_file_id=session.new_file_id,
        )
        left = {
            (self.groups[number].slice.partition, self.groups[number].slice.file_id): count
            for number, count in self.leaving.items()
        }
        anew = {self.groups[number].slice.file_id for number in self.anew}
        tasks = [_rewriting(task) if task.file_id in anew else task for task in tasks]
        return [_counted(task, left) for task in tasks]


def _rewriting(task: WriteTask) -> WriteTask:
    """The task with a new base file in place of a log file."""
    if isinstance(task, BaseFileTask):
        return task
    return BaseFileTask(
        task.target,
        task.partition,
        task.file_id,
        task.group.slice,
        task.rows,
        inserts=task.inserts,
        updates=task.updates + task.deletes,
    )


def _counted(task: WriteTask, left: Mapping[tuple[str, str], int]) -> WriteTask:
    count = left.get((task.partition, task.file_id), 0)
    return counted_deletes(task, count) if count else task


def _with_new_buckets(
    session: Session, groups: list[FileGroup], places: list[tuple[str, str]]
) -> list[FileGroup]:
    """The groups, and those that rows are the first of.

    Raises `UnsupportedTableFeature` where concurrent writers would have to make the same ones.
    """
    if session.index.kind != BUCKET:
        return groups
    made = {
        (group.slice.partition, identity(session.index, group.slice.file_id)) for group in groups
    }
    new = []
    for home, name in places:
        if (home, name) in made:
            continue
        if session.index.consistent:
            new.append(bucket.to_be_made(home, name, by_log=True))
            continue
        if any(is_shared(group.slice.file_id) for group in groups):
            msg = f"{INDEX_TYPE} is {BUCKET}, and several writers make its file ids alike"
            raise UnsupportedTableFeature(msg, hint="Pass Arrow data in place of a DataFrame.")
        file_id = bucket.new_file_id(int(name.removeprefix("bucket ")), session.new_file_id)
        new.append(bucket.to_be_made(home, file_id))
    return [*groups, *new]
