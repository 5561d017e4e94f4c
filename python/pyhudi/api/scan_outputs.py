"""Outputs of a scan for other engines. Each method is one call to the module that does the work.

Unlike the outputs of all lazy rows, an engine can choose columns and rows here before they are
read, or read them itself.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc

from pyhudi.api.outputs import Outputs, require_extra
from pyhudi.config import argument_checks as arg
from pyhudi.config.formatting import count_text
from pyhudi.errors import ConfigError, SchemaMismatch
from pyhudi.input.python_objects import as_numpy, is_tensor
from pyhudi.input.vectors import is_vector
from pyhudi.slices.task_packing import PackSizes, split_tasks

if TYPE_CHECKING:
    import duckdb
    import polars as pl

    from pyhudi.api.dataset import HudiDataset
    from pyhudi.api.scan import Scan
    from pyhudi.api.splits import Split

Metric: TypeAlias = Literal["l2", "cosine", "dot"]


class ScanOutputs(Outputs):
    """Lazy rows of a table, of which engines can read only what they need."""

    def to_polars_lazy(self) -> pl.LazyFrame:
        """Return the rows as a polars LazyFrame.

        Each query on it reads again: only the columns that it needs, no file or row group that its
        filters exclude, and no more rows than it uses. Needs the extra `polars`.

        Returns:
            The LazyFrame. While it is collected, polars passes errors on unchanged; older releases
            raise a `ComputeError` with their text.

        Raises:
            ConfigError: polars is not installed, or older than 1.35.
        """
        require_extra("polars")
        from pyhudi.api.polars_source import lazy_frame  # noqa: PLC0415 - an extra

        return lazy_frame(cast("Scan", self))

    @arg.check_arguments()
    def nearest(self, column: str, vector: Any, k: int, *, metric: Metric = "l2") -> pa.Table:
        """Return the rows whose VECTOR in a column is nearest to a vector.

        pyhudi measures every row of the scan, after its filter and merged as in any scan. Rows
        without a vector are ignored. Hudi's `hudi_vector_search` uses the same measures.

        Args:
            column: a VECTOR column; the scan's columns need not include it.
            vector: a list, an array or a tensor with as many numbers as the column's vectors.
            k: maximum number of rows.
            metric: "l2" (the length of the difference), "cosine" (1 minus the cosine of the angle)
                or "dot" (the negated dot product).

        Returns:
            The rows, nearest first, with the column `_hudi_distance` after the scan's own.

        Raises:
            SchemaMismatch: there is no such VECTOR column, or the vector has another length.
            ConfigError: the scan has a limit, or another argument is wrong.
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice.
            CorruptTable: a file is damaged or missing.
        """
        return nearest_rows(cast("Scan", self), column, vector, k, metric)

    @arg.check_arguments()
    def read_blob(
        self, column: str, *, storage_options: Mapping[str, object] | None = None
    ) -> pa.RecordBatchReader:
        """Return the rows with the bytes of a BLOB column instead of its structs.

        The bytes of an INLINE BLOB are in the row. Those of an OUT_OF_LINE BLOB are read from the
        file that its reference names: `length` bytes from `offset` on, or the whole file if the
        reference has neither. Hudi's SQL function `read_blob` returns the same bytes. A reference
        can name any file that you can read, so use references of writers that you trust only.

        Args:
            column: a BLOB column; the scan's columns need not include it.
            storage_options: options for the buckets that references name. By default the table's
                own for a bucket of the same provider, else those of the environment.

        Returns:
            A stream of batches, in which the column is `binary`. A batch has at most 64 MiB of
            BLOBs, unless a single BLOB is larger.

        Raises:
            ConfigError: an argument is wrong; or, while you read the stream, a referenced bucket
                does not have a storage option.
            SchemaMismatch: there is no such BLOB column.
            MissingFile: a referenced file does not exist; raised while you read the stream.
            CorruptTable: a referenced file is too short, or a BLOB has neither bytes nor a
                reference; raised while you read the stream.
            UnsupportedTableFeature: pyhudi does not support the storage that a reference names, or
                a BLOB has 2 GiB or more; raised while you read the stream.
        """
        from pyhudi.api.read_blob import blob_reader  # noqa: PLC0415 - few scans need it

        return blob_reader(cast("Scan", self), column, storage_options)

    @arg.check_arguments()
    def to_dataset(self, *, sql_floats: bool = False) -> HudiDataset:
        """Return the rows as a `pyarrow.dataset.Dataset`, for engines that accept one.

        Each scan of the dataset reads again: only the requested columns, and no file or row group
        that the filter excludes.

        Args:
            sql_floats: filters compare floating-point numbers as SQL does: NaN equals itself and is
                greater than any other number. Use it for engines that compare so and rely on the
                dataset. By default filters compare as pyarrow does: no comparison with NaN but !=
                is true.

        Returns:
            The dataset.

        Raises:
            ConfigError: `sql_floats` is neither true nor false.
        """
        from pyhudi.api.dataset import HudiDataset  # noqa: PLC0415 - pyarrow.dataset takes a while

        return HudiDataset(cast("Scan", self), sql_floats=sql_floats)

    @arg.check_arguments()
    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection, name: str
    ) -> duckdb.DuckDBPyConnection:
        """Register the rows as a view of a DuckDB connection; each query reads them again.

        A query reads only the columns that it needs, and no file or row group that its filters
        exclude. Needs the extra `duckdb`.

        Args:
            connection: connection that gets the view.
            name: name of the view.

        Returns:
            The connection.

        Raises:
            ConfigError: `connection` is not a DuckDB connection; or DuckDB is 1.1 and a column is
                decimal, which that release compares with wrong numbers.
        """
        check_duckdb(self.schema)
        return connection.register(name, self.to_dataset(sql_floats=True))

    @arg.check_arguments()
    def splits(self, max_bytes: int | None = None) -> list[Split]:
        """Split the scan into parts that can be read separately, also in other processes.

        Each part can be pickled, and has the outputs of a scan, such as `to_reader()` and
        `to_arrow()`. Together the parts have all rows of the scan, in its order.

        Args:
            max_bytes: split a larger base file without log files at its row groups, into parts of
                about this size, but at least 4 MiB; by default a file slice is one part.

        Returns:
            The parts, by partition and file group; an empty list if the scan has no file to read.

        Raises:
            ConfigError: the scan has a limit, which applies to all parts together, or `max_bytes`
                is less than 1.
            UnsupportedTableFeature: pyhudi does not support the merge rule of a slice.
            HistoryUnavailable: an incremental range cannot be read completely.
            CorruptTable: the timeline or the metadata table is damaged.
        """
        from pyhudi.api.splits import Split  # noqa: PLC0415 - few scans are split

        scan = cast("Scan", self)
        if scan.request.limit is not None:
            raise ConfigError(
                "a scan with a limit cannot be split: it counts over all parts",
                hint="Leave the limit out, and stop when you have enough rows.",
            )
        if max_bytes is not None and max_bytes < 1:
            raise ConfigError(f"max_bytes is {max_bytes}; it must be at least 1")
        tasks: Sequence[Any] = scan.tasks
        if max_bytes is not None:
            tasks = split_tasks(tasks, PackSizes(max_bytes=max_bytes))
        return [Split(task, scan.table_name) for task in tasks]


def check_duckdb(schema: pa.Schema) -> None:
    """Raise `ConfigError` for columns whose rows DuckDB 1.1 reads wrongly from all pyarrow data."""
    decimals = [field.name for field in schema if pa.types.is_decimal(field.type)]
    version = getattr(sys.modules.get("duckdb"), "__version__", "")
    if decimals and version.startswith("1.1."):
        raise ConfigError(
            f"DuckDB {version} returns wrong rows for the decimal column {', '.join(decimals)}",
            hint="Use DuckDB 1.2 or later.",
        )


DISTANCE = "_hudi_distance"
"""The name of the column in Hudi's `hudi_vector_search`."""
METRICS = ("l2", "cosine", "dot")


