"""Parts of SVG pictures: scales, ticks, shapes with a tooltip."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pyhudi.api.display.html import Html, join, tag


def picture(width: float, height: float, inner: Iterable[object], label: str) -> Html:
    """Return a picture that fills the available width. label: a description for screen readers."""
    box = f"0 0 {at(width)} {at(height)}"
    return tag("svg", *inner, viewBox=box, width=at(width), role="img", aria_label=label)


def at(value: float) -> str:
    """Return the shortest text of a coordinate."""
    return f"{value:.1f}".removesuffix(".0")


def rect(
    left: float,
    top: float,
    width: float,
    height: float,
    color: str,
    *,
    class_: str | None = None,
    title: str | None = None,
    radius: float | None = None,
    dash: bool = False,
) -> Html:
    """Return a box. dash: draw a dashed edge, which marks planned work."""
    return tag(
        "rect",
        *([] if title is None else [tag("title", title)]),
        x=at(left),
        y=at(top),
        width=at(max(width, 0)),
        height=at(max(height, 0)),
        fill=color,
        class_=class_,
        rx=None if radius is None else at(radius),
        style="stroke:currentColor;stroke-width:1.5;stroke-dasharray:3 2" if dash else None,
    )


def text(left: float, top: float, shown: object, *, anchor: str | None = None) -> Html:
    """Return a dimmed label. anchor: `end` or `middle`; the start by default."""
    return tag("text", shown, x=at(left), y=at(top), text_anchor=anchor, class_="dim")


def line(x1: float, y1: float, x2: float, y2: float) -> Html:
    """Return a thin line."""
    return tag("path", d=f"M{at(x1)} {at(y1)}L{at(x2)} {at(y2)}", class_="rule")


def round_steps(most: float, steps: int = 3) -> list[float]:
    """Return a few round values from 0 up to at least `most`."""
    if most <= 0:
        return [0, 1]
    rough = most / steps
    scale = 10 ** math.floor(math.log10(rough))
    step = next(scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= rough * 0.999)
    return [step * number for number in range(math.ceil(most / step - 1e-9) + 1)]


def round_sizes(most: float, steps: int = 3) -> list[float]:
    """Return a few round values for bytes, in powers of 1024."""
    if most < 1024:
        return round_steps(most, steps)
    unit = 1024 ** int(math.log(most, 1024))
    return [value * unit for value in round_steps(most / unit, steps)]


def number_text(value: float) -> str:
    """Return a short text of a number, such as 950, 12k or 3.4M."""
    for bound, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= bound:
            return f"{value / bound:.1f}".removesuffix(".0") + letter
    return f"{value:.1f}".removesuffix(".0")


def axis(left: float, right: float, top: float, bottom: float, labels: list[str]) -> Html:
    """Return horizontal rules, from the lowest to the highest, each with its label."""
    gap = (bottom - top) / max(len(labels) - 1, 1)
    heights = [bottom - gap * number for number in range(len(labels))]
    rules = [line(left, height, right, height) for height in heights]
    named = [
        text(left - 6, height + 4, label, anchor="end")
        for height, label in zip(heights, labels, strict=True)
    ]
    return join([*rules, *named])
