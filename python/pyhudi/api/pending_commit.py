"""Validators: functions of a caller that check each commit before it completes.

A validator runs under the lock, after the data files are written and the conflict checks. The files
of the commit are on storage, but the commit is not on the timeline, so the snapshots here have the
commit's metadata in memory, and list the files from storage.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyhudi.api.scan import Scan, new_scan
from pyhudi.cached_property import cached_property
from pyhudi.config.metadata_options import METADATA_ENABLE
from pyhudi.engine.protocol import Engine
from pyhudi.errors import ConstraintViolation
from pyhudi.query.commit_range import IncrementalRange, next_start
from pyhudi.table.participants import Commit, CommitParticipant
from pyhudi.table.table_snapshot import TableSnapshot, snapshot_at
from pyhudi.txn.result import WriteResult, result_of


@dataclass(frozen=True)
class PendingCommit:
    """A commit that is about to complete, as validators get it."""

    _before: TableSnapshot
    _commit: Commit
    _engine: Engine

    @property
    def result(self) -> WriteResult:
        """The counts and the operation of the write, which has no completion time yet."""
        operation = self._commit.metadata.operation_type or ""
        return result_of(
            self._commit.instant, "", operation, list(self._commit.metadata.write_stats)
        )

    def rows(self, columns: Sequence[str] | None = None, where: Any = None) -> Scan:
        """Return a scan of the inserted and updated rows, as they are after the commit.

        Args:
            columns: as in `HudiTable.scan`.
            where: as in `HudiTable.scan`.

        Returns:
            The scan, which you can read while the validator runs.

        Raises:
            SchemaMismatch: a column does not exist, or the filter does not match the table.
            UnsupportedTableFeature: the table does not store the commit of each row.
        """
        start = next_start(self._before, IncrementalRange(None, None))
        return self._scan(self._after, columns, where, IncrementalRange(start, None))

    def scan_before(self, columns: Sequence[str] | None = None, where: Any = None) -> Scan:
        """Return a scan of the table before the commit; otherwise as `rows`.

        Args:
            columns: as in `HudiTable.scan`.
            where: as in `HudiTable.scan`.

        Returns:
            The scan.

        Raises:
            SchemaMismatch: a column does not exist, or the filter does not match the table.
        """
        return self._scan(self._before, columns, where)

    def scan_after(self, columns: Sequence[str] | None = None, where: Any = None) -> Scan:
        """Return a scan of the table after the commit; otherwise as `rows`.

        Args:
            columns: as in `HudiTable.scan`.
            where: as in `HudiTable.scan`.

        Returns:
            The scan.

        Raises:
            SchemaMismatch: a column does not exist, or the filter does not match the table.
        """
        return self._scan(self._after, columns, where)

    @cached_property
    def _after(self) -> TableSnapshot:
        before, commit = self._before, self._commit
        timeline = before.timeline.with_completed(
            commit.instant, commit.action, before.generator.next(), commit.metadata
        )
        return snapshot_at(before.storage, before.config, timeline, before.options)

    def _scan(
        self,
        table: TableSnapshot,
        columns: Sequence[str] | None,
        where: Any,
        incremental_range: IncrementalRange | None = None,
    ) -> Scan:
        # The metadata table does not have the files of the commit yet.
        table = replace(table, options={**table.options, METADATA_ENABLE: "false"})
        return new_scan(
            table,
            self._engine,
            columns=columns,
            where=where,
            limit=None,
            meta_fields=False,
            incremental_range=incremental_range,
        )


Validator = Callable[[PendingCommit], object]


@dataclass(frozen=True)
class Validation(CommitParticipant):
    """Calls validators before a commit of rows completes."""

    validators: tuple[Validator, ...]
    engine: Engine

    def __reduce__(self) -> tuple[type[CommitParticipant], tuple[()]]:
        """Leave the functions and the engine on the driver, which alone completes commits."""
        return CommitParticipant, ()

    def validate(self, table: TableSnapshot, commit: Commit) -> None:
        """Call each of them. What they raise rejects the commit, and so does another result."""
        pending = PendingCommit(table, commit, self.engine)
        for validator in self.validators:
            outcome = validator(pending)
            if outcome is not None and outcome is not True:
                name = getattr(validator, "__name__", repr(validator))
                raise ConstraintViolation(
                    f"the validator {name} returned {outcome!r}",
                    constraint=name,
                    hint="A validator raises an exception to reject a commit, or returns True.",
                )
