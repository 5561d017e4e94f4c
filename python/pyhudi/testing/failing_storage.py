"""A handle of a table at one of whose changes the storage fails."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING, TypeVar

from pyhudi import ConfigError, StorageError
from pyhudi.config import argument_checks as arg
from pyhudi.storage.storage import Storage
from pyhudi.testing.table_layout import check_table

if TYPE_CHECKING:
    from pyhudi import HudiTable

_Result = TypeVar("_Result")


class FailingStorage(Storage):
    """A storage at one of whose changes an error is raised."""

    def __init__(self, storage: Storage, failure: StorageFailure) -> None:
        super().__init__(storage.uri, storage.options)
        self.failure = failure

    def below(self, folder: str) -> Storage:
        """Return the storage of a directory, whose changes count, too."""
        part = FailingStorage(self, self.failure)
        part.__dict__.update(vars(super().below(folder)))
        return part

    def put(self, path: str, data: bytes) -> None:
        """Write or replace a file."""
        self.failure.change(path, lambda: super(FailingStorage, self).put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file unless it exists."""
        write = super().put_if_absent
        return self.failure.change(path, lambda: write(path, data))

    def replace_version(
        self, path: str, data: bytes, expected: str | None, *, durable: bool = False
    ) -> str | None:
        """Write a file if its version is still `expected`."""
        write = super().replace_version
        return self.failure.change(path, lambda: write(path, data, expected, durable=durable))

    def delete(self, path: str) -> bool:
        """Delete a file."""
        delete = super().delete
        return self.failure.change(path, lambda: delete(path))

    def delete_dir(self, path: str) -> None:
        """Delete a directory."""
        delete = super().delete_dir
        self.failure.change(path, lambda: delete(path))


class StorageFailure:
    """A change of a table's storage that fails, counted over all directories of the table.

    Attributes:
        has_failed: whether the change was reached.
    """

    def __init__(self, at: int, *, lost_response: bool) -> None:
        self.has_failed = False
        self._at = at
        self._lost_response = lost_response
        self._changes = count(1)

    def change(self, path: str, make: Callable[[], _Result]) -> _Result:
        """Make a change of a file, or fail."""
        if next(self._changes) != self._at:
            return make()
        self.has_failed = True
        if self._lost_response:
            make()
        raise StorageError(f"change {self._at} of the storage fails on purpose: {path}")


@arg.check_arguments()
def failing_table(
    table: HudiTable, at: int, *, lost_response: bool = False
) -> tuple[HudiTable, StorageFailure]:
    """Return a handle of a table at one of whose changes the storage fails, once.

    A change is the creation, replacement or deletion of a file by Python: files of the timeline and
    of `.hoodie`, markers, the lock. A marker precedes each data file; data files themselves do not
    count.

    Args:
        table: a handle of the table, which keeps working.
        at: the change, from 1, since the handle was made.
        lost_response: the change is made before the error is raised, as if its response were lost.

    Returns:
        The handle, and the failure, whose `has_failed` says whether the change was reached.

    Raises:
        ConfigError: there is no such change, or the first argument is no table.
    """
    check_table(table)
    if at < 1:
        raise ConfigError(f"at is {at}", hint="Pass 1 for the first change of the storage.")
    failure = StorageFailure(at, lost_response=lost_response)
    storage = FailingStorage(table.storage, failure)
    return type(table)(storage, table.engine, table.options), failure
