"""The archived timeline of layout 2: Parquet files of instants, in levels, named by a manifest.

A file is `<first instant>_<last instant>_<level>.parquet`; a row has the instant's times, its
completed action, and its content as Avro containers (`LSMTimeline`, Hudi 1.2.0). Only the needed
columns, files and row groups are read. After an upgrade by Hudi (`SevenToEightUpgradeHandler`,
1.2.0), first and last are arbitrary instants of the file, also in files that were merged from it.
So a name never proves that a file does not contain a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from pyhudi.config.actions import Instant, State
from pyhudi.errors import CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import serde
from pyhudi.timeline.instant_range import InstantRange
from pyhudi.timeline.lsm_manifest import current_manifest

_Bound: TypeAlias = "tuple[str, str, pa.Array[Any]]"
"""Column, operator, values."""

_TIME, _COMPLETION, _ACTION = "instantTime", "completionTime", "action"
_METADATA = "metadata"
_LATEST = "~"
"""Greater than any time."""
_FACTS = (_TIME, _COMPLETION, _ACTION)
_SCHEMA = pa.schema([*((name, pa.string()) for name in _FACTS), (_METADATA, pa.binary())])


class LsmHistory:
    """The history directory of a table, as its manifest was on first use."""

    def __init__(self, storage: Storage, folder: str) -> None:
        """`folder`: the history's directory, relative to the table."""
        self._storage = storage
        self._folder = folder
        self._names: list[str] | None = None
        self._times: dict[str, dict[str, str]] = {}
        self._open: tuple[str, dict[tuple[str, str], bytes | None]] | None = None

    def files(self) -> list[str]:
        """Return the names of the history's files, by its current manifest."""
        if self._names is None:
            self._names = sorted(current_manifest(self._storage, self._folder).files)
        return self._names

    def instants(self, instant_range: InstantRange | None) -> list[Instant]:
        """Return archived instants of a range, each once: a failed writer may leave duplicates."""
        requested_range = instant_range or InstantRange()
        names = self._files_that_may_contain(requested_range)
        candidates = [
            instant for name in names for instant in self._instants(name, requested_range)
        ]
        once = {(instant.requested, instant.action): instant for instant in candidates}
        return [instant for instant in once.values() if requested_range.contains(instant)]

    def _files_that_may_contain(self, instant_range: InstantRange) -> list[str]:
        """Return the names of files that may contain instants of a range."""
        doubtful = [name for name in self.files() if not _may_contain(_range(name), instant_range)]
        bounds: dict[str, tuple[str, str]] = {}

        def look(name: str) -> None:
            bounds[name] = self._bounds(name)

        self._storage.run_concurrently(*(partial(look, name) for name in doubtful))
        outside = {name for name in doubtful if not _may_contain(bounds[name], instant_range)}
        return [name for name in self.files() if name not in outside]

    def _bounds(self, name: str) -> tuple[str, str]:
        """Return minimum and maximum time of a file, cached, because files never change."""
        key = (self._storage.uri, f"{self._folder}/{name}")
        bounds: tuple[str, str] | None = self._storage.cache.get(key)
        if bounds is None:
            times = [row[_TIME] for row in self._rows(name, (_TIME,), ())]
            bounds = min(times, default=_LATEST), max(times, default="")
            self._storage.cache.put(key, bounds, weight=1)
        return bounds

    def read(self, instant: Instant) -> dict[str, Any] | None:
        """Return the content of the instant's completed file."""
        name = instant.file_name
        data = self._contents(name).get((instant.requested, instant.action))
        return None if data is None else serde.decode(data, f"{self._folder}/{name}")

    def _contents(self, name: str) -> dict[tuple[str, str], bytes | None]:
        """Return the content of one file, cached until another is read."""
        if self._open is None or self._open[0] != name:
            rows = self._rows(name, (_TIME, _ACTION, _METADATA), ())
            self._open = (name, {(row[_TIME], row[_ACTION]): row[_METADATA] for row in rows})
        return self._open[1]

    def completion_time(self, requested: str) -> str | None:
        """Return when an instant was completed, None if it is not in the history."""
        for name in sorted(self.files(), key=lambda name: not _covers(name, requested)):
            completed = self._completions(name).get(requested)
            if completed is not None:
                return completed
        return None

    def _completions(self, name: str) -> dict[str, str]:
        """Return completion times of one file, cached, because files never change."""
        if name not in self._times:
            key = (self._storage.uri, f"{self._folder}/{name}#completions")
            times: dict[str, str] | None = self._storage.cache.get(key)
            if times is None:
                rows = self._rows(name, (_TIME, _COMPLETION), ())
                times = {row[_TIME]: row[_COMPLETION] for row in rows}
                self._storage.cache.put(key, times, weight=len(times) // 8 + 1)
            self._times[name] = times
        return self._times[name]

    def _instants(self, name: str, instant_range: InstantRange) -> list[Instant]:
        bounds: list[_Bound] = []
        column = _COMPLETION if instant_range.by_completion else _TIME
        if instant_range.after is not None:
            bounds.append((column, ">", pa.array([instant_range.after])))
        if instant_range.until is not None:
            bounds.append((column, "<=", pa.array([instant_range.until])))
        return [
            Instant(row[_TIME], row[_ACTION], State.COMPLETED, row[_COMPLETION], name)
            for row in self._rows(name, _FACTS, bounds)
        ]

    def _rows(
        self, name: str, columns: Sequence[str], bounds: Sequence[_Bound]
    ) -> list[dict[str, Any]]:
        """Return rows of a file. Row groups outside the bounds are skipped."""
        from pyhudi import _native  # noqa: PLC0415 - tables without archive need no core

        path = f"{self._folder}/{name}"
        try:
            reader, _ = _native.read_slice(
                self._storage.native,
                base=path,
                logs=[],
                schema=_SCHEMA,
                columns=columns,
                merge_mode="COMMIT_TIME_ORDERING",
                key_fields=[_TIME],
                filters=bounds,
            )
            rows: list[dict[str, Any]] = reader.read_all().to_pylist()
        except FileNotFoundError as error:
            raise CorruptTable(
                f"{path}: the manifest lists this file, but it does not exist", file=path
            ) from error
        return rows


def _range(name: str) -> tuple[str, str]:
    """Return the times in a name."""
    first, _, rest = name.partition("_")
    last = rest.partition("_")[0]
    return min(first, last), max(first, last)


def _covers(name: str, requested: str) -> bool:
    first, last = _range(name)
    return first <= requested <= last


def _may_contain(bounds: tuple[str, str], instant_range: InstantRange) -> bool:
    """Return whether a file with instants from one time to another may have some of a range.

    An instant completes after it was requested, so one requested after the end of the range is
    never in it.
    """
    first, last = bounds
    if instant_range.until is not None and first > instant_range.until:
        return False
    return instant_range.by_completion or instant_range.after is None or last > instant_range.after
