"""Writing streams: a function for `foreachBatch` that writes each batch once.

The number of a batch stands in the extra metadata of its commit, in the form and under the key of
Hudi's own sink (`HoodieStreamingSink`, `CommitUtils.getCheckpointValueAsString`, 1.2.0). A batch
that is on the timeline is passed over when Spark brings it again after a failure.
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
from pyhudi.spark.engine import SparkEngine, is_connect
from pyhudi.write.idempotency import newest_first

SinkVerb = Literal["upsert", "insert", "bulk_insert", "delete_keys"]

QUERY = "_pyhudi_streaming_sink_query"
"""Of a commit: JSON of the Spark query that each stream was then. Hudi passes it over."""
DEFAULT_IDENTIFIER = "default_single_writer"
"""Default of `hoodie.datasource.write.streaming.checkpoint.identifier`."""


@dataclass(frozen=True)
class Sink:
    """Writes batches of one stream to one table. Made by `sink`; picklable."""

    uri: str
    verb: SinkVerb
    identifier: str
    storage_options: Mapping[str, str] | None = field(repr=False)
    options: Mapping[str, object]
    how: Mapping[str, Any]

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Writes a batch in one commit, unless one of its number is on the timeline.

        Also where another driver is faster, which Spark has started in place of this one.
        """
        engine = SparkEngine(batch.sparkSession)
        query = _query_id(batch)
        table = self._open(engine)
        if self._is_written(table, batch_id, query):
            return
        told = {STREAM_BATCHES: json.dumps({self.identifier: str(batch_id)})}
        if query:
            told[QUERY] = json.dumps({self.identifier: query})
        # Of this commit alone, and not of services that follow it.
        said = {**(self.how.get("commit_metadata") or {}), **told}
        try:
            getattr(table, self.verb)(batch, **{**self.how, "commit_metadata": said})
        except CommitConflict:
            if not self._is_written(table.refresh(), batch_id, query):
                raise

    def _open(self, engine: SparkEngine) -> HudiTable:
        return open_table(
            self.uri,
            engine=engine,
            storage_options=self.storage_options,
            options=self.options,
        )

    def _is_written(self, table: HudiTable, batch_id: int, query: str | None) -> bool:
        last = next(self._checkpoints(table), None)
        if last is None or batch_id > last[0]:
            return False
        if query and last[1] and query != last[1]:
            raise ConfigError(
                f"batch {batch_id} of a new query: batch {last[0]} of another one is the last that "
                f"was written under the identifier {self.identifier!r}",
                hint="Give the query the checkpointLocation of the old one, or the sink another "
                "identifier.",
            )
        return True

    def _checkpoints(self, table: HudiTable) -> Iterator[tuple[int, str | None]]:
        """Batch and query of the stream's commits, newest first; archived ones come last."""
        for instant, metadata in newest_first(table.state.storage, table.config):
            said = metadata.extra_metadata
            batch = stream_batch(said, self.identifier, instant)
            if batch is not None:
                yield batch, stream_batches_by_id(said, QUERY, instant).get(self.identifier)


def sink(
    uri: str | os.PathLike[str],
    verb: SinkVerb = "upsert",
    *,
    identifier: str = DEFAULT_IDENTIFIER,
    storage_options: Mapping[str, str] | None = None,
    options: Mapping[str, object] | None = None,
    **how: Any,
) -> Sink:
    """What `df.writeStream.foreachBatch` takes to write a stream to a table, each batch once.

    The table must be there. A batch is one commit, which says its number; a batch that Spark brings
    again after a failure is passed over. Hudi's own sink and this one can go on after each other.

    Args:
        uri: where the table lies.
        verb: the table's verb: "upsert", "insert", "bulk_insert" or "delete_keys".
        identifier: tells streams that write to one table apart, as
            `hoodie.datasource.write.streaming.checkpoint.identifier`, whose default it has.
        storage_options: as in `pyhudi.open_table`.
        options: likewise.
        how: other arguments of the verb, but `commit_id`: each batch has one, its number.

    Raises `ConfigError` for a verb that there is not, and for arguments that it does not take. The
    function raises what the verb does, and `ConfigError` where another query has used the
    identifier: its batches would be passed over.
    """
    if verb not in get_args(SinkVerb):
        raise ConfigError(f"verb is {verb!r}; it is one of {', '.join(get_args(SinkVerb))}")
    _check(verb, how)
    return Sink(os.fspath(uri), verb, identifier, storage_options, dict(options or {}), how)


def _check(verb: SinkVerb, how: Mapping[str, Any]) -> None:
    if "commit_id" in how:
        # All batches but the first would count as written.
        msg = "commit_id is of one write, and a sink makes many"
        raise ConfigError(msg, hint="Leave it out: each batch is written once by its number.")
    taken = list(inspect.signature(getattr(HudiTable, verb)).parameters)[2:]
    for name in how:
        if name not in taken:
            msg = f"{verb} has no argument {name!r}"
            raise ConfigError(msg, hint=f"It takes {', '.join(sorted({*taken} - {'commit_id'}))}.")


def _query_id(batch: DataFrame) -> str | None:
    """The id that a query keeps in its checkpoint; unknown on Spark Connect."""
    spark = batch.sparkSession
    if is_connect(spark):
        return None
    found: str | None = spark.sparkContext.getLocalProperty("sql.streaming.queryId")
    return found
