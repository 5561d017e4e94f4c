"""Writes by key what Spark computed from a snapshot of the table.

If another commit completes before the write is planned and committed, the operation is retried from
the beginning, like every write that aborts on a conflict (`write/conflict_retries.py`); the last
try holds the table's lock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from pyhudi.api.table import HudiTable
from pyhudi.config.formatting import count_text
from pyhudi.config.merge_mode import PAYLOAD_CLASS
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError, SchemaMismatch, UnsupportedTableFeature, retryable_conflict
from pyhudi.index.duplicate_keys import duplicate_keys_error
from pyhudi.schema.payloads import field_merge
from pyhudi.spark.column_sql import sql_of
from pyhudi.spark.delta_style_merge_frame import (
    CLAUSE,
    MOVED,
    OLDER,
    MergeTarget,
    SparkClause,
    column_of,
    merge_frame,
    resolve_clauses,
)
from pyhudi.spark.executor_steps import CachedFrames, collect, job_group
from pyhudi.spark.merge_steps import merge_by_key
from pyhudi.spark.small_frames import fetch
from pyhudi.spark.source_filters import FilterTuple, conjuncts_of, is_comparable
from pyhudi.spark.to_dataframe import frame_of
from pyhudi.spark.write_rows import assign_deletes
from pyhudi.timeline.key_uniqueness import keys_are_unique
from pyhudi.txn.result import WriteResult
from pyhudi.write import input_rows
from pyhudi.write.commit_validation import check_missing_keys, check_partitions_unchanged
from pyhudi.write.execute import DELETE, UPSERT, write
from pyhudi.write.merge_planning import MergeClause
from pyhudi.write.non_blocking import check_appends
from pyhudi.write.row_protocols import AssignedRows
from pyhudi.write.table_opening import WritableTable
from pyhudi.write.update_delete import TooManyKeysError, delete
from pyhudi.write.upsert import open_write
from pyhudi.write.write_context import WriteContext

_ROWS = "_pyhudi_rows"
"""Number of rows of one key."""
_MAX_KEY_BYTES = 64 * 1024 * 1024
"""Maximum bytes of keys that go through the driver; Spark shuffles more of them."""


@dataclass(frozen=True)
class Change:
    """The requested change: the clauses, over the table alone or joined with a source."""

    clauses: Sequence[SparkClause]
    source: DataFrame | None = None
    condition: object = None
    alias: str | None = None
    casts: bool = False
    """Cast values to the table's types, as Spark does in statements that insert."""

    @property
    def deletes_alone(self) -> bool:
        """Whether rows are deleted and none is added or updated."""
        return all(clause.action == "delete" for clause in self.clauses)

    @property
    def may_match_twice(self) -> bool:
        """Whether several source rows may match one deleted row, as in Delta."""
        return len(self.clauses) == 1 and self.deletes_alone and self.clauses[0].condition is None


class ChangingTable(HudiTable):
    """A table handle with a method for changes that Spark computes."""

    def change(self, change: Change) -> WriteResult:
        """Run a change in one commit. Raises as the write methods and `apply_change` do."""
        return self._write(apply_change, False, change)


def apply_change(table: WritableTable, change: Change) -> WriteResult:
    """Have Spark compute what changes, and write it.

    Raises `SchemaMismatch` if several rows of a source match one of the table or an inserted row
    has an existing key, `ConfigError` for new values of key and partition columns and smaller ones
    of ordering columns, `UnsupportedTableFeature` for tables without keys and values that the
    table's merge rules ignore.
    """
    handle = HudiTable(table.storage, table.engine, table.options)
    merge_target = _merge_target(handle, change)
    scan = handle.scan()
    target = frame_of(scan)
    with job_group(target.sparkSession, f"pyhudi change: {table.storage.uri}"):
        where = _filter_of_delete(change, scan.table_schema)
        if where and keys_are_unique(handle.state.timeline):
            with suppress(TooManyKeysError):
                return delete(table, list(where), max_key_bytes=_MAX_KEY_BYTES)
        return _write_changes(table, handle, target, merge_target, change)


