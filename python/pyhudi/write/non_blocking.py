"""Writing beside others without giving way: which tables and verbs that is safe for.

Every write appends log files of its own to the buckets of a merge-on-read table, so two never
change the same file, and readers merge what both have said of a key. What reads rows to make others
of them, or takes file groups away, would lose what was written meanwhile, and is refused. Log files
of one file slice are merged in the order of their requested times, as Hudi does it
(`HoodieLogFile.LogFileComparator`, 1.2.0; RFC-66).
"""

from __future__ import annotations

from pyhudi.config.concurrency_mode import MODE, ConcurrencyMode
from pyhudi.config.index_options import INDEX_TYPE
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.write.write_context import WriteContext

_HINT = "Use OPTIMISTIC_CONCURRENCY_CONTROL for this write, when no other writer is active."


def check_appends(context: WriteContext, verb: str, *, appends: bool) -> None:
    """Raises `UnsupportedTableFeature` for a table or a verb that the mode is not safe for.

    appends: the verb appends what it was given, whatever the table has.
    """
    if not context.options.index.shares_buckets:
        return
    mode = f"{MODE} is {ConcurrencyMode.NON_BLOCKING.value}"
    config, index = context.config, context.index
    if not config.is_merge_on_read or config.version.logs_named_by_base_instant:
        msg = f"{mode}, for merge-on-read tables of version 8 or later"
        raise UnsupportedTableFeature(msg, hint="Leave the option out.")
    if not index.has_buckets or index.has_rings:
        msg = f"{mode}, and {INDEX_TYPE} is {index.kind}: it needs BUCKET with the engine SIMPLE"
        raise UnsupportedTableFeature(msg, hint="Leave the option out.")
    if not appends:
        raise UnsupportedTableFeature(
            f"{mode}: {verb} is not safe with concurrent writers", hint=_HINT
        )
