"""Streams of commits for Spark 4: `spark.readStream.format("pyhudi")`.

An offset is the time of the last commit that was read, so that a batch is an incremental query, or
one of changes, between two offsets: Spark stores them in its checkpoint, and a batch that is read
again has the same rows. The only state outside of the offsets is how far a reader has come, if
Spark does not pass it: a commit that was read can be rolled back, and is then no longer the newest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from pyhudi.api.table import HudiTable
from pyhudi.errors import ConfigError
from pyhudi.query.commit_range import by_completion_times, range_start
from pyhudi.query.stream_progress import StepLimit, newest_time, next_time, order_of
from pyhudi.slices.task_packing import PackSizes
from pyhudi.spark.source_options import Query
from pyhudi.spark.source_partitions import partitions_of, read_partition
from pyhudi.spark.task_errors import wrap_exceptions
from pyhudi.timeline.named_instants import PlainTime

try:
    from pyspark.sql.streaming import datasource as limits
except ImportError:  # Spark 4.0 and 4.1 have no limits
    limits = None


Offset = dict[str, str]
"""`after`: the time, "" for the beginning; `by`: type of the times, which detects an upgrade;
`initial`: set in the first offset of a query."""

_BASES = (DataSourceStreamReader,) + ((limits.SupportsTriggerAvailableNow,) if limits else ())


def stream_query(options: Mapping[str, str]) -> Query:
    """Return the query of a stream; `query_type` is incremental (the default) or cdc.

    Raises as `Query.of`, and `ConfigError` for limits that this Spark does not support.
    """
    if not any(name.lower().endswith(("query_type", "query.type")) for name in options):
        options = {**options, "query_type": "incremental"}
    query = Query.of(options, stream=True)
    if query.query_type not in ("incremental", "cdc"):
        raise ConfigError(f"a stream has the query type incremental or cdc, not {query.query_type}")
    if limits is None and (query.max_instants_per_batch or query.max_bytes_per_batch):
        raise ConfigError(
            "max_instants_per_batch and max_bytes_per_batch need Spark 4.2 or later",
            hint="Earlier releases do not tell a source where the next batch begins.",
        )
    # Wait for a commit that is pending now.
    return replace(query, hollow_commits="block")


class HudiStreamReader(*_BASES):  # type: ignore[misc]
    """A stream of the rows that commits wrote, or of their changes."""

    def __init__(self, query: Query, schema: StructType, sizes: PackSizes) -> None:
        self.query = query
        self.schema = schema
        self.sizes = sizes
        self.until: str | None = None
        """The newest time when a query that ends was started, None for an endless query."""
        self.reached: Offset | None = None
        """The latest offset that was returned, or that a batch ended with."""

    @wrap_exceptions()
    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's names
        """Return where a new query begins: `begin`, by default before the first commit."""
        table = self.query.table()
        # It differs from all later offsets, so that there is a first batch, and Spark stores it.
        return self._reach({**_offset(table, self._begin(table)), "initial": "true"})

    def _begin(self, table: HudiTable) -> str | None:
        if self.query.begin == "latest":
            return newest_time(table.state)
        by_completion = by_completion_times(table.state)
        return range_start(table.state, self.query.begin, by_completion=by_completion)

    @wrap_exceptions()
    def latestOffset(self, start: Offset | None = None, limit: Any = None) -> Offset:  # noqa: N802
        """Return where the next batch ends. Spark before 4.2 passes neither argument."""
        table = self.query.table()
        start = start or self.reached
        after = _time(table, start) if start else self._begin(table)
        step = None
        if limit is not None and not isinstance(limit, limits.ReadAllAvailable):
            step = StepLimit(self.query.max_instants_per_batch, self.query.max_bytes_per_batch)
        return self._reach(_offset(table, next_time(table.state, after, self.until, step)))

    def getDefaultReadLimit(self) -> Any:  # noqa: N802
        """Return the options' limit. Spark has no limit of instants: they are passed as files."""
        if self.query.max_instants_per_batch is not None:
            return limits.ReadMaxFiles(self.query.max_instants_per_batch)
        if self.query.max_bytes_per_batch is not None:
            return limits.ReadMaxBytes(self.query.max_bytes_per_batch)
        return limits.ReadAllAvailable()

    @wrap_exceptions()
    def reportLatestOffset(self) -> Offset:  # noqa: N802
        """Return the newest commit."""
        table = self.query.table()
        return _offset(table, newest_time(table.state))

    @wrap_exceptions()
    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Store where the query ends."""
        self.until = newest_time(self.query.table().state) or ""

    @wrap_exceptions()
    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return the packs of one batch."""
        table = self.query.table()
        begin, last = _time(table, start), _time(table, end)
        self._reach(end)
        # The end precedes the beginning if a new reader finds that the last commit was rolled back.
        if last is None or (begin is not None and last <= begin):
            return []
        after = None if begin is None else PlainTime(begin)
        rows = replace(self.query, begin=after, end=PlainTime(last)).rows(table)
        return partitions_of(rows, self.schema, self.sizes)

    def _reach(self, offset: Offset) -> Offset:
        if self.reached is None or offset["after"] > self.reached["after"]:
            self.reached = offset
        return offset

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one pack."""
        return read_partition(partition)


def _offset(table: HudiTable, time: str | None) -> Offset:
    return {"after": time or "", "by": order_of(table.state)}


def _time(table: HudiTable, offset: Offset) -> str | None:
    by = order_of(table.state)
    if offset["by"] != by:
        raise ConfigError(
            f"the stream's offset is a {offset['by']} time, and the table has {by} times now",
            hint="The table's version was changed: start a new query, with `begin`.",
        )
    return offset["after"] or None
