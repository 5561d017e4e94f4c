"""Methods of a table handle that read: scans, changes, counts, the report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pyhudi.api.operation_events import as_lazy_operation, as_operation
from pyhudi.api.table_handle import TableHandle
from pyhudi.clock import Moment
from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import instant_text, names_text
from pyhudi.input.lazy_rows import LazyRows

if TYPE_CHECKING:  # Extras, and what scans do not need.
    import pandas as pd
    import polars as pl

    from pyhudi.api.changes import Changes, Diff
    from pyhudi.api.scan import Scan
    from pyhudi.config.memory_size import MemorySize
    from pyhudi.query.commit_range import HollowCommits


class ReadOperations(TableHandle, LazyRows):
    """Read methods of `HudiTable`.

    You can pass a handle to anything that reads Arrow streams (`__arrow_c_stream__`), any number of
    times.
    """

    @arg.check_arguments()
    @as_lazy_operation
    def scan(
        self,
        columns: Sequence[str] | None = None,
        where: Any = None,
        *,
        limit: int | None = None,
        read_optimized: bool = False,
        meta_fields: bool = False,
        as_of: Moment | None = None,
        memory_limit: MemorySize | None = None,
    ) -> Scan:
        """Return a scan of the table's merged rows; nothing is read before you ask for an output.

        Args:
            columns: names in the order of the result; all columns by default.
            where: a SQL expression ("age > 30 AND city = 'osaka'"), a pyarrow expression, or filter
                tuples as in pyarrow; None for all rows.
            limit: maximum number of rows; None for all.
            read_optimized: read base files only, without the newer records in log files.
            meta_fields: include Hudi's meta columns, in front; you can also name single ones in
                `columns`.
            as_of: read the table and its schema as of an earlier time: everything that was
                requested up to that instant. The text of an instant, `yyyy-MM-dd`, `yyyy-MM-dd
                HH:mm:ss[.SSS]`, ISO-8601, seconds or milliseconds since 1970 (10 or 13 digits), a
                date or a datetime. A completion time means its instant. Text without an offset is a
                time in the table's own zone (`hoodie.table.timeline.timezone`); a datetime without
                an offset, and a date, are local time of this machine, as everywhere in Python.
            memory_limit: bytes that log records may take in memory at any time, at least a
                megabyte, as a number or as text such as "512 MiB"; pyhudi spills more of them to
                local files. A quarter of the machine's memory by default.

        Returns:
            The scan, of the handle's snapshot.

        Raises:
            SchemaMismatch: columns or values do not match the schema.
            ConfigError: an argument is not a valid filter, time or number.
            HistoryUnavailable: files of that snapshot have been cleaned, a write requested before
                it is incomplete, or the time is before the first commit.
        """
        from pyhudi.api.scan import new_scan  # noqa: PLC0415 - not needed to open a table

        return new_scan(
            self._snapshot_at(as_of),
            self.engine,
            columns=columns,
            where=where,
            limit=limit,
            read_optimized=read_optimized,
            meta_fields=meta_fields,
            memory_limit=memory_limit,
            key_readers=None if where is None or as_of is not None else self._key_readers,
        )

    @arg.check_arguments()
    @as_operation
    def get(self, keys: Any, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the rows with these record keys.

        A handle keeps what it has read of indexes and file footers, so later calls are faster. You
        can call `get` from several threads.

        Args:
            keys: a list, array or series of values, if the key has one column. For several columns
                a list of tuples, or rows with the key columns. Rows may also have all partition
                columns, to search only their partitions.
            columns: names in the order of the result; all columns by default.

        Returns:
            The rows of the handle's snapshot, in the order of the keys. A key that is not in the
            table has no row, and a key that you give twice counts once. A key that is in several
            partitions has a row for each of them.

        Raises:
            SchemaMismatch: keys or columns do not match the schema, or a key is null.
            UnsupportedTableFeature: the table generates its keys, or pyhudi does not support the
                merge rule of a slice.
            ConfigError: an argument is wrong.
            HistoryUnavailable: files of the handle's snapshot have been cleaned.
            CorruptTable: a file is damaged or missing.
        """
        from pyhudi.api.key_rows import read_key_rows  # noqa: PLC0415 - scans do not need it

        return read_key_rows(self.state, self.engine, self._key_readers, keys, columns)

    @arg.check_arguments()
    @as_lazy_operation
    def incremental(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        columns: Sequence[str] | None = None,
        where: Any = None,
        limit: int | None = None,
        meta_fields: bool = False,
        hollow_commits: HollowCommits = "fail",
        fallback_full_scan: bool | None = None,
        memory_limit: MemorySize | None = None,
    ) -> Scan:
        """Return rows that commits after `start` and up to `end` wrote, in their state at the end.

        Deletes are not included. To read each commit once, start at the `position` of the
        previous range.

        Args:
            start: exclusive. The requested or completion time of an instant of the timeline, active
                or archived, means that instant. Any other time, in a format of `scan`'s `as_of`, is
                compared with requested times below table version 8, and with completion times from
                8 on. If two instants have the time, the one that has it in this comparison is
                meant. None, "earliest" or zeros: from the beginning.
            end: inclusive, in the same formats; None: up to the last commit.
            columns: names in the order of the result; all columns by default.
            where: a filter, as in `scan`.
            limit: maximum number of rows; None for all.
            meta_fields: include Hudi's meta columns, in front.
            hollow_commits: what to do below version 8 if a pending write is older than completed
                ones: "fail", "block" (read only what is before it) or "transition_time" (the range
                is of completion times).
            fallback_full_scan: if files of the range have been cleaned, return those of its rows
                that are still current. None, as in Hudi 1.2.0: from version 8 on, and then with a
                warning.
            memory_limit: bytes, as in `scan`.

        Returns:
            The scan. Its outputs raise `HistoryUnavailable` for a hollow commit under "fail", and
            if files of the range have been cleaned and a full scan may not replace them.

        Raises:
            SchemaMismatch: columns or values do not match the schema.
            ConfigError: an argument is not a valid filter, time or number, or the range ends before
                it begins.
            HistoryUnavailable: the end is before the first commit, or a bound is an instant that is
                not complete.
            UnsupportedTableFeature: the table has no meta columns.
        """
        from pyhudi.api.scan import new_scan  # noqa: PLC0415 - not needed to open a table
        from pyhudi.query import commit_range, incremental  # noqa: PLC0415 - as above

        table = self.state
        by_completion = commit_range.by_completion_times(table, hollow_commits)
        bounds = commit_range.range_bounds(table, start, end, by_completion=by_completion)
        incremental_range = commit_range.IncrementalRange(
            *bounds, hollow_commits, fallback_full_scan
        )
        incremental.check_incremental(table, incremental_range)
        return new_scan(
            table,
            self.engine,
            columns=columns,
            where=where,
            limit=limit,
            meta_fields=meta_fields,
            incremental_range=incremental_range,
            memory_limit=memory_limit,
        )

    @arg.check_arguments()
    @as_lazy_operation
    def changes(
        self,
        start: Moment | None = None,
        end: Moment | None = None,
        *,
        where: Any = None,
        limit: int | None = None,
        images: Literal["struct", "json"] = "struct",
        memory_limit: MemorySize | None = None,
    ) -> Changes:
        """Return what commits changed, record by record, in a table with change data capture.

        Columns: `op` (i, u or d), `ts_ms` (the commit's instant, as in Hudi), `before` and `after`:
        the record's data columns as a struct, or null.

        Args:
            start: exclusive, as in `incremental`; for example the `position` of the previous
                changes.
            end: inclusive, in the same formats; None: up to the last commit.
            where: a filter on the four columns, as in `scan` ("op = 'd' AND before.city =
                'osaka'").
            limit: maximum number of rows; None for all.
            images: "struct", or "json" for Hudi's JSON text.
            memory_limit: bytes that log records, and rows that wait for their other image, may take
                at any time, at least a megabyte. A quarter of the machine's memory by default.

        Returns:
            The changes; nothing is read before you ask for an output.

        Raises:
            UnsupportedTableFeature: the table does not have `hoodie.table.cdc.enabled`.
            HistoryUnavailable: commits of the range were archived, or files of it were cleaned; a
                writer rewrote a file without a change log; the end is before the first commit; a
                bound is an instant that is not complete; or, below version 8, a pending write in
                the range is older than completed ones.
            SchemaMismatch: the filter does not match the columns.
            ConfigError: arguments are wrong, or the range ends before it begins.
        """
        from pyhudi.api.changes import new_changes  # noqa: PLC0415 - not needed for scans

        return new_changes(
            self.state,
            self.engine,
            start=start,
            end=end,
            where=where,
            limit=limit,
            images=images,
            memory_limit=memory_limit,
        )

    @arg.check_arguments()
    @as_lazy_operation
    def diff(self, a: Moment, b: Moment, *, memory_limit: MemorySize | None = None) -> Diff:
        """Return what differs between two snapshots of the table, by record key.

        Columns: `op` (i, u or d), `before` and `after` (the record's data columns as a struct, or
        null), `changed` (of updates, the names of the columns that differ). Only file groups that
        differ are read; change logs are not needed. A record that moved to another partition or
        file group does not count as a delete and an insert. Both sides have the table's current
        columns.

        Args:
            a: time of the earlier snapshot, in a format of `scan`'s `as_of`.
            b: time of the later snapshot, in the same formats.
            memory_limit: bytes that log records and rows of the older side may take at any time, at
                least a megabyte; if they do not fit, files are read once for each part of the keys.
                About 256 MiB for each file group by default.

        Returns:
            The differences; nothing is read before you ask for an output.

        Raises:
            HistoryUnavailable: a snapshot can no longer be read, or is before the first commit.
            ConfigError: `a` or `b` is not a time, or the limit is too small.
            UnsupportedTableFeature: rows have no key, or pyhudi does not support their merge rule.
        """
        from pyhudi.api.changes import new_diff  # noqa: PLC0415 - not needed for scans

        return new_diff(self.state, self.engine, a, b, memory_limit)

    def to_reader(self) -> pa.RecordBatchReader:
        """Return all rows as a stream; use `scan()` to choose columns and rows.

        Returns:
            A reader of the record batches. It raises what `head` raises, as the next three methods
            do.
        """
        return self.scan().to_reader()

    @arg.check_arguments()
    def to_arrow(self, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
        """Read all rows into memory.

        Args:
            columns: as in `scan`.
            where: as in `scan`.

        Returns:
            One table.

        Raises:
            ConfigError: an argument is wrong.
            SchemaMismatch: columns or values do not match the schema.
        """
        return self.scan(columns, where).to_arrow()

    @arg.check_arguments()
    def to_pandas(
        self, columns: Sequence[str] | None = None, where: Any = None, **kwargs: Any
    ) -> pd.DataFrame:
        """Read all rows as a pandas DataFrame. Needs the extra `pandas`.

        Args:
            columns: as in `scan`.
            where: as in `scan`.
            kwargs: arguments of `Scan.to_pandas`.

        Returns:
            The rows.

        Raises:
            ConfigError: pandas is not installed, or an argument is wrong.
        """
        return self.scan(columns, where).to_pandas(**kwargs)

    @arg.check_arguments()
    def to_polars(self, columns: Sequence[str] | None = None, where: Any = None) -> pl.DataFrame:
        """Read all rows as a polars DataFrame. Needs the extra `polars`.

        Args:
            columns: as in `scan`.
            where: as in `scan`.

        Returns:
            The rows.

        Raises:
            ConfigError: polars is not installed.
        """
        return self.scan(columns, where).to_polars()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.scan().__arrow_c_stream__(requested_schema)

    @arg.check_arguments()
    @as_lazy_operation
    def head(self, n: int = 10) -> pa.Table:
        """Return the first rows, read from as few files as possible.

        Args:
            n: maximum number of rows.

        Returns:
            The rows, by partition and file group; use `scan().head()` to choose columns and rows.

        Raises:
            ConfigError: `n` is negative or not a number, or the engine does not give Arrow streams.
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice.
            HistoryUnavailable: files of the handle's snapshot have been cleaned.
            CorruptTable: a file is damaged or missing.
        """
        return self.scan().head(n)

    @arg.check_arguments()
    @as_operation
    def count(self, where: Any = None) -> int:
        """Count the rows. Only the columns of the filter are read.

        Args:
            where: a filter, as in `scan`; None for all rows.

        Returns:
            The number of rows.

        Raises:
            SchemaMismatch: the filter does not match the schema.
            ConfigError: `where` is not a filter, or the engine does not give Arrow streams.
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice.
            HistoryUnavailable: files of the handle's snapshot have been cleaned.
            CorruptTable: a file is damaged or missing.
        """
        return self.scan(where=where).count()

    @as_operation
    def report(self, to: str | os.PathLike[str] | IO[str] | IO[bytes]) -> str:
        """Write a report about the table: one HTML file that needs no network, for any browser.

        The report shows the timeline, partitions and file groups by size with their share of log
        files, indexes and the metadata table, growth by commit, services that are worth running and
        why, and the recent history. No data file is read. For a large table it is limited to the
        newest instants and the largest partitions, and says so.

        Args:
            to: path of the file, which is replaced, or an open file.

        Returns:
            The path of the file; for an open file the text.

        Raises:
            ConfigError: `to` is neither a path nor an open file, or the extra `report` is missing.
            CorruptTable: the timeline is damaged. Other damage is reported on the page.
            StorageError: the storage fails.
        """
        from pyhudi.api.outputs import require_extra  # noqa: PLC0415 - not needed to open a table

        require_extra("report", "jinja2", "matplotlib", "squarify")
        from pyhudi.api.html_report.page import write_report  # noqa: PLC0415 - only for this

        return write_report(self.state, to)

    def __len__(self) -> int:
        """Return the number of rows: `count()`, which reads the files each time."""
        return self.count()

    def __bool__(self) -> bool:
        """Return true without a read; otherwise Python would call `len(table)` for `if table:`."""
        return True

    def __repr__(self) -> str:
        config, timeline = self.config, self.state.timeline
        parts = [f"{'mor' if config.is_merge_on_read else 'cow'}, version {config.version.code}"]
        if config.record_key_fields:
            parts.append(f"key {names_text(config.record_key_fields)}")
        if config.partition_fields:
            parts.append(f"partitioned by {names_text(config.partition_fields)}")
        last = timeline.last_commit
        parts.append(f"last commit {instant_text(last.requested)}" if last else "no commit yet")
        if timeline.bound is not None:
            parts.append(f"as of {instant_text(timeline.bound)}")
        return f"<HudiTable {config.name!r} at {self.state.storage.uri}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        from pyhudi.api.notebook_html.table_html import table_html  # noqa: PLC0415 - only for notebooks

        return table_html(self.state)
