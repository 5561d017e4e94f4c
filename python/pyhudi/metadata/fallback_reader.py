"""Access to the metadata table, with listings as a fallback.

A damaged metadata table causes a warning and a slower read, but never a lost row. Scans of one
handle share the opened metadata table, because a handle shows one snapshot and opening is most of
the cost of a lookup.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from weakref import WeakKeyDictionary

from pyhudi.config.log import warn
from pyhudi.config.metadata_names import FILES
from pyhudi.config.metadata_options import METADATA_ENABLE
from pyhudi.config.option_parsing import parse_bool
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import HudiError, MetadataTableWarning, without_hint
from pyhudi.metadata.reader import MetadataTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.timeline.staleness import newer_timeline

T = TypeVar("T")


@dataclass(frozen=True)
class _OpenedTable:
    """The metadata table opened for a data table's timeline."""

    table: MetadataTable
    config: TableConfig
    process: int = field(default_factory=os.getpid)
    """The process that opened the stores."""

    def is_of(self, config: TableConfig) -> bool:
        """Return whether it serves a table with these properties, in this process."""
        return self.config is config and self.process == os.getpid()


_opened: WeakKeyDictionary[Timeline, _OpenedTable] = WeakKeyDictionary()


class OutdatedError(Exception):
    """The opened metadata table no longer exists: plan again."""


class MetadataAccess:
    """Access to the metadata table while one scan is planned."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        options: Mapping[str, str],
        *,
        reopen: bool = False,
    ) -> None:
        """Open the metadata table if the table has one and the options do not disable it.

        reopen: do not reuse a metadata table that was opened for this timeline. If one is reused,
        `use` raises `OutdatedError` if its files were removed in the meantime.
        """
        self.reason = _reason_not_to_use(config, options)
        """The reason why it is not used; "" if it is."""
        self.newer_data_timeline: Timeline | None = None
        """The current data timeline, if the metadata table has later commits.

        Statistics of single files are still valid, but those of the whole table include other rows.
        """
        self._uri = storage.uri
        self._timeline = timeline
        self._table: MetadataTable | None = None
        self._is_reused = False
        if self.reason:
            return
        opened = None if reopen else _opened.get(timeline)
        if opened is not None and opened.is_of(config):
            self._table, self._is_reused = opened.table, True
            return
        self._table = self._run_or_fall_back(
            "files are listed instead", lambda: MetadataTable(storage, config, timeline)
        )
        if self._table is not None and self._table.may_be_ahead:
            self.newer_data_timeline = newer_timeline(
                storage, config, timeline, self._table.applied
            )
        if self._table is not None and self.newer_data_timeline is None:
            _opened[timeline] = _OpenedTable(self._table, config)

    def has(self, partition: str) -> bool:
        """Return whether a partition of it can be used."""
        return self._table is not None and self._table.has(partition)

    def use(self, fallback: str, work: Callable[[MetadataTable], T]) -> T | None:
        """Return the result of `work`; None without a metadata table or with a damaged one.

        fallback: what pyhudi does without the result, for the warning.
        """
        table = self._table
        return None if table is None else self._run_or_fall_back(fallback, lambda: work(table))

    def check_not_rebuilt(self) -> None:
        """Raise `OutdatedError` if another writer has rebuilt the metadata table since."""
        try:
            if self._table is not None:
                self._table.check_not_rebuilt(is_reused=self._is_reused)
        except (HudiError, OSError) as error:
            _opened.pop(self._timeline, None)
            raise OutdatedError from error

    def _run_or_fall_back(self, fallback: str, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except (HudiError, OSError) as error:
            _opened.pop(self._timeline, None)
            if self._is_reused:
                raise OutdatedError from error
            cause = without_hint(error)
        self.reason = self.reason or cause
        warn(
            f"{self._uri}: the metadata table is not used ({fallback}): {cause}",
            MetadataTableWarning,
        )
        return None


def _reason_not_to_use(config: TableConfig, options: Mapping[str, str]) -> str:
    if not parse_bool(options, METADATA_ENABLE, default=True):
        return f"{METADATA_ENABLE} is false"
    if FILES not in config.metadata_partitions:
        return "the table has no metadata table"
    return ""
