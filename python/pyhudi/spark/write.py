"""The writing verbs with a DataFrame as the data: the same writes, by jobs of Spark.

Keys are made, found and written on executors. The driver plans with counts and commits; what it
holds grows with partitions and files, not with rows. Each verb checks and means what the embedded
one does (`txn/operations*.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from pyhudi.clock import Clock
from pyhudi.config.index_options import BUCKET, INDEX_TYPE
from pyhudi.config.write_options import INSERT_DUPLICATES
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.index import locate
from pyhudi.metadata.checks_before_write import check_replaceable
from pyhudi.schema.evolution import SchemaMode
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.spark.columns import NUMBERED, with_fields
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.flow import Kept, arrow_schema, job_group, mapped
from pyhudi.spark.keying import DeleteKeys
from pyhudi.spark.merging import merge_frame
from pyhudi.spark.remote import RemoteSession
from pyhudi.spark.write_apart import write_apart
from pyhudi.spark.write_files import (
    write,
    write_buckets_anew,
    write_new_files,
    write_to_buckets,
)
from pyhudi.spark.write_rows import FrameRows, keyed
from pyhudi.storage.storage import Storage
from pyhudi.txn.replace_commit import INSERT_OVERWRITE, INSERT_OVERWRITE_TABLE
from pyhudi.txn.result import WriteResult
from pyhudi.write import incoming
from pyhudi.write import merge as operations_merge
from pyhudi.write import overwrite as operations_replace
from pyhudi.write import upsert as operations
from pyhudi.write.bulk_insert import SortMode, sort_order
from pyhudi.write.execute import BULK_INSERT, DELETE, INSERT, UPSERT
from pyhudi.write.merge import MergeClause
from pyhudi.write.partial_update import check_partial
from pyhudi.write.upsert import opened
from pyhudi.write.write_context import Session, WritableTable

MEMORY = 512 * 1024 * 1024
"""What `memory_limit` is by default, in bytes: for each task, not for the machine."""


@dataclass(frozen=True)
class _Handle:
    """A table's handle with an engine that has executors."""

    storage: Storage
    engine: Engine
    options: Mapping[str, str]


def carry(
    verb: Callable[..., WriteResult], table: WritableTable, data: DataFrame, *more: Any, **how: Any
) -> WriteResult:
    """Carries out a verb of `txn/` with a DataFrame as its data.

    A table without a Spark engine gets one of the DataFrame's session for this write. Raises as
    the verb does, and `UnsupportedTableFeature` for what needs the data in memory.
    """
    own = _VERBS.get(verb)
    if own is None:
        msg = f"{verb.__name__} does not take a Spark DataFrame"
        raise UnsupportedTableFeature(msg, hint="Pass Arrow data: frame.toArrow() or toPandas().")
    if isinstance(table.engine, LocalEngine):
        engine = SparkEngine(data.sparkSession)
        table = _Handle(table.storage, engine, table.options)
    with job_group(data.sparkSession, f"pyhudi {verb.__name__}: {table.storage.uri}"):
        return own(table, data, *more, **how)


# --- the verbs ------------------------------------------------------------------------------------


