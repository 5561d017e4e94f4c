"""The base of a table handle: its snapshot, reloading and committing."""

from __future__ import annotations

import copy
import os
import weakref
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from pyhudi.api.operation_events import report_call
from pyhudi.clock import Moment
from pyhudi.config import argument_checks as arg
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.engine.memory_pool import low_memory_mode
from pyhudi.engine.protocol import Engine
from pyhudi.engine.spark_loader import is_spark_frame, spark
from pyhudi.errors import ConfigError, TimelineMoved
from pyhudi.schema.table_schema import is_meta
from pyhudi.storage import properties_file
from pyhudi.storage.storage import Storage
from pyhudi.table.participants import (
    CommitParticipant,
    SnapshotAfterCommit,
    statement_participants,
)
from pyhudi.table.scan_columns import scan_schema
from pyhudi.table.table_snapshot import TableSnapshot, snapshot_at
from pyhudi.timeline import InstantGenerator, Timeline
from pyhudi.timeline.named_instants import timeline_at
from pyhudi.timeline.rollbacks import find_commits_after_rollback

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from typing_extensions import Self

    from pyhudi.api.background_services import RunServices
    from pyhudi.api.pending_commit import Validator
    from pyhudi.api.progress import Progress
    from pyhudi.api.table import HudiTable
    from pyhudi.query.key_reader import KeyReaders
    from pyhudi.txn.operation_metrics import OperationWatcher
    from pyhudi.txn.result import WriteResult
    from pyhudi.write.idempotency import SearchedCommits
    from pyhudi.write.rejected_rows import RejectedRows
    from pyhudi.write.table_opening import WritableTable


