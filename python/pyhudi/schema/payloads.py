"""Merges records column by column: partial updates, older payload classes, registered mergers.

`config/merge_mode.py` decides which of two records wins; this module has the other rules of a table
for two records of one key. Sources: `PartialUpdateHandler`, `BufferedRecordMergerFactory` and the
payload classes of Hudi 1.2.0. Before table version 9, these classes let every delete win, and every
record after a delete.

If a registered merger returns a value that does not fit its column, pyhudi raises an error. A null
in its place would become permanent with the next compaction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config import argument_checks as arg
from pyhudi.config.column_rules import ColumnRules
from pyhudi.config.formatting import count_text, type_text
from pyhudi.config.merge_mode import (
    AWS_DMS_PAYLOAD,
    DEBEZIUM_PAYLOADS,
    EVENT_TIME_PAYLOAD,
    MERGE_PROPERTY,
    BuiltInMode,
    MergeMode,
)
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import ConfigError, SchemaMismatch, without_hint
from pyhudi.input.batches import read_batches
from pyhudi.input.exact_casts import cast_computed, cast_exactly
from pyhudi.schema.key_generator import column_at
from pyhudi.schema.table_schema import TableSchema, schema_defaults

Merger = Callable[[pa.RecordBatch, pa.RecordBatch], Any]
"""`(older, newer) -> merged`, or `-> (merged, deleted)`; see `register_merger`."""

_WIDEN = (
    "Return values that the column holds: cast them in the merger, or widen the column first with "
    "table.alter."
)
_KEEP = (
    "Return key and partition columns as they are in one of the two records; to change a key, "
    "delete the record and insert it."
)


@dataclass(frozen=True)
class CheckedMerger:
    """A merger whose results are checked. Picklable if the function is."""

    strategy: str
    """The strategy for which the function is registered."""
    function: Merger
    keeps: tuple[str, ...]
    """Columns that must have the older or the newer record's value in each merged row."""
    required: frozenset[str] = frozenset()
    """Columns without nulls."""

    def of(self, schema: pa.Schema) -> CheckedMerger:
        """Return the same for a table with this schema."""
        required = frozenset(field.name for field in schema if not field.nullable)
        return replace(self, required=required)

    def __call__(self, older: pa.RecordBatch, newer: pa.RecordBatch) -> Any:
        """Merge as the function does.

        Raises `SchemaMismatch`, naming the column, for a value that does not fit it, for a missing
        or repeated column, and for a row with another key or partition.
        """
        result = self.function(older, newer)
        pair = result if isinstance(result, tuple) and len(result) == 2 else (result, None)  # noqa: PLR2004
        rows, deleted = pair
        merged = self._in_types(rows, newer.schema)
        if merged.num_rows != newer.num_rows:
            pairs = count_text(newer.num_rows, "pair")
            msg = f"{self._name} returned {count_text(merged.num_rows, 'row')} for {pairs}"
            raise SchemaMismatch(msg, hint="Return one row for each pair.")
        for path in self.keeps:
            self._check_kept(path, merged, older, newer)
        return merged if deleted is None else (merged, self._mask(deleted))

    @property
    def _name(self) -> str:
        return f"the merger of {self.strategy}"

    def _in_types(self, rows: Any, schema: pa.Schema) -> pa.Table:
        schema_of_rows, batches = read_batches(rows, schema)
        table = pa.Table.from_batches(list(batches), schema_of_rows)
        columns = [self._column(table, field) for field in schema]
        return pa.Table.from_arrays(columns, schema=schema)

    def _column(self, table: pa.Table, field: pa.Field[Any]) -> pa.ChunkedArray[Any]:
        if field.name not in table.column_names:
            msg = f"{self._name} left out the column {field.name!r}"
            raise SchemaMismatch(msg, hint="Return all columns of the batches, in any order.")
        # Arithmetic on floats returns doubles, which are rounded; nothing else changes.
        cast = cast_computed if pa.types.is_floating(field.type) else cast_exactly
        try:
            column = cast(table.column(field.name), field)
        except SchemaMismatch as error:
            raise SchemaMismatch(f"{self._name}: {without_hint(error)}", hint=_WIDEN) from error
        if column.null_count and field.name in self.required:
            msg = f"{self._name} returned null in column {field.name!r}, which is required"
            raise SchemaMismatch(msg, hint="Return a value for each row.")
        return column

    def _mask(self, deleted: Any) -> Any:
        if isinstance(deleted, pa.ChunkedArray):
            return deleted.combine_chunks()
        try:
            return deleted if isinstance(deleted, pa.Array) else pa.array(deleted)
        except (pa.ArrowException, TypeError, ValueError) as error:
            msg = f"{self._name} returned {type_text(type(deleted))} as the mask of deleted keys"
            hint = "Return (merged, deleted) with a boolean array, one value for each pair."
            raise SchemaMismatch(msg, hint=hint) from error

    def _check_kept(
        self, path: str, merged: pa.Table, older: pa.RecordBatch, newer: pa.RecordBatch
    ) -> None:
        root = path if path in merged.column_names else path.split(".", 1)[0]
        if root not in merged.column_names:
            return
        column, *before = (
            column_at(rows if isinstance(rows, pa.Table) else pa.table(rows), path)
            for rows in (merged, newer, older)
        )
        changed = pc.invert(pc.or_(*(_is_same(column, values) for values in before)))
        if pc.any(changed).as_py():
            old, new = (values.filter(changed)[0].as_py() for values in (before[0], column))
            msg = f"{self._name} changed column {path!r} from {old!r} to {new!r}"
            raise SchemaMismatch(msg, hint=_KEEP)


