"""The verbs of a table handle for people who look: rows, a count, a page about it. Thin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa

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
    """What `HudiTable` shows of its table.

    It can be handed to anything that takes Arrow streams (`__arrow_c_stream__`), any number of
    times.
    """

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        raise NotImplementedError

    @property
    def state(self) -> TableSnapshot:
        """What reads of the handle are planned from."""
        raise NotImplementedError

    def scan(self, columns: Sequence[str] | None = None, where: Any = None) -> Scan:
        """The table's rows."""
        raise NotImplementedError

    def to_reader(self) -> pa.RecordBatchReader:
        """All rows as a stream: `scan()` chooses columns and rows.

        Returns:
            Their batches. It raises what `head` does, as the next three do.
        """
        return self.scan().to_reader()

    def to_arrow(self, columns: Sequence[str] | None = None, where: Any = None) -> pa.Table:
        """All rows in memory.

        Args:
            columns: as `scan` takes them.
            where: as `scan` takes it.

        Returns:
            One table.
        """
        return self.scan(columns, where).to_arrow()

    def to_pandas(
        self, columns: Sequence[str] | None = None, where: Any = None, **how: Any
    ) -> pd.DataFrame:
        """All rows as a pandas DataFrame. Needs the extra `pandas`.

        Args:
            columns: as `scan` takes them.
            where: as `scan` takes it.
            how: as `Scan.to_pandas` takes it.

        Returns:
            The rows.

        Raises:
            ConfigError: pandas is not installed, or `how` does not fit.
        """
        return self.scan(columns, where).to_pandas(**how)

    def to_polars(self, columns: Sequence[str] | None = None, where: Any = None) -> pl.DataFrame:
        """All rows as a polars DataFrame. Needs the extra `polars`.

        Args:
            columns: as `scan` takes them.
            where: as `scan` takes it.

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
        """The first rows, read from as few files as they need.

        Args:
            n: at most so many rows.

        Returns:
            The rows, by partition and file group; `scan().head()` chooses columns and rows.

        Raises:
            ConfigError: `n` is no number of rows, or the engine gives no Arrow stream.
            UnsupportedTableFeature: pyhudi lacks the merge rule of a slice.
            HistoryUnavailable: files of the handle's moment have been cleaned.
            CorruptTable: a file is damaged or missing.
        """
        return self.scan().head(n)

    def count(self, where: Any = None) -> int:
        """How many rows there are. Only columns that matter for it are read.

        Args:
            where: a filter, as in `scan`; None for all rows.

        Returns:
            The number of rows.

        Raises:
            SchemaMismatch: the filter does not fit the schema.
            ConfigError: the filter is none, or the engine gives no Arrow stream.
            UnsupportedTableFeature: pyhudi lacks the merge rule of a slice.
            HistoryUnavailable: files of the handle's moment have been cleaned.
            CorruptTable: a file is damaged or missing.
        """
        return self.scan(where=where).count()

    def report(self, to: str | os.PathLike[str] | IO[str] | IO[bytes]) -> str:
        """Writes a page about the table: one HTML file that needs no network, for any browser.

        It shows the timeline, partitions and file groups by size with their share of log files,
        indexes and the metadata table, growth over commits, what is worth doing and why, and the
        recent history. No data file is read. Of a large table the page has the newest instants and
        the largest partitions, and says so.

        Args:
            to: the file to write, which is replaced, or an open file.

        Returns:
            The path that was written; of an open file the text.

        Raises:
            ConfigError: `to` is neither a path nor an open file.
            CorruptTable: the timeline is damaged. Damage in a part that the page can do without is
                told on it.
            StorageError: storage fails.
        """
        from pyhudi.api.display.report import write_report  # noqa: PLC0415 - only for this

        return write_report(self.state, to)

    def __len__(self) -> int:
        """How many rows there are: `count()`, so it reads the files, anew each time."""
        return self.count()

    def __bool__(self) -> bool:
        """True, and nothing is read: without it Python would take `if table:` for `len(table)`."""
        return True

    def __repr__(self) -> str:
        config, timeline = self.config, self.state.timeline
        said = [f"{'mor' if config.is_merge_on_read else 'cow'}, version {config.version.code}"]
        if config.record_key_fields:
            said.append(f"key {names_text(config.record_key_fields)}")
        if config.partition_fields:
            said.append(f"partitioned by {names_text(config.partition_fields)}")
        last = timeline.last_commit
        said.append(f"last commit {instant_text(last.requested)}" if last else "no commit yet")
        if timeline.bound is not None:
            said.append(f"as of {instant_text(timeline.bound)}")
        return f"<HudiTable {config.name!r} at {self.state.storage.uri}: {', '.join(said)}>"

    def _repr_html_(self) -> str:
        from pyhudi.api.display.table_html import table_html  # noqa: PLC0415 - only for notebooks

        return table_html(self.state)