class TableHandle:
    """The base of `HudiTable` and of the classes that hold its operations."""

    def __init__(
        self,
        storage: Storage,
        engine: Engine,
        options: Mapping[str, str],
        as_of: Moment | None = None,
    ) -> None:
        self.storage = storage
        self.engine = engine
        self.options = options
        self.as_of = as_of
        """The time of the handle's snapshot; None for the current one."""
        self._operations = 0
        """Number of the handle's own operations, which its snapshot must include."""
        self._searched: SearchedCommits | None = None
        """The commits that earlier writes have searched for a `commit_id`."""
        self._lookups: KeyReaders | None = None
        self._validators: tuple[Validator, ...] = ()
        # A single attribute holds the snapshot and the operations that it includes, because threads
        # may share the handle: a reload that begins first may end last.
        self._loaded = (0, load_snapshot(storage, options, as_of))

    @property
    def uri(self) -> str:
        """Location of the table, as the caller passed it."""
        return self.storage.uri

    @property
    def state(self) -> TableSnapshot:
        """The snapshot that reads of the handle use."""
        if self._loaded[0] < self._operations:
            self.refresh()
        return self._loaded[1]

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        return self.state.config

    @property
    def name(self) -> str:
        """The table's name."""
        return self.config.name

    @property
    def table_name(self) -> str:
        """The table's name when the handle was loaded last, for events."""
        return self._loaded[1].config.name

    @property
    def type(self) -> Literal["cow", "mor"]:
        """The table type: "cow" for copy-on-write, "mor" for merge-on-read."""
        return "mor" if self.config.is_merge_on_read else "cow"

    @property
    def version(self) -> int:
        """The table version: 4 to 6, 8 or 9."""
        return self.config.version.code

    @property
    def schema(self) -> pa.Schema:
        """The table's columns in order, without Hudi's meta columns."""
        columns = scan_schema(self.state)
        return pa.schema([field for field in columns if not is_meta(field.name)], columns.metadata)

    @property
    def _key_readers(self) -> KeyReaders:
        """The state that the handle keeps for lookups of record keys."""
        if self._lookups is None:
            from pyhudi.query.key_reader import KeyReaders  # noqa: PLC0415 - scans do not need it

            self._lookups = KeyReaders()
        return self._lookups

    def refresh(self) -> Self:
        """Reload the table, so that reads see later commits.

        Returns:
            This handle.

        Raises:
            TableNotFound: the table does not exist any more.
            CorruptTable: the properties or timeline files are damaged.
            HistoryUnavailable: the snapshot of the handle's `as_of` can no longer be read.
            StorageError: the storage fails.
        """
        operations = self._operations
        table = load_snapshot(self.storage, self.options, self.as_of, self._loaded[1].config)
        if operations >= self._loaded[0]:
            self._loaded = operations, table
        return self

    @arg.check_arguments()
    def with_validators(self, *validators: Validator) -> Self:
        """Return a handle whose writes call functions before each commit completes.

            def has_rows(commit):
                if commit.scan_after().count() == 0:
                    raise ValueError("the table would be empty")

            table.with_validators(has_rows).overwrite(rows)

        A function gets a `pyhudi.PendingCommit`. An exception rejects the commit: the write is
        rolled back, and the exception reaches the caller. A function runs under the table's lock,
        and once for each attempt of a write that conflicts with others. Services of the table
        change no rows, and call none.

        Args:
            validators: functions, called in order; none for a handle without validators.

        Returns:
            The handle; this one stays as it is.

        Raises:
            ConfigError: an argument cannot be called.
        """
        for validator in validators:
            arg.function("validators", validator)
        handle = copy.copy(self)
        handle._validators = validators  # noqa: SLF001 - of its own class
        return handle

    def _advance(
        self, loaded: tuple[int, TableSnapshot], operations: int, current: TableSnapshot | None
    ) -> bool:
        """Take over the snapshot right after an own commit; return whether that is possible.

        It is not if another operation or `refresh` of another thread came in between, or if more
        than the timeline has changed.

        loaded, operations: of the handle before the commit. current: None if it is not known.
        """
        previous = loaded[1]
        if (
            current is None
            or self._loaded is not loaded
            or self._operations != operations
            or current.config.properties != previous.config.properties
            or current.schema.avro != previous.schema.avro
            or current.schema.history is not None
            or previous.schema.history is not None
            or find_commits_after_rollback(current.timeline)
        ):
            return False
        self._operations = operations + 1
        generator = InstantGenerator(previous.clock, previous.config.timezone)
        timeline = current.timeline
        self._loaded = operations + 1, replace(previous, timeline=timeline, generator=generator)
        return True

    def _reload(self, instant: str = "") -> None:
        """Reload the handle after an operation, which stays successful if reloading fails."""
        from pyhudi.txn.post_commit import warn_on_failure  # noqa: PLC0415 - not needed for reading

        self._operations += 1
        with warn_on_failure(
            self.uri, instant, "reloading the table", until="the handle's next use"
        ):
            self.refresh()

    def _writable(self) -> Self:
        """Return the handle if it may write."""
        if self.as_of is not None:
            raise ConfigError(
                f"the table was opened as of {self.as_of}: it is read-only",
                hint="Open it without as_of to write.",
            )
        return self

    def _snapshot_at(self, as_of: Moment | None) -> TableSnapshot:
        """Return an earlier snapshot of the table; for None that of the handle."""
        table = self.state
        if as_of is None:
            return table
        timeline = timeline_at(table.timeline, as_of, self.config.timezone)
        return snapshot_at(self.storage, self.config, timeline, self.options)

    def _write(self, operation: Callable[..., WriteResult], *args: Any, **more: Any) -> WriteResult:
        """Run a write operation with `_write_with_services`, and report it."""
        name = _title(operation.__name__).replace(" ", "_")
        write = partial(self._write_with_services, operation, *args, **more)
        return report_call(self, name, write)

    def _write_with_services(
        self,
        operation: Callable[..., WriteResult],
        progress: Progress,
        data: Any,
        *args: Any,
        commit_metadata: Mapping[str, str] | None = None,
        commit_id: str | None = None,
        rejected: str | os.PathLike[str] | HudiTable | None = None,
        **kwargs: Any,
    ) -> WriteResult:
        """Run a write operation, retried on conflicts, and the services that follow a commit."""
        from pyhudi.admin.inline_services import after_commit  # noqa: PLC0415 - not needed for reading
        from pyhudi.api.progress import with_commit_metadata  # noqa: PLC0415 - as above
        from pyhudi.config.options import ServiceOptions  # noqa: PLC0415 - as above
        from pyhudi.txn.post_commit import warn_on_failure  # noqa: PLC0415 - as above
        from pyhudi.write.conflict_retries import retry_on_conflict  # noqa: PLC0415 - as above
        from pyhudi.write.idempotency import SearchedCommits, find_commit_by_id  # noqa: PLC0415 - as above

        if commit_id is not None and self._searched is None:
            self._searched = SearchedCommits()

        def write(handle: WritableTable, data: Any) -> WriteResult:
            if commit_id is not None:
                earlier = find_commit_by_id(handle, commit_id, searched=self._searched)
                if earlier is not None:
                    return earlier
            on_session: AbstractContextManager[WritableTable] = nullcontext(handle)
            if is_spark_frame(data):
                on_session = spark("write_rows").on_session(handle, data, operation.__name__)
            with (
                on_session as opened,
                self._watch(operation.__name__, progress, opened) as (table, watcher),
            ):
                result = operation(table, data, *args, **kwargs)
            count = 0 if set_aside is None else set_aside.count
            return replace(result, metrics=watcher.metrics, rows_rejected=count)

        table, loaded, operations = self._writable(), self._loaded, self._operations
        after = SnapshotAfterCommit()
        participants: tuple[CommitParticipant, ...] = (
            after,
            *statement_participants(),
            *self._validations(),
        )
        set_aside: RejectedRows | None = None
        if rejected is not None:
            from pyhudi.api.rejected_table import new_rejected_rows  # noqa: PLC0415 - few writes need it

            set_aside = new_rejected_rows(self, rejected, commit_id)
            participants, kwargs = (*participants, set_aside), {**kwargs, "rejected": set_aside}
        handle = with_commit_metadata(
            table, loaded[1].config, commit_metadata, commit_id, participants
        )
        with handle.lock_manager.release_later():
            with low_memory_mode(kwargs.get("memory_limit")):
                result = retry_on_conflict(handle, data, write)
            with warn_on_failure(table.storage.uri, result.instant, "post-commit work"):
                if not self._advance(loaded, operations, after.snapshot):
                    self._reload(result.instant)
                # Up to table version 6, this is the modification time of the completed file.
                completion = self.state.timeline.completion_time(result.instant)
                result = replace(result, completion=completion or result.completion)
                handle.lock_manager.finish_release()
                if not result.committed:
                    return result
                if ServiceOptions.of(table.options).in_background:
                    self._request_services(result.instant)
                    return result
                with self._watch("table_services", False, table) as (watched, watcher):
                    has_services = after_commit(
                        watched,
                        lambda: self.state,
                        result.instant,
                        has_overgrown=after.has_overgrown,
                    )
                result = replace(result, metrics=(*result.metrics, *watcher.metrics_of_services()))
                if has_services:
                    self._reload(result.instant)
        return result

    def _validations(self) -> list[CommitParticipant]:
        """Return what calls the validators."""
        if not self._validators:
            return []
        from pyhudi.api.pending_commit import Validation  # noqa: PLC0415 - few writes need it

        return [Validation(self._validators, self.engine)]

    def _watch(
        self, operation: str, progress: Progress, table: WritableTable | None = None
    ) -> AbstractContextManager[tuple[WritableTable, OperationWatcher]]:
        """Watch an operation: see `watch_operation`. table: the handle by default."""
        from pyhudi.api.progress import watch_operation  # noqa: PLC0415 - not needed for reading

        title = f"{_title(operation)} of {self.table_name}"
        return watch_operation(table or self._writable(), title, progress)

    def _request_services(self, instant: str) -> None:
        """Have a thread run what is due after a commit."""
        from pyhudi.api.background_services import BackgroundServices  # noqa: PLC0415 - as above

        BackgroundServices.of(self, self.uri, self._services_runner).request(instant)

    def _services_runner(self) -> RunServices:
        """Return what runs the services of the table, whether this handle still exists or not."""
        from pyhudi.admin.inline_services import after_commit  # noqa: PLC0415 - as above
        from pyhudi.write.table_opening import Handle  # noqa: PLC0415 - as above

        handle, reference = Handle(self.storage, self.engine, self.options), weakref.ref(self)

        def run(
            instant: str, is_stopped: Callable[[], bool], on_error: Callable[[Exception], None]
        ) -> None:
            look = partial(load_snapshot, handle.storage, handle.options, None)
            ran = after_commit(handle, look, instant, is_stopped=is_stopped, on_error=on_error)
            table = reference()
            if ran and table is not None:
                # The next use of the handle loads the table.
                table._operations += 1  # noqa: SLF001 - of its own class

        return run


