"""The tree of errors, divided by what the caller does next. Every error can have a hint."""

from __future__ import annotations


class HudiError(Exception):
    """Base of all errors of pyhudi. `hint` says what to do next; "" if there is nothing to do."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nHint: {self.hint}" if self.hint else text


def without_hint(error: Exception) -> str:
    """Return an error's message without its hint, to quote it in a warning."""
    return str(error).split("\nHint:", 1)[0]


class TableNotFound(HudiError):
    """The location has no Hudi table. Check the location."""


class UnsupportedTableFeature(HudiError):
    """The table uses a feature that pyhudi does not support; the message names it."""


class SchemaMismatch(HudiError):
    """The data do not match the table's schema or keys. Change the data or the schema."""


class ConstraintViolation(SchemaMismatch):
    """A row violates a constraint of the table. Change the row or the constraint.

    `constraint` is the name of the constraint.
    """

    def __init__(self, message: str, *, constraint: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.constraint = constraint


class ConfigError(HudiError, ValueError):
    """An argument or option is wrong. Fix the call."""


class CommitConflict(HudiError):
    """Another writer is active on the same table, or committed first.

    `retry` is true if the same operation can succeed when it runs again. The methods of a table
    retry it themselves (`hoodie.write.num.retries.on.conflict.failures`) before they raise this.
    """

    def __init__(self, message: str, *, hint: str = "", retry: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.retry = retry


def retryable_conflict(message: str) -> CommitConflict:
    """Return the error of a write that lost to a concurrent writer."""
    return CommitConflict(message, hint="Run the operation again.", retry=True)


class LockTimeout(HudiError):
    """The writer did not get the table's lock in time. Try again later."""


class WriterTimeout(HudiError, TimeoutError):
    """A group writer had no room for a batch in time. The batch was not submitted: try again."""


class ConsumerConflict(HudiError):
    """Another process moved the position of a stream's consumer. Begin the stream again."""


class HistoryUnavailable(HudiError):
    """The requested instant or range is no longer, or not yet, on the timeline."""


class TimelineMoved(HistoryUnavailable):
    """The handle's snapshot no longer exists, such as after an upgrade. Open the table again."""


_SYSTEM_HINTS = {
    "(os error 11)": "The system has no more threads: raise ulimit -u, or use fewer threads.",
    "(os error 13)": "Grant the user permission to read and write this path.",
    "(os error 20)": "A part of the path is a file: pass the path of a directory.",
    "(os error 24)": "Too many open files: raise ulimit -n, or use fewer threads.",
    "(os error 27)": "The file is too large: raise ulimit -f.",
    "(os error 28)": "The disk is full: make room, then try again.",
    "(os error 30)": "The file system is read-only: choose another directory.",
    "(os error 36)": "A name is too long for the file system, for example of a partition value.",
    "(os error 40)": "Symbolic links form a loop.",
    "(os error 122)": "The quota is used up: make room, then try again.",
}
"""Hints by the end of the message that the core makes of a local file system's error."""
_ROLE_SERVERS = ("//169.254.169.254/", "//169.254.170.2", "//metadata.google.internal/")
"""Servers that give a cloud machine the credentials of its role, if there are no other ones."""
_NO_CREDENTIALS = (
    "There are no credentials: pass storage_options, or set the cloud's own "
    "environment variables, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
)


class StorageError(HudiError, OSError):
    """The storage failed, not the table. Try again."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        hints = iter([text for end, text in _SYSTEM_HINTS.items() if message.endswith(end)])
        if any(server in message for server in _ROLE_SERVERS):
            hints = iter([_NO_CREDENTIALS])
        super().__init__(message, hint=hint or next(hints, ""))


class CommitUnknown(StorageError):
    """The storage failed while a write was published: `instant` may be committed or not.

    Check the timeline before you write again; by then a pending instant is rolled back.
    """

    def __init__(self, message: str, *, instant: str) -> None:
        hint = "Before you write again, look for the instant in table.refresh().history()."
        super().__init__(message, hint=hint)
        self.instant = instant


class AfterCommitError(HudiError):
    """The write is committed as `instant`; a later step failed. Do not write it again."""

    def __init__(self, message: str, *, instant: str) -> None:
        super().__init__(message, hint="The rows are in the table: do not write them again.")
        self.instant = instant


class InterruptedAfterCommit(KeyboardInterrupt):
    """The user interrupted a write that was already committed, as `instant`."""

    def __init__(self, instant: str) -> None:
        super().__init__(f"committed as {instant}")
        self.instant = instant


_ROLLBACK_HINT = "The next write completes a rollback. Call restore again to complete a restore."


class AfterRollbackError(HudiError):
    """A rollback or restore has removed rows; a later step failed.

    `instant` is the instant of the rollback or restore, "" if the timeline does not show it.
    `instants` are the instants that it has rolled back.
    """

    def __init__(self, message: str, *, instant: str, instants: tuple[str, ...]) -> None:
        super().__init__(message, hint=_ROLLBACK_HINT)
        self.instant = instant
        self.instants = instants


class InterruptedAfterRollback(KeyboardInterrupt):
    """The user interrupted a rollback or restore that had already removed rows.

    `instant` and `instants` are those of `AfterRollbackError`.
    """

    def __init__(self, message: str, *, instant: str, instants: tuple[str, ...]) -> None:
        super().__init__(f"{message}\nHint: {_ROLLBACK_HINT}")
        self.instant = instant
        self.instants = instants


class AfterCommitWarning(UserWarning):
    """The write is committed; a post-commit step failed and is left to the next writer."""


class MaintenanceWarning(UserWarning):
    """One run of repeated maintenance failed; the next run follows after the usual pause."""


class LockWarning(UserWarning):
    """The writer could not release the table's lock: other writers wait until its lease expires."""


class MetadataTableWarning(UserWarning):
    """The metadata table is missing, out of date or damaged and is not used; the message says why.

    Results are still correct: pyhudi lists the files and prunes fewer of them. A write with Hudi's
    options also warns in this way before it removes the record index.
    """


class HudiDefaultsWarning(UserWarning):
    """A write with Hudi's options uses defaults that differ from Hudi's; the message counts them.

    Each write warns once, before it begins, of the options that you did not set and that have
    another effect on this write than in Apache Hudi.
    """


class PartitionChangeWarning(UserWarning):
    """Upserted rows name another partition than the one that has their keys, and stay in that one.

    The table reads them with the old value of the partition column; the message says how many. The
    warning also reports rows that were dropped because other rows of the same data have their keys
    in another partition, if keys are unique over all partitions, the default.
    """


class ColumnTypeWarning(UserWarning):
    """A new column has a type of Spark's that Hudi does not have, and is stored as a wider one.

    Or a new table does not have a column whose values are all null, and so have no type.
    """


class DuplicateKeyWarning(UserWarning):
    """Inserted rows have keys that the record index has already; the message says how many.

    Such keys are in the table twice, and Apache Hudi's clustering fails on them.
    """


class CorruptTable(HudiError):
    """The table's bytes are damaged. `file` and `offset` say where (None if unknown)."""

    def __init__(
        self, message: str, *, file: str | None = None, offset: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.offset = offset


class MissingFile(CorruptTable, FileNotFoundError):
    """A file that the table refers to does not exist.

    A cleaner may have removed it since the table was opened: refresh the handle and read again. If
    the file is still missing, the table is damaged.
    """
