"""The archived timeline: completed instants that have left the active one, in either format.

One interface for both formats: log files up to table version 6 (`archive_log`), the LSM history
from 8 on (`archive_lsm`). Files are read on demand. Pending instants are never archived, so all
instants here are completed. Nothing is written here.
"""

from __future__ import annotations

from typing import Any

from pyhudi.config.actions import CLEAN, COMMIT_ACTIONS, Instant
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import HistoryUnavailable
from pyhudi.storage.storage import Storage
from pyhudi.timeline.archive_log import ArchiveLogs
from pyhudi.timeline.archive_lsm import LsmHistory
from pyhudi.timeline.commit_metadata import CommitMetadata, commit_metadata_of
from pyhudi.timeline.content_checks import check_content
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.timeline.layout_change import check_in_force


class Archive:
    """The archived instants of a table."""

    def __init__(self, storage: Storage, config: TableConfig) -> None:
        """Create the object. Files are read on demand."""
        self._storage, self._config, self._layout = storage, config, config.layout
        self.folder = config.history_folder
        """Its directory, relative to the table."""
        self.zone = config.timezone
        """The zone of instant times."""
        self._format = (
            LsmHistory(storage, self.folder)
            if config.layout.completion_in_name
            else ArchiveLogs(storage, self.folder)
        )

    @property
    def is_empty(self) -> bool:
        """Whether no instant has been archived."""
        return not self._format.files()

    def instants(self, instant_range: InstantRange | None = None) -> tuple[Instant, ...]:
        """Return archived instants of a range, all by default, oldest first.

        `file_name` is the archive's file that contains the instant. Raises `CorruptTable` naming
        the file for a damaged archive, `TimelineMoved` if the table's layout has changed.
        """
        instants = self._format.instants(instant_range)
        if not instants:
            check_in_force(self._storage, self._layout)
        return tuple(sorted(instants, key=lambda instant: (instant.requested, instant.action)))

    def commits(self, instant_range: InstantRange | None = None) -> tuple[Instant, ...]:
        """Return archived commits, delta commits and replace commits of a range, oldest first."""
        return tuple(
            commit for commit in self.instants(instant_range) if commit.action in COMMIT_ACTIONS
        )

    def reload(self) -> Archive:
        """Return the current archive."""
        return Archive(self._storage, self._config)

    def find(self, requested: str, action: str) -> Instant | None:
        """Return the archived instant of a time and a completed action."""
        instants = self._format.instants(InstantRange.between(requested, requested))
        return next((instant for instant in instants if instant.action == action), None)

    def last_clean(self) -> Instant | None:
        """Return the newest archived clean."""
        return next((i for i in reversed(self.instants()) if i.action == CLEAN), None)

    def read(self, instant: Instant) -> dict[str, Any] | None:
        """Return the content of an archived instant's completed file, None if it was not stored."""
        content = self._format.read(instant)
        if content is not None:
            check_content(content, instant, f"{self.folder}/{instant.file_name}")
        return content

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """Return an archived commit's metadata. Raises `CorruptTable` for other content."""
        return commit_metadata_of(self.read(instant), f"{self.folder}/{instant.file_name}")

    def completion_time(self, requested: str) -> str:
        """Return when an archived instant was completed.

        Raises `HistoryUnavailable` if the archive does not store it.
        """
        key = (self._storage.uri, f"{self.folder}#{requested}")
        cached: str | None = self._storage.cache.get(key)
        if cached is not None:
            return cached
        completed = self._format.completion_time(requested)
        if completed is None:
            check_in_force(self._storage, self._layout)
            raise HistoryUnavailable(
                f"the completion time of {requested} is neither on the active nor on the archived "
                f"timeline in {self.folder}, so its log files cannot be assigned to slices",
            )
        # It never changes, and each log file of an archived commit needs it.
        self._storage.cache.put(key, completed, weight=1)
        return completed
