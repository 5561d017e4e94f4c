"""Parts of SVG pictures: shapes with a tooltip, labels, lines."""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.api.notebook_html.html import Html, tag


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
) -> Html:
    """Return a box."""
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
    )


def text(left: float, top: float, shown: object, *, anchor: str | None = None) -> Html:
    """Return a dimmed label. anchor: `end` or `middle`; the start by default."""
    return tag("text", shown, x=at(left), y=at(top), text_anchor=anchor, class_="dim")


def line(x1: float, y1: float, x2: float, y2: float) -> Html:
    """Return a thin line."""
    return tag("path", d=f"M{at(x1)} {at(y1)}L{at(x2)} {at(y2)}", class_="rule")
