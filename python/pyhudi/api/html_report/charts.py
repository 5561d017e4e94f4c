"""Pictures of the report: bar charts, and partitions and file groups as boxes by bytes.

matplotlib draws the bars, as SVG that takes its text color from the page.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeVar, cast

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator, MultipleLocator
from squarify import normalize_sizes, squarify

from pyhudi.api.notebook_html import svg
from pyhudi.api.notebook_html.commit_summary import Commit
from pyhudi.api.notebook_html.html import Html, tag
from pyhudi.api.notebook_html.style import BASE, REST
from pyhudi.config.formatting import count_text, instant_text, shorten, size_text
from pyhudi.slices.file_slice import FileSlice
from pyhudi.slices.slice_builder import GroupKey

_WIDTH = 540
_MAX_BARS = 90
_REPLACED = re.compile(
    r'<g id="mark(?P<mark>\d+)">| (?:id|clip-path|transform)="[^"]*"|font-[^;"]*; |\n *'
)
"""Marks get a tooltip. The other parts of matplotlib's SVG are dropped: the page has its font."""

Series = tuple[str, str, Callable[[Commit], int]]
"""A name, a color, and the value of a commit."""


def default_style() -> AbstractContextManager[None]:
    """Return a context in which charts do not depend on the caller's settings of matplotlib."""
    style: AbstractContextManager[None] = matplotlib.style.context(
        ["default", {"svg.fonttype": "none", "svg.hashsalt": "pyhudi"}]
    )
    return style


def bars(
    commits: Sequence[Commit],
    series: Sequence[Series],
    *,
    in_bytes: bool = False,
    in_sum: bool = False,
) -> Html:
    """Draw the stacked values of each commit, or of adjacent commits; `in_sum` adds them up."""
    step = max(-(-len(commits) // _MAX_BARS), 1)
    groups = [commits[at : at + step] for at in range(0, len(commits), step)]
    axes = _axes(176, left=62, bottom=22)
    show = size_text if in_bytes else "{:,}".format
    titles = [_span(group) for group in groups]
    bottoms = [0] * len(groups)
    for name, color, value in series:
        values = [sum(map(value, group)) for group in groups]
        values = list(accumulate(values)) if in_sum else values
        titles = [f"{title}\n{name}: {show(n)}" for title, n in zip(titles, values, strict=True)]
        places = range(len(groups))
        width = min(0.75, len(groups) / 12)
        _mark(axes.bar(places, values, width, bottoms, color=color), values)
        bottoms = [bottom + n for bottom, n in zip(bottoms, values, strict=True)]
    axes.set(xticks=[], xlim=(-0.5, max(len(groups), 1) - 0.5))
    axes.grid(axis="y", color="#7f7f7f", alpha=0.3)
    axes.set_axisbelow(True)
    _label_axes(axes, commits, max([*bottoms, 1]), in_bytes=in_bytes)
    return _svg(axes, f"{', '.join(name for name, _, _ in series)} by commit", titles)


def histogram(names: Sequence[str], counts: Sequence[int], color: str, thing: str) -> Html:
    """Draw the number of things in each class, as horizontal bars."""
    axes = _axes(24 * len(names), left=110, bottom=0)
    drawn = axes.barh(names, counts, 0.65, color=color)
    axes.bar_label(drawn, [f"{count:,}" for count in counts], padding=5)
    axes.set(xticks=[], xlim=(0, 1.15 * max([*counts, 1])), ylim=(len(names) - 0.5, -0.5))
    _mark(drawn, counts)
    titles = [f"{name}: {count:,} {thing}" for name, count in zip(names, counts, strict=True)]
    return _svg(axes, f"{thing} by {names[0]} and more", titles)


def _axes(height: int, *, left: int, bottom: int) -> Axes:
    figure = Figure((_WIDTH / 72, height / 72), frameon=False)
    room = (left / _WIDTH, bottom / height, 1 - left / _WIDTH, 1 - (bottom + 8) / height)
    axes = figure.add_axes(room, frameon=False)
    axes.tick_params(left=False)
    return axes


def _label_axes(axes: Axes, commits: Sequence[Commit], most: int, *, in_bytes: bool) -> None:
    """Label the values, bytes in powers of 1024, and the first and the last commit."""
    axes.yaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    if in_bytes:
        unit = 1024 ** int(math.log(most, 1024))
        base = max(MaxNLocator(3).tick_values(0, most / unit)[1], 1 / unit)
        axes.yaxis.set_major_locator(MultipleLocator(base * unit))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda size, _: size_text(size)))
    for at, side in ((0, "left"), (-1, "right"))[: len(commits)]:
        text = instant_text(commits[at].instant.requested)[:16]
        axes.annotate(text, (-at, 0), (0, -16), "axes fraction", "offset points", ha=side)


def _span(commits: Sequence[Commit]) -> str:
    first, last = commits[0], commits[-1]
    if first is last:
        return f"{first.operation.lower() or 'commit'} {instant_text(first.instant.requested)}"
    times = f"{instant_text(first.instant.requested)} to {instant_text(last.instant.requested)}"
    return f"{len(commits)} commits, {times}"


def _mark(bars: BarContainer, values: Sequence[int]) -> None:
    """Name the bars, so that `_svg` finds them, and hide those without a value."""
    for number, (bar, value) in enumerate(zip(bars, values, strict=True)):
        bar.set(gid=f"mark{number}", visible=value != 0)


def _svg(axes: Axes, label: str, titles: Sequence[str]) -> Html:
    """Return the chart with tooltips, and without what would be there twice in a page."""

    def replace(match: re.Match[str]) -> str:
        number = match["mark"]
        return "" if number is None else f"<g class='mark'>{tag('title', titles[int(number)])}"

    figure, file = cast("Figure", axes.get_figure(root=True)), io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    inner = _REPLACED.sub(replace, text[text.index("<g ") : text.rindex("</g>") + len("</g>")])
    height = round(figure.get_figheight() * 72)
    return svg.picture(_WIDTH, height, [Html(inner)], label)


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
    rest = Partition.of(count_text(len(partitions) - _MAX_PARTITIONS, "more partition"), more)
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
