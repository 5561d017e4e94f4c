"""The schema history file next to each commit of a table that is evolved by column ids."""

from __future__ import annotations

from collections.abc import Mapping

from pyhudi.schema import commit_schema
from pyhudi.table.participants import Commit, CommitParticipant, Rollback
from pyhudi.table.table_snapshot import TableSnapshot


class SchemaHistoryFile(CommitParticipant):
    """Keeps the history file in sync with the commits of a table."""

    def before_complete(self, table: TableSnapshot, commit: Commit) -> Mapping[str, str]:
        """Write the file; a table without column ids has none."""
        if commit.schema.internal is not None:
            history = commit.schema.history_text(commit.instant)
            commit_schema.persist(
                table.storage, table.config, table.generator, commit.instant, history
            )
        return {}

    def on_rollback(self, table: TableSnapshot, rollback: Rollback) -> None:
        """Remove the file."""
        commit_schema.forget(table.storage, rollback.target)

    def on_revoke(self, table: TableSnapshot, instant: str) -> None:
        """Remove the file."""
        commit_schema.forget(table.storage, instant)
