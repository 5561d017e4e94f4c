"""Table services that have a plan: planned in one section, carried out beside writers, by anybody.

A plan stays on the timeline until somebody has carried it out. Who does so takes it over in a
section: nobody else may be at it, what one who died has begun of it is removed. Then it goes as any
write does (`transaction.py`); what fails leaves the plan, for whoever comes next. Sources:
`BaseHoodieTableServiceClient` and its executors (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyhudi.config.actions import State
from pyhudi.errors import CommitConflict, overtaken
from pyhudi.slices.table import Table
from pyhudi.timeline import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata
from pyhudi.txn import conflicts, heartbeat
from pyhudi.txn.conflicts import Since
from pyhudi.txn.open_instant import OpenInstant
from pyhudi.txn.transaction import Transaction

Check = Callable[[Since, CommitMetadata], None]
"""Raises `CommitConflict` where what was completed since rules out what a service did."""


def schedule(table: Table, action: str, plan: Callable[[Table, str], bytes | None]) -> str | None:
    """Plans a service within a section and requests it; its instant, None where nothing is due.

    plan: gives the requested file's content from the table as it is then and the instant. Raises
    what it raises, with nothing left.
    """
    with table.guard.section():
        timeline = Timeline.load(table.storage, table.config)
        conflicts.check_may_begin(timeline)
        table.generator.observe(timeline)
        began_ms = table.clock.now_ms()
        instant = table.generator.next()
        content = plan(table.at(timeline), instant)
        if content is None:
            return None
        table.guard.check()
        OpenInstant(table, instant, action).request(content)
        table.guard.settle(began_ms)
    return instant


class PlannedTransaction(Transaction):
    """One service by its plan. Leaving the block without `commit` leaves it as it was planned."""

    def __init__(
        self, table: Table, operation: str, instant: str, action: str, check: Check | None = None
    ) -> None:
        """Nothing is taken over yet.

        table: as it is read to carry the plan out. operation: Hudi's name, such as COMPACT. action:
        of the pending files. check: looks at what others completed since the table was loaded; None
        where that does not matter.
        """
        super().__init__(table, operation)
        self._open = replace(self._open, time=instant, action=action)
        self._check = check

    def _begin(self) -> None:
        table, instant = self._table, self.instant
        timeline = Timeline.load(table.storage, table.config)
        conflicts.check_may_begin(timeline)
        table.generator.observe(timeline)
        pending = timeline.find(instant, self._open.action)
        if pending is None or pending.is_completed:
            msg = f"the {self._open.action} {instant} is not pending any more"
            raise overtaken(msg)
        if heartbeat.live_instants(table.storage, {instant}, table.clock):
            msg = f"another writer is carrying out the {self._open.action} {instant}"
            raise CommitConflict(msg, hint="Wait until it is done, or two minutes if it has died.")
        self._heartbeat = self._new_heartbeat()
        self._heartbeat.start()
        table.guard.check()
        if pending.state is State.INFLIGHT:
            self._back_to_plan()
        self._open.begin()
        self._state = State.INFLIGHT

    def _check_others(self, since: Since, metadata: CommitMetadata) -> None:
        if self._check is not None:
            self._check(since, metadata)

    def _settled_alone(self) -> tuple[bool, bool]:
        table = self._table
        timeline = Timeline.load(table.storage, table.config)
        table.generator.observe(timeline)
        pending = timeline.find(self.instant, self._open.action)
        if pending is None:
            self._remove_what_came_late(timeline)
            return False, True
        if pending.is_completed:
            return True, False
        if self._is_surely_alone():
            self._back_to_plan()
            table.storage.delete(heartbeat.path_of(self.instant))
        return False, False

    def _back_to_plan(self) -> None:
        """Removes what was written, also by companions, and leaves the instant requested."""
        for companion in self._table.companions:
            companion.on_removal(self._table, self.instant)
        self._open.back_to_plan()
