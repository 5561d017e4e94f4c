"""A table's rules for merging column by column, for the Rust core."""

from __future__ import annotations

import pyarrow as pa

from pyhudi import _native
from pyhudi.schema.payloads import FieldMerge


def field_rules(
    rule: FieldMerge | None, schema: pa.Schema, *, in_batch: bool = False
) -> _native.FieldRules | None:
    """Convert the rules of a table with that schema, including meta fields, for the core.

    in_batch: for rows of one write among themselves.
    """
    if rule is None:
        return None
    merger_columns = rule.merger_columns
    if rule.merger is not None and merger_columns is None:
        merger_columns = tuple(schema.names)
    return _native.FieldRules(
        rule.fill,
        marker=rule.marker,
        defaults=rule.defaults,
        newest_meta=rule.newest_meta,
        deletes_always_win=rule.deletes_always_win,
        deletes_are_rows=in_batch and rule.deletes_merged_in_batch,
        sequence_ordering=rule.sequence_ordering,
        column_rules=rule.column_rules,
        merger=rule.merger.of(schema) if rule.merger else None,
        merger_columns=merger_columns or (),
    )
