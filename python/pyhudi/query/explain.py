"""The explanation of a scan plan: how files were listed, and what each index pruned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from pyhudi.config.formatting import HtmlRepr, count_text
from pyhudi.slices.file_slices import FileSlices

if TYPE_CHECKING:
    import pyarrow.compute as pc
else:
    from pyhudi.schema import lazy_compute as pc

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
    """For example `partition path`, `column_stats(fare)`, `record_index`."""
    before: int
    """Partitions or file slices that it was applied to."""
    partitions: tuple[str, ...] = ()
    """Partitions that it pruned."""
    slices: FileSlices | tuple[()] = ()
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
    """How a scan was planned. `print` it, or call `str()`."""

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
        paths = [(path, step.index) for step in self.steps for path in step.partitions]
        partitions, indexes = zip(*paths, strict=True) if paths else ((), ())
        tables = [pa.table({"partition": partitions, "pruned_by": indexes})]
        for step in self.steps:
            if isinstance(step.slices, FileSlices):
                rows = step.slices.to_arrow().select(PRUNED.names[:-1])
                index = pa.repeat(pa.scalar(step.index), rows.num_rows)
                tables.append(rows.append_column("pruned_by", index))
        return pa.concat_tables([PRUNED.empty_table(), *map(_as_pruned, tables)])

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"files: {self.listing}", *map(str, self.steps)]
        partitions = f"{count_text(self.partitions, 'partition')} listed"
        slices = count_text(self.slices, "file slice")
        lines.append(f"to read: {slices}, {self.size} bytes; {partitions}")
        return "\n".join(lines)


def _as_pruned(rows: pa.Table) -> pa.Table:
    missing = {field.name: pa.nulls(rows.num_rows, field.type) for field in PRUNED}
    columns = {**missing, **{name: rows[name] for name in rows.column_names}}
    return pa.table(columns, schema=PRUNED)


def prune(
    index: str, slices: FileSlices, keep: pa.BooleanArray | Sequence[bool]
) -> tuple[FileSlices, Step]:
    """Return the slices to keep, and the step that records the pruned ones."""
    flags = keep if isinstance(keep, pa.BooleanArray) else pa.array(keep, pa.bool_())
    pruned = slices.filter(pc.invert(flags))
    return slices.filter(flags), Step(index, len(slices), slices=pruned, of="file slices")