def _is_same(left: pa.ChunkedArray[Any], right: pa.ChunkedArray[Any]) -> Any:
    """Return for each row whether two values are equal, null and NaN included; never null."""
    same = pc.fill_null(pc.equal(left, right), fill_value=False)
    same = pc.or_(same, pc.and_(pc.is_null(left), pc.is_null(right)))
    if pa.types.is_floating(left.type):
        both = pc.and_(pc.is_nan(left), pc.is_nan(right))
        same = pc.or_(same, pc.fill_null(both, fill_value=False))
    return same


UNAVAILABLE_VALUE = "hoodie.write.partial.update.unavailable.value"
DEBEZIUM_UNAVAILABLE_VALUE = "__debezium_unavailable_value"
"""Debezium's placeholder of a large value that a change did not touch."""

_MODEL = EVENT_TIME_PAYLOAD.removesuffix("DefaultHoodieRecordPayload")


@dataclass(frozen=True)
class FieldMerge:
    """The rules for merging two records of one key column by column.

    Picklable if the merger is.
    """

    mode: BuiltInMode
    """Which of them wins."""
    ordering_fields: tuple[str, ...] | None = None
    """Replaces the table's, for classes that have their own."""
    fill: Literal["absent", "nulls", "defaults", "marker", "newer_marker"] = "absent"
    """Which values of the winner come from the loser: only columns that a partial record does not
    have, nulls, the schema's defaults (which may be nulls), or strings and bytes equal to `marker`,
    of any winner or of newer ones."""
    marker: str | None = None
    defaults: pa.RecordBatch | None = None
    """One row with the schema's defaults that are not null, as `schema_defaults` returns it."""
    newest_meta: bool = False
    """Meta columns come from the newer record whichever wins."""
    whole_in_batch: bool = False
    """Among rows of one key in one write, ordering values decide, deletes included."""
    deletes_always_win: bool = False
    deletes_merged_in_batch: bool = False
    """Among rows of one key in one write, deletes by flag are merged as rows, and a row that a
    delete beats by its ordering value counts if it is newer."""
    sequence_ordering: bool = False
    """The ordering field is a string, `file.position`, whose parts are compared as numbers."""
    column_rules: ColumnRules = ()
    """Columns whose values a rule combines, whichever record wins. A record after a delete is not
    merged with what the delete removed."""
    merger: CheckedMerger | None = None
    merger_columns: tuple[str, ...] | None = None
    """The columns that the merger reads and returns; None for every column."""


_MYSQL, _POSTGRES = DEBEZIUM_PAYLOADS
_OF_PAYLOAD = {
    _MODEL + "OverwriteNonDefaultsWithLatestAvroPayload": FieldMerge(
        "COMMIT_TIME_ORDERING", fill="defaults", deletes_always_win=True, whole_in_batch=True
    ),
    _MODEL + "PartialUpdateAvroPayload": FieldMerge(
        "EVENT_TIME_ORDERING",
        fill="nulls",
        newest_meta=True,
        deletes_always_win=True,
        deletes_merged_in_batch=True,
    ),
    _MYSQL: FieldMerge(
        "EVENT_TIME_ORDERING",
        ordering_fields=("_event_seq",),
        sequence_ordering=True,
        whole_in_batch=True,
        deletes_always_win=True,
    ),
    _POSTGRES: FieldMerge(
        "EVENT_TIME_ORDERING",
        ordering_fields=("_event_lsn",),
        whole_in_batch=True,
        deletes_always_win=True,
    ),
}
"""Classes whose rules are more than a merge mode, in tables before version 9."""

