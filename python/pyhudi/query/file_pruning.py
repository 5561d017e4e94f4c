"""From a table and a request to the file slices that a scan reads, and their explanation.

The metadata table lists partitions and files if it can be used, otherwise storage does. Partitions
that cannot match are pruned before their files are listed, slices afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from pyhudi.errors import HistoryUnavailable
from pyhudi.metadata.fallback_reader import MetadataAccess, OutdatedError
from pyhudi.query.explain import Explanation, Step
from pyhudi.query.index_pruning import Pruner
from pyhudi.slices.cleaned_files import check_versions
from pyhudi.slices.file_size_checks import check_listed, checks_sizes
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.listing import GivenFiles
from pyhudi.slices.missing_files import check_complete
from pyhudi.slices.partition_values import partition_filter
from pyhudi.slices.read_tasks import ScanRequest
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.layout_change import AGAIN
from pyhudi.timeline.staleness import check_listing_complete, check_snapshot_readable

_LISTED = "files are listed instead"


@dataclass(frozen=True)
class SelectedSlices:
    """The slices to read, by partition and file id."""

    slices: list[FileSlice]
    explanation: Explanation


def select_file_slices(table: TableSnapshot, request: ScanRequest) -> SelectedSlices:
    """Return the slices that a scan reads, without those that cannot have a matching row.

    Raises `CorruptTable` for a truncated log file and `MissingFile` for a missing file, if storage
    lists the files; `HistoryUnavailable` for an earlier time whose files a cleaner of file versions
    removed.
    """
    for anew in (False, True):
        with suppress(OutdatedError):
            return _select(table, request, anew=anew)
    raise HistoryUnavailable("the metadata table was rebuilt while it was read", hint=AGAIN)


def _select(table: TableSnapshot, request: ScanRequest, *, anew: bool = False) -> SelectedSlices:
    conjuncts = request.where.conjuncts if request.where else ()
    test = partition_filter(table.config, table.columns, conjuncts)
    selected = _Counted(test)
    access = MetadataAccess(table.storage, table.config, table.timeline, table.options, anew=anew)
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
    elif access.later is not None:
        check_snapshot_readable(table.timeline, access.later)
    slices, more = pruner.slices(slices)
    if not by_storage:
        access.check_same()
    if not checks_sizes(table.options):
        slices = [slice_.unchecked for slice_ in slices]
    elif by_storage:
        check_listed(table.storage, table.options, table.timeline, slices)
    explanation = Explanation(
        listing=listing,
        partitions=len(view.partitions),
        slices=len(slices),
        size=sum(slice_.size for slice_ in slices),
        steps=(*by_path, *steps, *more),
    )
    return SelectedSlices(slices, explanation)


def _by_metadata(
    table: TableSnapshot, selected: _Counted, access: MetadataAccess, pruner: Pruner
) -> tuple[FileSystemView, list[Step]] | None:
    """Return the view of the files that the metadata table lists, None if it cannot be used."""
    paths = access.use(_LISTED, lambda metadata: metadata.data_partitions())
    if paths is None:
        return None
    remaining, steps = pruner.partitions([path for path in paths if selected(path)])

    # A table that its file names prove unsupported raises, and is not listed by storage instead.
    files = access.use(_LISTED, lambda metadata: metadata.data_files(remaining))
    if files is None:
        return None
    source = GivenFiles(files)
    return FileSystemView(table.storage, table.config, table.timeline, files=source), steps


class _Counted:
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
