"""Partitions and file groups as boxes by bytes, the part of log files in each."""

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
"""Height from which on a part can be seen."""
_GROUPS_MOST = 2000


@dataclass(frozen=True)
class Place:
    """A partition, or many of them, and the file slices there."""

    name: str
    slices: Sequence[FileSlice]
    """The largest first."""
    base_bytes: int
    log_bytes: int

    @classmethod
    def of(cls, name: str, slices: Sequence[FileSlice]) -> Place:
        """A partition with all it has."""
        base = sum(slice_.base.size for slice_ in slices if slice_.base is not None)
        size = sum(slice_.size for slice_ in slices)
        return cls(name, sorted(slices, key=lambda one: one.size, reverse=True), base, size - base)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return self.base_bytes + self.log_bytes


def places_of(slices: Sequence[FileSlice]) -> list[Place]:
    """The partitions of slices, the largest first."""
    found: dict[str, list[FileSlice]] = {}
    for slice_ in slices:
        found.setdefault(slice_.partition, []).append(slice_)
    places = [Place.of(name, held) for name, held in found.items()]
    return sorted(places, key=lambda place: (-place.size, place.name))


def partition_name(path: str) -> str:
    """A partition path, in words where the table has no partitions."""
    return shorten(path, _NAME_MOST) if path else "(no partition)"


def storage_picture(places: Sequence[Place], waiting: Mapping[GroupKey, str]) -> Html:
    """The picture. waiting: file groups for which a service is planned, with its name."""
    shown = [place for place in places[:_PARTITIONS_MOST] if place.size]
    others = [slice_ for place in places[_PARTITIONS_MOST:] for slice_ in place.slices]
    cells = sorted((one.size for place in shown for one in place.slices), reverse=True)
    least = cells[_GROUPS_MOST] if len(cells) > _GROUPS_MOST else 0
    # The rest of the partitions is one box, drawn whole.
    rest = Place.of(f"{len(places) - _PARTITIONS_MOST} more partitions", others)
    all_ = [*shown, *([rest] if rest.size else [])]
    all_.sort(key=lambda place: place.size, reverse=True)
    boxes = tile([place.size for place in all_], Box(0, 0, _WIDTH, _HEIGHT))
    inner: list[Html] = []
    for place, box in zip(all_, boxes, strict=True):
        if place is rest:
            inner.append(_rest_cell(place.name, rest.slices, box.inside(1.5)))
        else:
            inner += _partition(place, box.inside(1.5), least, waiting)
    label = f"{count_text(len(places), 'partition')} and their file groups by size"
    return svg.picture(_WIDTH, _HEIGHT, inner, label)


def _partition(
    place: Place, box: Box, least: int, waiting: Mapping[GroupKey, str]
) -> Iterator[Html]:
    room = int(box.width / 6.4)
    if box.height > 2 * _HEAD and room >= 4:
        name = partition_name(place.name)
        told = f"{name}  {size_text(place.size)}"
        shown = told if len(told) <= room else name if len(name) <= room else f"{name[: room - 1]}…"
        yield svg.text(box.left + 2, box.top + 12, shown)
        box = box.inside(0, _HEAD)
    single = [slice_ for slice_ in place.slices if slice_.size >= max(least, 1)]
    small = [slice_ for slice_ in place.slices if 0 < slice_.size < least]
    weights = [slice_.size for slice_ in single]
    rest = sum(slice_.size for slice_ in small)
    # The many small ones together may be the largest box; boxes want falling weights.
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
    told = [
        f"{partition_name(slice_.partition)} / {shorten(slice_.file_id, _NAME_MOST)}",
        f"slice of {slice_.base_instant}: base file {size_text(base) if base else 'none'}",
    ]
    if slice_.logs:
        share = 100 * logs / slice_.size
        told.append(
            f"{count_text(len(slice_.logs), 'log file')} of {size_text(logs)}: {share:.0f} %"
        )
    if waits_for:
        told.append(f"waits for a {waits_for}")
    title = "\n".join(told)
    height = box.height * logs / slice_.size
    parts = [tag("title", title), svg.rect(*box, BASE, dash=waits_for is not None)]
    if height >= _SEEN:
        parts.append(svg.rect(box.left, box.top + box.height - height, box.width, height, LOG))
    return tag("g", *parts, class_="cell")


def _rest_cell(name: str, slices: Sequence[FileSlice], box: Box) -> Html:
    groups = count_text(len(slices), "file group")
    size = size_text(sum(slice_.size for slice_ in slices))
    return svg.rect(*box, REST, class_="cell", title=f"{name}\n{groups} of {size}")
