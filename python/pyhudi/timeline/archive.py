"""The archived timeline: completed instants that have left the active one, whichever its format.

One face for both formats: log files up to table version 6 (`archive_log`), the LSM history from 8
on (`archive_lsm`). Nothing is read before it is asked for. Pending instants are never archived, so
all that is here was completed. Nothing is written here.
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
        """Reads nothing yet."""
        self._storage, self._config, self._layout = storage, config, config.layout
        self.folder = config.history_folder
        """Where it lies, relative to the table."""
        self.zone = config.timezone
        """In which instants are times."""
        self._format = (
            LsmHistory(storage, self.folder)
            if config.layout.completion_in_name
            else ArchiveLogs(storage, self.folder)
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing was archived yet."""
        return not self._format.files()

    def instants(self, span: InstantRange | None = None) -> tuple[Instant, ...]:
        """Archived instants of a span of time, all by default, oldest first.

        `file_name` is the archive's file that holds the instant. Raises `CorruptTable` naming the
        file for a damaged archive, `TimelineMoved` for one that is gone with the table's layout.
        """
        found = self._format.instants(span)
        if not found:
            check_in_force(self._storage, self._layout)
        return tuple(sorted(found, key=lambda instant: (instant.requested, instant.action)))

    def commits(self, span: InstantRange | None = None) -> tuple[Instant, ...]:
        """Archived commits, delta commits and replace commits of a span, oldest first."""
        return tuple(commit for commit in self.instants(span) if commit.action in COMMIT_ACTIONS)

    def afresh(self) -> Archive:
        """The archive as it is by now."""
        return Archive(self._storage, self._config)

    def find(self, requested: str, action: str) -> Instant | None:
        """The archived instant of a time and a completed action."""
        found = self._format.instants(InstantRange.between(requested, requested))
        return next((instant for instant in found if instant.action == action), None)

    def last_clean(self) -> Instant | None:
        """The newest archived clean."""
        return next((i for i in reversed(self.instants()) if i.action == CLEAN), None)

    def read(self, instant: Instant) -> dict[str, Any] | None:
        """What an archived instant's completed file said, None where nothing was kept."""
        found = self._format.read(instant)
        if found is not None:
            check_content(found, instant, f"{self.folder}/{instant.file_name}")
        return found

    def commit_metadata(self, instant: Instant) -> CommitMetadata:
        """What an archived commit wrote. Raises `CorruptTable` for what is no commit metadata."""
        return commit_metadata_of(self.read(instant), f"{self.folder}/{instant.file_name}")

    def completion_time(self, requested: str) -> str:
        """When an archived instant was completed.

        Raises `HistoryUnavailable` when the archive does not say.
        """
        found = self._format.completion_time(requested)
        if found is None:
            check_in_force(self._storage, self._layout)
            raise HistoryUnavailable(
                f"the completion time of {requested} is neither on the active nor on the archived "
                f"timeline in {self.folder}, so its log files cannot be placed",
            )
        return found
