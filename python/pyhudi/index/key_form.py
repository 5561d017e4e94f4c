"""Whether keys of one field are stored as `field:value`: nothing but the rows tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from pyhudi.schema.record_keys import RECORD_KEY, column_at
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ScanRequest, merge_rule, slice_tasks
from pyhudi.slices.table import Table


def keys_are_prefixed(table: Table) -> bool | None:
    """What the rows of a table with one key field say.

    None where there is none, not even in files that were replaced since. A key that begins with
    the field's name may be the plain one of a value that does, so its row is looked at.
    """
    field, last = table.config.record_key_fields[0], table.timeline.last_commit
    written = table.timeline.commit_metadata(last).partition_to_write_stats if last else {}
    request, rule = ScanRequest((RECORD_KEY, field.split(".")[0]), limit=1), merge_rule(table)
    # Most often one partition is all that is listed.
    for partitions in (list(written)[:1], None):
        view = FileSystemView(
            table.storage, table.config, table.timeline, partitions, with_replaced=True
        )
        for slice_ in _cheapest_first(view.all_slices()):
            (task,) = slice_tasks(table, request, [slice_], rule)
            for batch in read_task(task):
                rows = pa.Table.from_batches([batch])
                key, value = rows[RECORD_KEY][0].as_py(), column_at(rows, field)[0].as_py()
                # A value that is no text has no such beginning.
                return str(key).startswith(f"{field}:") and key != value
    return None


def _cheapest_first(slices: Sequence[FileSlice]) -> Iterator[FileSlice]:
    """Base files alone, then what log files hold beside them."""
    yield from (replace(slice_, logs=()) for slice_ in slices if slice_.base)
    yield from (slice_ for slice_ in slices if slice_.logs)
