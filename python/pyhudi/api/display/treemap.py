"""Boxes in a box, with areas by weight and nearly square (Bruls, Huizing, van Wijk 2000)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle."""

    left: float
    top: float
    width: float
    height: float

    def inside(self, gap: float, head: float = 0) -> Box:
        """Return the rectangle inside a margin, below a header."""
        width = max(self.width - 2 * gap, 0)
        return Box(
            self.left + gap, self.top + gap + head, width, max(self.height - 2 * gap - head, 0)
        )


def tile(weights: Sequence[float], box: Box) -> list[Box]:
    """Return a box for each weight. The weights are positive and falling."""
    total = sum(weights)
    if not weights or total <= 0 or box.width <= 0 or box.height <= 0:
        return [Box(box.left, box.top, 0, 0) for _ in weights]
    areas = [weight * box.width * box.height / total for weight in weights]
    boxes: list[Box] = []
    begin = 0
    while begin < len(areas):
        side = min(box.width, box.height)
        end = _row_end(areas, begin, side)
        row, box = _place_row(areas[begin:end], box)
        boxes += row
        begin = end
    return boxes


def _row_end(areas: Sequence[float], begin: int, side: float) -> int:
    """Return the end of a row: one more box would make the row's boxes less square."""
    end, total = begin + 1, areas[begin]
    worst = _longest(areas[begin], areas[begin], total, side)
    while end < len(areas):
        grown = total + areas[end]
        next_worst = _longest(areas[begin], areas[end], grown, side)
        if next_worst > worst:
            break
        end, total, worst = end + 1, grown, next_worst
    return end


def _longest(most: float, least: float, total: float, side: float) -> float:
    """Return the aspect ratio of the least square box of a row."""
    if total <= 0 or least <= 0 or side <= 0:
        return float("inf")
    return max(side**2 * most / total**2, total**2 / (side**2 * least))


def _place_row(areas: Sequence[float], box: Box) -> tuple[list[Box], Box]:
    """Return a row of boxes along the shorter side, and the remaining rectangle."""
    total = sum(areas)
    lying = box.width < box.height
    side = box.width if lying else box.height
    depth = total / side if side > 0 else 0
    offset = 0.0
    row = []
    for area in areas:
        length = area / depth if depth > 0 else 0
        if lying:
            row.append(Box(box.left + offset, box.top, length, depth))
        else:
            row.append(Box(box.left, box.top + offset, depth, length))
        offset += length
    if lying:
        return row, Box(box.left, box.top + depth, box.width, max(box.height - depth, 0))
    return row, Box(box.left + depth, box.top, max(box.width - depth, 0), box.height)
