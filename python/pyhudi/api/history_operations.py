"""The verbs of a table handle about its past: who did what, keeping it, going back to it. Thin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.clock import Moment, SystemClock
from pyhudi.config import argument_checks as arg
from pyhudi.config.table_config import TableConfig
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.named_instants import resolve_requested_time

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.txn.restore import RestoreResult
    from pyhudi.write.write_context import WritableTable


class HistoryVerbs:
    """What `HudiTable` can tell of its table's past, keep of it and bring back."""

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        raise NotImplementedError

    @property
    def state(self) -> TableSnapshot:
        """What reads of the handle are planned from."""
        raise NotImplementedError

    def _reload(self, instant: str = "") -> None:
        """Has the handle look at the table after an act, which stands if that fails."""
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """The handle, if it may write."""
        raise NotImplementedError

    @arg.check_arguments(limit=arg.optional(arg.whole), archived=arg.flag)
    def history(
        self,
        limit: int | None = None,
        *,
        archived: bool = False,
        since: Moment | None = None,
    ) -> pa.Table:
        """Who did what to the table: one row an instant, the newest first.

        Either time of a commit, `instant` or `completed`, bounds `incremental` and `changes`. Rows
        are in the order of requests, where the newest need not be the one that was completed last:
        to follow the table, use `next_start` of what you read.

        Args:
            limit: at most so many rows; files of no more instants are read.
            archived: with the instants that have left the active timeline.
            since: those requested after that time, as `scan` takes it for `as_of`, which bounds
                what is read of the archive.

        Returns:
            Columns: instant, completed (null while pending or not noted), action, operation, state;
            rows_inserted, rows_updated, rows_deleted (null for services, which change no rows),
            files and bytes of commits; rolled_back (of rollbacks and restores the instants that
            they took back); metadata (a map: what the writer of a commit said in its extra
            metadata, without the schema; of savepoints the comment).

        Raises:
            ConfigError: a limit or a time that is none.
            CorruptTable: a file of the timeline is damaged.
        """
        from pyhudi.api.history import history  # noqa: PLC0415 - scans need none of it
        from pyhudi.api.outputs import check_limit  # noqa: PLC0415 - as above

        check_limit(limit)
        table = self.state
        zone = table.config.timezone
        bound = None if since is None else resolve_requested_time(table.timeline, since, zone)
        return history(table, limit, bound, archived=archived)

    @arg.check_arguments(comment=arg.text, instant=arg.optional(arg.text))
    def savepoint(self, comment: str = "", instant: str | None = None) -> str:
        """Saves a commit: cleaners spare its files until `delete_savepoint`.

        Args:
            comment: why.
            instant: that of the commit, by default the one that was completed last; up to table
                version 6, where that is not kept, the one that was requested last.

        Returns:
            The commit's instant.

        Raises:
            HistoryUnavailable: the commit is not on the active timeline, or files of it may have
                been cleaned.
            ConfigError: it is saved already, or an argument is wrong.
            CommitConflict: a pending clean is about to take files of it.
            LockTimeout: the table's lock could not be had in time.
            UnsupportedTableFeature: pyhudi does not write to the table.
        """
        from pyhudi.txn import savepoint  # noqa: PLC0415 - reading needs none of it

        saved = savepoint.create(self._whole(), comment, instant)
        self._reload(saved.instant)
        return saved.instant

    def savepoints(self) -> pa.Table:
        """The saved commits, oldest first.

        Returns:
            Columns: instant, comment, saved_by, saved_at, partitions, files (how many are spared).
        """
        from pyhudi.api.history import savepoint_table  # noqa: PLC0415 - scans need none of it
        from pyhudi.txn.savepoint import savepoints  # noqa: PLC0415 - as above

        return savepoint_table(savepoints(self.state.timeline))

    @arg.check_arguments(instant=arg.text)
    def delete_savepoint(self, instant: str) -> None:
        """Takes a savepoint away; the commit stays, and cleaners may take its files from then on.

        Args:
            instant: that of the commit.

        Raises:
            ConfigError: the commit is not saved.
            LockTimeout: the table's lock could not be had in time.
        """
        from pyhudi.txn import savepoint  # noqa: PLC0415 - reading needs none of it

        savepoint.delete(self._whole(), instant)
        self._reload()

    @arg.check_arguments(instant=arg.text, dry_run=arg.flag)
    def rollback(self, instant: str, *, dry_run: bool = False) -> RestoreResult:
        """Takes the newest completed commit back, or a failed write or clustering that is pending.

        A rollback stands on the timeline, as Hudi's do. A metadata table that cannot follow, since
        it was compacted or got partitions since the commit, is made anew. A clustering that is
        planned, or was begun by a writer that died, leaves the timeline without a trace, also one
        whose plan is damaged or empty.

        Args:
            instant: that of the commit, its requested time.
            dry_run: say what would go, and change nothing.

        Returns:
            What went: the instant, files and bytes.

        Raises:
            HistoryUnavailable: the instant is not on the active timeline, or files that were
                current before it were cleaned.
            ConfigError: it is not the newest, or is saved, or an argument is wrong.
            CommitConflict: something is pending that goes by what would go, or another writer is at
                work.
            LockTimeout: the table's lock could not be had in time.
            UnsupportedTableFeature: pyhudi does not write to the table.
            AfterRollbackError: the commit is gone; something after that failed, which the next
                write completes.
        """
        from pyhudi.admin.restore import roll_back  # noqa: PLC0415 - reading needs none of it

        result = roll_back(self._writable(), instant, dry_run=dry_run)
        self._reload(result.instant)
        return result

    @arg.check_arguments(dry_run=arg.flag)
    def restore(self, to: Moment, *, dry_run: bool = False) -> RestoreResult:
        """Brings the table back to an earlier commit: everything after it goes, for good.

        What goes is rolled back commit by commit, the newest first: commits, compactions and
        clusterings that were completed after the commit, and what was planned after it. Stop other
        writers first. Readers of a later state raise `HistoryUnavailable` or `CorruptTable`
        meanwhile. What a writer that dies has begun, the next write ends. The metadata table
        follows, or is made anew where it was compacted or got partitions since.

        Args:
            to: the instant of the commit, saved or not; or a time, as `scan` takes it for `as_of`,
                for the newest commit by then.
            dry_run: say what would go, and change nothing.

        Returns:
            What went: instants, files and bytes. With no commit after `to` nothing is done.

        Raises:
            HistoryUnavailable: the time is before the active timeline, or files that were current
                then have been cleaned.
            ConfigError: a later commit is saved, or an argument is wrong.
            CommitConflict: a clean or the making of an index is pending, or another writer is at
                work.
            CorruptTable: a file that the savepoint names is gone.
            LockTimeout: the table's lock could not be had in time.
            UnsupportedTableFeature: pyhudi does not write to the table.
            AfterRollbackError: commits are gone; something after that failed. Call it again.
        """
        from pyhudi.admin.restore import restore  # noqa: PLC0415 - reading needs none of it

        result = restore(self._writable(), to, dry_run=dry_run)
        self._reload(result.instant)
        return result

    def _whole(self) -> TableSnapshot:
        from pyhudi.write.write_context import open_for_change  # noqa: PLC0415 - reading needs none

        return open_for_change(self._writable(), SystemClock())
