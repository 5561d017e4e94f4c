"""Outputs of lazy rows: Arrow, pandas, polars, DuckDB, a count. Nothing is read here.

`Scan`, `Changes` and `Diff` provide a stream of rows; all other outputs use it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from pyhudi.config import argument_checks as arg
from pyhudi.engine.protocol import Engine
from pyhudi.engine.spark_loader import spark
from pyhudi.errors import ConfigError
from pyhudi.input.lazy_rows import LazyRows

Task = TypeVar("Task")

if TYPE_CHECKING:  # Each is an extra.
    import duckdb
    import pandas as pd
    import polars as pl


class Outputs(LazyRows):
    """Rows that are described but not read.

    You can pass them to anything that reads Arrow streams (`__arrow_c_stream__`), any number of
    times.
    """

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the result, in order."""

    @abstractmethod
    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream.

        Returns:
            A reader of the record batches.
        """

    @arg.check_arguments()
    def to_arrow(self) -> pa.Table:
        """Read all rows into memory.

        Returns:
            One table. It raises what `to_reader` raises, as all outputs do.

        Raises:
            ConfigError: an argument is unknown.
        """
        return self.to_reader().read_all()

    @arg.check_arguments()
    def to_pandas(
        self,
        *,
        types_mapper: Callable[[pa.DataType], Any] | None = None,
        dtype_backend: str | None = None,
        **options: Any,
    ) -> pd.DataFrame:
        """Read all rows as a pandas DataFrame. Needs the extra `pandas`.

        Args:
            types_mapper: returns the pandas type of an Arrow type, or None for pyarrow's default.
            dtype_backend: "pyarrow" keeps every column in its Arrow type, including nulls;
                "numpy_nullable" takes pandas' own types with nulls, such as `Int64`.
            options: other options of `pyarrow.Table.to_pandas`, such as `date_as_object`.

        Returns:
            The rows, by default in pyarrow's mapping of types.

        Raises:
            ConfigError: pandas is not installed; `dtype_backend` has another value, or is combined
                with `types_mapper`; or Python cannot hold a date or time.
        """
        require_extra("pandas")
        if dtype_backend is not None:
            if types_mapper is not None:
                msg = f"dtype_backend is {dtype_backend!r}, and there is a types_mapper"
                raise ConfigError(msg, hint="Pass one of them.")
            types_mapper = _types_mapper(dtype_backend)
        rows = self.to_arrow()
        try:
            frame: pd.DataFrame = rows.to_pandas(types_mapper=types_mapper, **options)
        except (OverflowError, ValueError) as error:
            if "out of range" not in str(error):
                raise
            hint = 'Set date_as_object=False or dtype_backend="pyarrow".'
            raise ConfigError(f"pandas cannot hold a date or time: {error}", hint=hint) from error
        return frame

    @arg.check_arguments()
    def to_polars(self) -> pl.DataFrame:
        """Read all rows as a polars DataFrame. Needs the extra `polars`.

        Returns:
            The rows.

        Raises:
            ConfigError: polars is not installed.
        """
        require_extra("polars")
        import polars as pl  # noqa: PLC0415 - an extra

        return pl.DataFrame(self.to_arrow())

    @arg.check_arguments()
    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection, name: str
    ) -> duckdb.DuckDBPyConnection:
        """Register the rows as a view of a DuckDB connection; each query reads them again.

        Needs the extra `duckdb`.

        Args:
            connection: connection that gets the view.
            name: name of the view.

        Returns:
            The connection.

        Raises:
            ConfigError: `connection` is not a DuckDB connection.
        """
        return connection.register(name, self)

    def to_spark(self) -> Any:
        """Return the rows as a Spark DataFrame; the table must be opened with a `SparkEngine`.

        The read is planned now, and run by the executors at each action; see `pyhudi.spark.read`.

        Returns:
            The DataFrame.

        Raises:
            ConfigError: the table was opened with another engine.
            UnsupportedTableFeature: Spark does not support a type.
        """
        return spark("to_dataframe").frame_of(self)

    @arg.check_arguments()
    def count(self) -> int:
        """Count the rows.

        Returns:
            The number of rows.

        Raises:
            ConfigError: an argument is unknown.
        """
        return sum(batch.num_rows for batch in self.to_reader())

    @arg.check_arguments()
    def head(self, n: int = 10) -> pa.Table:
        """Return the first rows, read from as few files as possible.

        Args:
            n: maximum number of rows.

        Returns:
            The rows, in the order of the stream. It raises what `to_reader` raises.

        Raises:
            ConfigError: `n` is negative or not a number, or the engine does not give Arrow streams.
        """
        check_limit(n)
        return self._first_rows(n).read_all()

    def _first_rows(self, max_rows: int) -> pa.RecordBatchReader:
        """Return the first rows as a stream."""
        return limit_rows(self.to_reader(), max_rows)

    def __len__(self) -> int:
        """Return the number of rows: `count()`, which reads the files each time."""
        return self.count()

    def __bool__(self) -> bool:
        """Return true without a read; otherwise Python would call `len(rows)` for `if rows:`."""
        return True

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the Arrow PyCapsule stream of the rows."""
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        """Return the Arrow PyCapsule schema of the rows; nothing is read."""
        return self.schema.__arrow_c_schema__()


