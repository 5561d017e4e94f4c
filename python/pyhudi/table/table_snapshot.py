"""A table at a moment, and what keeps step with its commits.

Companions are the schema history, hash rings, the metadata table: they stand in `Table.companions`
in the order in which they are called. Nothing that one writes before a commit is complete may count
for readers without that commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from pyhudi.clock import Clock, SystemClock
from pyhudi.config.table_config import TableConfig
from pyhudi.engine.local import LocalEngine
from pyhudi.engine.protocol import Engine
from pyhudi.schema.commit_schema import CommitSchema
from pyhudi.schema.table_schema import TableSchema, table_schema
from pyhudi.schema.virtual_keys import file_schema
from pyhudi.storage.prefetch import forget
from pyhudi.storage.storage import Storage
from pyhudi.timeline import InstantGenerator, Timeline
from pyhudi.timeline.commit_metadata import CommitMetadata


class LockManager(Protocol):
    """How a table's writers keep out of each other's way."""

    def critical_section(self) -> AbstractContextManager[None]:
        """A block in which no other writer changes timeline, metadata table or properties."""
        ...

    @property
    def is_held(self) -> bool:
        """Whether this writer is in a section."""
        ...

    def check_held(self, for_ms: int = 0) -> None:
        """Raises `CommitConflict` where another writer may be in a section, though this one is.

        for_ms: or may be before so long, though this one stood still; `lasts_ms` at most.
        """
        ...

    def reacquire(self) -> None:
        """Within a section: has it be one anew, where `check` raised. Raises `LockTimeout`."""
        ...

    @property
    def lease_ms(self) -> int | None:
        """How long a section stays that of a writer who stands still; None: for ever."""
        ...

    def wait_out_clock_skew(self, since_ms: int) -> None:
        """Has the section last until a time that was taken then is past for every writer's clock.

        Outside of a section nothing is waited for.
        """
        ...

    def release_later(self) -> AbstractContextManager[None]:
        """A block that goes on while a section is being left, which is done at its end."""
        ...

    def finish_release(self) -> None:
        """Waits until no section is being left."""
        ...


class NoLock(LockManager):
    """Of readers, and of a writer that is the only one."""

    is_held = False

    def critical_section(self) -> AbstractContextManager[None]:
        """Nobody is waited for."""
        forget()
        return nullcontext()

    lease_ms = None

    def check_held(self, for_ms: int = 0) -> None:
        """There is nobody else."""

    def reacquire(self) -> None:
        """There is nobody else."""

    def wait_out_clock_skew(self, since_ms: int) -> None:
        """There is one clock."""

    def release_later(self) -> AbstractContextManager[None]:
        """Nothing is left."""
        return nullcontext()

    def finish_release(self) -> None:
        """Nothing is left."""


@dataclass(frozen=True)
class TableSnapshot:
    """A data table or a metadata table at a moment: where it lies, what it is, how it is worked on.

    Pickled for another process it has an engine of one thread, and no guard.
    """

    storage: Storage
    config: TableConfig
    timeline: Timeline
    schema: TableSchema
    """What its rows are. Of a metadata table only the Avro form is known."""
    columns: pa.Schema
    """Its columns as its files hold them, meta columns first."""
    generator: InstantGenerator
    """The source of the instants of all that is done with it."""
    clock: Clock = field(default_factory=SystemClock)
    engine: Engine = field(default_factory=LocalEngine)
    """What runs the tasks."""
    options: Mapping[str, str] = field(default_factory=dict)
    """`hoodie.…` options of the handle, as text."""
    companions: tuple[CommitParticipant, ...] = ()
    """What keeps step with its commits."""
    guard: LockManager = field(default_factory=NoLock)
    """What keeps other writers out; of a metadata table it is the data table's."""
    as_text: tuple[str, ...] = ()
    """Columns whose values scans give as text."""

    @classmethod
    def open(
        cls,
        storage: Storage,
        config: TableConfig,
        clock: Clock,
        engine: Engine | None = None,
        options: Mapping[str, str] | None = None,
        companions: tuple[CommitParticipant, ...] = (),
        timeline: Timeline | None = None,
        guard: LockManager | None = None,
    ) -> TableSnapshot:
        """As a writer sees it: every column as it is stored, and a fresh source of instants.

        timeline: where it has just been read. guard: None where nobody else writes.
        """
        timeline = timeline or Timeline.load(storage, config)
        schema = table_schema(storage, config, timeline)
        return cls(
            storage,
            config,
            timeline,
            schema,
            file_schema(schema, config),
            InstantGenerator(clock, config.timezone),
            clock,
            engine or LocalEngine(),
            options or {},
            companions,
            guard or NoLock(),
        )

    def with_timeline(self, timeline: Timeline) -> TableSnapshot:
        """With another timeline, and the schema as it was."""
        return replace(self, timeline=timeline)

    def reload(self) -> TableSnapshot:
        """With the timeline of now."""
        return self.with_timeline(Timeline.load(self.storage, self.config))

    def with_schema(self, schema: TableSchema) -> TableSnapshot:
        """With other columns, as its files will hold them."""
        return replace(self, schema=schema, columns=file_schema(schema, self.config))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "engine": LocalEngine(1), "guard": NoLock()}