def upsert(
    table: WritableTable,
    data: DataFrame,
    *,
    schema_mode: SchemaMode = "strict",
    partial: bool = False,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """As `operations.upsert`."""
    session = _opened(table, clock, memory_limit)
    locate.check_mergeable(session)
    if partial:
        _check_partial(session, schema_mode)
    with keyed(session, data, schema_mode, partial=partial) as given:
        rows = (given.combined() if session.options.combine_upserts else given).kept()
        paths = rows.paths()
        located = rows.recovered().located(paths)
        return write(located, UPSERT, merge_by_key=True, partial=partial, tells_kept=True)


def insert(
    table: WritableTable,
    data: DataFrame,
    *,
    schema_mode: SchemaMode = "strict",
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """As `operations.insert`, but that keys are never looked for."""
    session = _opened(table, clock, memory_limit)
    policy = session.options.insert_duplicates
    if policy != "none":
        msg = f"{INSERT_DUPLICATES} is {policy}: an insert of a DataFrame looks for no keys"
        raise UnsupportedTableFeature(msg, hint="Upsert the rows, or pass Arrow data.")
    with keyed(session, data, schema_mode, generate=True) as given:
        rows, paths = _new_rows(given)
        placed = rows.placed_unseen(paths)
        return write(placed, INSERT, merge_by_key=not session.options.allow_duplicates)


def bulk_insert(
    table: WritableTable,
    data: DataFrame,
    *,
    sort: SortMode = "none",
    sort_columns: Sequence[str] = (),
    schema_mode: SchemaMode = "strict",
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """As `operations.bulk_insert`; "partition" sorts each file, "global" all rows together.

    With "none", each task writes files of its own, as those of Hudi do.
    """
    session = _opened(table, clock, memory_limit)
    order = sort_order(sort, sort_columns, session.schema.arrow)
    if sort == "none" and session.index.kind != BUCKET and not session.options.combine_inserts:
        return write_apart(session, data, schema_mode, memory_limit or MEMORY)
    with keyed(session, data, schema_mode, generate=True) as rows:
        if session.index.kind == BUCKET:
            given, paths = _new_rows(rows)
            return write_to_buckets(given.placed_unseen(paths), BULK_INSERT, order)
        return write_new_files(rows, BULK_INSERT, order=order, together=sort == "global")


def overwrite(
    table: WritableTable,
    data: DataFrame,
    *,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """As `operations_replace.overwrite`."""
    return _overwrite(table, data, INSERT_OVERWRITE_TABLE, clock, memory_limit)


def overwrite_partitions(
    table: WritableTable,
    data: DataFrame,
    *,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """As `operations_replace.overwrite_partitions`."""
    return _overwrite(table, data, INSERT_OVERWRITE, clock, memory_limit)


def delete_keys(
    table: WritableTable,
    keys: DataFrame,
    *,
    clock: Clock | None = None,
    memory_limit: int | None = None,
) -> WriteResult:
    """As `operations.delete_keys`."""
    session = _opened(table, clock, memory_limit)
    empty, in_partitions = session.delete_keys(arrow_schema(keys).empty_table())
    with Kept() as keep:
        given = mapped(
            keys, DeleteKeys(RemoteSession.of(session)), with_fields(empty.schema, NUMBERED)
        )
        if session.options.combine_deletes:
            given = given.dropDuplicates([RECORD_KEY, PARTITION_PATH])
        rows = FrameRows(session, keep, given, empty.schema).kept()
        paths = rows.paths() if in_partitions else None
        return write(
            rows.recovered().located_deletes(paths), DELETE, merge_by_key=True, deletes=True
        )


def _overwrite(
    table: WritableTable,
    data: DataFrame,
    operation: str,
    clock: Clock | None,
    memory_limit: int | None,
) -> WriteResult:
    session = _opened(table, clock, memory_limit)
    check_replaceable(session.config)
    with keyed(session, data, "strict", generate=True) as rows:
        if session.index.kind == BUCKET:
            given, paths = _new_rows(rows)
            return write_buckets_anew(given.placed_anew(paths), operation)
        return write_new_files(rows, operation)


def merge(
    table: WritableTable,
    source: DataFrame,
    clauses: Sequence[MergeClause],
    *,
    clock: Clock | None = None,
) -> WriteResult:
    """As `operations_merge.merge`."""
    return merge_frame(_opened(table, clock, None), source, clauses)


_VERBS: dict[Callable[..., WriteResult], Callable[..., WriteResult]] = {
    operations.upsert: upsert,
    operations.insert: insert,
    operations.bulk_insert: bulk_insert,
    operations.delete_keys: delete_keys,
    operations_merge.merge: merge,
    operations_replace.overwrite: overwrite,
    operations_replace.overwrite_partitions: overwrite_partitions,
}


def _opened(table: WritableTable, clock: Clock | None, limit: int | None) -> Session:
    return opened(table, clock, MEMORY if limit is None else incoming.memory_limit(limit))


def _new_rows(given: FrameRows) -> tuple[FrameRows, list[str]]:
    """Rows that are not looked for, after the clean-up, with the paths of their partitions."""
    rows = (given.combined() if given.session.options.combine_inserts else given).kept()
    paths = rows.paths()
    return rows.recovered(), paths


def _check_partial(session: Session, schema_mode: SchemaMode) -> None:
    check_partial(session, schema_mode)
    if not locate.keeps_places(session):
        msg = f"{INDEX_TYPE} is {session.index.kind}: no partial updates by a DataFrame with it"
        raise UnsupportedTableFeature(msg, hint="Pass whole rows, or Arrow data.")
