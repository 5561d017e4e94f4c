"""Times that name an instant by its requested or by its completion time.

A range orders instants by one of the two times. If a caller passes exactly the other time of an
instant, it means that instant. Any other time is a point in time.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.clock import Moment, Zone, instant_of
from pyhudi.config.actions import COMMIT_ACTIONS, SAVEPOINT, Instant
from pyhudi.errors import ConfigError, HistoryUnavailable
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.timeline.time_travel import incomplete_writes, timeline_as_of


class PlainTime(str):
    """A time that is a point in time, even if an instant has the same time.

    Hudi interprets times in its options this way, and offsets of streams are exact.
    """

    __slots__ = ()


def order_time(timeline: Timeline, time: str, *, by_completion: bool) -> str:
    """Return the time by which a range orders the instant that `time` names, else `time` itself.

    A time can be the completion time of one instant and the requested time of another. Then the
    range's own order decides, as the docs of the bounds say.

    Args:
        timeline: active and archived instants are looked up.
        time: a requested time, a completion time, or any point in time.
        by_completion: the range is ordered by completion times (else: by requested times).

    Raises:
        HistoryUnavailable: it is the requested time of an archived instant whose completion time
            was not stored.
        ConfigError: several commits have that completion time, and different requested times.
    """
    order, other = (
        InstantRange(by_completion=by_completion),
        InstantRange(by_completion=not by_completion),
    )
    completed = timeline.filter_completed()
    if any(order.time_of(instant) == time for instant in completed):
        return time
    past = _find_archived(timeline, time, by_completion=by_completion)
    if any(order.time_of(instant) == time for instant in past):
        return time
    named = _instants_with_time((*past, *completed), other, time)
    if not named:
        return time
    times = {order.time_of(instant) for instant in named}
    if len(times) > 1:
        raise ConfigError(
            f"{time} is the completion time of several commits: "
            f"{', '.join(sorted({instant.requested for instant in named}))}",
            hint="Pass the requested time of the commit that you mean.",
        )
    (named_time,) = times
    if named_time is None:
        raise HistoryUnavailable(
            f"the archive did not store when the instant {time} was completed",
            hint="Pass its completion time, or no bound.",
        )
    return named_time


def resolve_requested_time(timeline: Timeline, timestamp: Moment, zone: Zone) -> str:
    """Return the requested time of the instant that `timestamp` names, else its own time.

    Raises as `order_time`, and `ConfigError` for an invalid time.
    """
    time = instant_of(timestamp, zone)
    if isinstance(timestamp, PlainTime):
        return time
    return order_time(timeline, time, by_completion=False)


def timeline_at(timeline: Timeline, timestamp: Moment, zone: Zone) -> Timeline:
    """Return the timeline as it was at an instant that `timestamp` names, else at its time.

    Raises as `timeline_as_of` and `resolve_requested_time`.
    """
    return timeline_as_of(timeline, resolve_requested_time(timeline, timestamp, zone))


def check_complete(timeline: Timeline, time: str, *, by_completion: bool) -> None:
    """Raise `HistoryUnavailable` for the requested time of an instant that is not complete.

    A pending instant has no completion time yet, and a range by requested times that begins with it
    would skip its rows.
    """
    pending = timeline.pending() if by_completion else incomplete_writes(timeline)
    for instant in pending:
        if instant.requested == time:
            role = "write" if instant.action in COMMIT_ACTIONS else "service"
            raise HistoryUnavailable(
                f"the {role} {instant} is incomplete, so no range can begin or end with it",
                hint="Wait until it is done or rolled back, or pass another time.",
            )


def _find_archived(timeline: Timeline, time: str, *, by_completion: bool) -> tuple[Instant, ...]:
    """Return the archived instants that were requested or completed at a time.

    A range by completion times reads the archive anyway. Otherwise it is read for times before the
    active timeline alone: up to table version 6 it can only be read as a whole.
    """
    is_before = timeline.is_before_start(time)
    if not (is_before or (by_completion and timeline.completes_in_names)):
        return ()
    archive = timeline.archive
    requested = archive.instants(InstantRange.between(time, time)) if is_before else ()
    return (*requested, *archive.instants(InstantRange.between(time, time, by_completion=True)))


def _instants_with_time(
    instants: Iterable[Instant], order: InstantRange, time: str
) -> list[Instant]:
    """Return the instants of a time, commits first; a savepoint has its commit's time."""
    matches = [i for i in instants if order.time_of(i) == time and i.action != SAVEPOINT]
    return [i for i in matches if i.action in COMMIT_ACTIONS] or matches
