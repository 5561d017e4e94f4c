"""Conditions on generated partition columns that follow from a filter's conditions.

`at >= x` implies `at_day >= day(x)`, because a day never decreases if the time increases. An
equality implies the equality of every expression of the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.table_config import TableConfig
from pyhudi.errors import SchemaMismatch
from pyhudi.schema.column_transforms import is_monotone
from pyhudi.schema.predicates import Conjunct
from pyhudi.schema.row_rules import build_generated_columns

_IMPLIED = {"=": "=", "in": "in", "<": "<=", "<=": "<=", ">": ">=", ">=": ">="}


def derive_conjuncts(
    config: TableConfig, schema: pa.Schema, conjuncts: Sequence[Conjunct]
) -> Iterator[Conjunct]:
    """Yield conditions on partition columns that every row satisfies if it satisfies `conjuncts`.

    schema: the table's columns. Only pyhudi's writers guarantee the values of generated columns.
    """
    for column in build_generated_columns(config, schema):
        if column.name not in config.partition_fields or len(column.sources) > 1:
            continue
        source = column.sources[0]
        data_type = schema.field(source).type
        # Different floats can be equal, as 0.0 and -0.0 are, and a struct has other fields.
        if at.is_floating(data_type) or at.is_nested(data_type):
            continue
        for name, op, values in conjuncts:
            is_equality = op in ("=", "in")
            if name != source or op not in _IMPLIED or values.type != data_type:
                continue
            if is_equality or is_monotone(column.sql, source):
                try:
                    computed = column.compute(pa.table({source: values})).combine_chunks()
                except SchemaMismatch:
                    # No stored row has the value, but rows near it may exist.
                    continue
                if not computed.null_count:
                    yield column.name, _IMPLIED[op], computed
