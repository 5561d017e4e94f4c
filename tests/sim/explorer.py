"""Explores the schedules of a small world up to a bound, and shrinks those that fail.

Two schedules that differ only in the order of independent calls have the same result, so one of
them runs. Calls are independent if they concern different paths or only read. A task that a
deviation stops may therefore be stopped later with the same result, until its next call depends on
what happened in between: the calls before that need no schedules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeAlias

from tests.sim.small_runs import Outcome
from tests.sim.small_world import Action, Call, Deviation, HistoryDoesNotApply, Schedule

Play: TypeAlias = Callable[[Schedule], Outcome]

STALLS = (70, 400)
"""Seconds: longer than the lease of a lock (60), and longer than a heartbeat (120)."""
FAULTS: tuple[tuple[Action, int], ...] = (
    ("crash", 0),
    ("stall", 20),
    *(("stall", seconds) for seconds in STALLS),
    *(("outlast", seconds) for seconds in STALLS),
    ("lose", 0),
)


@dataclass(frozen=True)
class Bound:
    """Which schedules are explored: each has so many deviations at most."""

    deviations: int = 2
    faults: int = 1
    """Crashes, stalls and lost responses among the deviations."""


def explore(
    play: Play, bound: Bound, *, is_symmetric: bool, first: Schedule = ()
) -> Iterator[Outcome]:
    """Run all schedules within the bound that begin with the first one, and return their outcomes.

    is_symmetric: the tasks can be exchanged, so the first task always begins.
    """
    outcome = play(first)
    yield outcome
    yield from _explore_below(outcome, play, bound, is_symmetric=is_symmetric)


def _explore_below(
    parent: Outcome, play: Play, bound: Bound, *, is_symmetric: bool
) -> Iterator[Outcome]:
    if len(parent.schedule) >= bound.deviations or parent.error:
        return
    has_fault = sum(one.action != "switch" for one in parent.schedule) >= bound.faults
    # A switch is a stall for less than the lease, so only one deviation of that length is tried.
    faults = [one for one in FAULTS if not parent.schedule or one[1] not in range(1, STALLS[0])]
    for action, seconds in (("switch", 0), *(() if has_fault else faults)):
        for segment in _segments(parent):
            number = 0
            while number < len(segment):
                call = segment[number]
                number += 1
                is_mirrored = is_symmetric and action == "switch" and _is_start(parent, call)
                if is_mirrored or not _can_happen(action, call):
                    continue
                deviation = Deviation(call.task, call.name, call.number, action, seconds)
                child = play((*parent.schedule, deviation))
                yield child
                if not 0 < seconds < STALLS[0]:
                    yield from _explore_below(child, play, bound, is_symmetric=is_symmetric)
                if action in ("switch", "stall", "outlast"):
                    number += count_redundant_calls(child, call.task) - 1


def _segments(outcome: Outcome) -> list[list[Call]]:
    """The calls after the last deviation, in runs of one task."""
    begin = outcome.starts[-1] if outcome.starts else 0
    calls = [call for call in outcome.calls[begin:] if not call.in_timer]
    # The call before which the deviation happened may come later; it has had its deviation.
    taken = {(one.task, one.call, one.number) for one in outcome.schedule}
    calls = [call for call in calls if (call.task, call.name, call.number) not in taken]
    return [[*run] for _, run in groupby(calls, key=lambda call: call.task)]


def _is_start(outcome: Outcome, call: Call) -> bool:
    """Whether no task has made a call yet."""
    return not outcome.schedule and call is outcome.calls[0]


def _can_happen(action: Action, call: Call) -> bool:
    if action == "switch":
        return call.can_switch
    if action == "outlast":
        return call.other_waits
    if action == "lose":
        return call.changes and not call.name.startswith(("delete_dir", "set_modified"))
    return call.changes if action == "crash" else True


def count_redundant_calls(child: Outcome, task: str) -> int:
    """Return how many calls of a stopped task, at least 1, need no schedule of their own.

    To stop the task before a later call has the same result as long as the calls before that one
    are independent of all that happened while the task was stopped.
    """
    calls = iter(child.calls[child.starts[-1] :])
    between: list[Call] = []
    passed = 0
    is_stopped = True
    for call in calls:
        is_own = (
            call.task == task and (not call.in_timer or call.is_clock) and not call.changes_time
        )
        if is_stopped and not is_own:
            between.append(call)
            continue
        is_stopped = False
        if not is_own:
            if call.in_timer:
                continue
            break
        passed += not call.is_clock
        if any(call.conflicts_with(other) for other in between):
            return max(passed, 1)
    return len(child.calls)


def shrink(play: Play, failing: Schedule) -> Schedule:
    """Return a schedule that fails, too, with fewest deviations, shorter stalls and earlier calls.

    Each deviation is left out, is replaced by a simpler one, or happens before an earlier call of
    the same task, as long as the run still fails.
    """
    best = failing
    while True:
        simpler = next((one for one in _simpler(play, best) if _fails(play, one)), None)
        if simpler is None:
            return best
        best = simpler


def _fails(play: Play, schedule: Schedule) -> bool:
    try:
        return bool(play(schedule).error)
    except HistoryDoesNotApply:
        return False


def _simpler(play: Play, schedule: Schedule) -> Iterator[Schedule]:
    for number in range(len(schedule)):
        yield (*schedule[:number], *schedule[number + 1 :])
    for number, deviation in enumerate(schedule):
        others = [replace(deviation, seconds=s) for s in STALLS if 0 < s < deviation.seconds]
        if deviation.action in ("stall", "crash"):
            others.insert(0, replace(deviation, action="switch", seconds=0))
        for other in others:
            yield (*schedule[:number], other, *schedule[number + 1 :])
    calls = [call for call in play(schedule).calls if not call.in_timer]
    for number, deviation in enumerate(schedule):
        own = [call for call in calls if call.task == deviation.task]
        names = [(call.name, call.number) for call in own]
        if (deviation.call, deviation.number) not in names:
            continue
        at = names.index((deviation.call, deviation.number))
        for name, count in names[max(at - 1, 0) : at]:
            earlier = replace(deviation, call=name, number=count)
            yield (*schedule[:number], earlier, *schedule[number + 1 :])
