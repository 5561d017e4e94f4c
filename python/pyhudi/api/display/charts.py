"""Charts of figures by commit, and histograms of sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from pyhudi.api.display import svg
from pyhudi.api.display.commit_summary import Commit
from pyhudi.api.display.html import Html
from pyhudi.api.display.style import UPDATED
from pyhudi.config.formatting import instant_text, size_text

_WIDTH, _HEIGHT, _LEFT, _TOP, _FOOT = 540, 176, 58, 8, 22
_BARS_MOST = 90

Series = tuple[str, str, Sequence[float]]
"""A name, a color, and a value for each commit."""


def bars(commits: Sequence[Commit], series: Sequence[Series], *, in_bytes: bool = False) -> Html:
    """Draw a bar for each commit, or for adjacent commits together, with the series stacked."""
    step = max(-(-len(commits) // _BARS_MOST), 1)
    sums = [
        (name, color, [sum(values[at : at + step]) for at in range(0, len(values), step)])
        for name, color, values in series
    ]
    heights = [sum(column) for column in zip(*(values for _, _, values in sums), strict=True)]
    inner, scale = _frame(max(heights, default=0), in_bytes=in_bytes)
    width = (_WIDTH - _LEFT) / max(len(heights), 1)
    show = size_text if in_bytes else _number
    for number in range(len(heights)):
        group = commits[number * step : (number + 1) * step]
        title = "\n".join(
            [_span(group), *(f"{name}: {show(values[number])}" for name, _, values in sums)]
        )
        bottom = float(_HEIGHT - _FOOT)
        left = _LEFT + number * width
        for _, color, values in sums:
            height = scale(values[number])
            bottom -= height
            if height > 0:
                wide = min(max(width - 2, width * 0.7), 46)
                x = left + (width - wide) / 2
                inner.append(svg.rect(x, bottom, wide, height, color, class_="mark", title=title))
    return _chart(inner, commits, f"{', '.join(name for name, _, _ in series)} by commit")


def running_sum(commits: Sequence[Commit], name: str, steps: Sequence[int]) -> Html:
    """Draw the running sum of each commit's value, as a line above a filled area."""
    sums, color = list(accumulate(steps)), UPDATED
    inner, scale = _frame(max(sums, default=0), in_bytes=False)
    bottom = _HEIGHT - _FOOT
    shown = range(0, len(sums), max(len(sums) // 240, 1))
    places = [*shown, *([len(sums) - 1] if sums and shown[-1] != len(sums) - 1 else [])]
    width = (_WIDTH - _LEFT) / max(len(sums), 1)
    points = [(_LEFT + (at + 0.5) * width, bottom - max(scale(sums[at]), 0)) for at in places]
    if points:
        path = "L".join(f"{svg.at(x)} {svg.at(y)}" for x, y in points)
        ground = f"M{svg.at(points[0][0])} {bottom}L{path}L{svg.at(points[-1][0])} {bottom}z"
        inner.append(Html(f'<path d="{ground}" fill="{color}" fill-opacity=".16"></path>'))
        inner.append(
            Html(f'<path d="M{path}" fill="none" stroke="{color}" stroke-width="2"></path>')
        )
        for (x, y), place in zip(points, places, strict=True):
            title = f"{_span(commits[place : place + 1])}\n{name}: {sums[place]:,}"
            inner.append(svg.rect(x - 3, y - 3, 6, 6, color, class_="mark", title=title, radius=3))
    return _chart(inner, commits, f"{name} by commit")


def histogram(names: Sequence[str], counts: Sequence[int], color: str, thing: str) -> Html:
    """Draw how many things are in each class, as horizontal bars."""
    height, most = 24, max([*counts, 1])
    room = _WIDTH - 110 - 60
    inner = list(_lying(names, counts, color, thing, height, lambda count: room * count / most))
    label = f"{thing} by {names[0]} and more"
    return svg.picture(_WIDTH, height * len(names) + 4, inner, label)


def _lying(
    names: Sequence[str],
    counts: Sequence[int],
    color: str,
    thing: str,
    height: int,
    width: Callable[[int], float],
) -> Iterator[Html]:
    for number, (name, count) in enumerate(zip(names, counts, strict=True)):
        top = number * height + 4
        long = width(count)
        title = f"{name}: {count:,} {thing}"
        yield svg.text(102, top + 13, name, anchor="end")
        yield svg.rect(110, top, max(long, 1), height - 8, color, class_="mark", title=title)
        yield svg.text(116 + long, top + 13, f"{count:,}")


def _frame(most: float, *, in_bytes: bool) -> tuple[list[Html], Callable[[float], float]]:
    steps = svg.round_sizes(most) if in_bytes else svg.round_steps(most)
    labels = [_axis_size(step) if in_bytes else svg.number_text(step) for step in steps]
    bottom = _HEIGHT - _FOOT
    frame = svg.axis(_LEFT, _WIDTH, _TOP, bottom, labels)
    return [frame], lambda value: (bottom - _TOP) * value / steps[-1]


def _axis_size(size: float) -> str:
    return "0" if size == 0 else size_text(size).replace(".0 ", " ").replace(" bytes", " B")


def _chart(inner: list[Html], commits: Sequence[Commit], label: str) -> Html:
    if commits:
        first, last = (instant_text(commits[at].instant.requested)[:16] for at in (0, -1))
        inner.append(svg.text(_LEFT, _HEIGHT - 6, first))
        if len(commits) > 1:
            inner.append(svg.text(_WIDTH, _HEIGHT - 6, last, anchor="end"))
    return svg.picture(_WIDTH, _HEIGHT, inner, label)


def _span(commits: Sequence[Commit]) -> str:
    first, last = commits[0], commits[-1]
    if first is last:
        return f"{first.operation.lower() or 'commit'} {instant_text(first.instant.requested)}"
    times = f"{instant_text(first.instant.requested)} to {instant_text(last.instant.requested)}"
    return f"{len(commits)} commits, {times}"


def _number(value: float) -> str:
    return f"{value:,.0f}"
