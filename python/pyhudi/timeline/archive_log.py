"""Archived timelines up to table version 6: log files with one Avro record per timeline file.

Files are `.commits_.archive.<n>_<token>`; each record is a `HoodieArchivedMetaEntry` with one
state of an instant (`HoodieArchivedTimeline`, Hudi 0.15.0 and 1.2.0's `ArchivedTimelineV1`). An
interrupted merge of archive files leaves duplicate records; the last one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyhudi.config.actions import COMPLETED_ACTION, Instant, State
from pyhudi.config.bounded_json import parse_json
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline.instant_range import InstantRange

PREFIX = ".commits_.archive."
"""Prefix of an archive's log file names."""
METADATA_FIELD = {
    "commit": "hoodieCommitMetadata",
    "deltacommit": "hoodieCommitMetadata",
    "replacecommit": "hoodieReplaceCommitMetadata",
    "clean": "hoodieCleanMetadata",
    "rollback": "hoodieRollbackMetadata",
    "savepoint": "hoodieSavePointMetadata",
    "indexing": "hoodieIndexCommitMetadata",
}
"""Field of the record that contains a completed action's content."""


class ArchiveLogs:
    """The archive's log files, read on demand; the content of one file is cached at a time."""

    def __init__(self, storage: Storage, folder: str) -> None:
        """`folder`: the archive's directory, relative to the table."""
        self._storage = storage
        self._folder = folder
        self._places: dict[Instant, int] | None = None
        self._open: tuple[str, list[str]] | None = None

    def files(self) -> list[str]:
        """Return the names of the log files, oldest first."""
        names = [entry.name for entry in self._storage.list_dir(self._folder)[1]]
        return sorted(
            (n for n in names if n.startswith(PREFIX)), key=lambda name: (log_number(name), name)
        )

    def instants(self, instant_range: InstantRange | None) -> list[Instant]:
        """Return completed instants of a range. `completed` is None if it was not stored."""
        return [
            instant
            for instant in self._index()
            if instant_range is None or instant_range.contains(instant)
        ]

    def read(self, instant: Instant) -> dict[str, Any] | None:
        """Return the content of the instant's completed file."""
        line_number = self._index()[instant]
        entry = self._entry(instant.file_name, self._lines(instant.file_name)[line_number])
        content: dict[str, Any] | None = entry.get(METADATA_FIELD.get(instant.action, ""))
        return content

    def completion_time(self, requested: str) -> str | None:
        """Return when an instant was completed, None if the archive does not store it."""
        times = (i.completed for i in self._index() if i.requested == requested and i.completed)
        return next(times, None)

    def _index(self) -> dict[Instant, int]:
        """Return completed instants with the position of their record in its file."""
        if self._places is None:
            by_key: dict[tuple[str, str], tuple[Instant, int]] = {}
            for name in self.files():
                for line_number, line in enumerate(self._lines(name)):
                    instant = self._instant(name, self._entry(name, line))
                    if instant is not None:
                        by_key[instant.requested, instant.action] = (instant, line_number)
            self._places = dict(by_key.values())
        return self._places

    def _lines(self, name: str) -> list[str]:
        if self._open is None or self._open[0] != name:
            from pyhudi import _native  # noqa: PLC0415 - tables without archive need no core

            lines = _native.log_records(self._storage.native, f"{self._folder}/{name}")
            self._open = (name, lines)
        return self._open[1]

    def _entry(self, name: str, line: str) -> dict[str, Any]:
        path = f"{self._folder}/{name}"
        entry = parse_json(line, path)
        if not isinstance(entry, dict):
            raise CorruptTable(f"{path}: not a file of archived instants", file=path)
        return entry

    def _instant(self, name: str, entry: Mapping[str, Any]) -> Instant | None:
        """Return the instant of the record of a completed state. No state means completed.

        Releases before 0.5.1 archived only completed instants and wrote no state.
        """
        time, action = entry.get("commitTime"), entry.get("actionType")
        if not time or not action:
            path = f"{self._folder}/{name}"
            raise CorruptTable(f"{path}: an archived instant without time or action", file=path)
        if (entry.get("actionState") or State.COMPLETED.value) != State.COMPLETED.value:
            return None
        done = COMPLETED_ACTION.get(action, action)
        return Instant(time, done, State.COMPLETED, entry.get("stateTransitionTime"), name)


def log_number(name: str) -> int:
    """Return the version in the name of a log file, or 0."""
    digits = name.removeprefix(PREFIX).split("_")[0]
    return int(digits) if digits.isdecimal() else 0
