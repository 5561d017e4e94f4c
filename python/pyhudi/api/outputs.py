"""What can be had from lazy rows: Arrow, pandas, polars, DuckDB, a count. Reads nothing itself.

`Scan`, `Changes` and `Diff` give their rows as a stream; everything else follows from it here.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from pyhudi.config import arguments as arg
from pyhudi.engine.plugins import spark
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConfigError
from pyhudi.schema.lazy_rows import LazyRows

Task = TypeVar("Task")

if TYPE_CHECKING:  # Each is an extra.
    import duckdb
    import pandas as pd
    import polars as pl


class Outputs(LazyRows):
    """Rows that are described but not read.

    They can be handed to anything that takes Arrow streams (`__arrow_c_stream__`), any number of
    times.
    """

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of the result, in order."""

    @abstractmethod
    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream.

        Returns:
            Their batches.
        """

    def to_arrow(self) -> pa.Table:
        """All rows in memory.

        Returns:
            One table. It raises what `to_reader` does, as all outputs do.
        """
        return self.to_reader().read_all()

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame. Needs the extra `pandas`.

        Returns:
            The rows, under pyarrow's mapping of types.

        Raises:
            ConfigError: pandas is not installed.
        """
        _need("pandas")
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """All rows as a polars DataFrame. Needs the extra `polars`.

        Returns:
            The rows.

        Raises:
            ConfigError: polars is not installed.
        """
        _need("polars")
        import polars as pl  # noqa: PLC0415 - an extra

        return pl.DataFrame(self.to_arrow())

    @arg.checked(connection=arg.duckdb_connection, name=arg.text)
    def to_duckdb(
        self, connection: duckdb.DuckDBPyConnection, name: str
    ) -> duckdb.DuckDBPyConnection:
        """Makes the rows a view of a DuckDB connection; each query on it reads anew.

        Needs the extra `duckdb`.

        Args:
            connection: where the view is to be.
            name: of the view.

        Returns:
            The connection.

        Raises:
            ConfigError: `connection` is none.
        """
        return connection.register(name, self)

    def to_spark(self) -> Any:
        """The rows as a Spark DataFrame, of a table that was opened with a `SparkEngine`.

        Planned now, read by the executors at each action; see `pyhudi.spark.read`.

        Returns:
            The DataFrame.

        Raises:
            ConfigError: the table was opened with another engine.
            UnsupportedTableFeature: Spark lacks a type.
        """
        return spark("frames").frame_of(self)

    def count(self) -> int:
        """How many rows there are.

        Returns:
            The number of rows.
        """
        return sum(batch.num_rows for batch in self.to_reader())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The Arrow PyCapsule stream of the rows."""
        return self.to_reader().__arrow_c_stream__(requested_schema)


def _need(extra: str) -> None:
    if find_spec(extra) is None:
        raise ConfigError(f"{extra} is not installed", hint=f"pip install 'pyhudi[{extra}]'")


def stream(
    engine: Engine,
    work: Callable[[Task], Iterator[pa.RecordBatch]],
    tasks: Sequence[Task],
    schema: pa.Schema,
    label: str,
) -> pa.RecordBatchReader:
    """The rows of all tasks. Raises `ConfigError` on an engine that gives no Arrow stream."""
    rows: Any = engine.scan(work, tasks, schema, label=label)
    if not isinstance(rows, pa.RecordBatchReader):
        raise ConfigError(
            f"{type(engine).__name__} does not give Arrow streams",
            hint="On Spark take to_spark(), or pyhudi.spark.read(spark, uri).",
        )
    return rows


def check_limit(limit: Any) -> None:
    """Raises `ConfigError` for what is no number of rows."""
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise ConfigError(f"limit is {limit!r}", hint="It is a whole number of rows.")
    if limit < 0:
        raise ConfigError(f"limit is {limit}; it must not be negative")


def limited(rows: pa.RecordBatchReader, limit: int | None) -> pa.RecordBatchReader:
    """At most so many of the rows, all for None; what is left is not read."""
    if limit is None:
        return rows

    def batches() -> Iterator[pa.RecordBatch]:
        left = limit
        if left:
            for batch in rows:
                yield batch.slice(0, left)
                left -= min(left, batch.num_rows)
                if not left:
                    break
        rows.close()

    return pa.RecordBatchReader.from_batches(rows.schema, batches())
