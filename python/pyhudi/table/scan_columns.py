"""The columns of a table as scans return them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.config.table_config import TableConfig
from pyhudi.input.semi_structured import as_arrow_extension
from pyhudi.input.type_tests import is_text

if TYPE_CHECKING:
    from pyhudi.table.table_snapshot import TableSnapshot

TIMESTAMP_GENERATORS = frozenset({"TIMESTAMP", "TIMESTAMP_AVRO"})


def scan_schema(table: TableSnapshot) -> pa.Schema:
    """Return the table's columns as scans return them, meta columns first."""
    return pa.schema(
        [
            field.with_type(pa.string())
            if field.name in table.as_text
            else as_arrow_extension(field)
            for field in table.columns
        ]
    )


def text_columns(config: TableConfig, schema: pa.Schema) -> tuple[str, ...]:
    """Return columns that a scan returns as strings although the files have another type.

    Hudi 1.2.0 reads the partition columns of a timestamp key generator so: as the stored value
    converted to a string, not as the string in the path.
    """
    if config.key_generator not in TIMESTAMP_GENERATORS:
        return ()
    fields = [schema.field(name) for name in config.partition_fields if name in schema.names]
    return tuple(field.name for field in fields if not is_text(field.type))
