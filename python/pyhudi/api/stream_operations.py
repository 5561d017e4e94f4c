"""Methods of a table handle for streams of commits, and their consumers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.api.operation_events import as_lazy_operation, as_operation
from pyhudi.api.table_handle import TableHandle, load_snapshot
from pyhudi.clock import Moment, SystemClock
from pyhudi.config import argument_checks as arg

if TYPE_CHECKING:
    from pyhudi.api.stream import Stream
    from pyhudi.config.memory_size import MemorySize


class StreamOperations(TableHandle):
    """Streams of `HudiTable`."""

    @arg.check_arguments()
    @as_lazy_operation
    def stream(
        self,
        start: Moment | None = None,
        *,
        consumer: str | None = None,
        poll: float | str = "5s",
        wait: bool = True,
        changes: bool = False,
        columns: Sequence[str] | None = None,
        where: Any = None,
        meta_fields: bool = False,
        shard: tuple[int, int] | None = None,
        fallback_full_scan: bool = False,
        memory_limit: MemorySize | None = None,
    ) -> Stream:
        """Return the rows of each commit as a batch, and wait for the next commit.

        Batches come in the order of `incremental`: by completion from table version 8 on, and by
        request below, where the stream waits for a pending write that is older than completed ones.
        A batch has the rows that its commit wrote, without deletes. Services have no batch.

        Args:
            start: where a stream begins that has no stored position. None: with the rows of the
                table, in one batch; then commit by commit. "latest": after the last commit.
                "earliest": with the first commit of the history. Or, exclusive, a `position` of a
                batch, an instant, or a time as in `incremental`.
            consumer: name under which the table stores the position at each `batch.commit()`. A
                stream with this name then begins there, whatever its `start` is. None: you store
                `batch.position`.
            poll: time between two listings of the timeline: seconds, or "500ms", "5s", "1m".
            wait: wait for later commits; else the stream ends after the commits that are complete
                when it begins.
            changes: batches have the changes of the commit, as `HudiTable.changes` returns them.
            columns: names in the order of the result; all columns by default.
            where: a filter, as in `scan`; with `changes`, as in `changes`.
            meta_fields: include Hudi's meta columns, in front.
            shard: `(i, n)` for the part i, from 0, of n parts that n processes read: each file
                group is in one of them. Each has its own position.
            fallback_full_scan: if files of a commit have been cleaned, return those of its rows
                that are still current.
            memory_limit: bytes, as in `scan`.

        Returns:
            The stream. Its batches raise `HistoryUnavailable`, with the instants, if files that it
            needs have been cleaned, and `ConsumerConflict` if another process uses its consumer.

        Raises:
            SchemaMismatch: columns or values do not match the schema.
            ConfigError: an argument is wrong, or the handle was opened as of an earlier time.
            HistoryUnavailable: `start` is an instant that is not complete.
            UnsupportedTableFeature: the table has no meta columns, or, with `changes`, no change
                data capture; or the storage cannot replace a file conditionally.
        """
        from pyhudi.api.stream import StreamRequest, new_stream  # noqa: PLC0415 - not needed for scans

        request = StreamRequest(
            start=start,
            changes=changes,
            columns=columns,
            where=where,
            meta_fields=meta_fields,
            memory_limit=memory_limit,
            fallback_full_scan=fallback_full_scan,
            shard=shard,
        )
        return new_stream(self, request, consumer=consumer, poll=poll, wait=wait)

    @as_operation
    def consumers(self) -> pa.Table:
        """Return the consumers of the table's streams, by name.

        Returns:
            Columns: consumer, shard (from 0), shards (1 for a stream without shards), position
                (null before the first commit), updated.

        Raises:
            CorruptTable: a consumer's file is damaged.
        """
        from pyhudi.query.consumers import consumer_table  # noqa: PLC0415 - not needed for scans

        return consumer_table(self.storage)

    @arg.check_arguments()
    @as_operation
    def reset_consumer(self, name: str, to: Moment) -> None:
        """Move a consumer, so that its next stream begins there.

        Streams of it that are running raise `ConsumerConflict` at their next `batch.commit()`.

        Args:
            name: name of the consumer.
            to: the last commit that counts as used: a position, "latest", "earliest", an instant or
                a time, as the `start` of a stream.

        Raises:
            ConfigError: there is no such consumer, or `to` is not a time.
            HistoryUnavailable: `to` is an instant that is not complete.
            CorruptTable: the consumer's file is damaged.
        """
        from pyhudi.api.stream import resolve_position  # noqa: PLC0415 - not needed for scans
        from pyhudi.query.consumers import reset_consumer  # noqa: PLC0415 - as above
        from pyhudi.query.stream_progress import order_of  # noqa: PLC0415 - as above

        current = load_snapshot(self.storage, self.options, None)
        position = resolve_position(current, to) or ""
        reset_consumer(self.storage, name, order_of(current), position, SystemClock())

    @arg.check_arguments()
    @as_operation
    def delete_consumer(self, name: str) -> None:
        """Delete a consumer. A stream with its name then begins as a new one.

        Args:
            name: name of the consumer.

        Raises:
            ConfigError: there is no such consumer.
        """
        from pyhudi.query.consumers import delete_consumer  # noqa: PLC0415 - not needed for scans

        delete_consumer(self.storage, name)
