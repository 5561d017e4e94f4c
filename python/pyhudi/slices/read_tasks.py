"""Read tasks of file slices: the needed columns and files, and the merge rule.

A table and selected slices become tasks here; `read.py` executes them, in this process or in
another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, overload

import pyarrow as pa

from pyhudi.config.merge_mode import BuiltInMode
from pyhudi.config.table_config import TableConfig, find_unsupported_merge
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.schema.delete_field import check_has_delete_field
from pyhudi.schema.internal_schema import Evolution
from pyhudi.schema.key_generator import KeySpec, plain_key
from pyhudi.schema.payloads import FieldMerge, field_merge, with_defaults
from pyhudi.schema.predicates import Where
from pyhudi.slices.bootstrap import check_source_columns
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_slices import any_logs, may_have_sources, partitions_of
from pyhudi.slices.partition_values import path_values
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot

PathValues: TypeAlias = tuple[tuple[str, pa.Scalar], ...]
"""Columns with their value in a partition."""


@dataclass(frozen=True)
class MergeRule:
    """The rule for merging the records of a slice, and the valid log blocks."""

    mode: BuiltInMode = "COMMIT_TIME_ORDERING"
    ordering_fields: tuple[str, ...] = ()
    key_fields: tuple[str, ...] = ()
    plain_key: str | None = None
    """A column that equals the stored key column if it is not null."""
    delete_field: str | None = None
    delete_marker: str | None = None
    fields: FieldMerge | None = None
    """Set if records are merged column by column."""
    max_instant: str | None = None
    """Log blocks of later instants are ignored."""
    valid_instants: tuple[str, ...] | None = None
    """Up to table version 6: the instants whose log blocks are valid, in addition to those before
    `timeline_start`."""
    timeline_start: str | None = None
    drops_repeated: bool = False
    """A log-compacted block that replaces no valid block is dropped."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The read of one file slice. Picklable; contains nothing that belongs to a process."""

    storage: Storage
    slice: FileSlice
    schema: pa.Schema
    """The table's columns as stored in its files, meta columns first."""
    columns: tuple[str, ...]
    """Needed columns: the output's, then those that only the filter uses."""
    output: tuple[str, ...]
    merge: MergeRule
    as_text: tuple[str, ...] = ()
    """Columns whose values are returned as strings."""
    path_values: PathValues = ()
    """Columns that take their value in this partition from its path; they are not read."""
    where: Where | None = field(default=None)
    as_stored: bool = False
    """The output has stored values: `as_text` and `path_values` are for the filter alone."""
    limit: int | None = None
    """Maximum number of rows of this slice."""
    memory_limit: int | None = None
    """Bytes for log records in memory; beyond that they spill to local files."""
    two_threads: bool = False
    """A second thread may help to decode the base file."""
    evolution: Evolution | None = None
    """The column names in the files, if they differ from `schema`."""
    generated_keys: KeySpec | None = None
    """The rules for record keys in the output, if rows have none stored."""
    whole: WholeSlice | None = None
    """Read in place of `slice` if that has records of some columns only."""
    base_part: tuple[int, int | None] | None = None
    """For a base file with nothing to merge: only row groups that begin in this range of bytes."""


@dataclass(frozen=True)
class WholeSlice:
    """The whole slice of which a task reads a part, and its merge rule."""

    slice: FileSlice
    merge: MergeRule


@dataclass(frozen=True)
class ScanRequest:
    """The arguments of a scan, checked against the table's schema."""

    output: tuple[str, ...]
    where: Where | None = None
    limit: int | None = None
    read_optimized: bool = False
    memory_limit: int | None = None
    """Bytes for the log records of one task."""
    two_threads: bool = False
    """A second thread may help with each task."""


