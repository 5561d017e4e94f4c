"""Writes streams: a function for `foreachBatch` that writes each batch once.

The number of a batch is in the extra metadata of its commit, in the format and under the key of
Hudi's own sink (`HoodieStreamingSink`, `CommitUtils.getCheckpointValueAsString`, 1.2.0). A batch
that is on the timeline is skipped when Spark repeats it after a failure.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from pyspark.sql import DataFrame

from pyhudi.api.table import HudiTable, open_table
from pyhudi.config.extra_metadata import STREAM_BATCHES, stream_batch, stream_batches_by_id
from pyhudi.errors import CommitConflict, ConfigError
from pyhudi.spark.engine import SparkEngine
from pyhudi.spark.job_watch import is_connect
from pyhudi.write.idempotency import newest_first

SinkMethod = Literal["upsert", "insert", "bulk_insert", "delete_keys"]

QUERY = "_pyhudi_streaming_sink_query"
"""Entry of a commit with JSON of each stream's Spark query at that time. Hudi ignores it."""
DEFAULT_IDENTIFIER = "default_single_writer"
"""Default of `hoodie.datasource.write.streaming.checkpoint.identifier`."""


@dataclass(frozen=True)
class Sink:
    """Writes batches of one stream to one table. Made by `sink`; picklable."""

    uri: str
    verb: SinkMethod
    identifier: str
    storage_options: Mapping[str, str] | None = field(repr=False)
    options: Mapping[str, object]
    arguments: Mapping[str, Any]

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Write a batch in one commit, unless a commit of its number is on the timeline.

        It is also skipped if another driver, which Spark has started instead of this one, commits
        it first.
        """
        engine = SparkEngine(batch.sparkSession)
        batches = StreamBatches(self.identifier, _query_id(batch))
        table = self._open(engine)
        if batches.has(table, batch_id):
            return
        # Metadata of this commit only, not of the services that follow it.
        commit_entries = {
            **(self.arguments.get("commit_metadata") or {}),
            **batches.entries(batch_id),
        }
        try:
            getattr(table, self.verb)(
                batch, **{**self.arguments, "commit_metadata": commit_entries}
            )
        except CommitConflict:
            if not batches.has(table.refresh(), batch_id):
                raise

    def _open(self, engine: SparkEngine) -> HudiTable:
        return open_table(
            self.uri,
            engine=engine,
            storage_options=self.storage_options,
            options=self.options,
        )


@dataclass(frozen=True)
class StreamBatches:
    """The batches of one stream that the commits of a table name."""

    identifier: str
    query: str | None
    """Spark's id of the query; None if unknown."""

    def entries(self, batch_id: int) -> dict[str, str]:
        """Return the metadata of a batch's commit."""
        entries = {STREAM_BATCHES: json.dumps({self.identifier: str(batch_id)})}
        if self.query:
            entries[QUERY] = json.dumps({self.identifier: self.query})
        return entries

    def has(self, table: HudiTable, batch_id: int) -> bool:
        """Return whether a commit has this batch or a later one.

        Raises `ConfigError` if it is of another query.
        """
        last = next(self._checkpoints(table), None)
        if last is None or batch_id > last[0]:
            return False
        if self.query and last[1] and self.query != last[1]:
            raise ConfigError(
                f"batch {batch_id} of a new query: batch {last[0]} of another one is the last that "
                f"was written under the identifier {self.identifier!r}",
                hint="Give the query the checkpointLocation of the old one, or the sink another "
                "identifier.",
            )
        return True

    def _checkpoints(self, table: HudiTable) -> Iterator[tuple[int, str | None]]:
        """Yield batch and query of the stream's commits, newest first; archived ones come last."""
        for instant, metadata in newest_first(table.state.storage, table.config):
            entries = metadata.extra_metadata
            batch = stream_batch(entries, self.identifier, instant)
            if batch is not None:
                yield batch, stream_batches_by_id(entries, QUERY, instant).get(self.identifier)


def sink(
    uri: str | os.PathLike[str],
    verb: SinkMethod = "upsert",
    *,
    identifier: str = DEFAULT_IDENTIFIER,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    **kwargs: Any,
) -> Sink:
    """Return a function for `df.writeStream.foreachBatch` that writes each batch once to a table.

    The table must exist. A batch is one commit with the batch number; a batch that Spark repeats
    after a failure is skipped. Hudi's own sink and this one can continue each other's streams.

    Args:
        uri: location of the table.
        verb: the table's method: "upsert", "insert", "bulk_insert" or "delete_keys".
        identifier: distinguishes streams that write to one table, with the default of
            `hoodie.datasource.write.streaming.checkpoint.identifier`.
        storage_options: as in `pyhudi.open_table`.
        options: as in `pyhudi.open_table`.
        kwargs: other arguments of the method, except `commit_id`: each batch has its number as id.

    Raises `ConfigError` for an unknown method, and for arguments that it does not have. The
    function raises what the method raises, and `ConfigError` if another query has used the
    identifier: its batches would be skipped.
    """
    if verb not in get_args(SinkMethod):
        raise ConfigError(f"verb is {verb!r}; it is one of {', '.join(get_args(SinkMethod))}")
    _check_arguments(verb, kwargs)
    return Sink(os.fspath(uri), verb, identifier, storage_options, dict(options or {}), kwargs)


def _check_arguments(verb: SinkMethod, arguments: Mapping[str, Any]) -> None:
    if "commit_id" in arguments:
        # Otherwise all batches but the first would count as written.
        msg = "commit_id names one commit, and a sink makes many"
        raise ConfigError(msg, hint="Leave it out: each batch is written once by its number.")
    parameters = list(inspect.signature(getattr(HudiTable, verb)).parameters)[2:]
    for name in arguments:
        if name not in parameters:
            msg = f"{verb} has no argument {name!r}"
            raise ConfigError(
                msg, hint=f"It takes {', '.join(sorted({*parameters} - {'commit_id'}))}."
            )


def _query_id(batch: DataFrame) -> str | None:
    """Return the id that a query stores in its checkpoint; unknown on Spark Connect."""
    spark = batch.sparkSession
    if is_connect(spark):
        return None
    query_id: str | None = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    return query_id
