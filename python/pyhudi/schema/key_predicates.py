"""The record keys that a filter allows, if it lists them.

No lookups here. The string of a key is certain for strings and integers only; for dates, decimals
and others Hudi's writers differ, and then there is no result.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import product

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.table_config import TableConfig
from pyhudi.input.type_tests import is_text
from pyhudi.schema.key_generator import _is_plain
from pyhudi.schema.predicates import Conjunct

MAX_KEYS = 100_000
"""A filter that allows more keys is not used for lookups."""


def find_allowed_values(
    conjuncts: Iterable[Conjunct], column: str, excluded: Collection[str] = ()
) -> list[str] | None:
    """Return strings of the values that a column may have; None if the filter does not list them.

    excluded: columns whose stored values the filter does not see.
    """
    if column in excluded:
        return None
    allowed: set[str] | None = None
    for name, op, values in conjuncts:
        if name == column and op in ("=", "in") and has_certain_string(values.type):
            strings = {str(value) for value in values.to_pylist()}
            allowed = strings if allowed is None else allowed & strings
    return None if allowed is None else sorted(allowed)


def has_certain_string(data_type: pa.DataType) -> bool:
    """Return whether all writers of Hudi format a value of this type alike in record keys."""
    return is_text(data_type) or bool(at.is_int32(data_type) or at.is_int64(data_type))


def find_record_keys(
    config: TableConfig, conjuncts: Sequence[Conjunct], excluded: Collection[str] = ()
) -> list[str] | None:
    """Return every record key that a matching row can have; None if the filter does not list them.

    A key of one field is returned in both formats of Hudi's releases, `k1` and `id:k1`, if the key
    generator leaves it open.
    """
    stored = find_allowed_values(conjuncts, RECORD_KEY, excluded)
    if stored is not None:
        return stored if len(stored) <= MAX_KEYS else None
    if config.key_generator == "USER_PROVIDED":
        return None
    keys = field_keys(conjuncts, config.record_key_fields, excluded)
    if keys is None or len(config.record_key_fields) != 1 or not _is_plain(config):
        return keys
    return find_allowed_values(conjuncts, config.record_key_fields[0], excluded)


def field_keys(
    conjuncts: Sequence[Conjunct], fields: Sequence[str], excluded: Collection[str] = ()
) -> list[str] | None:
    """Return keys of given fields; None if the filter does not list the values of all of them."""
    by_field = [find_allowed_values(conjuncts, name, excluded) for name in fields]
    listed = [values for values in by_field if values is not None]
    if not fields or len(listed) < len(by_field) or any("" in values for values in listed):
        return None
    total = 1
    for values in listed:
        total *= len(values)
    if total > MAX_KEYS:
        return None
    pairs = [[f"{name}:{v}" for v in values] for name, values in zip(fields, listed, strict=True)]
    if len(fields) == 1:
        return sorted({*listed[0], *pairs[0]})
    return [",".join(parts) for parts in product(*pairs)]
