"""What pyhudi and Apache Hudi read from one table, compared; and what was read is remembered.

Nothing here knows what the rows should be. The two readers agree on the snapshot, on a range of
commits, on changes and on the past; the past is what was read when it was the present; and changes
and differences lead from one moment to another.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyhudi
from pyhudi.errors import HistoryUnavailable
from pyhudi.timeline.instants import CLEAN
from tests.helpers.images import broken_columns, comparable
from tests.helpers.oracle.client import HudiError, HudiOracle
from tests.helpers.rows import canonical, difference, encode_table

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.table import HudiTable
    from pyhudi.timeline import Instant

Row = dict[str, Any]
LATE = 1
"""An ordering value that loses to every stored row."""
_NO_FALLBACK = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false"}
"""A full scan stands in for cleaned files, which Hudi takes for gone earlier than pyhudi does."""
INCLUSIVE = "1.0.2"
"""The release whose ranges hold their start."""


class BothReaders:
    """Two readers of one table."""

    def __init__(
        self, base: Path, hudi: HudiOracle, numbers: random.Random, options: Mapping[str, str]
    ) -> None:
        """numbers: chooses ranges and moments. options: of pyhudi's handle."""
        self._base = base
        self._hudi = hudi
        self._numbers = numbers
        self._options = options
        self._moments: dict[str, list[str]] = {}
        """The rows after each step, by the newest requested time."""
        self.compared: Counter[str] = Counter()
        """How often both gave an answer, by kind of read."""

    def check(self, said: str) -> list[Row]:
        """Compares all reads; the rows that there are, by column."""
        table = self.open()
        rows = self._snapshots(table, said)
        commits = table.state.timeline.commits
        self._remember(commits, rows)
        self._past(table, said)
        if len(commits) > 1:
            start, end = self._range(table)
            self._incremental(table, start, end, f"{said}, incremental {start} to {end}")
            if table.config.cdc_enabled and not table.config.drop_partition_columns:
                self._changes(table, start, end, f"{said}, changes {start} to {end}")
        self._difference(table, said)
        return rows

    def open(self, **options: str) -> HudiTable:
        """The table as it is now."""
        return pyhudi.open_table(self._base, options={**self._options, **options})

    # ------------------------------------------------------------ the reads

    def _snapshots(self, table: HudiTable, said: str) -> list[Row]:
        theirs = self._hudi.read(self._base, meta=True)["rows"]
        _same(table.scan(meta_fields=True).to_arrow(), theirs, f"{said}, snapshot")
        self.compared["snapshot"] += 1
        rows = encode_table(table.scan().to_arrow())
        wanted = [canonical(row) for row in rows]
        unlisted = self.open(**{"hoodie.metadata.enable": "false"})
        for other in (table, unlisted):
            one, two = (_texts(other.scan(where=f"v {sign} 40")) for sign in ("<", ">="))
            nulls = _texts(other.scan(where="v IS NULL"))
            assert difference([*one, *two, *nulls], wanted) is None, f"{said}, filtered"
        return rows

    def _past(self, table: HudiTable, said: str) -> None:
        for moment in self._some_moments(2):
            rows = _travelled(table, moment)
            if rows is None:
                _assert_cleaned(table, f"{said}, as of {moment}")
                continue
            how = difference(rows, self._moments[moment])
            assert how is None, f"{said}, pyhudi as of {moment}: {how}"
        if table.version < 8 and table.type == "mor":  # it goes by modification times there
            return
        for moment in self._some_moments(1):
            theirs = self._theirs(as_of=moment, meta=False)
            if theirs is not None:
                how = difference(map(canonical, theirs), self._moments[moment])
                assert how is None, f"{said}, Hudi as of {moment}: {how}"
                self.compared["as_of"] += 1

    def _incremental(self, table: HudiTable, start: str, end: str, said: str) -> None:
        theirs = self._ranged(table, start, end, query="incremental", options=_NO_FALLBACK)
        scan = table.incremental(start, end, meta_fields=True, fallback_full_scan=False)
        try:
            ours = scan.to_arrow()
        except HistoryUnavailable:
            assert theirs is None, f"{said}: pyhudi refuses what Hudi answers"
            return
        if theirs is not None:
            _same(ours, _without_lost(theirs, ours) if table.type == "mor" else theirs, said)
            self.compared["incremental"] += 1

    def _changes(self, table: HudiTable, start: str, end: str, said: str) -> None:
        theirs = self._ranged(table, start, end, query="cdc", meta=True)
        try:
            ours = table.changes(start, end, images="json").to_arrow().to_pylist()
        except HistoryUnavailable:
            assert theirs is None, f"{said}: pyhudi refuses what Hudi answers"
            return
        if theirs is not None:
            broken = broken_columns(theirs)
            how = difference(comparable(ours, broken), comparable(theirs, broken))
            assert how is None, f"{said}: {how}"
            self.compared["changes"] += 1

    def _difference(self, table: HudiTable, said: str) -> None:
        a, b = (*self._some_moments(1), *self._some_moments(1))
        try:
            rows = encode_table(table.diff(a, b).to_arrow())
        except HistoryUnavailable:
            _assert_cleaned(table, f"{said}, diff of {a} and {b}")
            return
        old = Counter(canonical(row["before"]) for row in rows if row["before"])
        new = Counter(canonical(row["after"]) for row in rows if row["after"])
        before, after = Counter(self._moments[a]), Counter(self._moments[b])
        assert not old - before, f"{said}, diff of {a} and {b}: {old - before}"
        how = difference((before - old + new).elements(), after.elements())
        assert how is None, f"{said}, diff of {a} and {b}: {how}"

    # ------------------------------------------------------------ moments and ranges

    def _remember(self, commits: tuple[Instant, ...], rows: list[Row]) -> None:
        """Forgets what was rolled back; what was archived stays."""
        known = {one.requested for one in commits}
        first = min(known)
        self._moments = {at: of for at, of in self._moments.items() if at in known or at < first}
        self._moments[max(known)] = [canonical(row) for row in rows]

    def _some_moments(self, count: int) -> list[str]:
        moments = sorted(self._moments)
        return self._numbers.sample(moments, min(count, len(moments)))

    def _range(self, table: HudiTable) -> tuple[str, str]:
        """A range of the active timeline, by the times that the table's version goes by."""
        commits = table.state.timeline.commits
        times = [(one.completed if table.version >= 8 else one.requested) for one in commits]
        start, end = sorted(self._numbers.sample([time for time in times if time], 2))
        return start, end

    def _ranged(self, table: HudiTable, start: str, end: str, **how: Any) -> list[Row] | None:
        begin = str(int(start) + 1) if self._hudi.hudi == INCLUSIVE else start
        return self._theirs(begin=begin, end=end, **how)

    def _theirs(self, *, meta: bool = True, **how: Any) -> list[Row] | None:
        """Hudi's rows, None where it fails."""
        try:
            rows: list[Row] = self._hudi.read(self._base, meta=meta, **how)["rows"]
        except HudiError:
            return None
        return rows


def _travelled(table: HudiTable, moment: str) -> list[str] | None:
    try:
        return _texts(table.scan(as_of=moment))
    except HistoryUnavailable:
        return None


def _texts(scan: Any) -> list[str]:
    return [canonical(row) for row in encode_table(scan.to_arrow())]


def _same(ours: pa.Table, theirs: list[Row], said: str) -> None:
    columns = list(theirs[0]) if theirs else ours.column_names
    mine: Iterable[str] = map(canonical, encode_table(ours, columns))
    how = difference(mine, map(canonical, theirs))
    assert how is None, f"{said}: {how}"


def _without_lost(theirs: list[Row], ours: pa.Table) -> list[Row]:
    """Without late records that Hudi shows though they lost to a row of the range (reading.md)."""
    known = {*map(canonical, encode_table(ours, list(theirs[0])))} if theirs else set()
    return [row for row in theirs if row["ts"] != LATE or canonical(row) in known]


def _assert_cleaned(table: HudiTable, said: str) -> None:
    timeline = table.state.timeline
    cleaned = timeline.completed(CLEAN) or timeline.archive.last_clean()
    assert cleaned, f"{said}: refused, and nothing was cleaned"
