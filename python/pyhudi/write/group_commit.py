"""Batches of several callers in one commit: which of them it may have, and the commit itself.

A commit of several batches must leave what their commits one after the other would have left.
Batches are combined only where that is certain ([decision
25](docs/decisions/0025-several-callers-share-a-commit.md)); otherwise the next batch begins another
commit:

- All have the same operation, the same columns and no options of their own.
- A key that two batches have must be merged by a built-in rule that is the same within the data and
  with stored rows, must be in one partition, and none of its rows may be a delete. Inserts have no
  key twice, because their rules apply to stored keys only. Deletes of the same key are one.
- No two batches have the same `commit_id`: the second one is found on the timeline.

Queue, thread and futures are in `api/group_writer.py` and `api/commit_thread.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.extra_metadata import with_commit_ids
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.table_config import TableConfig
from pyhudi.config.write_options import WriteOptions
from pyhudi.engine.spark_loader import is_spark_frame
from pyhudi.errors import ConfigError
from pyhudi.input.conform import read_table
from pyhudi.input.python_objects import by_column
from pyhudi.schema.key_generator import KeySpec
from pyhudi.schema.payloads import merges_batches_like_commits
from pyhudi.txn.result import WriteResult
from pyhudi.write import upsert
from pyhudi.write.idempotency import SearchedCommits, find_commits_by_ids
from pyhudi.write.partial_update import check_partial, partial_rows
from pyhudi.write.table_opening import Handle, WritableTable
from pyhudi.write.write_context import WriteContext

Operation: TypeAlias = Literal["upsert", "insert", "delete_keys"]
"""The operations of batches: methods of a table."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows or keys of one caller, converted to the table's types."""

    operation: Operation
    data: pa.Table
    keys: pa.Table | None
    """Record key, partition path and whether the row is a delete; None for keys that the write
    generates."""
    spec: KeySpec
    """The rules that made the keys."""
    commit_id: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the operation other than the defaults. The batch has a commit of its own."""

    @property
    def num_rows(self) -> int:
        """The number of rows or keys."""
        count: int = self.data.num_rows
        return count

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        size: int = self.data.nbytes
        return size + (0 if self.keys is None else self.keys.nbytes)

    def is_like(self, other: Batch) -> bool:
        """Return whether both batches may be in one commit, as far as their keys allow it."""
        plain = not self.options and not other.options
        alike = self.operation == other.operation and self.spec == other.spec
        return plain and alike and self.data.schema.equals(other.data.schema)


def convert_batch(
    context: WriteContext,
    operation: Operation,
    data: Any,
    *,
    commit_id: str | None = None,
    **options: Any,
) -> Batch:
    """Convert and check a caller's data. Raises as the operation does for data that do not fit.

    context: of the table when it was last opened; the commit checks the data again.
    """
    if is_spark_frame(data):
        msg = "a writer takes no Spark DataFrame"
        raise ConfigError(msg, hint=f"Call {operation} of the table.")
    if operation == "delete_keys":
        return _convert_keys(context, data, commit_id)
    mode, is_partial = options.get("schema_mode", "strict"), options.get("partial", False)
    table, spec = read_table(data, context.input_types, allow_missing_keys=True), context.key_spec()
    if is_partial:
        check_partial(context, mode)
        keys = _keys_of(context, partial_rows(context, table))
        return Batch(operation, table, keys, spec, commit_id, options)
    generated = operation == "insert" and spec.keys_are_generated
    evolved, _ = context.evolve(table.schema.empty_table(), mode)
    # Any prefix: the commit generates keys of its own.
    keyed = evolved.with_keys(table, mode, instant="0" if generated else None)
    rows = keyed.drop_columns([RECORD_KEY, PARTITION_PATH])
    keys = None if generated else _keys_of(evolved, keyed)
    return Batch(operation, table if options else rows, keys, spec, commit_id, options)


def _convert_keys(context: WriteContext, data: Any, commit_id: str | None) -> Batch:
    keys = by_column(data, context.config.record_key_fields)
    table = read_table(keys, context.input_types)
    named, _ = context.delete_keys(table)
    marks = pa.repeat(pa.scalar(value=True), named.num_rows)
    keyed = named.append_column("deleted", marks)
    return Batch("delete_keys", table, keyed, context.key_spec(), commit_id)


def _keys_of(context: WriteContext, keyed: pa.Table) -> pa.Table:
    marks = context.find_delete_markers(keyed)
    return keyed.select([RECORD_KEY, PARTITION_PATH]).append_column("deleted", marks)


def count_combinable(config: TableConfig, options: WriteOptions, batches: Sequence[Batch]) -> int:
    """Return how many of the batches, from the first one on, may be in one commit.

    config, options: the table's. At least one.
    """
    count, ids = 1, {batches[0].commit_id}
    for batch in batches[1:]:
        if not batches[0].is_like(batch) or (batch.commit_id and batch.commit_id in ids):
            break
        ids.add(batch.commit_id)
        count += 1
    operation = batches[0].operation
    if count == 1 or batches[0].keys is None:
        return count
    if operation == "delete_keys" and options.combine_deletes:
        return count
    merges = operation == "upsert" and options.combine_upserts
    alike = merges_batches_like_commits(config) or bool(config.merge.column_rules)
    merges = merges and alike
    return _count_before_conflict(batches[:count], merges=merges)


def _count_before_conflict(batches: Sequence[Batch], *, merges: bool) -> int:
    """Return the number of batches before the first whose key is in an earlier one.

    merges: rows of a key may be in several batches if they are in one partition and no deletes.
    """
    numbered = [
        batch.keys.append_column("batch", pa.repeat(number, batch.keys.num_rows))
        for number, batch in enumerate(batches)
        if batch.keys is not None
    ]
    keys = pa.concat_tables(numbered).combine_chunks()
    names, number = (keys.column(name).combine_chunks() for name in (RECORD_KEY, "batch"))
    first = pc.index_in(names, value_set=names)
    conflicting = pc.greater(number, number.take(first))
    if merges:
        paths = keys.column(PARTITION_PATH).combine_chunks()
        odd = pc.or_(
            keys.column("deleted").combine_chunks(), pc.not_equal(paths, paths.take(first))
        )
        first_odd = pc.index_in(names, value_set=names.filter(odd))
        since_odd = pc.greater_equal(number, number.filter(odd).take(first_odd))
        conflicting = pc.and_(conflicting, pc.fill_null(since_odd, fill_value=False))
    before: int | None = pc.min(number.filter(conflicting)).as_py()
    return len(batches) if before is None else before


def write_batches(
    table: WritableTable,
    batches: Sequence[Batch],
    repeated: dict[str, WriteResult] | None = None,
    searched: SearchedCommits | None = None,
    *,
    clock: Clock | None = None,
) -> WriteResult:
    """Commit the batches together, without those whose `commit_id` has a commit already.

    Raises as the operation of the batches does, whose result is returned.

    batches: as `count_combinable` allows. repeated: gets the results of the earlier commits by id,
    and is cleared first. searched: as `find_commits_by_ids` takes it.
    """
    done = {} if repeated is None else repeated
    done.clear()
    ids = [batch.commit_id for batch in batches if batch.commit_id is not None]
    done.update(find_commits_by_ids(table, ids, clock, searched))
    remaining = [batch for batch in batches if batch.commit_id not in done]
    if not remaining:
        return done[ids[0]]
    ids = [commit_id for commit_id in ids if commit_id not in done]
    handle = Handle.of(table, clock or SystemClock())
    handle = replace(handle, options=with_commit_ids(handle.options, ids))
    data = pa.concat_tables([batch.data for batch in remaining])
    options = remaining[0].options
    match remaining[0].operation:
        case "upsert":
            return upsert.upsert(handle, data, clock=clock, **options)
        case "insert":
            return upsert.insert(handle, data, clock=clock, **options)
        case "delete_keys":
            return upsert.delete_keys(handle, data, clock=clock)
