"""Sort modes of a bulk insert."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

import pyarrow as pa

from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.errors import ConfigError
from pyhudi.suggestions import case_hint

SortMode = Literal["none", "partition", "global"]
"""Hudi's NONE, PARTITION_SORT and GLOBAL_SORT (`hoodie.bulkinsert.sort.mode`)."""


def sort_order(sort: str, columns: Sequence[str], schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns to sort the rows of a partition by; none keeps their order.

    Raises `ConfigError` for an unknown sort mode, and for unknown columns.
    """
    if sort not in get_args(SortMode):
        msg = f"sort is {sort!r}"
        raise ConfigError(msg, hint='Give "none", "partition" or "global".')
    if isinstance(columns, str):
        msg = "sort_columns is a string"
        raise ConfigError(msg, hint=f"Give a list: [{columns!r}].")
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        msg = f"sort_columns names {unknown[0]!r}, which is not a column of the table"
        raise ConfigError(msg, hint=case_hint(unknown, schema.names))
    if sort == "none":
        if columns:
            msg = "sort_columns are given, but sort is none"
            raise ConfigError(msg, hint='Give sort="global" or sort="partition".')
        return ()
    return tuple(columns) or (RECORD_KEY,)