_TITLES = {"apply_change": "change", "write_batches": "group commit"}
"""Titles of operations whose functions have other names."""


def _title(operation: str) -> str:
    """Return the title of an operation by the name of its function."""
    return _TITLES.get(operation, operation.replace("_", " "))


_MAX_LOADS = 3
"""Maximum number of loads while a concurrent version change or archiving interferes."""


def load_snapshot(
    storage: Storage,
    options: Mapping[str, str],
    as_of: Moment | None,
    previous: TableConfig | None = None,
) -> TableSnapshot:
    """Load a snapshot of the table. previous: the table's properties, possibly out of date."""
    for _ in range(_MAX_LOADS - 1):
        with suppress(TimelineMoved), _prefetch_table(storage, previous):
            return _load_once(storage, options, as_of, previous)
    return _load_once(storage, options, as_of)


def _prefetch_table(storage: Storage, previous: TableConfig | None) -> AbstractContextManager[None]:
    """Prefetch what a load reads, assuming that the layout has not changed."""
    if previous is None:
        return nullcontext()
    return storage.prefetch(
        files=[properties_file.FILE], folders={previous.layout.folder, META_FOLDER}
    )


def _load_once(
    storage: Storage,
    options: Mapping[str, str],
    as_of: Moment | None,
    previous: TableConfig | None = None,
) -> TableSnapshot:
    config = TableConfig.load(storage, assumed=previous).with_delete_marks(options)
    with storage.prefetch(folders={config.layout.folder, META_FOLDER}):
        timeline = Timeline.load(storage, config)
        if revocable := find_commits_after_rollback(timeline):
            # Files of these commits were rolled back, and the next writer revokes the commits.
            timeline = timeline.without(revocable)
        if as_of is not None:
            timeline = timeline_at(timeline, as_of, config.timezone)
        return snapshot_at(storage, config, timeline, options)