def _filter_of_delete(change: Change, schema: pa.Schema) -> tuple[FilterTuple, ...]:
    """Return the condition of a delete that pyhudi evaluates as Spark does; () if it may not.

    The tasks that read the rows find their keys then: nothing is shuffled.
    """
    if change.source is not None or [clause.action for clause in change.clauses] != ["delete"]:
        return ()
    conjuncts = conjuncts_of(sql_of(change.clauses[0].condition) or "")
    is_exact = conjuncts.complete and all(
        is_comparable(triple, schema) for triple in conjuncts.tuples
    )
    return conjuncts.tuples if is_exact else ()


def _write_changes(
    table: WritableTable,
    handle: HudiTable,
    target: DataFrame,
    merge_target: MergeTarget,
    change: Change,
) -> WriteResult:
    """Have Spark compute what changes, and write it. Raises as `apply_change` does.

    handle: the table whose rows are the target.
    """
    with CachedFrames() as keep:
        clauses = resolve_clauses(target, change.source, merge_target, change.clauses)
        _check_sequence(handle.config, clauses)
        frame = merge_frame(target, change.source, change.condition, merge_target, clauses)
        context = open_write(table, None, input_rows.memory_limit(None, frame))
        check_appends(context, "a change of rows that Spark found", appends=False)
        ids = _ids(context)
        if change.may_match_twice and change.source is not None:
            frame = frame.dropDuplicates(list(ids))
        frame = keep.keep(frame)
        small = fetch(table.engine, frame)
        counts = _check_counts(
            _counts_of(small, ids)
            if small is not None
            else _counts_on_cluster(table.engine, frame, ids),
            change,
        )
        _check_duplicates(handle, target, frame, ids, clauses)
        by_action = {
            action: sum(
                counts.get(at, 0) for at, clause in enumerate(clauses) if clause.action == action
            )
            for action in ("update", "insert", "delete")
        }
        with _assign_rows(context, frame, small, merge_target, clauses, change) as assigned:
            _check_snapshot(handle, assigned.context)
            _check_all_written(assigned, by_action)
            commit_checks = [*check_missing_keys(assigned), check_partitions_unchanged(None)]
            operation = DELETE if change.deletes_alone else UPSERT
            return write(assigned, operation, deletes=True, commit_checks=commit_checks)


def _merge_target(handle: HudiTable, change: Change) -> MergeTarget:
    config = handle.config
    fixed = tuple(dict.fromkeys((*config.record_key_fields, *config.partition_fields)))
    hint = "pyhudi.open_table(uri).delete and .update find rows by a filter of pyhudi's."
    if not config.record_key_fields:
        raise UnsupportedTableFeature(
            "hoodie.table.recordkey.fields is not set: rows that Spark found have no key", hint=hint
        )
    within = [name for name in fixed if name not in handle.schema.names]
    if within:
        raise UnsupportedTableFeature(
            f"the key or partition column {within[0]!r} is in a struct", hint=hint
        )
    if handle.state.as_text:
        raise UnsupportedTableFeature(
            f"hoodie.table.keygenerator.type is {config.key_generator}: the column "
            f"{handle.state.as_text[0]!r} is not read as it is stored",
            hint=hint,
        )
    return MergeTarget(
        tuple(handle.schema.names),
        fixed,
        _ordering(config),
        change.alias,
        null_loses=not config.is_merge_on_read,
        casts=change.casts,
    )


def _ordering(config: TableConfig) -> tuple[str, ...]:
    """Return the columns whose smaller values lose."""
    rule = field_merge(config)
    mode = config.merge.mode if rule is None else rule.mode
    own = None if rule is None else rule.ordering_fields
    fields = config.ordering_fields if own is None else own
    return tuple(fields) if mode == "EVENT_TIME_ORDERING" else ()


