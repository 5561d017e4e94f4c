"""The changes of a commit to a file group: the files to read, and the rule that applies.

Change logs contain the changes, if the commit wrote any; otherwise they follow from the commit's
files in one of four ways (`HoodieCDCExtractor`, `HoodieCDCInferenceCase`, Hudi 1.2.0). In a slice
with a pending compaction Hudi does not find the base file; pyhudi does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import pyarrow as pa

from pyhudi.config.file_names import file_name_of
from pyhudi.errors import HistoryUnavailable
from pyhudi.query.commit_range import Shard
from pyhudi.query.row_pairing import MatchTask, image_schema, plan_side
from pyhudi.schema.predicates import Where
from pyhudi.slices.bootstrap import add_sources
from pyhudi.slices.file_slice import LOG_ORDER, BaseFile, FileSlice, LogFile
from pyhudi.slices.file_slices import snapshot_slice
from pyhudi.slices.file_system_view import FileSystemView
from pyhudi.slices.read_tasks import MergeRule, key_columns, merge_rule
from pyhudi.storage.storage import Storage
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline import CommitMetadata, Instant, WriteStat
from pyhudi.timeline.commit_metadata import NO_PREVIOUS_COMMIT

Images = Literal["struct", "json"]
Case = Literal["as_is", "base_file_insert", "base_file_delete", "log_file", "replace_commit"]
File = TypeVar("File", BaseFile, LogFile)

_COMMIT_COLUMNS = ("_hoodie_commit_time", "_hoodie_commit_seqno")
_CHANGE_LOG_SUFFIX = ".cdc"
_DELETES = frozenset({"DELETE", "DELETE_PREPPED"})


@dataclass(frozen=True)
class ChangeRequest:
    """The arguments of a change query."""

    start: str | None
    """Exclusive; None from the beginning."""
    end: str | None
    """Inclusive; None to the last commit."""
    images: Images = "struct"
    where: Where | None = None
    limit: int | None = None
    memory_limit: int | None = None
    """Bytes for the log records of one side of a task."""
    shard: Shard | None = None
    """The file groups to read; None for all."""
    is_initial: bool = False
    """The rows of the snapshot as inserts, instead of changes in a range."""


@dataclass(frozen=True)
class ChangeTask:
    """The changes of one file group in one commit. Picklable."""

    storage: Storage
    instant: str
    case: Case
    partition: str
    file_id: str
    change_logs: tuple[str, ...]
    """For the case `as_is`: paths of the change logs. `match` supplies missing images."""
    match: MatchTask
    where: Where | None = None
    limit: int | None = None

    @property
    def files(self) -> list[str]:
        """Paths of the files to read."""
        sides = [side.slice for side in (self.match.before, self.match.after) if side]
        bases = [side.base.path for side in sides if side.base]
        logs = [log.path for side in sides for log in side.logs]
        return list(dict.fromkeys((*self.change_logs, *bases, *logs)))


class ChangeFiles:
    """Plans commit by commit; files are listed once."""

    def __init__(self, table: TableSnapshot, request: ChangeRequest, view: FileSystemView) -> None:
        # Change logs have stored values, so rows of data files are returned as stored, too.
        self._table = replace(table, as_text=())
        self._request = request
        self._view = view
        self._images = image_schema(self._table)
        self._rule = merge_rule(self._table)
        self._completed = {
            commit.requested: (commit.completed or "", commit.requested)
            for commit in table.timeline.commits
        }

    def of_commit(self, instant: Instant, metadata: CommitMetadata) -> Iterator[ChangeTask]:
        """Yield the tasks of one commit: replaced groups, then written files."""
        for partition, ids in (metadata.partition_to_replace_file_ids or {}).items():
            for file_id in ids:
                yield self._task_of_replaced_group(instant, partition, file_id)
        for partition, stats in metadata.partition_to_write_stats.items():
            for stat in stats:
                case_and_match = self._task_of_written_file(
                    instant, partition, stat, metadata.operation_type or ""
                )
                if case_and_match is not None:
                    logs = tuple(stat.cdc_stats or ())
                    yield self._task(
                        instant, case_and_match[0], partition, stat.file_id, case_and_match[1], logs
                    )

    def inserts_of(self, instant: Instant, slice_: FileSlice) -> ChangeTask:
        """Return the task that gives all rows of a slice as inserts of a commit."""
        match = self._match(None, slice_, self._rule)
        return self._task(instant, "base_file_insert", slice_.partition, slice_.file_id, match)

    def _task_of_replaced_group(self, instant: Instant, partition: str, file_id: str) -> ChangeTask:
        before = self._view.snapshot_slice_of((partition, file_id))
        if before is None:
            raise _history_error(f"file group {file_id} of partition {partition!r}", instant)
        match = self._match(before, None, self._rule)
        return self._task(instant, "replace_commit", partition, file_id, match)

    def _task_of_written_file(
        self, instant: Instant, partition: str, stat: WriteStat, operation: str
    ) -> tuple[Case, MatchTask] | None:
        """Return how to find the changes of one written file; None for one without changes."""
        if not stat.path:
            return None
        if stat.cdc_stats:
            return "as_is", self._lookups(instant, partition, stat)
        if file_name_of(stat.path).startswith("."):
            return "log_file", self._log_file_task(instant, partition, stat)
        if operation.upper() in _DELETES and stat.num_deletes and not stat.num_writes:
            before = self._older_base(instant, partition, stat)
            return "base_file_delete", self._match(before, None, MergeRule())
        # Hudi also counts deletes of keys that a new file does not have.
        deleted = stat.num_deletes and stat.prev_commit != NO_PREVIOUS_COMMIT
        only_new = stat.num_writes == stat.num_inserts and not deleted
        if stat.num_update_writes or not only_new:
            raise _without_change_log(stat.path, instant)
        if not stat.num_writes:
            return None
        after = self._new_base(instant, partition, stat)
        return "base_file_insert", self._match(None, after, MergeRule())

    def _task(
        self,
        instant: Instant,
        case: Case,
        partition: str,
        file_id: str,
        match: MatchTask,
        change_logs: tuple[str, ...] = (),
    ) -> ChangeTask:
        return ChangeTask(
            storage=self._table.storage,
            instant=instant.requested,
            case=case,
            partition=partition,
            file_id=file_id,
            change_logs=change_logs,
            match=match,
            where=self._request.where,
            limit=self._request.limit,
        )

    def _match(
        self,
        before: FileSlice | None,
        after: FileSlice | None,
        rule: MergeRule,
        touched_logs: tuple[str, ...] | None = None,
        rule_before: MergeRule | None = None,
    ) -> MatchTask:
        # A record that was written again counts as updated even if no data column differs.
        compared = pa.schema([self._table.columns.field(name) for name in _COMMIT_COLUMNS])
        columns = (*self._images.names, *compared.names)
        memory = self._request.memory_limit
        sides = [
            plan_side(self._table, self._with_source(side), of_side, columns, memory)
            for side, of_side in ((before, rule_before or rule), (after, rule))
        ]
        old, new = (replace(side, path_values=()) if side else None for side in sides)
        return MatchTask(
            before=old,
            after=new,
            images=self._images,
            compared=compared,
            key_fields=key_columns(self._table.config),
            touched_logs=touched_logs,
            as_json=self._request.images == "json",
        )

    def _with_source(self, slice_: FileSlice | None) -> FileSlice | None:
        """Return the slice, with the source file of its skeleton."""
        if slice_ is None:
            return None
        return add_sources(self._table.storage, self._table.config, [slice_])[0]

    def _lookups(self, instant: Instant, partition: str, stat: WriteStat) -> MatchTask:
        """Return the base files with images that change logs of this mode do not have."""
        mode = self._table.config.cdc_mode
        before = after = None
        if mode != "DATA_BEFORE_AFTER":
            after = self._new_base(instant, partition, stat)
        if mode == "OP_KEY_ONLY" and stat.prev_commit != NO_PREVIOUS_COMMIT:
            before = self._older_slice(instant, partition, stat)
        return self._match(before, after, MergeRule(), rule_before=self._rule)

    def _log_file_task(self, instant: Instant, partition: str, stat: WriteStat) -> MatchTask:
        """Return the slice of a log file, without and with the commit's changes."""
        current = file_name_of(str(stat.path))
        group = self._view.groups.get((partition, stat.file_id))
        listed = {log.name: log for log in (group.logs if group else ())}
        # The group's change logs of base files are among them.
        appended = (name for name in stat.log_files or () if not name.endswith(_CHANGE_LOG_SUFFIX))
        names = dict.fromkeys((*appended, current))
        logs = [_present(listed.get(name), name, instant) for name in names]
        (own,) = (log for log in logs if log.name == current)
        # Blocks of other commits precede those of this one, and later ones may follow.
        others_before, others_after = bool(stat.log_offset), own.may_hold_several(stat.prev_commit)
        if self._may_miss_logs(instant, stat, names, listed.values()):
            slice_ = self._slice_at_commit(instant, stat, own, names)
            done = self._completion_order(instant.requested)
            rule = self._with_valid_blocks(
                self._rule, lambda requested: self._completion_order(requested) <= done
            )
        else:
            base, between = self._base_under(instant, partition, stat)
            slice_ = _slice(partition, stat, base, (*between, *logs))
            rule = replace(self._rule, max_instant=instant.requested if others_after else None)
        before = tuple(log for log in slice_.logs if others_before or log != own)
        return self._match(
            replace(slice_, logs=before) if slice_.base or before else None,
            slice_,
            rule,
            touched_logs=(own.path,),
            rule_before=self._with_valid_blocks(rule, instant.requested.__ne__)
            if others_before
            else None,
        )

    def _with_valid_blocks(self, rule: MergeRule, is_valid: Callable[[str], bool]) -> MergeRule:
        """Return the rule with only some of the blocks of active commits valid."""
        timeline = self._table.timeline
        instants = rule.valid_instants or [commit.requested for commit in timeline.commits]
        return replace(
            rule,
            valid_instants=tuple(filter(is_valid, instants)),
            timeline_start=timeline.blocks_start,
        )

    def _may_miss_logs(
        self, instant: Instant, stat: WriteStat, names: Collection[str], logs: Iterable[LogFile]
    ) -> bool:
        """Return whether the commit's slice may have log files that its stat does not name.

        A writer does not know the log files of concurrent writers. Without a base file, the stat
        names the log file that opened the slice, and one that completed later may precede it.
        """
        if self._table.config.version.logs_named_by_base_instant:
            return False
        if not stat.base_file:
            return True
        seen, done = (stat.prev_commit,), self._completion_order(instant.requested)
        return any(
            seen <= self._completion_order(log.instant) < done
            for log in logs
            if log.name not in names
        )

    def _slice_at_commit(
        self, instant: Instant, stat: WriteStat, own: LogFile, names: Collection[str]
    ) -> FileSlice:
        """Return the slice of a log file with the files that were complete when its commit was.

        Hudi uses the stat here as well, and returns images that never existed (1.2.0). A writer
        without support for change data capture names no slice at all.
        """
        slices = self._view.slices_of((own.partition, own.file_id))
        at = next(at for at, slice_ in enumerate(slices) if own in slice_.logs)
        joined = snapshot_slice(slices[at:], slices[at].base_instant) or slices[at]
        if joined.base and joined.base.instant < instant.requested == stat.prev_commit:
            raise _without_change_log(own.path, instant)
        done = self._completion_order(instant.requested)
        complete_logs = (
            log
            for log in joined.logs
            if log.name in names or self._completion_order(log.instant) < done
        )
        return replace(joined, logs=tuple(complete_logs))

    def _completion_order(self, requested: str) -> tuple[str, str]:
        """Return the rank of a commit by completion. Archived ones count as immediate."""
        return self._completed.get(requested, (requested, requested))

    def _base_under(
        self, instant: Instant, partition: str, stat: WriteStat
    ) -> tuple[BaseFile | None, Sequence[LogFile]]:
        """Return the base file below a log file, and log files between them that the stat omits.

        A slice with a pending compaction has no base file, and the stat names none: then the
        records are in the compaction's base file, once it exists, or in the slice before. A log
        file from before a downgrade may name no slice at all.
        """
        if stat.base_file:
            bases = self._bases(partition, stat)
            base = next((base for base in bases if base.name == stat.base_file), None)
            return _present(base, stat.base_file, instant), ()
        slices = self._view.slices_of((partition, stat.file_id))
        older = [slice_ for slice_ in slices if slice_.base_instant < stat.prev_commit]
        if older and stat.prev_commit == instant.requested:
            raise _without_change_log(str(stat.path), instant)
        for slice_ in slices:
            if slice_.base_instant == stat.prev_commit and slice_.base is not None:
                return slice_.base, ()
        return (older[0].base, older[0].logs) if older else (None, ())

    def _new_base(self, instant: Instant, partition: str, stat: WriteStat) -> FileSlice:
        bases = self._bases(partition, stat)
        base = next((base for base in bases if base.path == stat.path), None)
        return _slice(partition, stat, _present(base, str(stat.path), instant), ())

    def _older_base(self, instant: Instant, partition: str, stat: WriteStat) -> FileSlice:
        bases = self._bases(partition, stat)
        base = next((base for base in bases if base.instant == stat.prev_commit), None)
        name = f"the base file of {stat.prev_commit} in file group {stat.file_id}"
        return _slice(partition, stat, _present(base, name, instant), ())

    def _older_slice(self, instant: Instant, partition: str, stat: WriteStat) -> FileSlice:
        """Return the slice that a base file was created from, with log files for duplicates."""
        base = self._older_base(instant, partition, stat)
        slices = self._view.slices_of((partition, stat.file_id))
        path = base.base and base.base.path
        return next((slice_ for slice_ in slices if slice_.base and slice_.base.path == path), base)

    def _bases(self, partition: str, stat: WriteStat) -> Sequence[BaseFile]:
        group = self._view.groups.get((partition, stat.file_id))
        return group.bases if group else ()


def _slice(
    partition: str, stat: WriteStat, base: BaseFile | None, logs: tuple[LogFile, ...]
) -> FileSlice:
    instant = base.instant if base else stat.prev_commit
    return FileSlice(partition, stat.file_id, instant, base, tuple(sorted(logs, key=LOG_ORDER)))


def _present(file: File | None, name: str, instant: Instant) -> File:
    if file is None:
        raise _history_error(name, instant)
    return file


def _history_error(what: str, instant: Instant) -> HistoryUnavailable:
    return HistoryUnavailable(
        f"{what} is missing, and the changes of {instant.requested} cannot be read without it",
        hint="The cleaner deletes old files: start the range later.",
    )


def _without_change_log(path: str, instant: Instant) -> HistoryUnavailable:
    return HistoryUnavailable(
        f"{path} was written at {instant.requested} without a change log, by a writer that "
        "does not support hoodie.table.cdc.enabled",
        hint="Use diff(a, b), which compares two snapshots without change logs.",
    )
