"""From a scan to read tasks: selects the file slices, explains the selection. No data is read.

Partitions and files come from the metadata table if it can be used, otherwise from a listing.
Partitions that cannot match are pruned by statistics before their files are listed, slices by
indexes afterwards: `metadata/partition_types/` reads each index of the metadata table, and
`metadata/pruning_context.py` determines the conclusions that it allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

import pyarrow as pa

from pyhudi import _native
from pyhudi.cached_property import cached_property
from pyhudi.errors import HistoryUnavailable
from pyhudi.metadata.fallback_reader import MetadataAccess, OutdatedError
from pyhudi.metadata.partition_types.base import MetadataPartitionType
from pyhudi.metadata.partition_types.registry import partition_types_of
from pyhudi.metadata.pruning_context import PRUNING_FALLBACK, PruningContext, SliceLookup
from pyhudi.query.bucket_pruning import (
    consistent_bucket_pruner,
    prune_by_bucket,
    prune_by_consistent_hashing,
    simple_buckets,
)
from pyhudi.query.explain import Explanation, Step, prune
from pyhudi.slices.cleaned_files import check_versions
from pyhudi.slices.file_size_checks import check_listed, checks_sizes
from pyhudi.slices.file_slices import FileSlices, total_size
from pyhudi.slices.file_system_view import FileSystemView, check_supported
from pyhudi.slices.missing_files import check_complete
from pyhudi.slices.partition_values import partition_filter
from pyhudi.slices.read_tasks import ScanRequest, SliceTasks, merge_rule, slice_tasks
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.layout_change import AGAIN
from pyhudi.timeline.staleness import check_listing_complete, check_snapshot_readable

_LISTED = "files are listed instead"


@dataclass(frozen=True)
class SelectedSlices:
    """The slices to read, by partition and file id."""

    slices: FileSlices
    explanation: Explanation


def select_file_slices(table: TableSnapshot, request: ScanRequest) -> SelectedSlices:
    """Return the slices that a scan reads, without those that cannot have a matching row.

    Raises `CorruptTable` for a truncated log file and `MissingFile` for a missing file, if storage
    lists the files; `HistoryUnavailable` for an earlier time whose files a cleaner of file versions
    removed.
    """
    for reload in (False, True):
        with suppress(OutdatedError):
            return _select(table, request, reload=reload)
    raise HistoryUnavailable("the metadata table was rebuilt while it was read", hint=AGAIN)


def _select(table: TableSnapshot, request: ScanRequest, *, reload: bool = False) -> SelectedSlices:
    conjuncts = request.where.conjuncts if request.where else ()
    test = partition_filter(table.config, table.columns, conjuncts)
    selected = _RecordedFilter(test)
    access = MetadataAccess(
        table.storage, table.config, table.timeline, table.options, reopen=reload
    )
    pruner = Pruner(table, request, access)
    view_and_steps = _by_metadata(table, selected, access, pruner)
    listing, by_storage = "by the metadata table", view_and_steps is None
    if view_and_steps is None:
        listing = f"by listing storage ({access.reason})"
        selected.forget()
        view_and_steps = (
            FileSystemView(table.storage, table.config, table.timeline, selected.test),
            [],
        )
    view, steps = view_and_steps
    check_versions(table.timeline, view, test)
    only_base = request.read_optimized or not table.config.is_merge_on_read
    slices = view.base_slices() if only_base else view.slices()
    by_path = selected.steps()
    if by_storage:
        check_listing_complete(table.storage, table.config, table.timeline)
        check_complete(table, view, base_only=only_base)
    elif access.newer_data_timeline is not None:
        check_snapshot_readable(table.timeline, access.newer_data_timeline)
    slices, index_steps = pruner.slices(slices)
    if not by_storage:
        access.check_not_rebuilt()
    if not checks_sizes(table.options):
        slices = slices.with_change(attrgetter("unchecked"))
    elif by_storage:
        check_listed(table.storage, table.options, table.timeline, slices.with_logs)
    explanation = Explanation(
        listing=listing,
        partitions=len(view.partitions),
        slices=len(slices),
        size=total_size(slices),
        steps=(*by_path, *steps, *index_steps),
    )
    return SelectedSlices(slices, explanation)


def _by_metadata(
    table: TableSnapshot, selected: _RecordedFilter, access: MetadataAccess, pruner: Pruner
) -> tuple[FileSystemView, list[Step]] | None:
    """Return the view of the files that the metadata table lists, None if it cannot be used."""
    paths = access.use(_LISTED, lambda metadata: metadata.data_partitions())
    if paths is None:
        return None
    remaining, steps = pruner.partitions([path for path in paths if selected(path)])

    # An unsupported table, as its file names prove, raises instead of being listed from storage.
    builder = _native.FileGroupsBuilder(table.config.base_extension)
    added = access.use(_LISTED, lambda metadata: metadata.add_data_files(builder, remaining))
    if added is None:
        return None
    check_supported(added.unsupported, table.config)
    listed = builder.finish()
    return FileSystemView(table.storage, table.config, table.timeline, listed=listed), steps


class _RecordedFilter:
    """A test of partition paths that records its results."""

    def __init__(self, test: Callable[[str], bool] | None) -> None:
        self.test: Callable[[str], bool] | None = None if test is None else self
        self._test = test
        self._answers: dict[str, bool] = {}

    def __call__(self, path: str) -> bool:
        if self._test is None:
            return True
        if path not in self._answers:
            self._answers[path] = self._test(path)
        return self._answers[path]

    def forget(self) -> None:
        self._answers.clear()

    def steps(self) -> list[Step]:
        if self._test is None:
            return []
        pruned = tuple(path for path, is_selected in self._answers.items() if not is_selected)
        return [Step("partition path", len(self._answers), pruned)]


# --- indexes --------------------------------------------------------------------------------------


Keep = Callable[[FileSlices], "pa.BooleanArray | list[bool] | None"]
"""Returns which slices may match; None if the index has no information."""


@dataclass(frozen=True)
class Pruner:
    """The indexes of a table applied to one scan's filter."""

    table: TableSnapshot
    request: ScanRequest
    access: MetadataAccess

    @cached_property
    def _context(self) -> PruningContext:
        return PruningContext(self.table, self.request, self.access)

    def partitions(self, paths: Sequence[str]) -> tuple[list[str], list[Step]]:
        """Return the partitions that may have matching rows, by indexes of whole partitions."""
        remaining, steps = list(paths), []
        for partition_type, name in self._partition_types:
            for index, lookup in partition_type.partition_lookups(self._context, name):
                keep = (
                    self.access.use(PRUNING_FALLBACK, partial(lookup, paths=remaining))
                    if remaining
                    else None
                )
                if keep is not None:
                    pruned = tuple(p for p, stays in zip(remaining, keep, strict=True) if not stays)
                    steps.append(Step(index, len(remaining), pruned))
                    remaining = [p for p, stays in zip(remaining, keep, strict=True) if stays]
        return remaining, steps

    def slices(self, slices: FileSlices) -> tuple[FileSlices, list[Step]]:
        """Return the slices that may have matching rows, by every index for the filter."""
        steps: list[Step] = []
        for index, lookup in self._lookups() if self._context.conjuncts else ():
            keep = lookup(slices) if slices else None
            if keep is not None:
                slices, step = prune(index, slices, keep)
                steps.append(step)
        return slices, steps

    @property
    def _partition_types(self) -> list[tuple[MetadataPartitionType, str]]:
        """Usable metadata partitions, cheap ones first."""
        listed = [name for name in self.table.config.metadata_partitions if self.access.has(name)]
        return sorted(partition_types_of(listed), key=lambda named_type: named_type[0].lookup_cost)

    def _lookups(self) -> Iterator[tuple[str, Keep]]:
        """Yield the indexes with information for the filter, cheap ones first."""
        # If the record index has the keys, buckets cannot prune more.
        if self._context.key_locations is None:
            yield from self._by_bucket()
        for partition_type, name in self._partition_types:
            for index, lookup in partition_type.lookups(self._context, name):
                yield index, partial(self._run_lookup, lookup)

    def _run_lookup(
        self, lookup: SliceLookup, slices: FileSlices
    ) -> pa.BooleanArray | list[bool] | None:
        return self.access.use(PRUNING_FALLBACK, lambda table: lookup(table, slices))

    def _by_bucket(self) -> Iterator[tuple[str, Keep]]:
        table, conjuncts = self.table, self._context.conjuncts
        converted = self._context.converted_columns
        test = simple_buckets(table.config, table.options, conjuncts, converted)
        if test is not None:
            yield "bucket index", lambda slices: prune_by_bucket(table, slices, test)
        pruner = consistent_bucket_pruner(
            table.storage, table.timeline, table.config, table.options, conjuncts, converted
        )
        if pruner is not None:
            yield (
                "bucket index (consistent hashing)",
                lambda slices: prune_by_consistent_hashing(table, slices, pruner),
            )


def plan_scan(table: TableSnapshot, request: ScanRequest) -> SliceTasks:
    """Return one task for every file slice that may have matching rows, in order of their keys.

    Raises `UnsupportedTableFeature` if a slice has an unsupported merge rule.
    """
    return slice_tasks(table, request, scan_slices(table, request), merge_rule(table))


def scan_slices(table: TableSnapshot, request: ScanRequest) -> FileSlices:
    """Return the slices that a scan reads, without those that cannot match."""
    return select_file_slices(table, request).slices


def output_columns(
    names: Sequence[str], columns: Sequence[str] | None, *, meta: Sequence[str], meta_fields: bool
) -> tuple[str, ...]:
    """Return the columns of a scan's result: the requested ones in that order, else all.

    names: all columns of the table. meta: those of them that are Hudi's own.
    """
    if columns is None:
        return tuple(name for name in names if meta_fields or name not in meta)
    extra = [name for name in meta if name not in columns] if meta_fields else []
    return (*extra, *columns)
