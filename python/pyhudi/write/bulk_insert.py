"""Rows for new files alone, in the order that was asked for.

That is what bulk_insert and the overwriting verbs write. Which files they make is
`write/plan_partitioned.py`'s part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.errors import ConfigError
from pyhudi.index import locate
from pyhudi.schema.conform import marked_deleted
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.row_selection import PickedRows
from pyhudi.slices.tagged import row_numbers, split
from pyhudi.write import out_of_core
from pyhudi.write.incoming import Intake
from pyhudi.write.write_context import Session

SortMode = Literal["none", "partition", "global"]
"""Hudi's NONE, PARTITION_SORT and GLOBAL_SORT (`hoodie.bulkinsert.sort.mode`)."""


def sort_order(sort: str, columns: Sequence[str], schema: pa.Schema) -> tuple[str, ...]:
    """The columns to sort the rows of a partition by; none keeps their order.

    Raises `ConfigError` for a sort mode that is none, and columns that the table does not have.
    """
    if sort not in get_args(SortMode):
        msg = f"sort is {sort!r}"
        raise ConfigError(msg, hint='Give "none", "partition" or "global".')
    if isinstance(columns, str):
        msg = "sort_columns is text"
        raise ConfigError(msg, hint=f"Give a list: [{columns!r}].")
    unknown = [name for name in columns if name not in schema.names]
    if unknown:
        msg = f"sort_columns names {unknown[0]!r}, which is no column of the table"
        raise ConfigError(msg)
    if sort == "none":
        if columns:
            msg = "sort_columns are given, but sort is none"
            raise ConfigError(msg, hint='Give sort="global" or sort="partition".')
        return ()
    return tuple(columns) or (RECORD_KEY,)


def plan_bulk(
    stack: ExitStack,
    session: Session,
    taken: Intake,
    *,
    sort: SortMode = "none",
    order: tuple[str, ...] = (),
) -> Mapping[str, Any]:
    """The rows by partition path, in order: tables, picked rows, or on a shelf that `stack` closes.

    Rows that are marked as deletes are left out.
    """
    combine = session.options.combine_inserts
    if taken.whole is None:
        if sort == "global":
            msg = f"the data are too large to be sorted in {taken.memory_limit} bytes of memory"
            raise ConfigError(msg, hint='Give a greater memory_limit, or sort="partition".')
        return out_of_core.by_partition(stack, session, taken, combine=combine, order=order)
    rows = locate.combined(session, taken.whole) if combine else taken.whole
    merge = session.config.merge
    marked = marked_deleted(rows, merge.delete_field, merge.delete_marker)
    if pc.any(marked).as_py():
        rows = rows.filter(pc.invert(marked))
    paths = rows.column(PARTITION_PATH).combine_chunks()
    numbers = row_numbers(rows.num_rows)
    if not order:
        return {partition: PickedRows(rows, part) for partition, part in split(paths, numbers)}
    keys = [(name, "ascending") for name in order]
    numbers = pc.sort_indices(rows, sort_keys=keys).cast(pa.int64())
    paths = paths.take(numbers)
    return {partition: rows.take(part) for partition, part in split(paths, numbers)}
