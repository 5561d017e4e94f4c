"""Methods of a table handle for users: rows, a count, a report. The code is thin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.outputs import require_extra
from pyhudi.api.scan import Scan
from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import instant_text, names_text
from pyhudi.config.table_config import TableConfig
from pyhudi.input.lazy_rows import LazyRows
from pyhudi.table.table_snapshot import TableSnapshot

if TYPE_CHECKING:  # Each is an extra.
    import pandas as pd
    import polars as pl


class LookingVerbs(LazyRows):
    """Read methods of `HudiTable`.

    You can pass a handle to anything that reads Arrow streams (`__arrow_c_stream__`), any number of
    times.
    """

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        raise NotImplementedError

    @property
    def state(self) -> TableSnapshot:
        """The snapshot that reads of the handle use."""
        raise NotImplementedError

    def scan(self, columns: Sequence[str] | None = None, where: Any = None) -> Scan:
        """Return a scan of the table's rows."""
        raise NotImplementedError

    def to_reader(self) -> pa.RecordBatchReader:
        """Return all rows as a stream; use `scan()` to choose columns and rows.

        Returns:
            A reader of the record batches. It raises what `head` raises, as the next three methods
            do.
        """
        return self.scan().to_reader()

    def to_arrow(self, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
        """Read all rows into memory.

        Args:
            columns: as in `scan`.
            where: as in `scan`.

        Returns:
            One table.
        """
        return self.scan(columns, where).to_arrow()

    def to_pandas(
        self, columns: Sequence[str] | None = None, where: Any = None, **how: Any
    ) -> pd.DataFrame:
        """Read all rows as a pandas DataFrame. Needs the extra `pandas`.

        Args:
            columns: as in `scan`.
            where: as in `scan`.
            how: arguments of `Scan.to_pandas`.

        Returns:
            The rows.

        Raises:
            ConfigError: pandas is not installed, or an argument of `how` is wrong.
        """
        return self.scan(columns, where).to_pandas(**how)

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

    @arg.check_arguments(n=arg.whole)
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
        require_extra("report", "jinja2", "matplotlib", "squarify")
        from pyhudi.api.report.page import write_report  # noqa: PLC0415 - only for this

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
        from pyhudi.api.display.table_html import table_html  # noqa: PLC0415 - only for notebooks

        return table_html(self.state)
