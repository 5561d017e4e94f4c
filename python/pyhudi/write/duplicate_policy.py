"""Inserts of keys that the table already has: `hoodie.datasource.insert.dup.policy`.

Rows are compared with the table by its index, not with each other, as in Hudi
(`handleInsertDuplicates` of `HoodieSparkSqlWriter.scala`, `DataSourceUtils.resolveDuplicates`).
Unlike in Hudi, a key that a log file has deleted counts as missing under every index.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.formatting import count_text
from pyhudi.config.log import warn
from pyhudi.config.meta_columns import PARTITION_PATH, RECORD_KEY
from pyhudi.config.write_options import INSERT_DUPLICATES
from pyhudi.errors import DuplicateKeyWarning, SchemaMismatch
from pyhudi.index import tagging
from pyhudi.index.detection import last_written
from pyhudi.index.protocol import IndexedTable
from pyhudi.slices.tagged_rows import row_numbers
from pyhudi.write.write_context import WriteContext


def drop_existing_keys(context: IndexedTable, rows: pa.Table, *, fail: bool) -> pa.Table:
    """Return the rows whose keys the table does not have.

    Raises `SchemaMismatch` for an existing key if `fail` is set.
    """
    existing = tagging.find_existing_keys(context, rows.select([RECORD_KEY, PARTITION_PATH]))
    if fail and len(existing):
        key = rows.column(RECORD_KEY)[existing[0].as_py()].as_py()
        msg = f"the table already has {len(existing)} of the keys, such as {key!r}"
        raise SchemaMismatch(
            msg, hint=f"Use upsert, or insert with {INSERT_DUPLICATES} drop or none."
        )
    numbers = row_numbers(rows.num_rows)
    return rows.filter(pc.invert(pc.is_in(numbers, value_set=existing)))


def should_count_existing_keys(context: WriteContext) -> bool:
    """Return whether an insert counts rows with keys in the table's record index.

    It does not if an option sets the policy for such rows.
    """
    indexed = context.index.is_record_index and INSERT_DUPLICATES not in context.handle_options
    return indexed and bool(last_written(context.timeline))


def count_existing(table: IndexedTable, rows: pa.Table) -> int:
    """Return the number of rows whose keys the table has."""
    return len(tagging.find_existing_keys(table, rows.select([RECORD_KEY, PARTITION_PATH])))


def warn_of_duplicates(context: WriteContext, count: int) -> None:
    """Warn about inserted rows with existing keys."""
    if count:
        warn(
            f"{context.storage.uri}: inserted {count_text(count, 'row')} with keys that the "
            "table already has: these keys have duplicates now, and Apache Hudi's "
            'clustering fails on them ("multiple records with same key") until they are removed; '
            f"{INSERT_DUPLICATES}=drop drops such rows, fail raises for them, and none inserts "
            "them without a lookup",
            DuplicateKeyWarning,
        )
