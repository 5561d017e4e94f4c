"""Non-blocking concurrency control: the tables and operations that are safe for it.

Every write appends log files of its own to the buckets of a merge-on-read table, so two writes
never change the same file, and readers merge all records of a key. Operations that compute rows
from stored rows, or replace file groups, would lose concurrent writes, and raise. Log files of a
file slice are merged in the order of their requested times, as in Hudi
(`HoodieLogFile.LogFileComparator`, 1.2.0; RFC-66).
"""

from __future__ import annotations

from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.config.lock_options import MODE, ConcurrencyMode
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.write.write_context import WriteContext

_HINT = "Use OPTIMISTIC_CONCURRENCY_CONTROL for this write, when no other writer is active."


def check_appends(context: WriteContext, operation: str, *, appends: bool) -> None:
    """Raise `UnsupportedTableFeature` for a table or operation that the mode is not safe for.

    appends: the operation appends its input, independent of stored rows.
    """
    if not context.options.index.shares_buckets:
        return
    mode = f"{MODE} is {ConcurrencyMode.NON_BLOCKING.value}"
    config, index = context.config, context.index
    if not config.is_merge_on_read or config.version.logs_named_by_base_instant:
        msg = f"{mode}, for merge-on-read tables of version 8 or later"
        raise UnsupportedTableFeature(msg, hint="Leave the option out.")
    if not index.has_buckets or index.has_consistent_hashing:
        msg = f"{mode} needs {INDEX_TYPE} BUCKET with the engine SIMPLE, not {index.index_type}"
        raise UnsupportedTableFeature(msg, hint="Leave the option out.")
    if not appends:
        raise UnsupportedTableFeature(
            f"{mode}: {operation} is not safe with concurrent writers", hint=_HINT
        )
