"""Both readers of a table under services of both: what no service should change, compared.

Where a release of Hudi is known to leave rows out, or to show what is left, it is not asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.config.actions import REPLACE_COMMIT
from pyhudi.errors import HistoryUnavailable
from pyhudi.query.commit_range import IncrementalRange, select_commits
from tests.helpers.both_readers import (
    LATE,
    NEWEST,
    NO_FALLBACK,
    BothReaders,
    Row,
    assert_cleaned,
)
from tests.helpers.rows import canonical, canonical_rows, difference

if TYPE_CHECKING:
    from pyhudi.api.table import HudiTable
    from pyhudi.timeline import Instant

Probe = dict[str, Counter[str] | None]
"""What was read, by what was asked; None where it was refused."""


class ServedReaders(BothReaders):
    """Both readers, of a table whose columns grow in number."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._columns: dict[str, list[str]] = {}

    def _remember(self, commits: tuple[Instant, ...], rows: list[Row]) -> None:
        super()._remember(commits, rows)
        self._columns[max(self._moments)] = sorted(rows[0]) if rows else []

    def _some_moments(self, count: int) -> list[str]:
        """Those from before the last new column tell rows without it, which not all readers do."""
        newest = self._columns[max(self._moments)]
        moments = [one for one in sorted(self._moments) if self._columns[one] == newest]
        return self._numbers.sample(moments, min(count, len(moments)))

    def _past(self, table: HudiTable, said: str) -> None:
        """Of a moment whose files were cleaned Hudi shows what is left, which pyhudi refuses."""
        for moment in self._some_moments(2):
            ours = _read_as_of(table, moment)
            if ours is None:
                assert_cleaned(table, f"{said}, as of {moment}")
                continue
            how = difference(ours.elements(), self._moments[moment])
            assert how is None, f"{said}, pyhudi as of {moment}: {how}"
            theirs = self._theirs_as_of(table, moment)
            if theirs is not None:
                how = difference(theirs.elements(), self._moments[moment])
                assert how is None, f"{said}, Hudi as of {moment}: {how}"
                self.compared["as_of"] += 1

    def incremental_range(self) -> tuple[str, str, str] | None:
        """A range of commits and a moment within reach, that a service should not change."""
        table = self.open()
        if len(table.state.timeline.commits) < 2:
            return None
        (start, end), (moment,) = self._range(table), self._some_moments(1)
        return start, end, moment

    def _incremental(self, table: HudiTable, start: str, end: str, said: str) -> None:
        if not self.is_outlasted(end):
            super()._incremental(table, start, end, said)

    def _comparable(
        self,
        theirs: list[Row],
        ours: pa.Table,
        table: HudiTable,
        incremental_range: IncrementalRange,
    ) -> tuple[pa.Table, list[Row]]:
        """Releases before 1.2.0 let rows of the range lose to older ones that are only repeated."""
        if self._hudi.hudi != NEWEST and self._holds_merged_logs(table, incremental_range):
            self.compared["merged logs, without late rows"] += 1
            return _without_late(ours, table), [row for row in theirs if row["ts"] != LATE]
        return super()._comparable(theirs, ours, table, incremental_range)

    def _holds_merged_logs(self, table: HudiTable, incremental_range: IncrementalRange) -> bool:
        """Whether there is a log compaction in a range."""
        metadata = select_commits(table.state, incremental_range).metadata
        return any(one.operation_type == "LOG_COMPACT" for one in metadata)

    def is_outlasted(self, end: str) -> bool:
        """Whether 1.2.0 loses rows of ranges that end then to what took file groups away later.

        That was planned by then, and not complete.
        """
        replacing = self.open().state.timeline.filter_completed(REPLACE_COMMIT)
        later = [one for one in replacing if one.requested <= end < (one.completed or "")]
        return self._hudi.hudi == NEWEST and bool(later)

    def is_archived(self, incremental_range: tuple[str, str, str] | None) -> bool:
        """Whether a range begins before the active timeline."""
        commits = self.open().state.timeline.commits
        return incremental_range is not None and incremental_range[0] < min(
            one.completed or one.requested for one in commits
        )

    def is_odd(self, incremental_range: tuple[str, str, str] | None) -> bool:
        """Whether Hudi leaves rows of a range out, as 1.0.2 of one that is archived."""
        if incremental_range is None or self.is_archived(incremental_range):
            return True
        return self.is_outlasted(incremental_range[1])

    def probe(self, incremental_range: tuple[str, str, str] | None) -> Probe:
        """What both read now."""
        table = self.open()
        found: Probe = {
            "now": Counter(canonical_rows(table.scan(meta_fields=True).to_arrow(), _KEPT))
        }
        if incremental_range is None:
            return found
        start, end, moment = incremental_range
        since = table.incremental(start, end, fallback_full_scan=False)
        # A compaction that is carried out within the range shows that late rows have lost.
        found["since"] = _read(lambda: _without_late(since.to_arrow(), table))
        found["then"] = _read_as_of(table, moment)
        theirs = self._ranged(
            table, start, end, query="incremental", meta=False, options=NO_FALLBACK
        )
        if theirs is not None and table.type == "mor":
            # It shows some that have lost (`BothReaders`), but not where the range is archived.
            theirs = [row for row in theirs if row["ts"] != LATE]
        found["their since"] = _counted(theirs)
        found["their then"] = self._theirs_as_of(table, moment)
        return found

    def _theirs_as_of(self, table: HudiTable, moment: str) -> Counter[str] | None:
        if table.type == "mor" and table.version < 8:  # it goes by modification times there
            return None
        return _counted(self._theirs(as_of=moment, meta=False))


def _without_late(rows: pa.Table, table: HudiTable) -> pa.Table:
    if table.type != "mor":
        return rows
    return rows.filter(pc.fill_null(pc.not_equal(rows["ts"], LATE), fill_value=True))


def _counted(rows: list[Row] | None) -> Counter[str] | None:
    return None if rows is None else Counter(map(canonical, rows))


def _read_as_of(table: HudiTable, moment: str) -> Counter[str] | None:
    return _read(lambda: table.scan(as_of=moment).to_arrow())


def _read(read: Callable[[], Any]) -> Counter[str] | None:
    try:
        return Counter(canonical_rows(read()))
    except HistoryUnavailable:
        return None


_KEPT = ["_hoodie_commit_time", "_hoodie_record_key", "_hoodie_partition_path", "v", "ts", "note"]
