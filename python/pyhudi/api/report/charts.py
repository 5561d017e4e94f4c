"""Bar charts of the report, drawn by matplotlib as SVG that takes its text color from the page."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate
from typing import cast

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator, MultipleLocator

from pyhudi.api.display import svg
from pyhudi.api.display.commit_summary import Commit
from pyhudi.api.display.html import Html, tag
from pyhudi.config.formatting import instant_text, size_text

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