def _check_sequence(config: TableConfig, clauses: Sequence[SparkClause]) -> None:
    """Raise for an update of a text column that is compared as the numbers in it."""
    rule = field_merge(config)
    if rule is None or not rule.sequence_ordering:
        return
    ordering = _ordering(config)
    for clause in clauses:
        ordering_values = [name for name in ordering if name in (clause.values or {})]
        if clause.action == "update" and ordering_values:
            raise UnsupportedTableFeature(
                f"{PAYLOAD_CLASS} is {config.merge.payload_class}: an update of "
                f"{ordering_values[0]!r}",
                hint="Leave the column out, or upsert whole rows.",
            )


def _ids(context: WriteContext) -> tuple[str, ...]:
    """Return the columns that identify a row."""
    config = context.config
    more = () if context.index.is_global else config.partition_fields
    return tuple(dict.fromkeys((*config.record_key_fields, *more)))


def _counts_on_cluster(
    engine: Engine, frame: DataFrame, ids: Sequence[str]
) -> list[Mapping[str, Any]]:
    """Return for each clause its number of keys, and the greatest values of the rows' flags.

    The columns are `CLAUSE`, `keys`, `most` (rows of one key), `MOVED` and `OLDER`.
    """
    rows = frame.groupBy(*(column_of(name) for name in ids)).agg(
        sf.count("*").alias(_ROWS),
        sf.max(CLAUSE).alias(CLAUSE),
        sf.max(MOVED).alias(MOVED),
        sf.max(OLDER).alias(OLDER),
    )
    total = rows.groupBy(CLAUSE).agg(
        sf.count("*").alias("keys"),
        sf.max(_ROWS).alias("most"),
        sf.max(MOVED).alias(MOVED),
        sf.max(OLDER).alias(OLDER),
    )
    return [row.asDict() for row in collect(total, "find rows that change", engine)]


