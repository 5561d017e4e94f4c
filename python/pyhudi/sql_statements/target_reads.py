"""Reads of a statement from the table that it changes: they must be current when it commits."""

from __future__ import annotations

from pyhudi.errors import CommitConflict, without_hint
from pyhudi.table.participants import Commit, CommitParticipant
from pyhudi.table.table_snapshot import TableSnapshot
from pyhudi.txn.conflicts import commits_since_plan


class StaleReadError(CommitConflict):
    """Another writer changed the table after a statement read it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, hint="Run the statement again.")


class TargetReads(CommitParticipant):
    """Rejects a commit if another writer has changed rows since the statement read them.

    A retry of the write alone is not enough: its values may come from the rows that were read.
    """

    def __init__(self) -> None:
        self._snapshots: list[TableSnapshot] = []

    def __reduce__(self) -> tuple[type[CommitParticipant], tuple[()]]:
        """Leave the snapshots on the driver, which alone completes commits."""
        return CommitParticipant, ()

    def add(self, table: TableSnapshot) -> None:
        """Add a snapshot that the statement reads."""
        self._snapshots.append(table)

    def validate(self, table: TableSnapshot, commit: Commit) -> None:
        """Raise `StaleReadError` if a commit has changed rows since a snapshot."""
        for snapshot in self._snapshots:
            try:
                concurrent = commits_since_plan(snapshot, table.timeline, commit.instant)
            except CommitConflict as error:
                raise StaleReadError(without_hint(error)) from error
            for other, _ in concurrent.changes:
                msg = f"{other} changed the table after the statement read it"
                raise StaleReadError(msg)