_registered: dict[str, tuple[Merger, tuple[str, ...] | None]] = {}


@arg.check_arguments()
def register_merger(strategy: str, merger: Merger, *, columns: Sequence[str] | None = None) -> None:
    """Register the function that merges records of a table with its own merger or payload class.

    Args:
        strategy: the table's `hoodie.record.merge.strategy.id`, or its
            `hoodie.compaction.payload.class`.
        merger: a function of two record batches of equal length: row i of both is an older and a
            newer record of one key. It returns the merged batch (any Arrow data with those columns
            and as many rows), or a tuple of that batch and a boolean array that marks keys to
            delete. pyhudi calls it once per batch, and never with deletes: a delete always removes
            older records, and newer records stay. Values must fit their columns (floats are
            rounded), and key and partition columns must have the value of one of the two records;
            otherwise reads and writes raise `SchemaMismatch`. On Spark the function is pickled and
            sent to the executors.
        columns: the columns that the function reads or returns; None for all. pyhudi adds keys and
            the columns of the scan.

    Raises:
        ConfigError: `merger` cannot be called.
    """
    if not callable(merger):
        raise ConfigError(f"a merger is a function of two record batches, not {merger!r}")
    _registered[strategy] = (merger, None if columns is None else tuple(columns))


def field_merge(config: TableConfig) -> FieldMerge | None:
    """Return the rules of a table that merges column by column.

    None for a table that does not, or whose rules pyhudi does not have.
    """
    merge = config.merge
    if merge.mode == "CUSTOM":
        return _custom(config)
    match merge.partial_update_mode:
        case "IGNORE_DEFAULTS":
            return FieldMerge(merge.mode, fill="defaults")
        case "FILL_UNAVAILABLE":
            marker = config.properties.get(MERGE_PROPERTY + UNAVAILABLE_VALUE)
            rule = FieldMerge(merge.mode)
            return rule if marker is None else replace(rule, fill="marker", marker=marker)
        case _:
            return None


def merge_on_rewrite(config: TableConfig) -> FieldMerge | None:
    """Return the same for rows that are merged with a base file while a write rewrites it.

    There Hudi calls the class, and readers use its type: a late delete of a Debezium class loses to
    a newer row, and what Postgres left out comes from the stored row.
    """
    rule = field_merge(config)
    if rule is _OF_PAYLOAD[_MYSQL]:
        return replace(rule, deletes_always_win=False)
    if rule is _OF_PAYLOAD[_POSTGRES]:
        left_out = DEBEZIUM_UNAVAILABLE_VALUE
        return replace(rule, deletes_always_win=False, fill="newer_marker", marker=left_out)
    return rule


def with_defaults(rule: FieldMerge | None, schema: TableSchema) -> FieldMerge | None:
    """Return the same rules with what they need of the table's schema."""
    if rule is None or rule.fill != "defaults":
        return rule
    return replace(rule, defaults=schema_defaults(schema.avro, schema.arrow))


def batch_mode(config: TableConfig) -> MergeMode:
    """Return which of several rows of one key in one write wins, if columns are not merged."""
    merge = config.merge
    if (
        merge.payload_class == AWS_DMS_PAYLOAD
        and config.version.merge_inferred
        and config.ordering_fields
    ):
        return "EVENT_TIME_ORDERING"
    return merge.mode


def merges_batches_like_commits(config: TableConfig) -> bool:
    """Return whether rows of a key in one batch are merged as rows of two commits are."""
    built_in = config.merge.mode in ("COMMIT_TIME_ORDERING", "EVENT_TIME_ORDERING")
    return built_in and merge_on_rewrite(config) is None and batch_mode(config) == config.merge.mode


def _custom(config: TableConfig) -> FieldMerge | None:
    merge = config.merge
    if merge.column_rules:
        by_event = bool(config.ordering_fields)
        return FieldMerge(
            "EVENT_TIME_ORDERING" if by_event else "COMMIT_TIME_ORDERING",
            newest_meta=True,
            deletes_always_win=True,
            column_rules=merge.column_rules,
        )
    for name in (merge.strategy_id, merge.payload_class):
        if name is not None and name in _registered:
            merger, columns = _registered[name]
            keeps = (
                RECORD_KEY,
                PARTITION_PATH,
                *config.record_key_fields,
                *config.partition_fields,
            )
            return FieldMerge(
                "COMMIT_TIME_ORDERING",
                deletes_always_win=True,
                merger=CheckedMerger(name, merger, keeps),
                merger_columns=columns,
            )
    inferred = _OF_PAYLOAD.get(merge.payload_class or "")
    return inferred if config.version.merge_inferred else None