def _counts_of(rows: pa.Table, ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return what `_counts_on_cluster` does, of rows in memory."""
    flags = [(name, "max") for name in (CLAUSE, MOVED, OLDER)]
    by_key = rows.group_by(list(ids)).aggregate([(CLAUSE, "count"), *flags])
    by_key = by_key.rename_columns([*ids, _ROWS, CLAUSE, MOVED, OLDER])
    total = by_key.group_by(CLAUSE).aggregate(
        [(CLAUSE, "count"), (_ROWS, "max"), (MOVED, "max"), (OLDER, "max")]
    )
    result: list[Mapping[str, Any]] = total.rename_columns(
        [CLAUSE, "keys", "most", MOVED, OLDER]
    ).to_pylist()
    return result


def _check_counts(clause_rows: Sequence[Mapping[str, Any]], change: Change) -> Mapping[int, int]:
    """Return the number of keys of each clause. Raises if they cannot be written."""
    may_repeat = change.source is None and change.deletes_alone
    if any(row["most"] > 1 for row in clause_rows) and not may_repeat:
        cause = "" if change.source is None else "several rows of the source match one row, or "
        raise SchemaMismatch(
            f"a key is written twice: {cause}the table has several rows of a key",
            hint="Keep one row per key in the source, or select it by the conditions.",
        )
    if any(row[MOVED] for row in clause_rows):
        raise ConfigError(
            "key or partition columns would get other values",
            hint="Delete the rows and insert them again.",
        )
    if any(row[OLDER] for row in clause_rows):
        raise ConfigError(
            "ordering columns would get smaller values: the rows would lose to the existing ones",
            hint="Leave the ordering columns out, or set greater values.",
        )
    return {row[CLAUSE]: row["keys"] for row in clause_rows}


def _check_duplicates(
    handle: HudiTable,
    target: DataFrame,
    frame: DataFrame,
    ids: Sequence[str],
    clauses: Sequence[SparkClause],
) -> None:
    """Raise `SchemaMismatch` if a changed row has a duplicate of its key that does not change."""
    if keys_are_unique(handle.state.timeline):
        return
    old = [at for at, clause in enumerate(clauses) if clause.action != "insert"]
    touched = frame.where(sf.col(CLAUSE).isin(old))
    names = [f"_pyhudi_id_{at}" for at in range(len(ids))]
    keys = touched.select(*(column_of(name) for name in ids)).distinct().toDF(*names)
    every = target.select(*(column_of(name) for name in ids))
    same = [column_of(own).eqNullSafe(sf.col(name)) for own, name in zip(ids, names, strict=True)]
    matches = every.join(keys, reduce(lambda left, right: left & right, same), "left_semi")
    both = matches.agg(sf.count("*").alias("n")).crossJoin(touched.agg(sf.count("*").alias("m")))
    (row,) = collect(both, "look for duplicate keys", handle.engine)
    if row["n"] != row["m"]:
        raise duplicate_keys_error(
            f"the keys of {count_text(row['m'], 'row')} to change are those of "
            f"{count_text(row['n'], 'row')} of the table"
        )


@contextmanager
def _assign_rows(
    context: WriteContext,
    frame: DataFrame,
    small: pa.Table | None,
    merge_target: MergeTarget,
    clauses: Sequence[SparkClause],
    change: Change,
) -> Iterator[AssignedRows]:
    """Yield the rows assigned to file groups. small: the frame's rows, if they are few."""
    if change.deletes_alone:
        keys = frame.select(*(column_of(name) for name in merge_target.fixed))
        few = None if small is None else small.select(merge_target.fixed)
        with assign_deletes(context, keys, fetched=few) as deleted:
            yield deleted
        return
    changed = frame.drop(MOVED, OLDER)
    with merge_by_key(
        context,
        changed,
        [_by_number(at, clause, merge_target) for at, clause in enumerate(clauses)],
        fetched=None if small is None else small.drop_columns([MOVED, OLDER]),
    ) as merged:
        yield merged


def _by_number(at: int, clause: SparkClause, merge_target: MergeTarget) -> MergeClause:
    """Return the clause for a merge by key, with a condition on its number in the source."""
    values = None
    if clause.action != "delete":
        names = [*(clause.values or {}), *(merge_target.fixed if clause.action == "insert" else ())]
        skipped = () if clause.action == "insert" else merge_target.fixed
        values = {name: _of_source(name) for name in names if name not in skipped}
    return MergeClause(clause.action, f"{_of_source(CLAUSE)} = {at}", values)


def _of_source(name: str) -> str:
    escaped = name.replace('"', '""')
    return f'source."{escaped}"'


def _check_snapshot(handle: HudiTable, context: WriteContext) -> None:
    """Raise `CommitConflict` if the write is planned on another snapshot than Spark has read."""
    read = {commit.requested for commit in handle.state.timeline.commits}
    planned = {commit.requested for commit in context.timeline.commits}
    if read != planned:
        first = min(read ^ planned)
        raise retryable_conflict(f"{first} was completed while Spark looked for rows")


def _check_all_written(assigned: AssignedRows, by_action: Mapping[str, int]) -> None:
    """Raise `SchemaMismatch` if a row would be ignored."""
    counts = assigned.counts
    written = sum(counts.inserts.values()) + sum(update.rows for update in counts.updates.values())
    changed = by_action["update"] + by_action["insert"]
    if written < changed:
        raise SchemaMismatch(
            f"would insert {count_text(changed - written, 'row')} with existing keys, because the "
            "condition does not match these rows, or as deleted rows",
            hint="Match by the record key.",
        )
    deleted = sum(counts.deletes.values())
    if deleted < by_action["delete"]:
        raise SchemaMismatch(
            f"the index does not find {count_text(by_action['delete'] - deleted, 'row')} to delete"
        )
