"""The format "pyhudi" of Spark 4: `read`, `readStream`, `write` and `writeStream`.

Only imported if PySpark has Python data sources. Spark calls schema, planning and reading in
different Python workers; a `Query` and packs of read tasks are passed between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyhudi.api.scan import Scan
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.slices.task_packing import PackSizes
from pyhudi.spark.source_filters import pushable
from pyhudi.spark.source_options import Query
from pyhudi.spark.source_partitions import check_schema, partitions_of, read_partition
from pyhudi.spark.task_errors import wrap_exceptions
from pyhudi.spark.types import spark_schema, wire_schema

if TYPE_CHECKING:  # Not every PySpark that reads can write and stream.
    from pyspark.sql.datasource import DataSourceArrowWriter

    from pyhudi.spark.source_stream_write import HudiStreamWriter
    from pyhudi.spark.stream import HudiStreamReader


@dataclass(frozen=True)
class SourceSettings:
    """Settings of the session at the registration of a source."""

    sizes: PackSizes = field(default_factory=PackSizes)
    push_filters: bool = False
    """Whether the session pushes filters into Python sources."""
    case: bool = False
    """Whether the session distinguishes names that differ only in case."""


class HudiDataSource(DataSource):  # type: ignore[misc]
    """The data source; `pyhudi.spark.register_source` makes one with the session's settings.

    Options and their meaning: docs/how-to/spark-read.md.
    """

    settings = SourceSettings()
    format_name = "pyhudi"

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return cls.format_name

    @wrap_exceptions()
    def schema(self) -> StructType:
        """Return the columns of the result; no Spark job is run."""
        return spark_schema(wire_schema(Query.of_schema(dict(self.options)).rows().schema))

    @wrap_exceptions()
    def reader(self, schema: StructType) -> HudiReader:
        """Return the reader of a batch query."""
        query = project_query(Query.of(dict(self.options)), schema)
        reader_class = FilteringReader if self.settings.push_filters else HudiReader
        return reader_class(query, schema, self.settings.sizes)

    @wrap_exceptions()
    def streamReader(self, schema: StructType) -> HudiStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of a stream of commits."""
        from pyhudi.spark.stream import HudiStreamReader, stream_query  # noqa: PLC0415

        query = project_query(stream_query(dict(self.options)), schema)
        return HudiStreamReader(query, schema, self.settings.sizes)

    @wrap_exceptions()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: FBT001
        """Return the writer of a DataFrame, in the modes "append" and "overwrite"."""
        from pyhudi.spark.source_write import writer_of  # noqa: PLC0415
        from pyhudi.spark.source_write_options import SourceWrite  # noqa: PLC0415

        query = SourceWrite.of(dict(self.options))
        return writer_of(query, schema, overwrite=overwrite, case=self.settings.case)

    @wrap_exceptions()
    def streamWriter(self, schema: StructType, overwrite: bool) -> HudiStreamWriter:  # noqa: FBT001, N802
        """Return the writer of a batch of a stream.

        Raises `UnsupportedTableFeature` if Spark passes no Arrow batches to writers of streams.
        """
        if not hasattr(datasource, "DataSourceStreamArrowWriter"):
            raise UnsupportedTableFeature(
                'df.writeStream.format("pyhudi") needs Spark 4.1',
                hint="df.writeStream.foreachBatch(pyhudi.spark.sink(uri)) writes streams.",
            )
        from pyhudi.spark.source_stream_write import stream_writer_of  # noqa: PLC0415
        from pyhudi.spark.source_write_options import SourceWrite  # noqa: PLC0415

        query = SourceWrite.of(dict(self.options))
        return stream_writer_of(query, schema, overwrite=overwrite, case=self.settings.case)


class HudiReader(DataSourceReader):  # type: ignore[misc]
    """Plans a batch query in `partitions` and reads one pack of it in `read`."""

    def __init__(self, query: Query, schema: StructType, sizes: PackSizes) -> None:
        self.query = query
        self.schema = schema
        self.sizes = sizes

    @wrap_exceptions()
    def partitions(self) -> list[InputPartition]:
        """Return a partition for each pack; Spark requires at least one."""
        return partitions_of(self.query.rows(), self.schema, self.sizes) or [InputPartition(None)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one pack."""
        return read_partition(partition)


class FilteringReader(HudiReader):
    """A reader that prunes rows by Spark's filters. Spark applies them again."""

    @wrap_exceptions()
    def pushFilters(self, filters: Sequence[Any]) -> Sequence[Any]:  # noqa: N802 - Spark's name
        """Store the filters that can be applied when files are read; return all of them."""
        rows = self.query.rows()
        if isinstance(rows, Scan):
            self.query = replace(self.query, pushed=pushable(filters, rows.table_schema))
        return filters


def project_query(query: Query, schema: StructType) -> Query:
    """Return the query for the columns that Spark requests, in their order.

    Spark's schema is that of the source when the DataFrame was created, or the user's. Raises
    `SchemaMismatch` if a column is missing or has another type now.
    """
    if query.query_type != "cdc":
        query = replace(query, columns=tuple(schema.names), meta_fields=False)
    check_schema(replace(query, begin=None, end=None).rows().schema, schema)
    return query


def source_class(settings: SourceSettings, name: str) -> type[HudiDataSource]:
    """Return the data source class of a format's name, with settings of a session."""
    return type("SessionSource", (HudiDataSource,), {"settings": settings, "format_name": name})
