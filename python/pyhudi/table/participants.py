"""Commit participants: what must be in sync with a table before one of its commits completes.

They are the schema history, the hashing metadata and the metadata table.
`TableSnapshot.participants` has them in the order in which they are called. Whatever a participant
writes before a commit is complete must have no effect on readers without that commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pyhudi.storage.prefetch import forget
from pyhudi.storage.storage import Entry
from pyhudi.timeline.commit_metadata import CommitMetadata

if TYPE_CHECKING:  # Reading needs none of it.
    from pyhudi import _native
    from pyhudi.schema.commit_schema import CommitSchema
    from pyhudi.table.table_snapshot import TableSnapshot

_MAX_LISTING_AGE_MS = 2_000
"""Age at which a listing is too old for the check before a publication."""


@dataclass
class Commit:
    """A commit that is about to be complete."""

    instant: str
    metadata: CommitMetadata
    schema: CommitSchema
    """The schema that the commit records."""
    by_record_index: bool = False
    """Whether the record index tagged its keys, so that it contains all updated keys."""
    listed: Mapping[str, list[Entry]] = field(default_factory=dict)
    """The files of the table in partitions that were listed, and have not changed since."""
    keys_indexed: int = 0
    """Number of keys that it adds to the record index, once the metadata table is in sync."""
    action: str = ""
    """The action of its pending files."""
    completion: str = ""
    """The completion time, once it is complete."""
    has_overgrown: bool = False
    """It appends to a file group with far too many log files."""
    metadata_table: TableSnapshot | None = None
    """The metadata table, once it is in sync; None also if that would take a listing."""


@dataclass(frozen=True)
class ArchiveBound:
    """Why instants stay in the active timeline."""

    time: str
    """The first requested time that stays."""
    reason: str


@dataclass
class Clean:
    """A clean that has deleted its files and is about to be complete."""

    time: str
    """The requested time of the clean."""
    files: Mapping[str, Sequence[str]]
    """Names of the deleted files, by partition path."""
    partitions: Collection[str] = ()
    """Paths of the partitions that were deleted as a whole."""
    metadata_table: TableSnapshot | None = None
    """See `Commit`."""


@dataclass(frozen=True)
class Rollback:
    """A rollback that has deleted its files and is about to be complete."""

    time: str
    """The requested time of the rollback."""
    target: str
    """The requested time of the write that it rolls back."""
    record: Mapping[str, Any]
    """Its `HoodieRollbackMetadata`."""


class CommitParticipant:
    """Takes part in a table's commits. By default each method does nothing."""

    @property
    def needs_commit(self) -> bool:
        """Whether a write that changes nothing must commit."""
        return False

    def prefetch(
        self,
        table: TableSnapshot,  # noqa: ARG002
        metadata: CommitMetadata,  # noqa: ARG002
        listed: Collection[str] = (),  # noqa: ARG002
    ) -> AbstractContextManager[None]:
        """A block around `before_complete` that prefetches what that reads.

        listed: partitions whose files were listed already.
        """
        return nullcontext()

    def before_publish(self, table: TableSnapshot) -> None:
        """Prepare for a commit that a writer is about to complete under the lock.

        Not called if the writer of the participant's own records compacts the table before.

        Args:
            table: The current snapshot.
        """

    def validate(self, table: TableSnapshot, commit: Commit) -> None:
        """Check a commit whose files are written, before any participant is in sync with it.

        It is called under the lock. An error rejects the commit.
        """

    def before_complete(
        self,
        table: TableSnapshot,  # noqa: ARG002
        commit: Commit,  # noqa: ARG002
    ) -> Mapping[str, str]:
        """Sync with a commit whose files are written. An error rolls the commit back.

        Returns:
            Extra metadata that the commit records.
        """
        return {}

    def before_restore(self, table: TableSnapshot, targets: Collection[str]) -> None:
        """Check that the participant can roll back these instants, completed ones included.

        Raises:
            CommitConflict: It cannot.
        """

    def on_rollback(self, table: TableSnapshot, rollback: Rollback) -> None:
        """Remove its records of a write before the rollback of that write is complete.

        A failed rollback is executed again, so its records may be removed already.
        """

    def on_revoke(self, table: TableSnapshot, instant: str) -> None:
        """Remove its records of a write that was removed from the table's timeline."""

    def before_clean(self, table: TableSnapshot, clean: Clean) -> None:
        """Sync with a clean before the clean is complete.

        A failed clean is executed again, so all or a part of this may be done already.
        """

    def find_unlisted(
        self,
        table: TableSnapshot,  # noqa: ARG002
        listed: _native.FileGroups,  # noqa: ARG002
        includes_partition: Callable[[str], bool],  # noqa: ARG002
    ) -> Iterable[str]:
        """Return paths of the table's files that a listing of storage does not have.

        includes_partition: a test of the partition path. Only a participant that lists files knows
        any.
        """
        return ()

    def archive_bound(self, table: TableSnapshot) -> ArchiveBound | None:  # noqa: ARG002
        """Return the part of the active timeline that it needs, or None."""
        return None

    def after_complete(self, table: TableSnapshot, action: Commit | Clean) -> None:
        """Do what is due once a commit or a clean is complete. An error becomes a warning.

        table: the snapshot before.
        """


