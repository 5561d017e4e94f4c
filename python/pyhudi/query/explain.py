"""What a planning decided, for people: how files were listed, and what each index left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pyarrow as pa

from pyhudi.config.html_repr import HtmlRepr
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
    """What one index left out."""

    index: str
    """Such as `partition path`, `column_stats(fare)`, `record_index`."""
    before: int
    """Partitions or file slices that it was asked about."""
    partitions: tuple[str, ...] = ()
    """Partitions that it left out."""
    slices: tuple[FileSlice, ...] = ()
    """File slices that it left out."""
    of: Literal["partitions", "file slices"] = "partitions"
    """What it was asked about."""

    def __str__(self) -> str:
        gone = len(self.partitions) + len(self.slices)
        return f"{self.index}: pruned {gone} of {self.before} {self.of}"

    def __repr__(self) -> str:
        return f"<Step {self}>"


@dataclass(frozen=True)
class Explanation(HtmlRepr):
    """How a scan was planned. `str()` of it is a text for people."""

    listing: str
    """Where the list of files came from, and why."""
    partitions: int
    """Partitions whose files were looked at."""
    slices: int
    """File slices that the scan reads."""
    size: int
    """Bytes of their files."""
    steps: tuple[Step, ...] = field(default=())
    """The indexes that were asked, in order, also those that left nothing out."""

    @property
    def pruned(self) -> pa.Table:
        """What was left out: columns partition, file_id, base_file, pruned_by.

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
        places = f"{self.partitions} partitions listed"
        lines.append(f"to read: {self.slices} file slices, {self.size} bytes; {places}")
        return "\n".join(lines)


def prune(
    index: str, slices: Sequence[FileSlice], keep: Sequence[bool]
) -> tuple[list[FileSlice], Step]:
    """The slices to keep, and the step that tells of the others."""
    left = [slice_ for slice_, stays in zip(slices, keep, strict=True) if stays]
    gone = tuple(slice_ for slice_, stays in zip(slices, keep, strict=True) if not stays)
    return left, Step(index, len(slices), slices=gone, of="file slices")
