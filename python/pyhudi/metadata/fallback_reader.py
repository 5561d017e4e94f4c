"""Using the metadata table where it can be used, and doing without where it cannot.

Whatever is wrong with it costs a warning and some speed, never a row. What was opened for one scan
of a handle serves the next ones, since a handle shows one moment: look-ups would open it anew each
time, which is most of what they take.
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
class _Kept:
    """What was opened for a data table's timeline."""

    table: MetadataTable
    config: TableConfig
    process: int = field(default_factory=os.getpid)
    """Whose stores it has."""

    def is_of(self, config: TableConfig) -> bool:
        """Whether it can be used for a table that has these properties, and by this process."""
        return self.config is config and self.process == os.getpid()


_kept: WeakKeyDictionary[Timeline, _Kept] = WeakKeyDictionary()


class OutdatedError(Exception):
    """What was opened of the metadata table is not there any more: to be planned once more."""


class MetadataAccess:
    """Access to the metadata table for one planning of a scan."""

    def __init__(
        self,
        storage: Storage,
        config: TableConfig,
        timeline: Timeline,
        options: Mapping[str, str],
        *,
        anew: bool = False,
    ) -> None:
        """Opens the metadata table where the table has one and the options do not turn it off.

        anew: what was opened for the timeline before is not used. Else, where its files have gone
        meanwhile, `use` raises `OutdatedError`.
        """
        self.reason = _not_wanted(config, options)
        """Why it is not used, "" when it is."""
        self.later: Timeline | None = None
        """The data table's timeline of now, where the metadata table tells of commits since then.

        What it says of single files holds all the same, but what it says of the table as a whole
        is about other rows.
        """
        self._uri = storage.uri
        self._timeline = timeline
        self._table: MetadataTable | None = None
        self._is_kept = False
        if self.reason:
            return
        kept = None if anew else _kept.get(timeline)
        if kept is not None and kept.is_of(config):
            self._table, self._is_kept = kept.table, True
            return
        self._table = self._run_or_fall_back(
            "files are listed instead", lambda: MetadataTable(storage, config, timeline)
        )
        if self._table is not None and self._table.may_be_ahead:
            self.later = newer_timeline(storage, config, timeline, self._table.applied)
        if self._table is not None and self.later is None:
            _kept[timeline] = _Kept(self._table, config)

    def has(self, partition: str) -> bool:
        """Whether a partition of it can be asked."""
        return self._table is not None and self._table.has(partition)

    def use(self, instead: str, work: Callable[[MetadataTable], T]) -> T | None:
        """What `work` finds out, None without a metadata table or with a damaged one.

        instead: what is done then, for the warning.
        """
        table = self._table
        return None if table is None else self._run_or_fall_back(instead, lambda: work(table))

    def check_same(self) -> None:
        """Raises `OutdatedError` where others have made the metadata table anew since."""
        try:
            if self._table is not None:
                self._table.check_same(is_kept=self._is_kept)
        except (HudiError, OSError) as error:
            _kept.pop(self._timeline, None)
            raise OutdatedError from error

    def _run_or_fall_back(self, instead: str, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except (HudiError, OSError) as error:
            _kept.pop(self._timeline, None)
            if self._is_kept:
                raise OutdatedError from error
            cause = without_hint(error)
        self.reason = self.reason or cause
        warn(
            f"{self._uri}: the metadata table is not used ({instead}): {cause}",
            MetadataTableWarning,
        )
        return None


def _not_wanted(config: TableConfig, options: Mapping[str, str]) -> str:
    if not parse_bool(options, METADATA_ENABLE, default=True):
        return f"{METADATA_ENABLE} is false"
    if FILES not in config.metadata_partitions:
        return "the table has no metadata table"
    return ""
