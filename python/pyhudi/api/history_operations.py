"""Methods of a table handle for its past: history, savepoints, rollback, restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyhudi.api.operation_events import as_operation
from pyhudi.api.table_handle import TableHandle
from pyhudi.clock import Moment, SystemClock
from pyhudi.config import argument_checks as arg
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.timeline.named_instants import resolve_requested_time

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.txn.restore import RestoreResult


class HistoryOperations(TableHandle):
    """History, savepoints, rollback and restore of `HudiTable`."""

    @arg.check_arguments()
    @as_operation
    def history(
        self,
        limit: int | None = None,
        *,
        archived: bool = False,
        since: Moment | None = None,
    ) -> pa.Table:
        """Return who did what to the table: one row for each instant, the newest first.

        Both times of a commit, `instant` and `completed`, can bound `incremental` and `changes`.
        Rows are ordered by requested time, so the first row need not be the commit that completed
        last: to follow the table, use the `position` of what you read.

        Args:
            limit: maximum number of rows; pyhudi reads the files of these instants only.
            archived: include the instants that have left the active timeline.
            since: only instants requested after this time, in a format of `scan`'s `as_of`; it also
                bounds what is read of the archive.

        Returns:
            Columns: instant, completed (null while pending or if not recorded), action, operation,
                state; rows_inserted, rows_updated, rows_deleted (null for services, which change no
                rows), files and bytes of commits; rolled_back (the instants that a rollback or
                restore rolled back); metadata (a map: the extra metadata of a commit without the
                schema, or the comment of a savepoint).

        Raises:
            ConfigError: `limit` is not a number of rows, or `since` is not a time.
            CorruptTable: a file of the timeline is damaged.
        """
        from pyhudi.api.history import history  # noqa: PLC0415 - not needed for scans
        from pyhudi.api.outputs import check_limit  # noqa: PLC0415 - as above

        check_limit(limit)
        table = self.state
        zone = table.config.timezone
        bound = None if since is None else resolve_requested_time(table.timeline, since, zone)
        return history(table, limit, bound, archived=archived)

    @arg.check_arguments()
    @as_operation
    def savepoint(self, comment: str = "", instant: str | None = None) -> str:
        """Save a commit: the cleaner retains its files until you call `delete_savepoint`.

        Args:
            comment: the reason.
            instant: instant of the commit; by default the commit that completed last. Up to table
                version 6, which does not record completion times, it is the commit requested last.

        Returns:
            The commit's instant.

        Raises:
            HistoryUnavailable: the commit is not on the active timeline, or files of it may have
                been cleaned.
            ConfigError: the commit is saved already, or an argument is wrong.
            CommitConflict: a pending clean is about to remove files of the commit.
            LockTimeout: the table's lock was not free in time.
            UnsupportedTableFeature: pyhudi does not write to the table.
        """
        from pyhudi.txn import savepoint  # noqa: PLC0415 - not needed for reading

        saved = savepoint.create(self._open_for_change(), comment, instant)
        self._reload(saved.instant)
        return saved.instant

    @as_operation
    def savepoints(self) -> pa.Table:
        """Return the saved commits, oldest first.

        Returns:
            Columns: instant, comment, saved_by, saved_at, partitions, files (number of retained
                files).
        """
        from pyhudi.api.history import savepoint_table  # noqa: PLC0415 - not needed for scans
        from pyhudi.txn.savepoint import savepoints  # noqa: PLC0415 - as above

        return savepoint_table(savepoints(self.state.timeline))

    @arg.check_arguments()
    @as_operation
    def delete_savepoint(self, instant: str) -> None:
        """Delete a savepoint; the commit stays, and the cleaner may remove its files from then on.

        Args:
            instant: instant of the commit.

        Raises:
            ConfigError: the commit is not saved.
            LockTimeout: the table's lock was not free in time.
        """
        from pyhudi.txn import savepoint  # noqa: PLC0415 - not needed for reading

        savepoint.delete(self._open_for_change(), instant)
        self._reload()

    @arg.check_arguments()
    @as_operation
    def rollback(self, instant: str, *, dry_run: bool = False) -> RestoreResult:
        """Roll back the newest completed commit, or a failed pending write or clustering.

        The rollback stays on the timeline, as Hudi's rollbacks do. If the metadata table cannot be
        rolled back, because it was compacted or got partitions since the commit, pyhudi rebuilds
        it. A pending clustering that is only planned, or whose writer failed, leaves the timeline
        without a rollback instant, even if its plan is damaged or empty.

        Args:
            instant: instant of the commit, its requested time.
            dry_run: return what would be removed, and change nothing.

        Returns:
            What was removed: the instant, files and bytes.

        Raises:
            HistoryUnavailable: the instant is not on the active timeline, or files that were
                current before it were cleaned.
            ConfigError: the commit is not the newest, or is saved, or an argument is wrong.
            CommitConflict: a pending operation depends on the commit, or another writer is active.
            LockTimeout: the table's lock was not free in time.
            UnsupportedTableFeature: pyhudi does not write to the table.
            AfterRollbackError: the commit is rolled back; a later step failed, which the next write
                completes.
        """
        from pyhudi.admin.restore import roll_back  # noqa: PLC0415 - not needed for reading

        result = roll_back(self._writable(), instant, dry_run=dry_run)
        self._reload(result.instant)
        return result

    @arg.check_arguments()
    @as_operation
    def restore(self, to: Moment, *, dry_run: bool = False) -> RestoreResult:
        """Restore the table to an earlier commit: everything after it is removed permanently.

        pyhudi rolls back commit by commit, the newest first: commits, compactions and clusterings
        that completed after the commit, and everything planned after it. Stop other writers first.
        Until the restore ends, readers of a later snapshot raise `HistoryUnavailable` or
        `CorruptTable`. If the writer fails, the next write completes the restore. The metadata
        table is rolled back too, or rebuilt if it was compacted or got partitions since the commit.

        Args:
            to: the instant of the commit, saved or not; or a time in a format of `scan`'s `as_of`,
                for the newest commit up to then.
            dry_run: return what would be removed, and change nothing.

        Returns:
            What was removed: instants, files and bytes. Without a commit after `to`, nothing is
                done.

        Raises:
            HistoryUnavailable: the time is before the active timeline, or files that were current
                then have been cleaned.
            ConfigError: a later commit is saved, or an argument is wrong.
            CommitConflict: a clean or an index build is pending, or another writer is active.
            CorruptTable: a file that the savepoint lists is missing.
            LockTimeout: the table's lock was not free in time.
            UnsupportedTableFeature: pyhudi does not write to the table.
            AfterRollbackError: commits are rolled back; a later step failed. Call `restore` again.
        """
        from pyhudi.admin.restore import restore  # noqa: PLC0415 - not needed for reading

        result = restore(self._writable(), to, dry_run=dry_run)
        self._reload(result.instant)
        return result

    def _open_for_change(self) -> TableSnapshot:
        from pyhudi.write.table_opening import open_for_change  # noqa: PLC0415 - not needed for reading

        return open_for_change(self._writable(), SystemClock())
