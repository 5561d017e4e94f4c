"""Draws the figures of the scale benchmark: a row for each axis, seconds on the left, memory right.

Both scales are logarithmic, so that what grows in proportion is a line of one slope.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _TOP = 330, 210, 62, 34
_COLOURS = (
    "#1b6ca8", "#d1495b", "#2a9d5c", "#8c5e9e", "#c77d0a",
    "#3d8f9c", "#7a6a53", "#b0428f", "#55606b", "#000000",
)  # fmt: skip
TITLES = {
    "groups": "file groups",
    "keys": "keys in a file group of the record index",
    "active": "commits on the timeline",
    "archived": "commits in the history",
}
_FIGURES = (("cpu", "processor seconds"), ("peak_mib", "peak MiB"))
_LEAST = {"cpu": 0.001, "peak_mib": 1.0}


def drawn(found: Sequence[dict[str, Any]]) -> str:
    """The SVG of all figures."""
    lines = [one for one in found if not one["verb"].startswith("(")]
    axes = [axis for axis in TITLES if any(one["axis"] == axis for one in lines)]
    verbs = list(dict.fromkeys(one["verb"] for one in lines))
    colours = dict(zip(verbs, _COLOURS, strict=False))
    parts = [
        _panel(
            [one for one in lines if one["axis"] == axis and name in one],
            (name, title),
            (_LEFT + column * (_WIDTH + _LEFT), _TOP + row * (_HEIGHT + 64), TITLES[axis]),
            colours,
        )
        for row, axis in enumerate(axes)
        for column, (name, title) in enumerate(_FIGURES)
    ]
    right = 2 * (_WIDTH + _LEFT) + 8
    parts += [
        f'<rect x="{right}" y="{_TOP + 18 * at}" width="14" height="3" fill="{colour}"/>'
        f'<text x="{right + 20}" y="{_TOP + 18 * at + 5}">{escape(verb)}</text>'
        for at, (verb, colour) in enumerate(colours.items())
    ]
    size = right + 130, _TOP + len(axes) * (_HEIGHT + 64)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" '
        'font-family="sans-serif" font-size="11">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _panel(
    lines: Sequence[dict[str, Any]],
    figure: tuple[str, str],
    place: tuple[int, int, str],
    colours: dict[str, str],
) -> str:
    name, title = figure
    left, top, axis = place
    sizes = sorted({one["size"] for one in lines}) or [1, 10]
    values = [max(one[name], _LEAST[name]) for one in lines] or [1]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    first, last = math.log10(sizes[0]), math.log10(sizes[-1])

    def x(size: float) -> float:
        return left + _WIDTH * (math.log10(size) - first) / max(last - first, 1e-9)

    def y(value: float) -> float:
        return top + _HEIGHT * (high - math.log10(max(value, _LEAST[name]))) / max(high - low, 1)

    out = [f'<text x="{left}" y="{top - 10}">{title} by {axis}</text>']
    for power in range(low, high + 1):
        at = y(10.0**power)
        out.append(f'<path d="M{left} {at:.1f}h{_WIDTH}" stroke="#dddddd"/>')
        label = f"{10.0**power:g}"
        out.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{label}</text>')
    for size in sizes:
        text = f'<text x="{x(size):.1f}" y="{top + _HEIGHT + 16}" text-anchor="middle">'
        out.append(f"{text}{size:,}</text>")
    for verb, colour in colours.items():
        points = sorted((one["size"], one[name]) for one in lines if one["verb"] == verb)
        path = " ".join(f"{x(size):.1f},{y(value):.1f}" for size, value in points)
        line = f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        out.append(line)
    return "".join(out)
