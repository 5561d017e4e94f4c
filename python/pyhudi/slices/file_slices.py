"""The file slices of a view, held as arrays in the core.

A table may have a million slices, so none is a Python object before a caller asks for it. Questions
about all of them (sizes, partitions, which to keep) are answered from the arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

import pyarrow as pa

from pyhudi.slices.file_slice import LOG_ORDER, SLICES, FileSlice
from pyhudi.slices.slice_builder import GroupKey, file_slice

if TYPE_CHECKING:
    from pyhudi import _native

_OBJECTS_AT_ONCE = 1024
"""Slices whose parts cross from the core in one call."""
_ROWS_AT_ONCE = 1 << 18
"""Slices of one batch of a table: offsets of strings have 32 bits."""

Change = Callable[[FileSlice], FileSlice]


class FileSlices(Sequence[FileSlice]):
    """File slices in the order of their groups; each object is made when it is asked for."""

    __slots__ = ("_appended", "_change", "has_sources", "native")

    def __init__(
        self,
        native: _native.FileSlices,
        *,
        appended: bool = False,
        change: Change | None = None,
        has_sources: bool = False,
    ) -> None:
        """`appended`: whether commits append to existing log files.

        change: what each slice becomes when its object is made. The arrays do not change.
        has_sources: the change adds the source files of skeletons.
        """
        self.native = native
        self._appended = appended
        self._change = change
        self.has_sources = has_sources

    def __len__(self) -> int:
        return len(self.native)

    @overload
    def __getitem__(self, at: int) -> FileSlice: ...
    @overload
    def __getitem__(self, at: slice) -> FileSlices: ...
    def __getitem__(self, at: int | slice) -> FileSlice | FileSlices:
        if isinstance(at, slice):
            return self._with(self.native.take(list(range(len(self))[at])))
        position = range(len(self))[at]
        (slice_,) = self._objects(position, position + 1)
        return slice_

    def __iter__(self) -> Iterator[FileSlice]:
        for start in range(0, len(self), _OBJECTS_AT_ONCE):
            yield from self._objects(start, start + _OBJECTS_AT_ONCE)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]  # as a list

    def __repr__(self) -> str:
        return f"<{len(self)} file slices>"

    def __reduce__(self) -> tuple[type[list[FileSlice]], tuple[list[FileSlice]]]:
        return list, (list(self),)

    def _objects(self, start: int, end: int) -> Iterable[FileSlice]:
        parts = self.native.parts(start, end)
        slices = [file_slice(of_slice, appended=self._appended) for of_slice in parts]
        return slices if self._change is None else map(self._change, slices)

    def _with(self, native: _native.FileSlices) -> FileSlices:
        return FileSlices(
            native, appended=self._appended, change=self._change, has_sources=self.has_sources
        )

    def with_change(self, change: Change, *, adds_sources: bool = False) -> FileSlices:
        """Return the slices, each changed when its object is made."""
        before = self._change
        both = change if before is None else lambda slice_: change(before(slice_))
        return FileSlices(
            self.native,
            appended=self._appended,
            change=both,
            has_sources=self.has_sources or adds_sources,
        )

    def filter(self, keep: pa.BooleanArray) -> FileSlices:
        """Return the slices whose flag is true."""
        return self._with(self.native.filter(keep))

    @property
    def with_logs(self) -> FileSlices:
        """Return the slices with log files."""
        return self._with(self.native.with_logs())

    @property
    def partitions(self) -> list[str]:
        """Paths of the partitions with a slice, sorted."""
        return self.native.partitions()

    @property
    def totals(self) -> tuple[int, int, int, int]:
        """Number and bytes of base files, number and bytes of log files."""
        return self.native.totals()

    @property
    def sizes(self) -> pa.RecordBatch:
        """Columns base_size (null without base file), logs (their number), log_size."""
        return self.native.sizes()

    @property
    def whole_base_sizes(self) -> pa.Int64Array:
        """Bytes of each base file, including a skeleton's source; null without base file."""
        if not self.has_sources:
            return self.sizes["base_size"]
        bases = (slice_.base for slice_ in self)
        return pa.array([None if base is None else base.whole_size for base in bases], pa.int64())

    def file_paths(self) -> list[tuple[str, str, list[tuple[str, bool]]]]:
        """Return partition path, file id and files of each slice.

        Of a file, its path and whether it is a log file.
        """
        return self.native.file_paths()

    def take(self, numbers: Sequence[int]) -> FileSlices:
        """Return the slices of these numbers, in their order."""
        return self._with(self.native.take(numbers))

    def in_groups(self, keys: Collection[GroupKey]) -> pa.BooleanArray:
        """Return for each slice whether it is of one of the file groups."""
        return self.native.in_groups(list(keys))

    def to_arrow(self) -> pa.Table:
        """Return one row per slice, as `slices_table` does."""
        starts = range(0, len(self), _ROWS_AT_ONCE)
        batches = [self.native.rows(start, start + _ROWS_AT_ONCE) for start in starts]
        tables = [pa.Table.from_batches([batch]).cast(SLICES) for batch in batches]
        return pa.concat_tables(tables) if tables else SLICES.empty_table()


def slices_table(slices: Iterable[FileSlice]) -> pa.Table:
    """Return one row per slice; base_file and base_size are null for log files alone."""
    if isinstance(slices, FileSlices):
        return slices.to_arrow()
    rows = [
        {
            "partition": slice_.partition,
            "file_id": slice_.file_id,
            "base_instant": slice_.base_instant,
            "base_file": slice_.base.name if slice_.base else None,
            "base_size": slice_.base.size if slice_.base else None,
            "log_files": [log.name for log in slice_.logs],
            "log_size": slice_.log_size,
        }
        for slice_ in slices
    ]
    return pa.Table.from_pylist(rows, SLICES)


def may_have_sources(slices: Iterable[FileSlice]) -> bool:
    """Return whether a base file of the slices may be a skeleton."""
    return not isinstance(slices, FileSlices) or slices.has_sources


def partitions_of(slices: Iterable[FileSlice]) -> list[str]:
    """Return the paths of the partitions with a slice, sorted."""
    if isinstance(slices, FileSlices):
        return slices.partitions
    return sorted({slice_.partition for slice_ in slices})


def total_size(slices: Iterable[FileSlice]) -> int:
    """Return the bytes of all files of slices, including the sources of skeletons."""
    if isinstance(slices, FileSlices) and not may_have_sources(slices):
        _, bases, _, logs = slices.totals
        return bases + logs
    return sum(slice_.size for slice_ in slices)


def any_logs(slices: Iterable[FileSlice]) -> bool:
    """Return whether a slice has log files."""
    if isinstance(slices, FileSlices):
        return slices.totals[2] > 0
    return any(slice_.logs for slice_ in slices)


def snapshot_slice(slices: Sequence[FileSlice], compaction: str | None) -> FileSlice | None:
    """Return the slice that a snapshot reads of one group: the newest one with files.

    slices: newest first. Until a pending compaction is done, its slice has no base file, so the
    slice before is joined with it, as the core does for all groups.
    """
    filled = [slice_ for slice_ in slices if slice_.base is not None or slice_.logs]
    if not filled:
        return None
    newest = filled[0]
    if newest.base_instant != compaction or newest.base is not None or len(filled) == 1:
        return newest
    before = filled[1]
    logs = sorted((*before.logs, *newest.logs), key=LOG_ORDER)
    return replace(before, logs=tuple(logs))
