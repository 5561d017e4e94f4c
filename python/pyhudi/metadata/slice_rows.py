"""The rows of file groups before and after a commit, as read tasks for indexes that follow rows.

Both sides are merged as a snapshot reads them: what a log file deletes may win or lose by its
ordering value. Nothing is read here but what files there are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from pyhudi.plan.read import ReadTask, ScanRequest, TableState, merge_rule, slice_tasks
from pyhudi.schema import table_schema
from pyhudi.timeline import Timeline
from pyhudi.view.filesystem_view import FileSystemView
from pyhudi.view.names import parse_base_name, parse_log_name
from pyhudi.view.slices import BaseFile, FileSlice, LogFile

if TYPE_CHECKING:
    import pyarrow as pa

    from pyhudi.timeline.metadata import CommitMetadata, WriteStat
    from pyhudi.txn.rollback import RollbackContext

_LOG_MEMORY = 64 * 1024 * 1024
"""Bytes of log records that one task holds; more of them go to local files."""


@dataclass(frozen=True)
class GroupChange:
    """One file group that a commit changes; None for no rows."""

    before: FileSlice | None
    after: FileSlice | None


class SliceRows:
    """The file groups that a commit touches, while it is still pending."""

    def __init__(
        self, context: RollbackContext, metadata: CommitMetadata, schema: pa.Schema, avro: str
    ) -> None:
        """`schema`, `avro`: the table's with the commit, the first with meta fields."""
        self._context = context
        self._metadata = metadata
        self._schema = schema
        self._avro = avro

    @cached_property
    def changes(self) -> list[GroupChange]:
        """Every group that files came to, and every one that is taken away."""
        return [*self._written(), *self._replaced()]

    def task(self, one: FileSlice | None, columns: tuple[str, ...]) -> ReadTask | None:
        """The reading of some columns of a slice, as they are stored."""
        return None if one is None else read_columns(self._state, one, columns)

    def _written(self) -> Iterator[GroupChange]:
        for partition, stats in self._metadata.partition_to_write_stats.items():
            known = self._slices(partition)
            groups: dict[str, list[WriteStat]] = {}
            for stat in stats:
                if stat.path:
                    groups.setdefault(stat.file_id, []).append(stat)
            for file_id, written in groups.items():
                before = known.get(file_id)
                yield GroupChange(before, _after(partition, file_id, before, written))

    def _replaced(self) -> Iterator[GroupChange]:
        for partition, ids in (self._metadata.partition_to_replace_file_ids or {}).items():
            known = self._slices(partition) if ids else {}
            yield from (GroupChange(known[one], None) for one in ids if one in known)

    def _slices(self, partition: str) -> dict[str, FileSlice]:
        if partition not in self._known:
            state = self._state
            view = FileSystemView(state.storage, state.config, state.timeline, {partition})
            self._known[partition] = {one.file_id: one for one in view.slices()}
        return self._known[partition]

    @cached_property
    def _known(self) -> dict[str, dict[str, FileSlice]]:
        return {}

    @cached_property
    def _state(self) -> TableState:
        storage, config = self._context.storage, self._context.config
        timeline = Timeline.load(storage, config)
        evolution = table_schema(storage, config, timeline).evolution
        return TableState(
            storage, config, timeline, self._schema, avro=self._avro, evolution=evolution
        )


def read_columns(
    state: TableState, one: FileSlice, columns: tuple[str, ...], *, pending: str | None = None
) -> ReadTask:
    """The reading of a slice that may hold files of a pending commit.

    pending: the commit's instant, where its log blocks shall count as committed ones do.
    """
    request = ScanRequest(output=columns, memory_limit=_LOG_MEMORY)
    rule = replace(merge_rule(state), max_instant=None)
    if pending is not None and rule.valid_instants is not None:
        rule = replace(rule, valid_instants=(*rule.valid_instants, pending))
    return replace(slice_tasks(state, request, [one], rule)[0], path_values=())


def _after(
    partition: str, file_id: str, before: FileSlice | None, written: list[WriteStat]
) -> FileSlice:
    """The slice with the written files: a new base file takes the place of all that was."""
    bases = [base for stat in written if (base := _base(partition, stat)) is not None]
    new = [log for stat in written if (log := log_file(partition, stat)) is not None]
    if bases:
        return FileSlice(partition, file_id, bases[-1].instant, bases[-1], _in_order(new))
    if before is None:
        return FileSlice(partition, file_id, new[0].instant, None, _in_order(new))
    names = {log.name for log in new}
    kept = [log for log in before.logs if log.name not in names]
    return replace(before, logs=(*kept, *_in_order(new)))


def _in_order(logs: list[LogFile]) -> tuple[LogFile, ...]:
    return tuple(sorted((log for log in logs if not log.suffix), key=lambda log: log.order))


def _base(partition: str, stat: WriteStat) -> BaseFile | None:
    name = (stat.path or "").rsplit("/", 1)[-1]
    one = None if name.startswith(".") else parse_base_name(name)
    if one is None:
        return None
    size = stat.file_size_in_bytes
    return BaseFile(partition, name, one.file_id, one.instant, one.write_token, size)


def log_file(partition: str, stat: WriteStat) -> LogFile | None:
    """The log file that a stat is of, None for another file."""
    name = (stat.path or "").rsplit("/", 1)[-1]
    one = parse_log_name(name)
    if one is None:
        return None
    size = stat.file_size_in_bytes
    return LogFile(
        partition,
        name,
        one.file_id,
        one.instant,
        one.version,
        one.write_token,
        one.suffix,
        size,
    )
