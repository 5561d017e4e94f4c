"""Slices of the data table around a commit, as tasks that read the keys of their records.

The record index follows records, not keys in files: what a log file deletes may be elsewhere by
now, and what it seems to delete may win by its ordering value. So the slices are merged as a
snapshot does. Nothing is read here but what files there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyhudi.keys import RECORD_KEY
from pyhudi.metadata.slice_rows import log_file, read_columns
from pyhudi.plan.read import ReadTask, TableState
from pyhudi.schema import table_schema
from pyhudi.timeline import Timeline
from pyhudi.view.filesystem_view import FileSystemView
from pyhudi.view.slices import FileSlice, LogFile

if TYPE_CHECKING:
    from pyhudi.timeline.metadata import WriteStat
    from pyhudi.txn.rollback import RollbackContext


class DataSlices:
    """The file slices of the data table before a commit that is about to complete."""

    def __init__(self, context: RollbackContext, instant: str) -> None:
        """`instant`: the commit's, which is still pending."""
        self._context = context
        self._instant = instant
        self._known: dict[str, dict[str, FileSlice]] = {}

    def replaced(
        self, file_ids: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[FileSlice, ReadTask]]:
        """What is read of each file group that the commit takes away.

        file_ids: by partition path.
        """
        for partition, ids in file_ids.items():
            known = self._of(partition) if ids else {}
            for file_id in ids:
                if file_id in known:
                    yield known[file_id], self._task(known[file_id])

    def before(self, stat: WriteStat) -> ReadTask | None:
        """What was read of the file group that a stat is of, None for a new one."""
        known = self._of(stat.partition_path or "").get(stat.file_id)
        return None if known is None else self._task(known)

    def after(self, stats: Sequence[WriteStat], *, alone: bool) -> ReadTask:
        """What will be read of the file group that the stats' log files went to.

        alone: of those log files, as if there were nothing else.
        """
        partition, file_id = stats[0].partition_path or "", stats[0].file_id
        new = {log.name: log for log in map(_log_file, stats)}
        known = None if alone else self._of(partition).get(file_id)
        if known is None:
            known = FileSlice(partition, file_id, self._instant, None)
        others = tuple(log for log in known.logs if log.name not in new)
        return self._task(replace(known, logs=(*others, *new.values())), with_own=True)

    def _of(self, partition: str) -> dict[str, FileSlice]:
        if partition not in self._known:
            state = self._state
            view = FileSystemView(state.storage, state.config, state.timeline, [partition])
            self._known[partition] = {one.file_id: one for one in view.slices()}
        return self._known[partition]

    def _task(self, slice_: FileSlice, *, with_own: bool = False) -> ReadTask:
        pending = self._instant if with_own else None
        return read_columns(self._state, slice_, (RECORD_KEY,), pending=pending)

    @cached_property
    def _state(self) -> TableState:
        storage, config = self._context.storage, self._context.config
        timeline = Timeline.load(storage, config)
        schema = table_schema(storage, config, timeline)
        return TableState(
            storage=storage,
            config=config,
            timeline=timeline,
            schema=schema.arrow,
            avro=schema.avro,
            evolution=schema.evolution,
        )


def _log_file(stat: WriteStat) -> LogFile:
    found = log_file(stat.partition_path or "", stat)
    if found is None:
        raise AssertionError(stat.path)
    return found
