"""Merges records of one key in a write: within the data, and of the data with the table.

Readers merge records in log files. `config/merge_mode.py` and `schema/payloads.py` define the merge
rules of reading.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi import _native
from pyhudi.config.column_rules import MERGE_RULES
from pyhudi.config.merge_mode import BuiltInMode
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.table_config import TableConfig, find_unsupported_merge
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.delete_field import find_delete_markers
from pyhudi.schema.payloads import (
    FieldMerge,
    batch_mode,
    field_merge,
    merge_on_rewrite,
    with_defaults,
)
from pyhudi.schema.table_schema import TableSchema
from pyhudi.slices.merge_rules import field_rules
from pyhudi.storage.storage import Storage

_KEY = (PARTITION_PATH, RECORD_KEY)
_HINT = (
    "Write to this table with Apache Hudi; or register your own merger with pyhudi.register_merger."
)


def check_mergeable(config: TableConfig) -> None:
    """Raise `UnsupportedTableFeature` for a table with an unsupported merge rule."""
    rule, unsupported = field_merge(config), find_unsupported_merge(config)
    if rule is None and unsupported is not None:
        msg = f"{unsupported}: pyhudi does not support this merge rule"
        raise UnsupportedTableFeature(msg, hint=_HINT)
    if rule is not None and config.cdc_enabled and not _shows_changes(rule):
        msg = (
            f"hoodie.table.cdc.enabled with {unsupported}: pyhudi cannot determine what a merge "
            "changed"
        )
        raise UnsupportedTableFeature(msg, hint="Write to this table with Apache Hudi.")


def _shows_changes(rule: FieldMerge) -> bool:
    """Return whether a stored row that a merge changed has the instant of the write."""
    return rule.merger is None and (rule.fill == "absent" or rule.mode == "COMMIT_TIME_ORDERING")


def combine(storage: Storage, config: TableConfig, schema: TableSchema, rows: pa.Table) -> pa.Table:
    """Combine the rows of each key.

    rows: record key and partition path come first; deletes among them act as in a later commit.
    """
    rule = with_defaults(merge_on_rewrite(config), schema)
    if rule is None:
        mode = batch_mode(config)
        if mode == "CUSTOM":
            raise AssertionError(mode)
        return _winners(config, rows, config.ordering_fields, mode)
    ordering = config.ordering_fields if rule.ordering_fields is None else rule.ordering_fields
    if rule.whole_in_batch:
        return _winners(
            config, rows, ordering, "EVENT_TIME_ORDERING", sequence=rule.sequence_ordering
        )
    return _combine_fields(storage, config, rows, rule, ordering)


def _winners(
    config: TableConfig,
    rows: pa.Table,
    ordering: tuple[str, ...],
    mode: BuiltInMode,
    *,
    sequence: bool = False,
) -> pa.Table:
    field, marker = config.merge.delete_field, config.merge.delete_marker
    rule = None if field is None or marker is None else (field, marker)
    return _native.combine(
        rows,
        ordering_fields=ordering,
        merge_mode=mode,
        sequence_ordering=sequence,
        delete_rule=rule,
    )


def _combine_fields(
    storage: Storage,
    config: TableConfig,
    rows: pa.Table,
    rule: FieldMerge,
    ordering: tuple[str, ...],
) -> pa.Table:
    merge = config.merge
    keys = _full_keys(rows)
    counts = keys.value_counts()
    repeated = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    if not len(repeated):
        return rows
    several = pc.is_in(keys, value_set=repeated)
    many = rows.filter(several)
    reader, _ = _native.read_slice(
        storage.native,
        base=None,
        logs=[],
        schema=rows.schema,
        columns=rows.schema.names,
        key_fields=_KEY,
        merge_mode=rule.mode,
        ordering_fields=ordering,
        delete_field=merge.delete_field,
        delete_marker=merge.delete_marker,
        field_rules=field_rules(rule, rows.schema, in_batch=True),
        incoming=many,
    )
    live = reader.read_all().cast(rows.schema)
    if rule.column_rules:
        _check_starts_over(many, live, merge.delete_field, merge.delete_marker)
    # For the other keys the delete wins, which the table's row must be merged with.
    without_live = pc.invert(pc.is_in(_full_keys(many), value_set=_full_keys(live)))
    deleted = find_delete_markers(many, merge.delete_field, merge.delete_marker)
    delete_rows = _winners(config, many.filter(pc.and_(without_live, deleted)), ordering, rule.mode)
    return pa.concat_tables([rows.filter(pc.invert(several)), live, delete_rows.cast(rows.schema)])


def _check_starts_over(
    rows: pa.Table, live: pa.Table, delete_field: str | None, delete_marker: str | None
) -> None:
    """Raise `UnsupportedTableFeature` if a row follows a delete of its key.

    The one row that is written would be combined with the stored row.
    """
    deletes = rows.filter(find_delete_markers(rows, delete_field, delete_marker))
    again = deletes.filter(pc.is_in(_full_keys(deletes), value_set=_full_keys(live)))
    if again.num_rows:
        key = again.column(RECORD_KEY)[0].as_py()
        raise UnsupportedTableFeature(
            f"{MERGE_RULES}: the data delete the key {key!r} and have another row of it",
            hint="Write the deletes and the later rows in two calls.",
        )


def _full_keys(rows: pa.Table) -> pa.Array[Any]:
    columns = (rows.column(name) for name in _KEY)
    return pc.binary_join_element_wise(*columns, "\0").combine_chunks()
