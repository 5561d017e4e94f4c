"""Bars and lines as SVG, for the page of the suites. Values are on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

Values = Mapping[str, Mapping[str, float]]
"""By group and series."""
_COLOURS = {
    "pyhudi cow": "#1b6ca8",
    "pyhudi mor": "#3fa7d6",
    "pyhudi writer": "#12395b",
    "deltalake": "#d1495b",
    "deltalake compacted": "#8f2d56",
    "pyiceberg": "#2a9d5c",
    "Hudi on Spark cow": "#c77d0a",
    "Hudi on Spark mor": "#edb458",
}
_LEFT, _WIDTH, _BAR, _GAP, _TOP = 170, 520, 10, 12, 40


def bars(title: str, values: Values, unit: str) -> str:
    """Horizontal bars, a group for each row of the values."""
    series = list(dict.fromkeys(name for row in values.values() for name in row))
    scale = _Scale([value for row in values.values() for value in row.values()])
    parts, top = [], _TOP + 18 * -(-len(series) // 4) + 8
    start = top
    for group, row in values.items():
        middle = top + len(row) * _BAR / 2 + 4
        parts.append(_text(_LEFT - 8, middle, group, "end"))
        for name, value in row.items():
            width = max(scale.share(value) * _WIDTH, 1)
            colour = _COLOURS.get(name, "#55606b")
            parts.append(
                f'<rect x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR - 1}" '
                f'fill="{colour}"><title>{escape(f"{name}, {group}")}: {value:.4g}</title></rect>'
            )
            parts.append(_text(_LEFT + width + 4, top + _BAR - 1, f"{value:.3g}", size=9))
            top += _BAR
        top += _GAP
    grid = [
        f'<path d="M{_LEFT + at * _WIDTH:.1f} {start - 4}V{top - _GAP + 4}" stroke="#dddddd"/>'
        + _text(_LEFT + at * _WIDTH, top + 6, label, "middle")
        for at, label in scale.ticks()
    ]
    return _svg(f"{title} ({unit})", [*grid, *parts, *_legend(series)], top + 20)


def lines(title: str, points: Mapping[str, Sequence[tuple[float, float]]], axis: str) -> str:
    """A line for each series of points."""
    height = 260
    scale = _Scale([y for series in points.values() for _, y in series])
    last = max((x for series in points.values() for x, _ in series), default=1) or 1
    top = _TOP + 18 * -(-len(points) // 4) + 8
    parts = []
    for at, label in scale.ticks():
        y = top + (1 - at) * height
        parts.append(f'<path d="M{_LEFT} {y:.1f}h{_WIDTH}" stroke="#dddddd"/>')
        parts.append(_text(_LEFT - 6, y + 4, label, "end"))
    for name, series in points.items():
        path = " ".join(
            f"{_LEFT + x / last * _WIDTH:.1f},{top + (1 - scale.share(y)) * height:.1f}"
            for x, y in series
        )
        colour = _COLOURS.get(name, "#55606b")
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    parts.append(_text(_LEFT, top + height + 18, "0", "middle"))
    parts.append(_text(_LEFT + _WIDTH, top + height + 18, f"{last:g}", "middle"))
    parts.append(_text(_LEFT + _WIDTH / 2, top + height + 18, axis, "middle"))
    return _svg(title, [*parts, *_legend(list(points))], top + height + 32)


class _Scale:
    """A logarithmic scale over whole powers of ten."""

    def __init__(self, values: Iterable[float]) -> None:
        positive = [value for value in values if value > 0] or [1.0]
        self._low = math.floor(math.log10(min(positive)))
        self._high = max(math.ceil(math.log10(max(positive)) - 1e-9), self._low + 1)

    def share(self, value: float) -> float:
        """Where a value is, from 0 to 1."""
        power = math.log10(max(value, 10.0**self._low))
        return (power - self._low) / (self._high - self._low)

    def ticks(self) -> list[tuple[float, str]]:
        """Where the powers of ten are, and their labels."""
        powers = range(self._low, self._high + 1)
        return [(self.share(10.0**power), f"{10.0**power:g}") for power in powers]


def _legend(series: Sequence[str]) -> list[str]:
    parts = []
    for at, name in enumerate(series):
        x, y = _LEFT + at % 4 * 135, _TOP + 18 * (at // 4)
        colour = _COLOURS.get(name, "#55606b")
        parts.append(f'<rect x="{x}" y="{y - 8}" width="12" height="8" fill="{colour}"/>')
        parts.append(_text(x + 16, y, name))
    return parts


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 11) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">'
        f"{escape(text)}</text>"
    )


def _svg(title: str, parts: Sequence[str], height: float) -> str:
    width = _LEFT + _WIDTH + 60
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height:.0f}" '
        f'font-family="sans-serif" fill="#222222"><rect width="100%" height="100%" fill="#ffffff"/>'
        f"{_text(16, 20, title, size=13)}{''.join(parts)}</svg>\n"
    )
