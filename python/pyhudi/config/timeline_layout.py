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
from dataclasses import dataclass
from functools import lru_cache

from pyhudi.config.actions import ACTIONS, CLUSTERING, COMMIT, COMPLETED_ACTION, Instant, State
from pyhudi.config.file_names import PARSED

KEEPER = ".keep"
"""A file that keeps a directory alive; Hudi and pyhudi ignore such names."""
META_FOLDER = ".hoodie"
"""Directory of everything that is not data, relative to the table."""
HEARTBEAT_FOLDER = f"{META_FOLDER}/.heartbeat"
"""Directory of heartbeats, and of the files that show the storage's time."""

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
    """Directory and file names of an active timeline; `timeline/instant_files.py` creates files."""

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
            raise ValueError(f"the completed {done} {time} has no completion time")
        return f"{time}_{completion_time}.{done}"

    def path(self, name: str) -> str:
        """Return a timeline file's path, relative to the table."""
        return f"{self.folder}/{name}"


LAYOUT_1 = TimelineLayout(
    version=1, folder=META_FOLDER, completion_in_name=False, has_clustering_action=False
)
LAYOUT_2 = TimelineLayout(
    version=2,
    folder=f"{META_FOLDER}/timeline",
    completion_in_name=True,
    has_clustering_action=True,
)
