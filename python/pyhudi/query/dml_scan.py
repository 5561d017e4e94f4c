"""Plans the read of the rows that an operation changes. No data is read here.

The tasks read slices that a filter may match, or slices that an index found. A filter matches the
same rows as in a scan. Unlike a scan, the tasks return columns as stored, because the rows are
written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pyhudi.errors import ConfigError
from pyhudi.input.conform import data_schema
from pyhudi.query.file_pruning import plan_scan
from pyhudi.schema.key_generator import KeySpec
from pyhudi.schema.predicate_parser import parse_where
from pyhudi.schema.predicates import Where
from pyhudi.schema.table_schema import root_columns
from pyhudi.slices.file_size_checks import check_listed, checks_sizes
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.read_tasks import (
    ReadTask,
    ScanRequest,
    merge_rule,
    slice_tasks,
)
from pyhudi.table.scan_columns import scan_schema, text_columns
from pyhudi.table.table_snapshot import TableSnapshot


def plan_select(
    table: TableSnapshot,
    where: Any,
    columns: tuple[str, ...],
    memory_limit: int | None,
    keys: KeySpec | None = None,
) -> list[ReadTask]:
    """Return one task, with output `columns`, for each slice that may match the filter.

    keys: the rules for keys, if rows have none stored. Raises `ConfigError` without a filter, and
    as `parse_where` does.
    """
    if where is None:
        raise ConfigError("where is missing", hint='Pass a filter, or where="true" for all rows.')
    read = replace(table, as_text=text_columns(table.config, table.columns))
    projected = scan_schema(read)
    condition = parse_where(
        where, projected if table.config.populate_meta_fields else data_schema(projected)
    )
    request = _request(read, columns, memory_limit, keys, condition)
    return [_as_stored(task, columns, keys) for task in plan_scan(read, request)]


def plan_slices(
    table: TableSnapshot,
    slices: Sequence[FileSlice],
    columns: tuple[str, ...],
    memory_limit: int | None,
    keys: KeySpec | None = None,
) -> list[ReadTask]:
    """Return one task, with output `columns` of all rows, for each of some newest slices.

    Raises `CorruptTable` for a truncated log file; the rest as `plan_select`.
    """
    request = _request(table, columns, memory_limit, keys)
    check_listed(table.storage, table.options, table.timeline, slices)
    if not checks_sizes(table.options):
        slices = [slice_.unchecked for slice_ in slices]
    tasks = slice_tasks(table, request, slices, merge_rule(table))
    return [_as_stored(task, columns, keys) for task in tasks]


def _request(
    table: TableSnapshot,
    columns: tuple[str, ...],
    memory_limit: int | None,
    keys: KeySpec | None,
    where: Where | None = None,
) -> ScanRequest:
    """Request the columns, and those from which missing keys are generated."""
    if table.config.populate_meta_fields:
        return ScanRequest(output=columns, where=where, memory_limit=memory_limit)
    if keys is None:
        raise AssertionError
    needed = tuple(dict.fromkeys((*columns, *root_columns(table.columns, keys.key_fields))))
    return ScanRequest(output=needed, where=where, memory_limit=memory_limit)


def _as_stored(task: ReadTask, columns: tuple[str, ...], keys: KeySpec | None) -> ReadTask:
    return replace(task, as_stored=True, output=columns, generated_keys=keys)
