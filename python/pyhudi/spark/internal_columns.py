"""The helper columns that rows of a Spark write have next to the columns of the table."""

from __future__ import annotations

import pyarrow as pa

from pyhudi.slices.write_tasks import BASE_ROW

SEQ = "_pyhudi_seq"
"""Number of an incoming row; it increases in the order of the data."""
ACTION = "_pyhudi_action"
DESTINATION = "_pyhudi_destination"
"""Partition path that the row goes to."""
GROUP = "_pyhudi_group"
"""Identity of the file group: see `Index.identity`. Null in a new row."""
DELETED = "_pyhudi_deleted"
"""Whether the row deletes its key."""
TASK = "_pyhudi_task"
AT = "_pyhudi_at"
"""Number of an append-only row among those of its partition path and `TASK`."""

NEW = 0
"""No file group has the key."""
UPDATE = 1
"""The row goes to a file group."""
REMOVE = 2
"""The row's key is deleted from a file group."""

NUMBERED = pa.schema([(SEQ, pa.int64())])
ASSIGNED = pa.schema(
    [
        (ACTION, pa.int32()),
        (DESTINATION, pa.string()),
        (GROUP, pa.string()),
        (BASE_ROW, pa.int64()),
        (DELETED, pa.bool_()),
    ]
)
CROSSED = "_pyhudi_crossed"
"""In a combined row: the number of rows of its key that named another partition."""
COMBINED = pa.schema([(SEQ, pa.int64()), (CROSSED, pa.int64())])
EXISTING = "_pyhudi_existing"
"""Whether an inserted row's key is in the table already."""
COUNTED = pa.schema([(TASK, pa.int64()), (AT, pa.int64())])
STRETCH = "_pyhudi_stretch"
"""Increases with `AT` by bytes: consecutive rows with the same number are one part of a file."""
BYTES = "_pyhudi_bytes"
"""Estimated bytes of the row in a base file."""
MEASURED = pa.schema([(STRETCH, pa.int64()), (BYTES, pa.int64())])


def with_fields(schema: pa.Schema, added: pa.Schema) -> pa.Schema:
    """Return the columns of both schemas."""
    return pa.schema([*schema, *added])
