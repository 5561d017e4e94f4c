"""The timeline: which instants a table has, what their files say, and how new ones are written.

`instants` names things, `layout` knows folders and file names, `active` is a loaded timeline,
`archive` what has left it (`archive_log`, `archive_lsm`: its two formats) by way of `archiving`,
`spans` are ranges of time, `metadata` models commit metadata, `content` turns file bytes into
values and back, `generator` makes instant times.
"""

from __future__ import annotations

from pyhudi.config.actions import Instant, State
from pyhudi.config.timeline_layout import TimelineLayout
from pyhudi.timeline.active import Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata, RuntimeStats, WriteStat
from pyhudi.timeline.instant_generator import InstantGenerator

__all__ = [
    "CommitMetadata",
    "Instant",
    "InstantGenerator",
    "RuntimeStats",
    "State",
    "Timeline",
    "TimelineLayout",
    "WriteStat",
]