class SchemaHistoryFile(CommitParticipant):
    """Writes the schema history with each commit of a table whose columns have ids."""

    def before_complete(self, table: TableSnapshot, commit: Commit) -> Mapping[str, str]:
        """Write the file; a table without column ids has none."""
        from pyhudi.schema import commit_schema  # noqa: PLC0415 - not needed for reading

        if commit.schema.internal is not None:
            history = commit.schema.history_text(commit.instant)
            commit_schema.persist(
                table.storage, table.config, table.generator, commit.instant, history
            )
        return {}

    def on_rollback(self, table: TableSnapshot, rollback: Rollback) -> None:
        """Remove the file."""
        from pyhudi.schema import commit_schema  # noqa: PLC0415 - not needed for reading

        commit_schema.forget(table.storage, rollback.target)

    def on_revoke(self, table: TableSnapshot, instant: str) -> None:
        """Remove the file."""
        from pyhudi.schema import commit_schema  # noqa: PLC0415 - not needed for reading

        commit_schema.forget(table.storage, instant)


class SnapshotAfterCommit(CommitParticipant):
    """Keeps the snapshot right after a write, so that its handle does not load the table again."""

    def __init__(self) -> None:
        self.snapshot: TableSnapshot | None = None
        """None until a commit is complete, and if its layout has no completion times in names."""
        self.has_overgrown = False
        """See `Commit`."""

    def after_complete(self, table: TableSnapshot, action: Commit | Clean) -> None:
        """Keep the snapshot. No other writer has completed anything in this critical section."""
        self.snapshot = None
        if not isinstance(action, Commit):
            return
        self.has_overgrown = action.has_overgrown
        if table.timeline.completes_in_names:
            timeline = table.timeline.with_completed(
                action.instant, action.action, action.completion
            )
            self.snapshot = table.with_timeline(timeline)


@contextmanager
def prefetch_publication_check(table: TableSnapshot) -> Iterator[Callable[[], None]]:
    """Prefetch the listing by which a writer checks that its instant is still inflight.

    The block writes what precedes the publication, so the listing takes no time of its own. Call
    the result right before the check: it drops a listing that is too old. The lock, which is
    checked after the publication, covers the time in between.
    """
    if not table.config.layout.completion_in_name:
        yield lambda: None
        return
    began_ms = table.clock.ticks_ms()

    def drop_old_listing() -> None:
        if table.clock.ticks_ms() - began_ms > _MAX_LISTING_AGE_MS:
            forget()

    with table.storage.prefetch(folders=[table.config.layout.folder]):
        yield drop_old_listing


@contextmanager
def prefetch_commit_reads(
    table: TableSnapshot,
    metadata: CommitMetadata,
    *,
    files: Iterable[str] = (),
    trees: Iterable[str] = (),
    listed: Collection[str] = (),
) -> Iterator[None]:
    """Prefetch what a commit or a clean reads first, in a critical section, so it cannot change.

    metadata: of the commit. files, trees: also read and listed. listed: partitions whose files were
    listed already.
    """
    with ExitStack() as block:
        folders = [table.config.layout.folder]
        block.enter_context(table.storage.prefetch(files=files, folders=folders, trees=trees))
        for participant in table.participants:
            block.enter_context(participant.prefetch(table, metadata, listed))
        yield


def run_participants(
    table: TableSnapshot, commit: Commit, others: Iterable[CommitParticipant] = ()
) -> CommitMetadata:
    """Sync the participants of a table with a commit; return its extended metadata."""
    extra_metadata = dict(commit.metadata.extra_metadata)
    for participant in (*table.participants, *others):
        extra_metadata |= participant.before_complete(table, commit)
    return replace(commit.metadata, extra_metadata=extra_metadata)


_of_statement: ContextVar[tuple[CommitParticipant, ...]] = ContextVar("participants", default=())


@contextmanager
def participate(participant: CommitParticipant) -> Iterator[None]:
    """A block in whose commits of rows a participant takes part."""
    token = _of_statement.set((*_of_statement.get(), participant))
    try:
        yield
    finally:
        _of_statement.reset(token)


def statement_participants() -> tuple[CommitParticipant, ...]:
    """Return the participants of the blocks around a write."""
    return _of_statement.get()
