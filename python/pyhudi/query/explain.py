"""The explanation of a scan plan: how files were listed, and what each index pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from pyhudi.config.formatting import HtmlRepr
from pyhudi.slices.file_slice import FileSlice

PRUNED = pa.schema(
    [
        ("partition", pa.string()),
        ("file_id", pa.string()),
        ("base_file", pa.string()),
        ("pruned_by", pa.string()),
    ]
)


@dataclass(frozen=True)
class Step:
    """The result of one index."""

    index: str
    """Such as `partition path`, `column_stats(fare)`, `record_index`."""
    before: int
    """Partitions or file slices that it was applied to."""
    partitions: tuple[str, ...] = ()
    """Partitions that it pruned."""
    slices: tuple[FileSlice, ...] = ()
    """File slices that it pruned."""
    of: Literal["partitions", "file slices"] = "partitions"
    """The unit that it was applied to."""

    def __str__(self) -> str:
        pruned = len(self.partitions) + len(self.slices)
        return f"{self.index}: pruned {pruned} of {self.before} {self.of}"

    def __repr__(self) -> str:
        return f"<Step {self}>"


@dataclass(frozen=True)
class Explanation(HtmlRepr):
    """How a scan was planned. `Print it, or call `str()`."""

    listing: str
    """The source of the list of files, and why."""
    partitions: int
    """Partitions whose files were listed."""
    slices: int
    """File slices that the scan reads."""
    size: int
    """Bytes of their files."""
    steps: tuple[Step, ...] = field(default=())
    """The indexes in order of use, including those that pruned nothing."""

    @property
    def pruned(self) -> pa.Table:
        """The pruned items: columns partition, file_id, base_file, pruned_by.

        file_id is null for a whole partition, base_file also for log files alone.
        """
        rows: list[dict[str, str | None]] = [
            {"partition": path, "pruned_by": step.index}
            for step in self.steps
            for path in step.partitions
        ]
        rows += [
            {
                "partition": slice_.partition,
                "file_id": slice_.file_id,
                "base_file": slice_.base.name if slice_.base else None,
                "pruned_by": step.index,
            }
            for step in self.steps
            for slice_ in step.slices
        ]
        return pa.Table.from_pylist(rows, PRUNED)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"files: {self.listing}", *map(str, self.steps)]
        partitions = f"{self.partitions} partitions listed"
        lines.append(f"to read: {self.slices} file slices, {self.size} bytes; {partitions}")
        return "\n".join(lines)


def prune(
    index: str, slices: Sequence[FileSlice], keep: Sequence[bool]
) -> tuple[list[FileSlice], Step]:
    """Return the slices to keep, and the step that records the pruned ones."""
    remaining = [slice_ for slice_, stays in zip(slices, keep, strict=True) if stays]
    pruned = tuple(slice_ for slice_, stays in zip(slices, keep, strict=True) if not stays)
    return remaining, Step(index, len(slices), slices=pruned, of="file slices")
