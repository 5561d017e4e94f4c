"""Partitions and file groups as boxes with areas by bytes, for the template of the report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from squarify import normalize_sizes, squarify

from pyhudi.api.display.style import BASE, REST
from pyhudi.config.formatting import count_text, shorten, size_text
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.slice_builder import GroupKey

WIDTH, HEIGHT = 1130, 430
_HEAD = 17
_MAX_PARTITIONS = 60
_MAX_GROUPS = 2000
_MAX_NAME = 80
_MIN_SHARE = 1e-6
"""Minimum share of a box in the area: squarify divides by zero if rounding leaves no area."""


@dataclass(frozen=True)
class Partition:
    """A partition, or several of them, and the file slices in it."""

    name: str
    slices: Sequence[FileSlice]
    """File slices, the largest first."""
    size: int
    """Bytes of all files."""
    log_bytes: int

    @classmethod
    def of(cls, name: str, slices: Sequence[FileSlice]) -> Partition:
        """Return a partition with all its file slices."""
        in_order = sorted(slices, key=lambda file_slice: file_slice.size, reverse=True)
        logs = sum(file_slice.log_size for file_slice in slices)
        return cls(name, in_order, sum(file_slice.size for file_slice in slices), logs)

    @property
    def log_share(self) -> float:
        """Bytes of log files divided by those of all files."""
        return self.log_bytes / self.size if self.size else 0


Sized = TypeVar("Sized", FileSlice, Partition, FileSlice | Partition)


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    width: float
    height: float

    def inside(self, gap: float, head: float = 0) -> Box:
        """Return the rectangle inside a margin, below a header."""
        width, height = self.width - 2 * gap, self.height - 2 * gap - head
        return Box(self.left + gap, self.top + gap + head, max(width, 0), max(height, 0))


class Cell(NamedTuple):
    """A box with a tooltip; its lower part represents log files."""

    box: Box
    color: str
    title: str
    log_height: float = 0
    is_planned: bool = False


class StorageMap(NamedTuple):
    """Boxes of file groups, and labels of partitions: left, bottom and text."""

    cells: list[Cell]
    labels: list[tuple[float, float, str]]


def partitions_of(slices: Sequence[FileSlice]) -> list[Partition]:
    """Return the partitions of the slices, the largest first."""
    slices_by_partition: dict[str, list[FileSlice]] = {}
    for file_slice in slices:
        slices_by_partition.setdefault(file_slice.partition, []).append(file_slice)
    partitions = [Partition.of(name, group) for name, group in slices_by_partition.items()]
    return sorted(partitions, key=lambda partition: (-partition.size, partition.name))


def partition_name(path: str) -> str:
    """Return a partition path for display, or "(no partition)" for a table without partitions."""
    return shorten(path, _MAX_NAME) if path else "(no partition)"


def storage_map(partitions: Sequence[Partition], planned: Mapping[GroupKey, str]) -> StorageMap:
    """Return the boxes. planned: the planned service of a file group, by group."""
    more = [part for partition in partitions[_MAX_PARTITIONS:] for part in partition.slices]
    rest = Partition.of(f"{len(partitions) - _MAX_PARTITIONS} more partitions", more)
    single = partitions[:_MAX_PARTITIONS]
    sizes = sorted((part.size for partition in single for part in partition.slices), reverse=True)
    min_size = sizes[_MAX_GROUPS] if len(sizes) > _MAX_GROUPS else 1
    drawn = StorageMap([], [])
    for partition, outer in _tile([*single, rest], Box(0, 0, WIDTH, HEIGHT)):
        box = outer.inside(1.5)
        if partition is rest:
            drawn.cells.append(_rest_cell(rest, box))
            continue
        room = int(box.width / 6.4)
        if box.height > 2 * _HEAD and room >= 4:
            name = partition_name(partition.name)
            label = f"{name}  {size_text(partition.size)}"
            label = label if len(label) <= room else shorten(name, room)
            drawn.labels.append((box.left + 2, box.top + 12, label))
            box = box.inside(0, _HEAD)
        large = [part for part in partition.slices if part.size >= min_size]
        small = partition.slices[len(large) :]
        text = f"{partition_name(partition.name)}: {count_text(len(small), 'smaller file group')}"
        items: list[FileSlice | Partition] = [*large, Partition.of(text, small)]
        for item, cell in _tile(items, box):
            if isinstance(item, Partition):
                drawn.cells.append(_rest_cell(item, cell))
            else:
                drawn.cells.append(_cell(item, cell, planned.get(item.key)))
    return drawn


def _tile(items: Sequence[Sized], box: Box) -> Iterator[tuple[Sized, Box]]:
    """Yield each item that has bytes with its box, the largest first."""
    in_order = sorted((item for item in items if item.size), key=lambda item: -item.size)
    if not in_order:
        return
    if not box.width or not box.height:
        yield from ((item, Box(box.left, box.top, 0, 0)) for item in in_order)
        return
    least = sum(item.size for item in in_order) * _MIN_SHARE
    sizes = normalize_sizes([max(item.size, least) for item in in_order], box.width, box.height)
    for item, place in zip(in_order, squarify(sizes, *box), strict=True):
        yield item, Box(place["x"], place["y"], place["dx"], place["dy"])


def _cell(file_slice: FileSlice, box: Box, service: str | None) -> Cell:
    logs = file_slice.log_size
    base, share = file_slice.size - logs, logs / file_slice.size
    name = f"{partition_name(file_slice.partition)} / {shorten(file_slice.file_id, _MAX_NAME)}"
    count = count_text(len(file_slice.logs), "log file")
    lines = [
        name,
        f"slice of {file_slice.base_instant}: base file {size_text(base) if base else 'none'}",
        f"{count} of {size_text(logs)}: {100 * share:.0f} %" if file_slice.logs else "",
        f"waits for a {service}" if service else "",
    ]
    title = "\n".join(filter(None, lines))
    return Cell(box, BASE, title, box.height * share, service is not None)


def _rest_cell(rest: Partition, box: Box) -> Cell:
    groups = count_text(len(rest.slices), "file group")
    return Cell(box, REST, f"{rest.name}\n{groups} of {size_text(rest.size)}")
