"""Running a verb again that gave way to another writer, on what the table is by then.

What the caller brought must be there a second time. A stream is read once, so its rows are kept as
they come, on local disk beyond a little memory.
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
    """What a verb gives, run again while it gives way to others, as often as options allow.

    The last time it runs in one section of the table's guard from its beginning to its end, so that
    nobody can be faster: a write that others overtake again and again is done all the same.

    given: what the caller brought, for the verb's second argument. Raises what the verb raises.
    """
    clock = clock or SystemClock()
    handle = Handle.of(table, clock)
    retries = LockOptions.of(handle.options).retries
    # A DataFrame, which from PySpark 4 on is a stream as well, is worked out anew each time.
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
                # Or it is of a commit that came late: who overtook its writer has removed it.
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
                # What no file shows may be of a commit that came late, and is taken back.
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
        with handle.guarded.critical_section() if retries else nullcontext():
            return verb(handle, again.reader() if again else given)
    finally:
        if again is not None:
            again.close()


def _is_mended(error: Exception, handle: Handle, clock: Clock) -> bool:
    """Repairs a metadata table that another writer did not keep; whether that was possible."""
    if isinstance(error, MetadataBehind):
        return metadata_lifecycle.catch_up(handle, clock)
    metadata_lifecycle.define_statistics(handle, clock)
    return True


def _decide(handle: Handle, clock: Clock) -> bool:
    """Has every commit of the table count that stays. Whether some were taken back."""
    with handle.guarded.critical_section():
        table = open_for_change(handle, clock)
        return zombie_commits.load_timeline(table).commits != table.timeline.commits


def _error_of_lost_file(storage: Storage, error: MissingFile) -> MissingFile | None:
    """What to raise for a file that is lost; None where a slow writer's plan lost it to others.

    A cleaner has removed it then, or its commit was taken back.
    """
    config = TableConfig.load(storage)
    timeline = Timeline.load(storage, config)
    name = (error.file or "").rsplit("/", 1)[-1]
    if was_never_committed(timeline, config.version, name) or was_taken(timeline, name):
        return None
    return explain_missing_file(error, config, timeline)


class _ReplayableStream:
    """The batches of a stream, which can be read once only, as often as wanted."""

    def __init__(self, stream: Any) -> None:
        self._schema, self._rest = read_batches(stream)
        self._kept = Spill(self._schema, _IN_MEMORY)
        self._is_begun = False

    def reader(self) -> pa.RecordBatchReader:
        """All batches from the first one on."""
        batches = self._read_on()
        if self._is_begun:
            for _ in batches:
                pass
            batches = self._kept.read()
        self._is_begun = True
        return pa.RecordBatchReader.from_batches(self._schema, batches)

    def _read_on(self) -> Iterator[pa.RecordBatch]:
        for batch in self._rest:
            self._kept.add(batch)
            yield batch

    def close(self) -> None:
        """Lets go of what is kept."""
        self._kept.close()
