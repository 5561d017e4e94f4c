"""Completion times of archived instants, from the LSM history of timeline layout 2.

A log file whose instant has left the active timeline can still be in use by an old slice, and then
its completion time decides which slice it is in. Only two columns of the history are read, and only
when such a question comes up. Layout: `LSMTimeline` (Hudi 1.2.0).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from pyhudi.errors import CorruptTable, HistoryUnavailable

if TYPE_CHECKING:
    from pyhudi.storage import Storage

_MANIFEST = "manifest_"
_VERSION = "_version_"
_COLUMNS = ["instantTime", "completionTime"]


class ArchivedCompletions:
    """Completion times of a history folder, loaded once when first asked."""

    def __init__(self, storage: Storage, folder: str) -> None:
        """`folder`: the history's, relative to the table."""
        self._storage = storage
        self._folder = folder
        self._times: dict[str, str] | None = None

    def completion_time(self, instant: str) -> str:
        """When an archived instant was completed.

        Raises `HistoryUnavailable` when the history does not have it.
        """
        if self._times is None:
            self._times = self._load()
        found = self._times.get(instant)
        if found is None:
            raise HistoryUnavailable(
                f"the completion time of {instant} is neither on the active nor on the archived "
                f"timeline in {self._folder}, so its log files cannot be placed",
            )
        return found

    def _load(self) -> dict[str, str]:
        times: dict[str, str] = {}
        for name in self._files():
            path = f"{self._folder}/{name}"
            try:
                table = pq.read_table(pa.BufferReader(self._storage.read(path)), columns=_COLUMNS)
            except (pa.ArrowInvalid, FileNotFoundError) as error:
                raise CorruptTable(f"{path}: {error}", file=path) from error
            times.update(zip(*(table[column].to_pylist() for column in _COLUMNS), strict=True))
        return times

    def _files(self) -> list[str]:
        """Names of the history's files, by its current manifest."""
        version = self._storage.read_or_none(f"{self._folder}/{_VERSION}")
        number = version.decode().strip() if version else ""
        data = self._storage.read_or_none(f"{self._folder}/{_MANIFEST}{number}") if number else None
        if data is None:
            data = self._newest_manifest()
        if data is None:
            return []
        try:
            return [str(file["fileName"]) for file in json.loads(data)["files"]]
        except (ValueError, KeyError, TypeError) as error:
            path = f"{self._folder}/{_MANIFEST}{number}"
            raise CorruptTable(f"{path}: not a timeline manifest", file=path) from error

    def _newest_manifest(self) -> bytes | None:
        """For the moment in which a writer replaces the version file."""
        names = [entry.path.rsplit("/", 1)[-1] for entry in self._storage.list_dir(self._folder)[1]]
        numbers = [
            int(name.removeprefix(_MANIFEST))
            for name in names
            if name.startswith(_MANIFEST) and name.removeprefix(_MANIFEST).isdecimal()
        ]
        if not numbers:
            return None
        return self._storage.read_or_none(f"{self._folder}/{_MANIFEST}{max(numbers)}")