def _types_mapper(dtype_backend: str) -> Callable[[pa.DataType], Any]:
    """Return the pandas types of a backend. Raises `ConfigError` for an unknown one."""
    import pandas as pd  # noqa: PLC0415 - an extra

    if dtype_backend == "pyarrow":
        return pd.ArrowDtype
    if dtype_backend != "numpy_nullable":
        hint = 'Pass "pyarrow" or "numpy_nullable", or leave it out.'
        raise ConfigError(f"dtype_backend is {dtype_backend!r}", hint=hint)
    integers = {
        getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")()
        for name in ("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
    }
    others = {
        pa.bool_(): pd.BooleanDtype(),
        pa.float32(): pd.Float32Dtype(),
        pa.float64(): pd.Float64Dtype(),
        pa.string(): pd.StringDtype(),
        pa.large_string(): pd.StringDtype(),
    }
    return {**integers, **others}.get


def require_extra(extra: str, *modules: str) -> None:
    """Raise `ConfigError` if a module of an extra is missing; without modules, the extra's name."""
    for module in modules or (extra,):
        if find_spec(module) is None:
            raise ConfigError(f"{module} is not installed", hint=f"pip install 'pyhudi[{extra}]'")


def stream(
    engine: Engine,
    work: Callable[[Task], Iterator[pa.RecordBatch]],
    tasks: Sequence[Task],
    schema: pa.Schema,
    label: str,
) -> pa.RecordBatchReader:
    """Return the rows of all tasks. Raises `ConfigError` if the engine gives no Arrow stream."""
    rows: Any = engine.scan(work, tasks, schema, label=label)
    if not isinstance(rows, pa.RecordBatchReader):
        raise ConfigError(
            f"{type(engine).__name__} does not give Arrow streams",
            hint="On Spark take to_spark(), or pyhudi.spark.read(spark, uri).",
        )
    return rows


def stream_first(
    engine: Engine,
    work: Callable[[Task], Iterator[pa.RecordBatch]],
    tasks: Sequence[Task],
    schema: pa.Schema,
    label: str,
    limit: int | None,
) -> pa.RecordBatchReader:
    """Return the rows of all tasks, at most `limit` of them; all for None. Raises as `stream`.

    With a limit the engine gets one task, then two, four and so on. An engine reads ahead as many
    tasks as it has threads, which for a few rows would open files that are not needed.
    """
    if limit is None:
        return stream(engine, work, tasks, schema, label)
    first = stream(engine, work, tasks[:1], schema, label)

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first
        begin, size = 1, 2
        while begin < len(tasks):
            yield from stream(engine, work, tasks[begin : begin + size], schema, label)
            begin, size = begin + size, size * 2

    return limit_rows(pa.RecordBatchReader.from_batches(schema, batches()), limit)


def check_limit(limit: Any) -> None:
    """Raise `ConfigError` if a limit is not a number of rows."""
    if limit is None:
        return
    arg.whole("limit", limit)
    if limit < 0:
        raise ConfigError(f"limit is {limit}; it must not be negative")


def limit_rows(rows: pa.RecordBatchReader, limit: int | None) -> pa.RecordBatchReader:
    """Return at most `limit` rows, all for None; the rest is not read."""
    if limit is None:
        return rows

    def batches() -> Iterator[pa.RecordBatch]:
        remaining = limit
        if remaining:
            for batch in rows:
                yield batch.slice(0, remaining)
                remaining -= min(remaining, batch.num_rows)
                if not remaining:
                    break
        rows.close()

    return pa.RecordBatchReader.from_batches(rows.schema, batches())
