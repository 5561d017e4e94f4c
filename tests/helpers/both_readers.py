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
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pyhudi
from pyhudi.api.table import HudiTable
from pyhudi.config.actions import CLEAN
from pyhudi.errors import HistoryUnavailable
from pyhudi.query.commit_range import IncrementalRange, select_commits
from pyhudi.query.incremental import COMMIT_TIME
from pyhudi.timeline import Instant
from tests.helpers.images import broken_columns, comparable
from tests.helpers.oracle.client import HudiError, HudiOracle
from tests.helpers.rows import canonical, canonical_rows, difference, encode_table

Row = dict[str, Any]
LATE = 1
"""An ordering value that loses to every stored row."""
NO_FALLBACK = {"hoodie.datasource.read.incr.fallback.fulltablescan.enable": "false"}
"""A full scan stands in for cleaned files, which Hudi takes for gone earlier than pyhudi does."""
PARTITION, KEY = "_hoodie_partition_path", "_hoodie_record_key"
NEWEST = "1.2.0"
"""Earlier releases keep null fields in the images of changes."""
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
                assert_cleaned(table, f"{said}, as of {moment}")
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
        theirs = self._ranged(table, start, end, query="incremental", options=NO_FALLBACK)
        scan = table.incremental(start, end, meta_fields=True, fallback_full_scan=False)
        try:
            ours = scan.to_arrow()
        except HistoryUnavailable:
            assert theirs is None, f"{said}: pyhudi refuses what Hudi answers"
            return
        if theirs is not None:
            if table.type == "mor":
                incremental_range = IncrementalRange(start, end)
                ours, theirs = self._comparable(theirs, ours, table, incremental_range)
            _same(ours, theirs, said, self._partition_columns(table))
            self.compared["incremental"] += 1

    def _comparable(
        self,
        theirs: list[Row],
        ours: pa.Table,
        table: HudiTable,
        incremental_range: IncrementalRange,
    ) -> tuple[pa.Table, list[Row]]:
        """What both releases should give of a range, ours first."""
        return ours, self._without_lost(theirs, ours, table, incremental_range)

    def _partition_columns(self, table: HudiTable) -> tuple[str, ...]:
        """Columns of incremental queries that differ from 1.2.0 (hudi-differences.md)."""
        encoded = table.config.url_encode and self._hudi.hudi == "0.15.0"
        return table.config.partition_fields if encoded else ()

    def _without_lost(
        self,
        theirs: list[Row],
        ours: pa.Table,
        table: HudiTable,
        incremental_range: IncrementalRange,
    ) -> list[Row]:
        """Without late records that Hudi shows though they lost to a row of a base file.

        The base file was written in the range, as a compaction does, and the row before it: Hudi
        drops it before it merges (hudi-differences.md).
        """
        if all(row["ts"] != LATE for row in theirs):
            return theirs
        known = {*map(canonical, encode_table(ours, list(theirs[0])))}
        kept = self._older_rows(table, incremental_range)
        return [
            row
            for row in theirs
            if row["ts"] != LATE
            or canonical(row) in known
            or (row[PARTITION], row[KEY]) not in kept
        ]

    def _older_rows(
        self, table: HudiTable, incremental_range: IncrementalRange
    ) -> set[tuple[str, str]]:
        """Partition and key of rows in base files of a range that no commit of it wrote."""
        chosen = select_commits(table.state, incremental_range)
        stats = (stat for metadata in chosen.metadata for stat in metadata.write_stats)
        files = (self._base / stat.path for stat in stats if stat.path)
        columns = [COMMIT_TIME, PARTITION, KEY]
        return {
            (row[PARTITION], row[KEY])
            for file in files
            if file.suffix == ".parquet" and file.exists()
            for row in pq.ParquetFile(file).read(columns).to_pylist()
            if row[COMMIT_TIME] not in chosen.instants
        }

    def _changes(self, table: HudiTable, start: str, end: str, said: str) -> None:
        theirs = self._ranged(table, start, end, query="cdc", meta=True)
        try:
            ours = table.changes(start, end, images="json").to_arrow().to_pylist()
        except HistoryUnavailable:
            assert theirs is None, f"{said}: pyhudi refuses what Hudi answers"
            return
        if theirs is not None:
            broken = broken_columns(theirs)
            nulls = self._hudi.hudi == NEWEST
            one, two = (comparable(rows, broken, nulls=nulls) for rows in (ours, theirs))
            how = difference(one, two)
            assert how is None, f"{said}: {how}"
            self.compared["changes"] += 1

    def _difference(self, table: HudiTable, said: str) -> None:
        a, b = (*self._some_moments(1), *self._some_moments(1))
        try:
            rows = encode_table(table.diff(a, b).to_arrow())
        except HistoryUnavailable:
            assert_cleaned(table, f"{said}, diff of {a} and {b}")
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
    return canonical_rows(scan.to_arrow())


def _same(ours: pa.Table, theirs: list[Row], said: str, without: tuple[str, ...] = ()) -> None:
    names = list(theirs[0]) if theirs else ours.column_names
    columns = [name for name in names if name not in without]
    mine: Iterable[str] = map(canonical, encode_table(ours, columns))
    how = difference(mine, (canonical({name: row[name] for name in columns}) for row in theirs))
    assert how is None, f"{said}: {how}"


def assert_cleaned(table: HudiTable, said: str) -> None:
    """That a read was refused since the table was cleaned."""
    timeline = table.state.timeline
    cleaned = timeline.filter_completed(CLEAN) or timeline.archive.last_clean()
    assert cleaned, f"{said}: refused, and nothing was cleaned"
