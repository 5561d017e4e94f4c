"""Partitions and file groups as boxes sized by bytes, with the share of log files in each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyhudi.api.display import svg
from pyhudi.api.display.html import Html, tag
from pyhudi.api.display.style import BASE, LOG, REST
from pyhudi.api.display.treemap import Box, tile
from pyhudi.config.formatting import count_text, shorten, size_text
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.slice_builder import GroupKey

_WIDTH, _HEIGHT, _HEAD = 1130, 430, 17
_PARTITIONS_MOST = 60
_NAME_MOST = 80
_SEEN = 0.4
"""Minimum height of a visible part."""
_GROUPS_MOST = 2000


@dataclass(frozen=True)
class Place:
    """A partition, or several of them, and the file slices in it."""

    name: str
    slices: Sequence[FileSlice]
    """File slices, the largest first."""
    base_bytes: int
    log_bytes: int

    @classmethod
    def of(cls, name: str, slices: Sequence[FileSlice]) -> Place:
        """Return a partition with all its file slices."""
        base = sum(slice_.base.size for slice_ in slices if slice_.base is not None)
        size = sum(slice_.size for slice_ in slices)
        return cls(
            name,
            sorted(slices, key=lambda file_slice: file_slice.size, reverse=True),
            base,
            size - base,
        )

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return self.base_bytes + self.log_bytes


def places_of(slices: Sequence[FileSlice]) -> list[Place]:
    """Return the partitions of the slices, the largest first."""
    slices_by_partition: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        slices_by_partition.setdefault(slice_.partition, []).append(slice_)
    places = [Place.of(name, group) for name, group in slices_by_partition.items()]
    return sorted(places, key=lambda place: (-place.size, place.name))


def partition_name(path: str) -> str:
    """Return a partition path for display, or "(no partition)" for a table without partitions."""
    return shorten(path, _NAME_MOST) if path else "(no partition)"


def storage_picture(places: Sequence[Place], waiting: Mapping[GroupKey, str]) -> Html:
    """Draw the picture. waiting: the service that is planned for a file group, by group."""
    drawn = [place for place in places[:_PARTITIONS_MOST] if place.size]
    undrawn = [slice_ for place in places[_PARTITIONS_MOST:] for slice_ in place.slices]
    cells = sorted(
        (file_slice.size for place in drawn for file_slice in place.slices), reverse=True
    )
    min_size = cells[_GROUPS_MOST] if len(cells) > _GROUPS_MOST else 0
    # The remaining partitions share one box.
    rest = Place.of(f"{len(places) - _PARTITIONS_MOST} more partitions", undrawn)
    all_ = [*drawn, *([rest] if rest.size else [])]
    all_.sort(key=lambda place: place.size, reverse=True)
    boxes = tile([place.size for place in all_], Box(0, 0, _WIDTH, _HEIGHT))
    inner: list[Html] = []
    for place, box in zip(all_, boxes, strict=True):
        if place is rest:
            inner.append(_rest_cell(place.name, rest.slices, box.inside(1.5)))
        else:
            inner += _partition(place, box.inside(1.5), min_size, waiting)
    label = f"{count_text(len(places), 'partition')} and their file groups by size"
    return svg.picture(_WIDTH, _HEIGHT, inner, label)


def _partition(
    place: Place, box: Box, min_size: int, waiting: Mapping[GroupKey, str]
) -> Iterator[Html]:
    room = int(box.width / 6.4)
    if box.height > 2 * _HEAD and room >= 4:
        name = partition_name(place.name)
        label = f"{name}  {size_text(place.size)}"
        text = (
            label if len(label) <= room else name if len(name) <= room else f"{name[: room - 1]}…"
        )
        yield svg.text(box.left + 2, box.top + 12, text)
        box = box.inside(0, _HEAD)
    single = [slice_ for slice_ in place.slices if slice_.size >= max(min_size, 1)]
    small = [slice_ for slice_ in place.slices if 0 < slice_.size < min_size]
    weights = [slice_.size for slice_ in single]
    rest = sum(slice_.size for slice_ in small)
    # Boxes need falling weights, and the many small slices together may be the largest.
    before = sum(weight >= rest for weight in weights) if rest else len(weights)
    boxes = tile([*weights[:before], *([rest] if rest else []), *weights[before:]], box)
    if rest:
        name = f"{partition_name(place.name)}: {count_text(len(small), 'smaller file group')}"
        yield _rest_cell(name, small, boxes.pop(before))
    for slice_, cell in zip(single, boxes, strict=True):
        yield _cell(slice_, cell, waiting.get(slice_.key))


def _cell(slice_: FileSlice, box: Box, waits_for: str | None) -> Html:
    logs = sum(log.size for log in slice_.logs)
    base = slice_.size - logs
    lines = [
        f"{partition_name(slice_.partition)} / {shorten(slice_.file_id, _NAME_MOST)}",
        f"slice of {slice_.base_instant}: base file {size_text(base) if base else 'none'}",
    ]
    if slice_.logs:
        share = 100 * logs / slice_.size
        lines.append(
            f"{count_text(len(slice_.logs), 'log file')} of {size_text(logs)}: {share:.0f} %"
        )
    if waits_for:
        lines.append(f"waits for a {waits_for}")
    title = "\n".join(lines)
    height = box.height * logs / slice_.size
    parts = [tag("title", title), svg.rect(*box, BASE, dash=waits_for is not None)]
    if height >= _SEEN:
        parts.append(svg.rect(box.left, box.top + box.height - height, box.width, height, LOG))
    return tag("g", *parts, class_="cell")


def _rest_cell(name: str, slices: Sequence[FileSlice], box: Box) -> Html:
    groups = count_text(len(slices), "file group")
    size = size_text(sum(slice_.size for slice_ in slices))
    return svg.rect(*box, REST, class_="cell", title=f"{name}\n{groups} of {size}")
