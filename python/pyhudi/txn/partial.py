"""Data with some of a table's columns: rows of keys that the table has keep their other columns.

How that is written is the work functions' part: as log blocks with those columns only where readers
know such blocks, else as whole rows, completed from what is stored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.errors import SchemaMismatch
from pyhudi.keys import META_COLUMNS, add_keys
from pyhudi.txn import guard
from pyhudi.txn.rows import conform, data_schema, to_table

if TYPE_CHECKING:
    from pyhudi.txn.session import Session


def partial_rows(session: Session, data: Any) -> pa.Table:
    """The data's columns as the table has them, with record key and partition path in front.

    Raises `SchemaMismatch` for a column that the table lacks or whose values do not fit, and where
    a column of the record key, of the partition path or, in event-time mode, of the ordering value
    is not among the data.
    """
    given, schema = to_table(data), data_schema(session.schema.arrow)
    names = [name for name in given.column_names if name not in META_COLUMNS]
    guard.check_known_columns(names, schema)
    spec = session.key_spec()
    target = session.target("")
    ordering = target.merge_ordering if target.merge_mode == "EVENT_TIME_ORDERING" else ()
    needed = dict.fromkeys((*spec.key_fields, *spec.partition_fields, *ordering))
    missing = [field for field in needed if field.split(".")[0] not in names]
    if missing:
        msg = f"the data lack the column {', '.join(repr(name) for name in missing)}"
        raise SchemaMismatch(
            msg, hint="An update of some columns names the record, and when it happened."
        )
    return add_keys(conform(given, pa.schema([f for f in schema if f.name in names])), spec)
