"""The columns that rows of a Spark write carry along, beside those of the table. No rules here."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.slices.write_tasks import BASE_ROW

SEQ = "_pyhudi_seq"
"""Number of an incoming row; rises with the order of the data."""
ACTION = "_pyhudi_action"
DESTINATION = "_pyhudi_destination"
"""Partition path that the row goes to."""
GROUP = "_pyhudi_group"
"""What the file group is known by: see `placed_rows.identity`. Null in a new row."""
DELETED = "_pyhudi_deleted"
"""The row deletes its key."""
TASK = "_pyhudi_task"
AT = "_pyhudi_at"
"""Of a row that is only to be added: its number among those of its partition path and `TASK`."""

NEW = 0
"""No file group has the key."""
UPDATE = 1
"""The row goes to a file group."""
REMOVE = 2
"""The row's key is deleted from a file group."""

NUMBERED = pa.schema([(SEQ, pa.int64())])
PLACED = pa.schema(
    [
        (ACTION, pa.int32()),
        (DESTINATION, pa.string()),
        (GROUP, pa.string()),
        (BASE_ROW, pa.int64()),
        (DELETED, pa.bool_()),
    ]
)
CROSSED = "_pyhudi_crossed"
"""Of a row that stands for its key: how many rows of the key other partitions would have got."""
COMBINED = pa.schema([(SEQ, pa.int64()), (CROSSED, pa.int64())])
KNOWN = "_pyhudi_known"
"""An inserted row's key is in the table already."""
COUNTED = pa.schema([(TASK, pa.int64()), (AT, pa.int64())])
STRETCH = "_pyhudi_stretch"
"""Rises with `AT`, as bytes do: rows with the same number come to a part of a file."""
BYTES = "_pyhudi_bytes"
"""What the row comes to in a base file."""
MEASURED = pa.schema([(STRETCH, pa.int64()), (BYTES, pa.int64())])


def with_fields(schema: pa.Schema, more: pa.Schema) -> pa.Schema:
    """The columns of both."""
    return pa.schema([*schema, *more])