def nearest_rows(scan: Scan, column: str, vector: Any, k: int, metric: str) -> pa.Table:
    """Return the rows of a scan with the nearest vectors; see `Scan.nearest`."""
    query = _query(scan, column, vector)
    if metric not in METRICS:
        raise ConfigError(f"metric is {metric!r}", hint='Pass "l2", "cosine" or "dot".')
    if k < 1:
        raise ConfigError(f"k is {k}", hint="Pass an integer of at least 1.")
    if scan.request.limit is not None:
        raise ConfigError("limit and nearest cannot be combined", hint="Give k alone.")
    output = scan.request.output
    if DISTANCE in output:
        msg = f"the scan has a column {DISTANCE!r}, the name of the column of distances"
        raise ConfigError(msg, hint="Choose other columns.")
    if column not in output:
        request = replace(scan.request, output=(*output, column))
        scan = replace(scan, request=request)
    return _search(scan, column, query, k, metric).select([*output, DISTANCE])


def _query(scan: Scan, column: str, vector: Any) -> list[float]:
    columns = scan.table_schema
    if column not in columns.names:
        raise SchemaMismatch(f"the table has no column {column!r}")
    field = columns.field(column)
    if not is_vector(field):
        msg = f"column {column!r} is {field.type}, not VECTOR"
        raise SchemaMismatch(msg, hint="Name a column of the type pyhudi.vector(…).")
    values = as_numpy(vector) if is_tensor(vector) else vector
    try:
        query = pa.array(values, pa.float64(), from_pandas=False)
    except (pa.ArrowException, TypeError, ValueError) as error:
        msg = f"the vector to search by is not a list of numbers: {error}"
        raise SchemaMismatch(msg) from error
    if query.null_count or len(query) != field.type.list_size:
        size = field.type.list_size
        numbers = count_text(len(query), "number")
        msg = f"the vector to search by has {numbers}, column {column!r} has {size}"
        raise SchemaMismatch(msg, hint=f"Give {count_text(size, 'number')} without null.")
    return list(query.to_pylist())


def _search(scan: Scan, column: str, query: list[float], k: int, metric: str) -> pa.Table:
    from pyhudi import _native  # noqa: PLC0415 - planning needs no core

    schema = scan.schema.append(pa.field(DISTANCE, pa.float64(), nullable=False))
    nearest = schema.empty_table()
    within = None
    for batch in scan.to_reader():
        rows, distances = _native.nearest_rows(
            batch.column(column), query, k, metric=metric, within=within
        )
        if not len(rows):
            continue
        matches = pa.Table.from_batches([batch.take(rows)])
        matches = matches.append_column(schema.field(DISTANCE), distances)
        both = pa.concat_tables([nearest, matches.cast(schema)])
        # NaN sorts after all numbers, as in Spark.
        order = pc.sort_indices(both.column(DISTANCE))
        nearest = both.take(order[:k]).combine_chunks()
        if nearest.num_rows == k:
            within = nearest.column(DISTANCE)[-1].as_py()
    return nearest