class SliceTasks(Sequence[ReadTask]):
    """One task per slice, in their order; each is made when it is asked for."""

    def __init__(
        self,
        slices: Sequence[FileSlice],
        make: Callable[[FileSlice], ReadTask],
    ) -> None:
        """`make`: returns the task of a slice."""
        self.slices = slices
        self._make = make

    def __len__(self) -> int:
        return len(self.slices)

    @overload
    def __getitem__(self, at: int) -> ReadTask: ...
    @overload
    def __getitem__(self, at: slice) -> SliceTasks: ...
    def __getitem__(self, at: int | slice) -> ReadTask | SliceTasks:
        if isinstance(at, slice):
            return SliceTasks(self.slices[at], self._make)
        return self._make(self.slices[at])

    def __iter__(self) -> Iterator[ReadTask]:
        return map(self._make, self.slices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __reduce__(self) -> tuple[type[list[ReadTask]], tuple[list[ReadTask]]]:
        return list, (list(self),)


def slice_tasks(
    table: TableSnapshot,
    request: ScanRequest,
    slices: Sequence[FileSlice],
    rule: MergeRule,
    *,
    incremental: bool = False,
) -> SliceTasks:
    """Return one task per slice. Raises as `plan_scan` does.

    incremental: values of partition columns as in incremental queries.
    """
    if any_logs(slices):
        _check_mergeable(table)
    filtered = request.where.columns if request.where else ()
    columns = tuple(dict.fromkeys((*request.output, *filtered)))
    # Many slices are in few partitions: each path is parsed once.
    values = {
        path: tuple(path_values(table.config, table.columns, path, incremental=incremental).items())
        for path in partitions_of(slices)
    }
    for slice_ in slices if may_have_sources(slices) else ():
        _check_source(table, slice_, columns, values[slice_.partition])
    first = ReadTask(
        storage=table.storage,
        slice=FileSlice("", "", "", None),
        schema=table.columns,
        columns=columns,
        output=request.output,
        merge=rule,
        as_text=table.as_text,
        where=request.where,
        limit=request.limit,
        memory_limit=request.memory_limit,
        two_threads=request.two_threads,
        evolution=table.schema.evolution,
    )
    return SliceTasks(
        slices, lambda slice_: replace(first, slice=slice_, path_values=values[slice_.partition])
    )


def rewrite_tasks(
    table: TableSnapshot, request: ScanRequest, slices: Sequence[FileSlice]
) -> list[ReadTask]:
    """Return one task per slice for rows that are written again. Raises as `slice_tasks` does.

    Files keep stored values, even if scans return the value in the partition path.
    """
    tasks = slice_tasks(table, request, slices, merge_rule(table))
    return [replace(task, path_values=(), as_text=()) for task in tasks]


def _check_source(
    table: TableSnapshot, slice_: FileSlice, columns: tuple[str, ...], values: PathValues
) -> None:
    """Check that the source file of a skeleton has the columns that its path does not have."""
    if slice_.base is not None and slice_.base.source is not None:
        needed = (*columns, *(table.config.ordering_fields if slice_.logs else ()))
        check_source_columns(table.storage, slice_.base.source, needed, dict(values))


def _check_mergeable(table: TableSnapshot) -> None:
    config = table.config
    check_has_delete_field(table.schema.arrow, config.merge.delete_field)
    if field_merge(config) is None and find_unsupported_merge(config) is not None:
        raise UnsupportedTableFeature(
            f"{find_unsupported_merge(config)}: pyhudi does not support this merge rule",
            hint="Read base files only with scan(read_optimized=True), or add a merger with "
            "pyhudi.register_merger().",
        )


def merge_rule(table: TableSnapshot) -> MergeRule:
    """Return the merge rule of a snapshot's slices, and their valid log blocks."""
    config, timeline = table.config, table.timeline
    fields = with_defaults(field_merge(config), table.schema)
    mode = fields.mode if fields else config.merge.mode
    if not config.is_merge_on_read or mode == "CUSTOM":
        return MergeRule()
    checked = config.version.blocks_need_commit_check
    last = timeline.last_commit
    ordering = fields.ordering_fields if fields else None
    return MergeRule(
        mode=mode,
        ordering_fields=config.ordering_fields if ordering is None else ordering,
        key_fields=key_columns(config),
        plain_key=None if fields else plain_key(config, table.columns),
        delete_field=config.merge.delete_field,
        delete_marker=config.merge.delete_marker,
        fields=fields,
        max_instant=last.requested if last else timeline.bound,
        valid_instants=tuple(commit.requested for commit in timeline.commits) if checked else None,
        timeline_start=timeline.blocks_start if checked else None,
    )


def key_columns(config: TableConfig) -> tuple[str, ...]:
    """Return the columns that identify the rows of one record."""
    if config.populate_meta_fields:
        return ("_hoodie_record_key",)
    if not config.record_key_fields:
        raise UnsupportedTableFeature(
            "hoodie.populate.meta.fields=false without hoodie.table.recordkey.fields: "
            "rows have no key",
            hint="Set hoodie.table.recordkey.fields to the key columns.",
        )
    return config.record_key_fields
