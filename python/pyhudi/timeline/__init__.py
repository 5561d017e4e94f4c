"""The timeline: which instants a table has, what their files say, and how new ones are written.

`instant_files` creates the files of instants, `active` is a loaded timeline, `archive` the archived
one (`archive_log`, `archive_lsm`: its two formats), filled by `archiving`.
`instant_range` has ranges of time, `commit_metadata` the model of commit metadata, `rollbacks` what
rollbacks name, `serde` decodes and encodes file content, `instant_generator` creates instant times.
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
