"""Inserted rows whose keys the table has, for those who do not want them twice.

What Hudi's `hoodie.datasource.insert.dup.policy` means (`handleInsertDuplicates` of its
`HoodieSparkSqlWriter.scala`, which calls `DataSourceUtils.resolveDuplicates`): rows are compared
with the table by its index, not with each other. Unlike there, keys that log files have deleted
count as gone under every index.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.write_options import INSERT_DUPLICATES
from pyhudi.errors import SchemaMismatch
from pyhudi.index import locate
from pyhudi.schema.record_keys import PARTITION_PATH, RECORD_KEY
from pyhudi.slices.tagged import row_numbers
from pyhudi.write.write_context import WriteContext


def without_known(context: WriteContext, rows: pa.Table, *, fail: bool) -> pa.Table:
    """Those of the rows whose keys the table lacks.

    Raises `SchemaMismatch` with a key where there are others and they shall `fail`.
    """
    known = locate.known_keys(context, rows.select([RECORD_KEY, PARTITION_PATH]))
    if fail and len(known):
        key = rows.column(RECORD_KEY)[known[0].as_py()].as_py()
        msg = f"the table has a row of the key {key!r}, and of {len(known)} of the rows in all"
        raise SchemaMismatch(
            msg, hint=f"Upsert them, or insert with {INSERT_DUPLICATES} drop or none."
        )
    numbers = row_numbers(rows.num_rows)
    return rows.filter(pc.invert(pc.is_in(numbers, value_set=known)))
