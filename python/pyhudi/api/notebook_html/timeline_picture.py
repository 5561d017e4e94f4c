"""The timeline as a picture: one lane for each type of work, instants by time or in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyhudi.api.notebook_html import svg
from pyhudi.api.notebook_html.commit_summary import clock_text, kind_of, time_of
from pyhudi.api.notebook_html.html import Html, tag
from pyhudi.api.notebook_html.style import ACTION_COLORS
from pyhudi.config.actions import RESTORE, ROLLBACK, SAVEPOINT, Instant
from pyhudi.config.formatting import count_text, duration_text, instant_text

_WIDTH, _LANE, _NAMES, _COUNTS, _TOP = 1130, 30, 108, 92, 8
_MAX_SINGLE_MARKS = 500
"""Maximum number of instants with a mark of their own."""
_MAX_PENDING_MARKS = 200
_BIN = 4
"""Width of a mark that represents several instants."""
_STEPS = (
    *(1, 10, 100, 250, 500, 1000, 2000, 5000, 15_000, 30_000, 60_000, 300_000, 900_000, 1_800_000),
    *(3_600_000, 10_800_000, 21_600_000, 43_200_000),
    *(86_400_000 * days for days in (1, 2, 7, 14, 30, 91, 182, 365, 1826, 3652, 36_525)),
)
"""Milliseconds between ticks."""


@dataclass(frozen=True)
class Mark:
    """One instant in the picture."""

    instant: Instant
    kind: str
    place: float
    """Horizontal position, from 0 at the left to 1 at the right."""
    end: float
    """Position of the completion."""
    took: int | None
    """Milliseconds until the completion, if writers record completion times."""

    @property
    def title(self) -> str:
        """Tooltip of the mark."""
        instant = self.instant
        text = f"{self.kind} {instant_text(instant.requested)}"
        if not instant.is_completed:
            return f"{text}\n{instant.state.value.lower()}, pending"
        if self.took is None:
            return f"{text}\ncompleted"
        # A savepoint has the instant of its commit.
        verb = "saved" if self.kind == SAVEPOINT else "completed"
        return f"{text}\n{verb} after {duration_text(self.took)}"


def timeline_picture(
    instants: Sequence[Instant],
    operations: Mapping[str, str],
    *,
    merge_on_read: bool,
    with_ends: bool,
    by_order: bool = False,
) -> Html:
    """Draw the timeline.

    operations: operations of completed commits by requested time, as far as they were read.
    with_ends: completion times are recorded by the writers. by_order: draw all instants at equal
    distances.
    """
    if not instants:
        return tag("p", "No instants yet.", class_="note")
    kinds = [
        kind_of(instant, operations.get(instant.requested), merge_on_read=merge_on_read)
        for instant in instants
    ]
    marks, ticks = (_in_order if by_order else _by_time)(instants, kinds, with_ends=with_ends)
    lanes = [kind for kind in ACTION_COLORS if kind in kinds]
    lanes += sorted(set(kinds) - set(lanes))
    bottom = _TOP + _LANE * len(lanes)
    draw = _singly if len(marks) <= _MAX_SINGLE_MARKS else _together
    inner = [*_ticks(ticks, bottom)]
    for number, kind in enumerate(lanes):
        middle = _TOP + _LANE * number + _LANE / 2
        here = [mark for mark in marks if mark.kind == kind]
        inner += [
            svg.line(_NAMES, middle, _WIDTH - _COUNTS, middle),
            svg.text(0, middle + 4, kind),
            svg.text(_WIDTH, middle + 4, _count_text(here), anchor="end"),
            *draw(here, middle, ACTION_COLORS.get(kind, "#888")),
        ]
    order = "one after the other" if by_order else "by time"
    label = f"{count_text(len(instants), 'instant')}, {order}"
    return svg.picture(_WIDTH, bottom + 24, inner, label)


def _count_text(marks: Sequence[Mark]) -> str:
    pending = sum(not mark.instant.is_completed for mark in marks)
    return f"{len(marks):,}" + (f" ({pending} open)" if pending else "")


_Ticks = list[tuple[float, str]]


def _by_time(
    instants: Sequence[Instant], kinds: Sequence[str], *, with_ends: bool
) -> tuple[list[Mark], _Ticks]:
    begins = [time_of(instant.requested) for instant in instants]
    took = [_took(instant) if with_ends else None for instant in instants]
    times_known = [
        begin + more
        for begin, duration in zip(begins, took, strict=True)
        if begin is not None
        for more in (0, duration or 0)
    ] or [0]
    first, last = min(times_known), max(times_known)
    duration = max(last - first, 1)

    def place(time: int | None) -> float:
        return 0.0 if time is None else (time - first) / duration

    marks = [
        Mark(
            instant,
            kind,
            place(begin),
            place(None if begin is None else begin + (0 if kind == SAVEPOINT else long or 0)),
            long,
        )
        for instant, kind, begin, long in zip(instants, kinds, begins, took, strict=True)
    ]
    step = next((step for step in _STEPS if duration / step <= 7), _STEPS[-1])
    times = range(-(-first // step) * step, last + 1, step)
    return marks, [(place(time), clock_text(time, step)) for time in times]


def _in_order(
    instants: Sequence[Instant],
    kinds: Sequence[str],
    *,
    with_ends: bool,
) -> tuple[list[Mark], _Ticks]:
    last = max(len(instants) - 1, 1)
    marks = [
        Mark(instant, kind, number / last, number / last, _took(instant) if with_ends else None)
        for number, (instant, kind) in enumerate(zip(instants, kinds, strict=True))
    ]
    ticks = range(0, len(instants), max(-(-len(instants) // 7), 1))
    days = {instant.requested[:8] for instant in instants}
    part = slice(5, 16) if len(days) > 1 else slice(11, 19)
    return marks, [(at / last, instant_text(instants[at].requested)[part]) for at in ticks]


def _took(instant: Instant) -> int | None:
    begin, end = time_of(instant.requested), time_of(instant.completed)
    return None if begin is None or end is None or end < begin else end - begin


def _ticks(ticks: _Ticks, bottom: float) -> Iterator[Html]:
    for place, label in ticks:
        left = _across(place)
        yield svg.line(left, _TOP, left, bottom + 4)
        yield svg.text(left, bottom + 18, label, anchor="middle")


def _across(place: float) -> float:
    return _NAMES + 12 + place * (_WIDTH - _COUNTS - _NAMES - 24)


def _singly(marks: Sequence[Mark], middle: float, color: str) -> Iterator[Html]:
    for mark in marks:
        left, right = _across(mark.place), _across(mark.end)
        if right - left > 3:
            yield svg.rect(left, middle - 2, right - left, 4, color, class_="cell", radius=2)
        yield _mark(mark, left, middle, color)


def _together(marks: Sequence[Mark], middle: float, color: str) -> Iterator[Html]:
    bins: dict[int, list[Mark]] = {}
    for mark in marks:
        bins.setdefault(int(_across(mark.place) // _BIN), []).append(mark)
    most = max(map(len, bins.values()), default=1)
    for number, group in sorted(bins.items()):
        height = 6 + 18 * len(group) / most
        times = sorted({instant_text(group[at].instant.requested) for at in (0, -1)})
        title = f"{len(group):,} {group[0].kind}\n{' to '.join(times)}"
        left = number * _BIN
        yield svg.rect(
            left, middle - height / 2, _BIN - 1, height, color, class_="mark", title=title
        )
    for mark in [mark for mark in marks if not mark.instant.is_completed][-_MAX_PENDING_MARKS:]:
        yield _mark(mark, _across(mark.place), middle, color)


def _mark(mark: Mark, left: float, middle: float, color: str) -> Html:
    shape: Callable[[float, float], str] = {
        ROLLBACK: _cross,
        RESTORE: _cross,
        SAVEPOINT: _diamond,
    }.get(mark.kind, _circle)
    open_ = not mark.instant.is_completed
    style = f"fill:{color};stroke:{color};stroke-width:2"
    if open_:
        style = f"fill:none;stroke:{color};stroke-width:2;stroke-dasharray:2.5 1.8"
    return tag(
        "path",
        tag("title", mark.title),
        d=shape(left, middle),
        style=style,
        class_="mark open" if open_ else "mark",
        pointer_events="all",
    )


def _circle(x: float, y: float) -> str:
    return f"M{svg.at(x - 5)} {svg.at(y)}a5 5 0 1 0 10 0a5 5 0 1 0 -10 0"


def _cross(x: float, y: float) -> str:
    corner, back = f"M{svg.at(x - 4)} {svg.at(y - 4)}", f"M{svg.at(x + 4)} {svg.at(y - 4)}"
    return f"{corner}l8 8{back}l-8 8"


def _diamond(x: float, y: float) -> str:
    return f"M{svg.at(x)} {svg.at(y - 6)}l6 6l-6 6l-6 -6z"
