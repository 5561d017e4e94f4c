"""Separates rows that cannot have a record key before a write; other checks come later.

The rule is that of the core (`record_keys.rs`): a key of one field must not be null or empty, of
several fields not all may be.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf


def separate_keyless(frame: DataFrame, key: Sequence[str]) -> tuple[DataFrame, DataFrame]:
    """Return the rows that have a key, and those that have none.

    key: the key's columns; without columns every row gets a generated key.
    """
    if not key:
        return frame, frame.limit(0)
    bad = reduce(and_, (_is_missing(column) for column in key))
    return frame.where(~bad), frame.where(bad)


def _is_missing(column: str) -> Column:
    """Return whether a key column has no value; the result is never null."""
    value = sf.col(".".join(f"`{part}`" for part in column.split(".")))
    return value.isNull() | (sf.coalesce(value.cast("string"), sf.lit("")) == "")
