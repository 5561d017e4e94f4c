"""Retries of an operation that conflicted with another writer, on the latest snapshot.

A retry needs the input again. A stream can be read only once, so its batches are buffered, in
memory up to 1 MiB and then on local disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, TypeVar

import pyarrow as pa

from pyhudi import events
from pyhudi.clock import Clock, SystemClock
from pyhudi.config.file_names import file_name_of
from pyhudi.config.lock_options import LockOptions
from pyhudi.config.log import logger
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.spark_loader import is_spark_frame
from pyhudi.engine.spill import Spill
from pyhudi.errors import CommitConflict, CorruptTable, MissingFile, TimelineMoved, without_hint
from pyhudi.input.batches import is_read_once, read_batches
from pyhudi.metadata.consistency import StaleMetadataTable
from pyhudi.metadata.statistics_columns import UndefinedStatistics
from pyhudi.slices.cleaned_files import was_cleaned, was_never_committed
from pyhudi.slices.missing_files import explain_missing_file
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn import zombie_commits
from pyhudi.txn.locks.base import jitter
from pyhudi.write import metadata_lifecycle
from pyhudi.write.table_opening import Handle, WritableTable, open_for_change

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.05, 5.0
_IN_MEMORY = 1024 * 1024

Result = TypeVar("Result")


def retry_on_conflict(
    table: WritableTable,
    input_data: Any,
    operation: Callable[[Handle, Any], Result],
    clock: Clock | None = None,
) -> Result:
    """Run an operation and retry it on conflict, as often as the options allow.

    The last attempt runs in one critical section, so no other writer can complete before it.

    input_data: the operation's second argument. Raises the operation's errors.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    retries = LockOptions.of(handle.options).retries
    # PySpark 4 makes a DataFrame an Arrow stream, too. It is computed again for each attempt.
    once = is_read_once(input_data) and not is_spark_frame(input_data)
    replayable = _ReplayableStream(input_data) if retries and once else None
    has_revoked_zombies = False
    repaired: set[type] = set()
    try:
        for number in range(retries):
            try:
                return operation(handle, replayable.reader() if replayable else input_data)
            except CommitConflict as error:
                if not error.retry:
                    raise
                cause: Exception = error
            except TimelineMoved as error:
                cause = error
            except MissingFile as error:
                lost_file_error = _error_of_lost_file(handle.storage, error)
                # The file may belong to a zombie commit that another writer revoked.
                if lost_file_error is not None and (
                    has_revoked_zombies or not _revoke_zombies(handle, clock)
                ):
                    raise lost_file_error from error
                has_revoked_zombies = has_revoked_zombies or lost_file_error is not None
                cause = error
            except (UndefinedStatistics, StaleMetadataTable) as error:
                if type(error) in repaired or not _repair_metadata(error, handle, clock):
                    raise
                repaired.add(type(error))
                cause = error
            except CorruptTable as error:
                # Damage without a file may come from a zombie commit.
                if error.file is not None or has_revoked_zombies:
                    raise
                _revoke_zombies(handle, clock)
                has_revoked_zombies = True
                cause = error
            logger.debug(
                "%s: conflict, retry %d follows: %s",
                handle.storage.uri,
                number + 2,
                without_hint(cause),
            )
            pause = min(_FIRST_PAUSE_S * 2**number, _LONGEST_PAUSE_S)
            with events.observe(events.ConflictRetry, handle.storage.uri, number + 2, cause):
                clock.sleep(pause * (0.5 + jitter(clock)))
            # Its traceback has this frame: a cycle would keep the input.
            del cause
        with handle.lock_manager.critical_section() if retries else nullcontext():
            return operation(handle, replayable.reader() if replayable else input_data)
    finally:
        if replayable is not None:
            replayable.close()


def _repair_metadata(error: Exception, handle: Handle, clock: Clock) -> bool:
    """Repair a metadata table that another writer did not maintain; return whether it worked."""
    if isinstance(error, StaleMetadataTable):
        return metadata_lifecycle.catch_up(handle, clock)
    metadata_lifecycle.define_statistics(handle, clock)
    return True


def _revoke_zombies(handle: Handle, clock: Clock) -> bool:
    """Revoke the table's zombie commits; return whether there were any."""
    with handle.lock_manager.critical_section():
        table = open_for_change(handle, clock)
        return zombie_commits.load_timeline(table).commits != table.timeline.commits


def _error_of_lost_file(storage: Storage, error: MissingFile) -> MissingFile | None:
    """Return the error for a lost file; None if a clean or a rollback has deleted it."""
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    name = file_name_of(error.file)
    if was_never_committed(timeline, config.version, name) or was_cleaned(timeline, name):
        return None
    return explain_missing_file(error, config, timeline)


class _ReplayableStream:
    """A stream that can be read only once, buffered to be replayed."""

    def __init__(self, stream: Any) -> None:
        self._schema, self._batches = read_batches(stream)
        self._buffer = Spill(self._schema, _IN_MEMORY)
        self._is_started = False

    def reader(self) -> pa.RecordBatchReader:
        """Return a reader of all batches."""
        batches = self._read_and_buffer()
        if self._is_started:
            for _ in batches:
                pass
            batches = self._buffer.read()
        self._is_started = True
        return pa.RecordBatchReader.from_batches(self._schema, batches)

    def _read_and_buffer(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self._buffer.add(batch)
            yield batch

    def close(self) -> None:
        """Close the buffer."""
        self._buffer.close()
