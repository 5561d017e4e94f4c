"""The two timeline layouts: directory, file names, and how a state is reached.

Layout 1 (table versions up to 6) stores instants in `.hoodie/`, layout 2 (8 and later) in
`.hoodie/timeline/` with the completion time in completed names::

    layout 1   <t>.commit.requested   <t>.inflight   <t>.commit
    layout 2   <t>.commit.requested   <t>.inflight   <t>_<c>.commit

`<t>.inflight` alone belongs to a commit; every other action has `<t>.<action>.inflight`. A layout-2
name without `<c>` is a completed instant of an interrupted upgrade. Sources: Hudi 1.2.0
`InstantFileNameGeneratorV1/V2`, `InstantFileNameParserV1/V2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from pyhudi.config.actions import ACTIONS, CLUSTERING, COMMIT, COMPLETED_ACTION, Instant, State
from pyhudi.config.file_names import PARSED
from pyhudi.errors import CommitConflict, retryable_conflict
from pyhudi.storage.storage import Storage

KEEPER = ".keep"
"""A file that keeps a directory alive; Hudi and pyhudi ignore such names."""
META_FOLDER = ".hoodie"
"""Directory of everything that is not data, relative to the table."""

_NAME = re.compile(r"(\d+)(?:_(\d+))?\.([a-z]+)(?:\.(requested|inflight))?", re.ASCII)
_PENDING_STATES = {"requested": State.REQUESTED, "inflight": State.INFLIGHT}


@lru_cache(PARSED)
def _parse_file_name(name: str) -> Instant | None:
    """Parse the name of an instant's file of either layout."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    requested, completed, word, suffix = match.groups()
    if word == "inflight" and suffix is None:
        action, state = COMMIT, State.INFLIGHT
    else:
        action, state = word, _PENDING_STATES.get(suffix or "", State.COMPLETED)
    if state is State.COMPLETED and action in COMPLETED_ACTION:
        return None
    if action not in ACTIONS or (completed is not None and state is not State.COMPLETED):
        return None
    return Instant(requested, action, state, completed, name)


@dataclass(frozen=True)
class TimelineLayout:
    """Directory and file names of an active timeline, and the only way to create such files."""

    version: int
    """`hoodie.timeline.layout.version`."""
    folder: str
    """Directory of the active timeline, relative to the table."""
    completion_in_name: bool
    has_clustering_action: bool
    """A pending clustering is its own action (else: `replacecommit`)."""

    def parse(self, name: str) -> Instant | None:
        """Return the instant of a file name, None for a file that is not an instant.

        It has no completion time if the name has none. Leftover `<name>.<uuid>` files of a writer
        that crashed before its rename, and checksum side files, are not instants.
        """
        instant = _parse_file_name(name)
        if instant is None or (self.completion_in_name and self.has_clustering_action):
            return instant
        return instant if self._is_possible(instant) else None

    def _is_possible(self, instant: Instant) -> bool:
        if instant.completed is not None and not self.completion_in_name:
            return False
        return self.has_clustering_action or instant.action != CLUSTERING

    def file_name(
        self, time: str, action: str, state: State, completion_time: str | None = None
    ) -> str:
        """Return the name of an instant's file; a completed one has its completed action's name."""
        if state is State.REQUESTED:
            return f"{time}.{action}.requested"
        if state is State.INFLIGHT:
            return f"{time}.inflight" if action == COMMIT else f"{time}.{action}.inflight"
        done = COMPLETED_ACTION.get(action, action)
        if not self.completion_in_name:
            return f"{time}.{done}"
        if completion_time is None:
            msg = f"the completed {done} {time} has no completion time"
            raise ValueError(msg)
        return f"{time}_{completion_time}.{done}"

    def path(self, name: str) -> str:
        """Return a timeline file's path, relative to the table."""
        return f"{self.folder}/{name}"

    def request(self, storage: Storage, time: str, action: str, content: bytes = b"") -> None:
        """Create the requested file. Raises `CommitConflict` if the instant exists already."""
        self._create(storage, self.file_name(time, action, State.REQUESTED), content)

    def inflight(self, storage: Storage, time: str, action: str, content: bytes = b"") -> None:
        """Create the inflight file. Raises `CommitConflict` if it exists already."""
        self._create(storage, self.file_name(time, action, State.INFLIGHT), content)

    def check_inflight(self, storage: Storage, time: str, action: str) -> None:
        """Raise `CommitConflict` unless the instant is inflight, and not complete at any time."""
        name = self.file_name(time, action, State.INFLIGHT)
        if not self.completion_in_name:
            inflight = storage.exists(self.path(name))
        else:
            names = [entry.name for entry in storage.list_dir(self.folder)[1]]
            done = COMPLETED_ACTION.get(action, action)
            if self._find_completed_file(names, time, done) is not None:
                raise _already_there(f"{time}.{done}")
            inflight = name in names
        if not inflight:
            msg = f"the {action} {time} was rolled back by another writer"
            raise retryable_conflict(msg)

    def publish(
        self, storage: Storage, time: str, action: str, completion_time: str, content: bytes
    ) -> None:
        """Create the completed file, which publishes the instant.

        The caller has just checked that it is inflight. Raises `CommitConflict` if the file exists.
        Layout 1 does not store `completion_time`.
        """
        name = self.file_name(time, action, State.COMPLETED, completion_time)
        self._create(storage, name, content)

    def is_completed_otherwise(
        self, storage: Storage, time: str, action: str, completion_time: str
    ) -> bool:
        """Return whether another writer completed the instant at another time."""
        if not self.completion_in_name:
            return False
        own = self.file_name(time, action, State.COMPLETED, completion_time)
        names = [entry.name for entry in storage.list_dir(self.folder)[1] if entry.name != own]
        return (
            self._find_completed_file(names, time, COMPLETED_ACTION.get(action, action)) is not None
        )

    def remove(self, storage: Storage, time: str, action: str, state: State) -> bool:
        """Remove the file of one state, as the last step of a rollback; false if there was none."""
        if state is not State.COMPLETED:
            return storage.delete(self.path(self.file_name(time, action, state)))
        names = [entry.name for entry in storage.list_dir(self.folder)[1]]
        name = self._find_completed_file(names, time, COMPLETED_ACTION.get(action, action))
        return name is not None and storage.delete(self.path(name))

    def _find_completed_file(self, names: Iterable[str], time: str, action: str) -> str | None:
        for name in names:
            parsed = self.parse(name)
            if parsed is None or parsed.state is not State.COMPLETED:
                continue
            if (parsed.requested, parsed.action) == (time, action):
                return parsed.file_name
        return None

    def _create(self, storage: Storage, name: str, content: bytes) -> None:
        if storage.put_if_absent(self.path(name), content):
            return
        # After a lost response the store retries, and finds the file that it created itself.
        if not content or storage.read_or_none(self.path(name)) != content:
            raise _already_there(name)


def _already_there(name: str) -> CommitConflict:
    return CommitConflict(
        f"the timeline already has {name}",
        hint="Another writer took the same instant: run the operation again.",
        retry=True,
    )


LAYOUT_1 = TimelineLayout(
    version=1, folder=META_FOLDER, completion_in_name=False, has_clustering_action=False
)
LAYOUT_2 = TimelineLayout(
    version=2,
    folder=f"{META_FOLDER}/timeline",
    completion_in_name=True,
    has_clustering_action=True,
)
