"""The verbs of a table handle about its past: who did what, savepoints. Thin: each is one call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyhudi.clock import Moment, SystemClock, instant_of
from pyhudi.config import arguments as arg
from pyhudi.config.table_config import TableConfig
from pyhudi.slices.table import Table

if TYPE_CHECKING:  # Opening and reading a table needs none of it.
    from pyhudi.write.write_context import WritableTable


class HistoryVerbs:
    """What `HudiTable` can tell of its table's past, and keep of it."""

    @property
    def config(self) -> TableConfig:
        """The table's properties."""
        raise NotImplementedError

    @property
    def state(self) -> Table:
        """What reads of the handle are planned from."""
        raise NotImplementedError

    def refresh(self) -> Any:
        """Looks at the table again."""
        raise NotImplementedError

    def _writable(self) -> WritableTable:
        """The handle, if it may write."""
        raise NotImplementedError

    @arg.checked(limit=arg.optional(arg.whole), archived=arg.flag)
    def history(
        self,
        limit: int | None = None,
        *,
        archived: bool = False,
        since: Moment | None = None,
    ) -> pa.Table:
        """Who did what to the table: one row an instant, the newest first.

        Args:
            limit: at most so many rows; files of no more instants are read.
            archived: with the instants that have left the active timeline.
            since: those requested after that time, as `scan` takes it for `as_of`, which bounds
                what is read of the archive.

        Returns:
            Columns: instant, completed (null while pending or not noted), action, operation, state;
            rows_inserted, rows_updated, rows_deleted, files and bytes of commits; rolled_back (of
            rollbacks and restores the instants that they took back); metadata (a map: what the
            writer of a commit said in its extra metadata, without the schema; of savepoints the
            comment).

        Raises:
            ConfigError: a limit or a time that is none.
            CorruptTable: a file of the timeline is damaged.
        """
        from pyhudi.api.history import history  # noqa: PLC0415 - scans need none of it
        from pyhudi.api.outputs import check_limit  # noqa: PLC0415 - as above

        check_limit(limit)
        bound = None if since is None else instant_of(since, self.config.timezone)
        return history(self.state, limit, bound, archived=archived)

    @arg.checked(comment=arg.text, instant=arg.optional(arg.text))
    def savepoint(self, comment: str = "", instant: str | None = None) -> str:
        """Saves a commit: cleaners spare its files until `delete_savepoint`.

        Args:
            comment: why.
            instant: that of the commit, by default the newest completed one.

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
        self.refresh()
        return saved.instant

    def savepoints(self) -> pa.Table:
        """The saved commits, oldest first.

        Returns:
            Columns: instant, comment, saved_by, saved_at, partitions, files (how many are spared).
        """
        from pyhudi.api.history import savepoint_table  # noqa: PLC0415 - scans need none of it
        from pyhudi.txn.savepoint import savepoints  # noqa: PLC0415 - as above

        return savepoint_table(savepoints(self.state.timeline))

    @arg.checked(instant=arg.text)
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
        self.refresh()

    def _whole(self) -> Table:
        from pyhudi.write.write_context import open_whole  # noqa: PLC0415 - reading needs none

        return open_whole(self._writable(), SystemClock())
