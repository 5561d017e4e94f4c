"""Retry of an operation that conflicted with another writer, on the latest snapshot.

The caller's input must be available a second time. A stream is read once, so its rows are buffered
as they arrive, on local disk beyond a little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, TypeVar

import pyarrow as pa

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.log import logger
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.spark_loader import is_spark_frame
from pyhudi.engine.spill import Spill
from pyhudi.errors import CommitConflict, CorruptTable, MissingFile, TimelineMoved, without_hint
from pyhudi.input.batches import is_read_once, read_batches
from pyhudi.metadata.consistency import MetadataBehind
from pyhudi.metadata.statistics_columns import UndefinedStatistics
from pyhudi.slices.cleaned_files import was_never_committed, was_taken
from pyhudi.slices.missing_files import explain_missing_file
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn import zombie_commits
from pyhudi.write import metadata_lifecycle
from pyhudi.write.write_context import Handle, WritableTable, open_for_change

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
_IN_MEMORY = 1024 * 1024

Result = TypeVar("Result")


def retry_on_conflict(
    table: WritableTable,
    given: Any,
    verb: Callable[[Handle, Any], Result],
    clock: Clock | None = None,
) -> Result:
    """Run an operation and retry it on conflict, as often as the options allow.

    The last attempt runs in one critical section of the table's lock manager from beginning to end,
    so that no other writer can complete first: a write that repeatedly loses still succeeds.

    given: the caller's input, for the operation's second argument. Raises the operation's errors.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    retries = LockOptions.of(handle.options).retries
    # A DataFrame, which from PySpark 4 on is a stream as well, is computed again each time.
    once = is_read_once(given) and not is_spark_frame(given)
    again = _ReplayableStream(given) if retries and once else None
    is_decided = False
    mended: set[type] = set()
    try:
        for number in range(retries):
            try:
                return verb(handle, again.reader() if again else given)
            except CommitConflict as error:
                if not error.retry:
                    raise
                cause = without_hint(error)
            except TimelineMoved as error:
                cause = without_hint(error)
            except MissingFile as error:
                lost = _error_of_lost_file(handle.storage, error)
                # Or the file belongs to a zombie commit: the writer that revoked it has removed the
                # file.
                if lost is not None and (is_decided or not _decide(handle, clock)):
                    raise lost from error
                is_decided = is_decided or lost is not None
                cause = without_hint(error)
            except (UndefinedStatistics, MetadataBehind) as error:
                if type(error) in mended or not _is_mended(error, handle, clock):
                    raise
                mended.add(type(error))
                cause = without_hint(error)
            except CorruptTable as error:
                # Damage that names no file may come from a zombie commit, which is revoked.
                if error.file is not None or is_decided:
                    raise
                _decide(handle, clock)
                is_decided = True
                cause = without_hint(error)
            logger.debug(
                "%s: conflict, retry %d follows: %s", handle.storage.uri, number + 2, cause
            )
            pause = min(_FIRST_PAUSE_S * 2**number, _LONGEST_PAUSE_S)
            clock.sleep(pause * (0.5 + int(clock.uuid()[:4], 16) / 0x10000))
        with handle.lock_manager.critical_section() if retries else nullcontext():
            return verb(handle, again.reader() if again else given)
    finally:
        if again is not None:
            again.close()


def _is_mended(error: Exception, handle: Handle, clock: Clock) -> bool:
    """Repair a metadata table that another writer did not maintain; return whether it succeeded."""
    if isinstance(error, MetadataBehind):
        return metadata_lifecycle.catch_up(handle, clock)
    metadata_lifecycle.define_statistics(handle, clock)
    return True


def _decide(handle: Handle, clock: Clock) -> bool:
    """Revoke the table's zombie commits. Return whether there were any."""
    with handle.lock_manager.critical_section():
        table = open_for_change(handle, clock)
        return zombie_commits.load_timeline(table).commits != table.timeline.commits


def _error_of_lost_file(storage: Storage, error: MissingFile) -> MissingFile | None:
    """Return the error for a lost file; None if other writers have removed it.

    A cleaner has removed it since the plan, or its commit was rolled back.
    """
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    name = (error.file or "").rsplit("/", 1)[-1]
    if was_never_committed(timeline, config.version, name) or was_taken(timeline, name):
        return None
    return explain_missing_file(error, config, timeline)


class _ReplayableStream:
    """The batches of a stream that can be read only once, replayed as often as needed."""

    def __init__(self, stream: Any) -> None:
        self._schema, self._rest = read_batches(stream)
        self._buffer = Spill(self._schema, _IN_MEMORY)
        self._is_started = False

    def reader(self) -> pa.RecordBatchReader:
        """Return all batches from the first one on."""
        batches = self._read_on()
        if self._is_started:
            for _ in batches:
                pass
            batches = self._buffer.read()
        self._is_started = True
        return pa.RecordBatchReader.from_batches(self._schema, batches)

    def _read_on(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rest:
            self._buffer.add(batch)
            yield batch

    def close(self) -> None:
        """Close the buffer."""
        self._buffer.close()
