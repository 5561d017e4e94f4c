"""Additions to rows that are written: Hudi's own columns, and the partition's metadata file."""

from __future__ import annotations

import pyarrow as pa

from pyhudi import _native
from pyhudi.engine.protocol import Attempt
from pyhudi.errors import SchemaMismatch
from pyhudi.schema.avro_value_checks import check_values, value_rules
from pyhudi.slices.nested_partitions import check_not_nested
from pyhudi.slices.write_tasks import RowStream, WriteTarget
from pyhudi.storage.properties import partition_metadata

PARTITION_METADATA = ".hoodie_partition_metadata"


def with_meta(
    rows: RowStream, target: WriteTarget, attempt: Attempt, file_name: str
) -> _native.BatchReader:
    """Add the other meta columns to rows with record key and partition path.

    All of them are null if the table's keys are virtual. Raises `SchemaMismatch` for a value that
    is not a symbol of its enum, and for a damaged VARIANT.
    """
    rules = value_rules(target.avro_schema)
    if rules:
        # A stream would hide the type of the error.
        rows = pa.table(rows)
        check_values(rows, rules)
    return _native.with_meta_columns(
        rows,
        instant=target.instant,
        task=attempt.task,
        first_row=0,
        file_name=file_name,
        populated=not target.virtual_keys,
    )


def make_partition(target: WriteTarget, partition: str) -> None:
    """Make a directory a partition, unless it is one already.

    Raises `SchemaMismatch` if it is inside a partition, or contains one.
    """
    storage = target.storage
    depth = partition.count("/") + 1 if partition else 0
    path = f"{partition}/{PARTITION_METADATA}" if partition else PARTITION_METADATA
    content = partition_metadata(target.instant, depth)
    if not target.min_levels:
        storage.put_if_absent(path, content)
        return
    if storage.exists(path):
        return
    check_not_nested(storage, partition, target.min_levels)
    if storage.put_if_absent(path, content):
        try:
            # Another task or writer may have created one concurrently: the later of both sees the
            # other.
            check_not_nested(storage, partition, target.min_levels)
        except SchemaMismatch:
            storage.delete(path)
            raise
