"""What can be had from a scan in the forms of other engines. Thin: each is one call to who does it.

Unlike the outputs of all lazy rows these let an engine choose columns and rows before they are
read, or read them itself.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import pyarrow as pa

from pyhudi.api.outputs import Outputs, require_extra
from pyhudi.config import argument_checks as arg
from pyhudi.errors import ConfigError
from pyhudi.slices.task_packing import PackSizes, split_tasks

if TYPE_CHECKING:  # Each is an extra, or takes long to import.
    import duckdb
    import polars as pl

    from pyhudi.api.dataset import HudiDataset
    from pyhudi.api.scan import Scan
    from pyhudi.api.splits import Split


Metric: TypeAlias = Literal["l2", "cosine", "dot"]


class ScanOutputs(Outputs):
    """Rows of a table that are described but not read, of which engines can read what they need."""

    def to_polars_lazy(self) -> pl.LazyFrame:
        """The rows as a polars LazyFrame.

        Each query on it reads anew: only the columns that it needs, no file and row group that its
        filters rule out, and no more rows than it takes. Needs the extra `polars`, 1.22 or later.

        Returns:
            The LazyFrame. Errors while it is collected come as polars passes them on: as they are,
            in older releases as a `ComputeError` with their text.

        Raises:
            ConfigError: polars is not installed, or older than 1.22.
        """
        require_extra("polars")
        from pyhudi.api.polars_source import lazy_frame  # noqa: PLC0415 - an extra

        return lazy_frame(cast("Scan", self))

    @arg.check_arguments(column=arg.text, k=arg.whole, metric=arg.text)
    def nearest(self, column: str, vector: Any, k: int, *, metric: Metric = "l2") -> pa.Table:
        """The rows whose VECTOR in a column is nearest to a given one.

        Every row of the scan is measured, after its filter, merged as in any scan. Rows without a
        vector are left out. Hudi's `hudi_vector_search` measures the same.

        Args:
            column: a VECTOR column, which the scan's columns need not have.
            vector: so many numbers as the column's vectors have: a list, an array or a tensor.
            k: how many rows at most.
            metric: "l2" (the length of the difference), "cosine" (1 less the cosine of the angle)
                or "dot" (the dot product, negated).

        Returns:
            The rows, nearest first, with the column `_hudi_distance` after the scan's own.

        Raises:
            SchemaMismatch: there is no such VECTOR column, or the vector is of another length.
            ConfigError: the scan has a limit, or another argument does not fit.
            UnsupportedTableFeature: pyhudi lacks the merge rule of a slice.
            CorruptTable: a file is damaged or missing.
        """
        from pyhudi.api.nearest import nearest_rows  # noqa: PLC0415 - few scans need it

        return nearest_rows(cast("Scan", self), column, vector, k, metric)

    @arg.check_arguments(sql_floats=arg.flag)
    def to_dataset(self, *, sql_floats: bool = False) -> HudiDataset:
        """The rows as a `pyarrow.dataset.Dataset`, for engines that take one.

        Each scan of it reads anew: only the columns that are asked for, no file and row group that
        the filter rules out.

        Args:
            sql_floats: filters compare floating numbers as SQL does, where NaN is equal to itself
                and greater than any other, for engines that say so and leave it to the dataset. By
                default they compare as pyarrow does, where no comparison with NaN but != is true.

        Returns:
            The dataset.

        Raises:
            ConfigError: `sql_floats` is neither true nor false.
        """
        from pyhudi.api.dataset import HudiDataset  # noqa: PLC0415 - pyarrow.dataset takes a while

        return HudiDataset(cast("Scan", self), sql_floats=sql_floats)

    @arg.check_arguments(connection=arg.duckdb_connection, name=arg.text)
    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection, name: str
    ) -> duckdb.DuckDBPyConnection:
        """Makes the rows a view of a DuckDB connection; each query on it reads anew.

        A query reads only the columns that it needs, and no file and row group that its filters
        rule out. Needs the extra `duckdb`.

        Args:
            connection: where the view is to be.
            name: of the view.

        Returns:
            The connection.

        Raises:
            ConfigError: `connection` is none, or DuckDB is 1.1 and a column is decimal, which that
                release compares with other numbers than a query has.
        """
        _check_duckdb(self.schema)
        return connection.register(name, self.to_dataset(sql_floats=True))

    @arg.check_arguments(most_bytes=arg.optional(arg.whole))
    def splits(self, most_bytes: int | None = None) -> list[Split]:
        """The scan cut into parts that can be read apart, also in other processes.

        Each can be pickled, and gives its rows as the scan does: `to_reader()`, `to_arrow()` and
        the like. Together they have all rows of the scan, in its order.

        Args:
            most_bytes: a larger base file without log files is cut between its row groups, into
                parts of about so many bytes, though of at least 4 MiB; by default a file slice is
                one part.

        Returns:
            The parts, by partition and file group; none for a scan that finds no file to read.

        Raises:
            ConfigError: the scan has a limit, which counts over all parts, or `most_bytes` is less
                than 1.
            UnsupportedTableFeature: pyhudi lacks the merge rule of a slice.
            HistoryUnavailable: an incremental range cannot be read in whole.
            CorruptTable: the timeline or the metadata table is damaged.
        """
        from pyhudi.api.splits import Split  # noqa: PLC0415 - few scans are split

        scan = cast("Scan", self)
        if scan.request.limit is not None:
            raise ConfigError(
                "a scan with a limit cannot be split: it counts over all parts",
                hint="Leave the limit out, and stop when you have enough rows.",
            )
        if most_bytes is not None and most_bytes < 1:
            raise ConfigError(f"most_bytes is {most_bytes}; it must be at least 1")
        tasks: list[Any] = scan.tasks
        if most_bytes is not None:
            tasks = split_tasks(tasks, PackSizes(most_bytes=most_bytes))
        return [Split(task) for task in tasks]


def _check_duckdb(schema: pa.Schema) -> None:
    """Raises `ConfigError` for what DuckDB 1.1 finds wrong rows in, in all data of pyarrow."""
    decimals = [field.name for field in schema if pa.types.is_decimal(field.type)]
    version = getattr(sys.modules.get("duckdb"), "__version__", "")
    if decimals and version.startswith("1.1."):
        raise ConfigError(
            f"DuckDB {version} returns wrong rows for the decimal column {', '.join(decimals)}",
            hint="Use DuckDB 1.2 or later.",
        )
