"""What tasks did, what the table was meanwhile, and what readers may have seen of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pyhudi.config.actions import COMMIT_ACTIONS, RESTORE, ROLLBACK, Instant, State
from pyhudi.config.file_names import parse_log_name
from pyhudi.config.table_config import TableConfig
from pyhudi.slices.write_tokens import may_be_token_of
from pyhudi.timeline.archive import Archive
from tests.sim.followers import Deliveries
from tests.sim.table_kinds import FIRST_ROWS, Rows
from tests.sim.world import Task, World

Seen = tuple[str, tuple[str, int]]
Effect = Callable[[Rows], Rows]


@dataclass
class Attempt:
    """One verb of one task, and what came of it."""

    effect: Effect
    published: int = 0
    had: int = 0
    """What it had published when it said that it was done."""
    restored: int = 0
    """How many of its commits a restore has removed."""
    most: int = 1
    """What it may publish: a compaction carries out what others have planned, too."""
    said: str = ""
    """"done", "failed", or "" for who never said anything."""
    by: Task | None = None

    @property
    def may_not_count(self) -> bool:
        """Published by one that stood still just then, and was killed before it looked again.

        Nobody heard of it; where others wrote the same files meanwhile, theirs count.
        """
        killed = self.by is not None and self.by.has_crashed and self.by.has_stalled
        return killed and not self.said


@dataclass
class History:
    """What tasks did, and what the table was meanwhile."""

    config: TableConfig
    non_blocking: bool = False
    doing: dict[str, Attempt] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    completed: dict[str, Attempt] = field(default_factory=dict)
    """By the path of the completed file, in the order of completion."""
    moments: list[dict[str, Attempt]] = field(default_factory=lambda: [{}])
    """What was complete, at first and after each change."""
    undone: list[tuple[str, Attempt]] = field(default_factory=list)
    """What was complete, and was taken back."""
    sights: list[tuple[list[Seen], int, int]] = field(default_factory=list)
    """What readers saw, with the first and the last moment that it may be of."""
    begun: dict[tuple[str, str], Task] = field(default_factory=dict)
    """Who requested each write, by instant and action: a service may get the time of one that was
    withdrawn, where clocks differ."""
    archive: Callable[[], Archive] | None = None
    """Gives that of the table, where there may be one."""
    took_back: set[str] = field(default_factory=set)
    """Who has begun to take a write back."""
    not_taken: set[str] = field(default_factory=set)
    """Writes that their writers could not take back."""
    deliveries: Deliveries | None = None
    """What the streams of the table returned, where it has some."""
    first_rows: Rows = field(default_factory=lambda: FIRST_ROWS)
    has_restore: bool = False
    """Whether a task has requested a restore."""
    restored_instants: set[str] = field(default_factory=set)
    """The commits that a restore has removed, by requested time."""
    planned: set[str] = field(default_factory=set)
    """Files that stayed as a service was planned with them."""

    def is_as_said(self, attempt: Attempt) -> bool:
        """Whether there still is what it had published when it said that it was done.

        Up to table version 6 a plan is completed under one name each time. Who stands still as it
        removes what came late removes what others have published since: the plan is pending again.
        """
        if attempt.said != "done" or attempt.published + attempt.restored in (
            attempt.had,
            attempt.had + attempt.restored,
        ):
            return True
        may_go = attempt.most > 1 and not self.config.layout.completion_in_name
        return may_go and any(task.has_stalled for task in self.begun.values())

    def _instant(self, path: str) -> Instant | None:
        layout = self.config.layout
        folder, _, name = path.rpartition("/")
        return layout.parse(name) if folder == layout.folder else None

    def on_file(self, task: Task, path: str) -> None:
        """A file of the table that some task has made."""
        found = self._instant(path)
        if found is not None and found.action == ROLLBACK:
            self.took_back.add(task.name)
        self.has_restore |= found is not None and found.action == RESTORE
        if found is None or found.action not in COMMIT_ACTIONS:
            return
        if found.state is State.REQUESTED:
            self.begun[found.requested, found.action] = task
        if found.state is State.COMPLETED:
            attempt = self.completed[path] = self.doing[task.name]
            attempt.published += 1
            self.moments.append(dict(self.completed))

    def on_removal(self, task: Task, path: str) -> None:
        """A file is gone. Nobody takes back what a living writer has begun.

        Only what nobody may ever have gone by is taken back once complete.

        That is a write whose writer stood still between its last look and its last file.
        """
        self.on_missing(task, path)
        found = self._instant(path)
        writer = self.begun.get((found.requested, found.action)) if found else None
        if found and (
            found.requested in self.restored_instants or self._was_archived(found.requested)
        ):
            return
        if found and found.state is State.INFLIGHT and writer not in (task, None):
            # Another one ends what a writer began to take back itself.
            still_at_it = not (writer.has_crashed or writer.has_ended or writer.has_stalled)
            gave_up = not still_at_it or writer.name in self.took_back
            assert gave_up, f"{task.name} takes back {path}"
        attempt = self.completed.pop(path, None)
        if attempt is not None:
            attempt.published -= 1
            if self.has_restore and found is not None:
                attempt.restored += 1
                self.restored_instants.add(found.requested)
            self.undone.append((path, attempt))
            self.moments.append(dict(self.completed))

    def on_missing(self, task: Task, path: str) -> None:
        """A file is to be gone: one of its own tells that a writer takes its write back."""
        own = [time for (time, _), writer in self.begun.items() if writer is task]
        if not path.startswith(".hoodie/") and own and own[-1] in path:
            self.took_back.add(task.name)

    def _was_archived(self, requested: str) -> bool:
        if self.archive is None:
            return False
        return any(one.requested == requested for one in self.archive().instants())

    def may_be_left(self, path: str) -> bool:
        """A data file of a writer that stood still between its marker and the file.

        Its write was rolled back meanwhile, and it was killed before it could look, or could not
        have the lock to take it back. Up to table version 6 one that a service was planned with
        stays.
        """
        if path in self.planned:
            return True
        log = parse_log_name(path.rsplit("/", 1)[-1])
        writers = {
            time: writer
            for (time, _), writer in self.begun.items()
            if f"_{time}." in path or (log and may_be_token_of(log.write_token, time))
        }
        return any(
            (writer.has_crashed and writer.has_stalled) or time in self.not_taken
            for time, writer in writers.items()
        )

    @property
    def is_open(self) -> bool:
        """Whether some writes may count or not."""
        return any(attempt.may_not_count for attempt in self.completed.values())

    def ends(self) -> list[Rows]:
        """What the table may be in the end."""
        counts = {path: one for path, one in self.completed.items() if not one.may_not_count}
        return [self._rows(self.completed), self._rows(counts)]

    def unexplained(self) -> list[str]:
        """What readers saw that was no state of the table."""
        if self.is_open:
            return []
        found = []
        for seen, first, last in self.sights:
            known = [self._may_be(moment) for moment in self.moments[first:last]]
            if not any(is_of(seen, states) for states in known):
                found.append(f"{seen} is none of {known}")
        return found

    def _may_be(self, moment: dict[str, Attempt]) -> list[Rows]:
        """What each row may be of.

        Readers may see a write that is taken back later. It does not know what was complete since
        it was planned, whenever that was, and nobody has gone by it.
        """
        undone = [one for path, one in moment.items() if (path, one) in self.undone]
        lasting = {path: one for path, one in moment.items() if (path, one) not in self.undone}
        paths = sorted(lasting) if self.non_blocking else list(lasting)
        parts = [self._rows({path: lasting[path] for path in paths[:n]}) for n in range(len(paths))]
        now = self._rows(lasting)
        return [now, *(one.effect(state) for one in undone for state in (*parts, now))]

    def _rows(self, completed: dict[str, Attempt]) -> Rows:
        """After these writes, by completion or, where none gives way, request."""
        rows = dict(self.first_rows)
        for path in sorted(completed) if self.non_blocking else completed:
            rows = completed[path].effect(rows)
        return rows


class HistoryWorld(World):
    """A world that tells a history of the files that are made."""

    history: History

    def on_create(self, path: str) -> None:
        assert self.running is not None
        self.history.on_file(self.running, path)

    def on_delete(self, path: str) -> None:
        assert self.running is not None
        self.history.on_removal(self.running, path)

    def on_missing_delete(self, path: str) -> None:
        assert self.running is not None
        self.history.on_missing(self.running, path)


def seen_in(table: pa.Table) -> list[Seen]:
    return [(row["id"], (row["city"], row["v"])) for row in table.to_pylist()]


def is_of(seen: list[Seen], states: list[Rows]) -> bool:
    """Whether each row, or that it is missing, is of one of some states."""
    may_be: dict[str, list[Any]] = {
        key: [state.get(key) for state in states] for key in {k for state in states for k in state}
    }
    for key, row in seen:
        if row not in may_be.get(key, ()):
            return False
        may_be[key].remove(row)
    return all(None in left or len(left) < len(states) for left in may_be.values())


def rows_in(table: pa.Table) -> Rows:
    seen = seen_in(table)
    assert len(dict(seen)) == len(seen), f"keys twice: {seen}"
    return dict(seen)
