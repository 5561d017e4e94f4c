"""The one tree of errors, split by what the caller does next. Every error can carry a hint."""

from __future__ import annotations


class HudiError(Exception):
    """Base of all errors of pyhudi. `hint` says what to do next, "" when there is nothing."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        text = super().__str__()
        return f"{text}\nHint: {self.hint}" if self.hint else text


def without_hint(error: Exception) -> str:
    """What an error says, for a warning about something else than it."""
    return str(error).split("\nHint:", 1)[0]


class TableNotFound(HudiError):
    """There is no Hudi table at the location. Check the location."""


class UnsupportedTableFeature(HudiError):
    """The table uses something that pyhudi does not support; the message names it."""


class SchemaMismatch(HudiError):
    """The data do not fit the table's schema or keys. Change the data or the schema."""


class ConfigError(HudiError, ValueError):
    """An argument or option is wrong. Fix the call."""


class CommitConflict(HudiError):
    """Another writer is at work on the same, or was faster.

    `retry` says that the same operation, run again, may well succeed. The verbs run it again
    themselves (`hoodie.write.num.retries.on.conflict.failures`) before they raise this.
    """

    def __init__(self, message: str, *, hint: str = "", retry: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.retry = retry


def retryable_conflict(message: str) -> CommitConflict:
    """What a write raises that another writer was faster than."""
    return CommitConflict(message, hint="Run the operation again.", retry=True)


class LockTimeout(HudiError):
    """The table's lock could not be had in time. Try again later."""


class HistoryUnavailable(HudiError):
    """The asked-for instant or range is no longer, or not yet, on the timeline."""


class TimelineMoved(HistoryUnavailable):
    """What the table was when it was looked at is gone, such as by an upgrade. Open it again."""


_SYSTEM_HINTS = {
    "(os error 11)": "The system gives no more threads: raise ulimit -u, or use fewer of them.",
    "(os error 13)": "Grant the user permission to read and write this path.",
    "(os error 20)": "A part of the path is a file: give the path of a directory.",
    "(os error 24)": "Too many open files: raise ulimit -n, or use fewer threads.",
    "(os error 27)": "The file is too large: raise ulimit -f.",
    "(os error 28)": "The disk is full: make room, then try again.",
    "(os error 30)": "The file system is read-only: give another directory.",
    "(os error 36)": "A name is too long for the file system, for example of a partition value.",
    "(os error 40)": "Symbolic links form a loop.",
    "(os error 122)": "The quota is used up: make room, then try again.",
}
"""By how the core ends the text of what a local file system said."""
_ROLE_SERVERS = ("//169.254.169.254/", "//169.254.170.2", "//metadata.google.internal/")
"""Which a cloud's machine is asked for the credentials of its role, where there are no others."""
_NO_CREDENTIALS = (
    "There are no credentials: give storage_options, or set the cloud's own "
    "environment variables, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
)


class StorageError(HudiError, OSError):
    """The storage failed, not the table. Try again."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        told = iter([text for end, text in _SYSTEM_HINTS.items() if message.endswith(end)])
        if any(server in message for server in _ROLE_SERVERS):
            told = iter([_NO_CREDENTIALS])
        super().__init__(message, hint=hint or next(told, ""))


class CommitUnknown(StorageError):
    """The storage failed while a write was published: `instant` may be committed or not.

    Look at the timeline before you write again; a pending instant is rolled back by then.
    """

    def __init__(self, message: str, *, instant: str) -> None:
        super().__init__(message, hint="Check whether the timeline has it before you write again.")
        self.instant = instant


class AfterCommitError(HudiError):
    """The write is committed as `instant`; something after it failed. Do not write it again."""

    def __init__(self, message: str, *, instant: str) -> None:
        super().__init__(message, hint="The rows are in the table: do not write them again.")
        self.instant = instant


class InterruptedAfterCommit(KeyboardInterrupt):
    """The user's interrupt came when the write was committed already, as `instant`."""

    def __init__(self, instant: str) -> None:
        super().__init__(f"committed as {instant}")
        self.instant = instant


_ROLLBACK_HINT = "The next write completes a rollback; restore(to=...) again completes a restore."


class AfterRollbackError(HudiError):
    """A rollback or restore has removed rows; something after that failed.

    `instant` is its own, "" where the timeline does not tell; `instants` are what it took back by
    then.
    """

    def __init__(self, message: str, *, instant: str, instants: tuple[str, ...]) -> None:
        super().__init__(message, hint=_ROLLBACK_HINT)
        self.instant = instant
        self.instants = instants


class InterruptedAfterRollback(KeyboardInterrupt):
    """The user's interrupt came when a rollback or restore had removed rows already.

    `instant` and `instants` are as of `AfterRollbackError`.
    """

    def __init__(self, message: str, *, instant: str, instants: tuple[str, ...]) -> None:
        super().__init__(f"{message}\nHint: {_ROLLBACK_HINT}")
        self.instant = instant
        self.instants = instants


class AfterCommitWarning(UserWarning):
    """The write is committed; a post-commit step failed and is left to the next writer."""


class MaintenanceWarning(UserWarning):
    """Maintenance that goes on for ever failed this time; it is tried again after its pause."""


class LockWarning(UserWarning):
    """The table's lock could not be given back: other writers wait until its time is over."""


class MetadataTableWarning(UserWarning):
    """The metadata table is missing, behind or damaged, and is not used; the text says why.

    Rows are right all the same: files are then listed, and fewer of them are left out. A write with
    Hudi's options also warns so that removes the record index.
    """


class PartitionChangeWarning(UserWarning):
    """Upserted rows say another partition than has their keys, and stay in the one that has them.

    The table reads them with the old value of the partition column; the text says how many. Or rows
    were dropped because other rows of the data have their keys for another partition, where keys
    are unique over all partitions by default.
    """


class DuplicateKeyWarning(UserWarning):
    """Rows were inserted whose keys the table's record index has already; the text says how many.

    Such keys are in the table twice, and Apache Hudi's clustering fails on them.
    """


class CorruptTable(HudiError):
    """The table's bytes are damaged. `file` and `offset` say where (None when unknown)."""

    def __init__(
        self, message: str, *, file: str | None = None, offset: int | None = None, hint: str = ""
    ) -> None:
        super().__init__(message, hint=hint)
        self.file = file
        self.offset = offset


class MissingFile(CorruptTable, FileNotFoundError):
    """A file that the table names is not there. Refresh the handle; then it is damage.

    A cleaner may have taken it since the table was opened.
    """
