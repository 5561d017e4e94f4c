"""Detects from stored rows how a table encodes its keys, and checks that a write does the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as at

from pyhudi.config.meta_columns import RECORD_KEY
from pyhudi.config.property_names import SLASH_DATES
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.index.detection import last_written
from pyhudi.schema.key_generator import KeySpec, add_keys, column_at
from pyhudi.schema.table_schema import field_at
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.read import read_task
from pyhudi.slices.read_tasks import ScanRequest, merge_rule, slice_tasks
from pyhudi.table.table_snapshot import TableSnapshot

_LOGICAL = "hoodie.datasource.write.keygenerator.consistent.logical.timestamp.enabled"


def keys_are_prefixed(table: TableSnapshot) -> bool | None:
    """Return whether keys of one field are stored as `field:value`, according to the table's rows.

    None if there is no row, not even in replaced files. If a key begins with the field's name, the
    value may begin with it, too, so the row is read.
    """
    field = table.config.record_key_fields[0]
    row = _read_key_row(table, [field])
    if row is None:
        return None
    key, value = row[RECORD_KEY][0].as_py(), column_at(row, field)[0].as_py()
    # Only a string value can begin like this itself.
    return str(key).startswith(f"{field}:") and key != value


def check_date_separators(table: TableSnapshot, spec: KeySpec) -> None:
    """Raise `UnsupportedTableFeature` if the option for slashes in dates contradicts the table.

    It does if the last commit wrote to a partition of a date without slashes.
    """
    if not spec.slash_dates or table.config.slash_separated_dates:
        return
    unslashed = next((path for path, _ in last_written(table.timeline) if "-" in path), None)
    if unslashed:
        msg = f"the option {SLASH_DATES} is true, the table has the partition {unslashed}"
        raise UnsupportedTableFeature(msg, hint="Leave the option out.")


def check_key_format(table: TableSnapshot, spec: KeySpec) -> None:
    """Check that a stored key of dates or timestamps is the one that a write would create.

    Hudi's writers format them in several ways, and only the rows show which. Raises
    `UnsupportedTableFeature`, naming the property.
    """
    fields = [field_at(table.columns, name) for name in spec.key_fields]
    can_differ = any(f and (at.is_date(f.type) or at.is_timestamp(f.type)) for f in fields)
    if not can_differ or not table.config.populate_meta_fields:
        return
    row = _read_key_row(table, spec.key_fields)
    if row is None:
        return
    stored, values = row[RECORD_KEY][0].as_py(), row.drop_columns([RECORD_KEY])
    created = add_keys(values, replace(spec, partition_fields=()))[RECORD_KEY][0].as_py()
    if created != stored:
        field_names = ",".join(spec.key_fields)
        msg = f"hoodie.table.recordkey.fields is {field_names}: a row has the key {stored}, "
        msg = f"{msg}pyhudi would create {created}"
        hint = f"Write with the same writer, such as Flink, or Spark and {_LOGICAL}."
        raise UnsupportedTableFeature(msg, hint=hint)


def _read_key_row(table: TableSnapshot, fields: Sequence[str]) -> pa.Table | None:
    """Return a row with its stored key and its key columns; None if there is no row."""
    last = table.timeline.last_commit
    written = table.timeline.commit_metadata(last).partition_to_write_stats if last else {}
    names = dict.fromkeys(field.split(".")[0] for field in fields)
    request, rule = ScanRequest((RECORD_KEY, *names), limit=1), merge_rule(table)
    # One partition usually has a row.
    for partitions in (list(written)[:1], None):
        view = FileSystemView(
            table.storage, table.config, table.timeline, partitions, with_replaced=True
        )
        for slice_ in _cheapest_first(view.all_slices()):
            (task,) = slice_tasks(table, request, [slice_], rule)
            for batch in read_task(task):
                return pa.Table.from_batches([batch]).slice(0, 1)
    return None


def _cheapest_first(slices: Sequence[FileSlice]) -> Iterator[FileSlice]:
    """Yield base files first, then slices with log files."""
    yield from (replace(slice_, logs=()) for slice_ in slices if slice_.base)
    yield from (slice_ for slice_ in slices if slice_.logs)