@dataclass
class Commit:
    """A commit that is about to be complete."""

    instant: str
    metadata: CommitMetadata
    schema: CommitSchema
    """What it says of the table's schema."""
    by_record_index: bool = False
    """Its updates are of keys that the record index had."""
    keys_indexed: int = 0
    """Keys that the record index got with it, once the metadata table has kept step."""


class CommitParticipant:
    """One that keeps step with a table's commits. Each method does nothing where it is not made."""

    def prefetch(
        self,
        table: TableSnapshot,  # noqa: ARG002
        metadata: CommitMetadata,  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """A block in which `before_complete` begins, with what that reads asked for at once.

        metadata: of the commit.
        """
        return nullcontext()

    def before_publish(self, table: TableSnapshot) -> None:
        """Learns that a writer is about to complete a commit under the lock. table: as it is now.

        Not told where who makes what is to keep step compacts the table before that.
        """

    def before_complete(
        self,
        table: TableSnapshot,  # noqa: ARG002
        commit: Commit,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Brings itself up to a commit whose files are written.

        Gives what the commit is to say in its extra metadata. An error takes the commit back.
        """
        return {}

    def before_restore(self, table: TableSnapshot, targets: Collection[str]) -> None:
        """Makes sure that it can take back what it has of these instants, completed ones too.

        Raises `CommitConflict` where it cannot.
        """

    def on_rollback(self, table: TableSnapshot, rollback: Rollback) -> None:
        """Takes back what it has of a write, before the rollback of that write is complete.

        A rollback that died is carried out again, so this may find its work done.
        """

    def on_revoke(self, table: TableSnapshot, instant: str) -> None:
        """Takes back what it has of a write that the table's timeline has no more."""

    def before_clean(self, table: TableSnapshot, clean: Clean) -> None:
        """Brings itself up to a clean, before that is complete.

        A clean that died is carried out again, so this may find its work done, or half done.
        """

    def list_files(
        self,
        table: TableSnapshot,  # noqa: ARG002
        wanted: Callable[[str], bool],  # noqa: ARG002
    ) -> Iterable[str]:
        """Paths of the table's files in wanted partitions, as far as it keeps a list of them."""
        return ()

    def archive_bound(self, table: TableSnapshot) -> ArchiveBound | None:  # noqa: ARG002
        """From where on it needs the table's active timeline as it is; None: it does not."""
        return None

    def after_complete(self, table: TableSnapshot) -> None:
        """Does what is due once a commit is complete. An error is a warning then."""


@dataclass(frozen=True)
class ArchiveBound:
    """Why instants stay in the active timeline."""

    time: str
    """From the one requested at this time on."""
    reason: str


@dataclass(frozen=True)
class Clean:
    """A clean whose files are gone, and that is about to be complete."""

    time: str
    """Its instant."""
    files: Mapping[str, Sequence[str]]
    """Names of the files that are gone, by partition path."""
    partitions: Collection[str] = ()
    """Paths of the partitions that are gone with all they held."""


@dataclass(frozen=True)
class Rollback:
    """A rollback whose files are gone, and that is about to be complete."""

    time: str
    """Its instant."""
    target: str
    """That of the write that it takes back."""
    record: Mapping[str, Any]
    """Its `HoodieRollbackMetadata`."""
