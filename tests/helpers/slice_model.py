"""A slow model of file slices: the rules of Hudi's `HoodieFileGroup` on lists of one group's files.

The core has the same rules over arrays of all files (`rust/files`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pyhudi.slices.file_slice import LOG_ORDER, BaseFile, FileSlice, LogFile


@dataclass(frozen=True)
class GroupModel:
    """One file group on a timeline."""

    partition: str
    file_id: str
    bases: Sequence[BaseFile]
    logs: Sequence[LogFile]
    named_by_base_instant: bool
    is_committed: Callable[[str], bool]
    completion_time: Callable[[str], str]
    compaction: str | None = None
    """The instant of a pending compaction."""

    def slices(self) -> list[FileSlice]:
        """Return the committed slices, newest first."""
        by_name = sorted(self.bases, key=lambda base: base.name)
        bases = {base.instant: base for base in by_name if self.is_committed(base.instant)}
        openings = {*bases, *([] if self.compaction is None else [self.compaction])}
        logs: dict[str, list[LogFile]] = {}
        for log in sorted(self.logs, key=LOG_ORDER):
            start = self._start(log.instant, openings)
            if start is not None:
                openings.add(start)
                logs.setdefault(start, []).append(log)
        return [
            FileSlice(
                self.partition,
                self.file_id,
                instant,
                bases.get(instant),
                tuple(logs.get(instant, ())),
            )
            for instant in sorted(openings, reverse=True)
        ]

    def _start(self, instant: str, openings: Iterable[str]) -> str | None:
        if self.named_by_base_instant:
            if instant != self.compaction and not self.is_committed(instant):
                return None
            return max((one for one in openings if one <= instant), default=instant)
        if not self.is_committed(instant):
            return None
        if instant in openings:
            return instant
        for opening in sorted(openings, reverse=True):
            if opening <= instant:
                return opening
            completion = self.completion_time(instant)
            if len(opening) == len(instant) == len(completion) and opening <= completion:
                return opening
        return instant
