"""Hudi's storage lock: one small file in the table, replaced only by compare-and-set.

It is that of `StorageBasedLockProvider`, from 1.1.1 on. pyhudi supports it on every storage that
can replace a version, by conditional writes or otherwise; Hudi supports only object stores. The
file is never deleted::

    .hoodie/.locks/table_lock.json   {"expired":false,"validUntil":<ms>,"owner":"<uuid>"}

A lock is free if it is marked expired or its time is over, with half a second for clock skew. A
wrong clock of a writer must not end another writer's lease. So pyhudi takes a lock over only if its
file is older than the lease, also by the clock of the storage, or if the file does not change for
that long while pyhudi waits.

Outside of object stores the file also names the process that holds it, so that a crash of a holder
on the same machine is detected immediately.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pyhudi.clock import Clock
from pyhudi.errors import CorruptTable, UnsupportedTableFeature, retryable_conflict
from pyhudi.storage.options import is_bucket
from pyhudi.storage.storage import Storage
from pyhudi.txn import process_liveness
from pyhudi.txn.locks.base import attempts
from pyhudi.txn.renewal import Renewal
from pyhudi.txn.storage_time import is_older

PATH = ".hoodie/.locks/table_lock.json"
SKEW_MS = 500
"""The tolerated clock skew (`CLOCK_DRIFT_BUFFER_MS`)."""
_MAX_LEASE_MS = 3_600_000
"""A longer lease shows that the clock of its holder is wrong."""
_MIN_LEASE_MS = 5_000
"""Half the shortest validity of all releases but 1.0: the file is dated when it arrives."""


@dataclass(frozen=True)
class _Content:
    """The content of the file."""

    expired: bool
    valid_until: int
    owner: str
    process: str = ""
    """The process that holds it, outside of object stores."""

    def encode(self) -> bytes:
        fields: dict[str, Any] = {
            "expired": self.expired,
            "validUntil": self.valid_until,
            "owner": self.owner,
        }
        if self.process:
            fields["process"] = self.process
        return json.dumps(fields, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, data: bytes) -> _Content:
        if not data:
            # Left by a crash of the machine, and so of the holder.
            return cls(expired=True, valid_until=0, owner="")
        try:
            fields = json.loads(data)
            return cls(
                _flag(fields["expired"]),
                int(fields["validUntil"]),
                _text(fields["owner"]),
                _text(fields.get("process", "")),
            )
        except (
            ValueError,
            KeyError,
            TypeError,
            OverflowError,
            RecursionError,
            AttributeError,
        ) as e:
            raise _corrupt_error(f"{PATH} is not a lock file: {e!r}") from e


def _flag(field: object) -> bool:
    """Parse a boolean like Jackson, which writes JSON's own and also reads strings."""
    values = {True: True, False: False, "true": True, "false": False}
    if not isinstance(field, (bool, str)) or field not in values:
        msg = f"{field!r} is neither true nor false"
        raise ValueError(msg)
    return values[field]


def _text(field: object) -> str:
    if not isinstance(field, str):
        msg = f"{field!r} is not a string"
        raise TypeError(msg)
    return field


def _corrupt_error(message: str) -> CorruptTable:
    return CorruptTable(message, file=PATH, hint="Remove it once no other writer is active.")


class StorageLock:
    """The storage lock of a table, for one writer."""

    def __init__(
        self, storage: Storage, clock: Clock, *, validity_ms: int = 60_000, renew_ms: int = 6_000
    ) -> None:
        """validity_ms: lease without a renewal. renew_ms: interval of renewals."""
        self._storage = storage
        self._clock = clock
        self._validity_ms = validity_ms
        self._renewal = Renewal(self._renew, renew_ms, "pyhudi-lock")
        self._content: _Content | None = None
        """The content of the lock file while this writer holds the lock."""
        self._version: str | None = None
        self._ends_ticks_ms = 0
        """The end of the lease in the clock's ticks, because the time of day may be set back."""
        self._last_owner = ""
        self._short_lease: _Content | None = None
        self._unchanged: tuple[str, int] = ("", 0)
        """The version that was read last, and since when, in ticks."""

    def acquire(self, timeout_ms: int) -> bool:
        """Acquire the lock. Raises `UnsupportedTableFeature` if Hudi 1.0 writers use the lock."""
        # Usually the file still has the version of this writer's last release.
        free = self._storage.own_versions.pop(PATH, None)
        if free is not None and self._acquire(free):
            return True
        return any(self._try() for _ in attempts(self._clock, timeout_ms))

    def _try(self) -> bool:
        current = self._storage.read_version(PATH)
        if current is None:
            is_acquired = self._acquire(None)
            if not is_acquired and self._storage.read_version(PATH) is None:
                # No writer deletes the file.
                raise _corrupt_error(f"{PATH} is not a file: it can be neither read nor created")
            return is_acquired
        content, version = _Content.parse(current[0]), current[1]
        self._last_owner = content.owner
        if self._unchanged[0] != version:
            self._unchanged = version, self._clock.ticks_ms()
        return self._is_free(content) and self._acquire(version)

    def _has_ended(self, content: _Content) -> bool:
        """Return whether the lease is over by this machine's clock, or its process has ended."""
        is_over = self._clock.now_ms() > content.valid_until + SKEW_MS
        return is_over or self._is_given_up(content)

    def _is_given_up(self, content: _Content) -> bool:
        """Return whether the holder released the lock, or its process has ended."""
        if content.expired:
            return True
        return bool(content.process) and process_liveness.is_from_dead_process(
            content.process.encode(errors="surrogatepass")
        )

    def _is_free(self, content: _Content) -> bool:
        if self._is_given_up(content):
            return True
        file = self._storage.head(PATH)
        if file is None:
            return False
        lease_ms = content.valid_until - file.modified_ms
        if 0 <= lease_ms < _MIN_LEASE_MS:
            self._check_short_lease(content)
        lease_ms = max(lease_ms if lease_ms <= _MAX_LEASE_MS else 0, self._validity_ms) + SKEW_MS
        if self._clock.ticks_ms() - self._unchanged[1] > lease_ms:
            return True
        return is_older(self._storage, self._clock, file.modified_ms, lease_ms)

    def _check_short_lease(self, content: _Content) -> None:
        """Raise for the second short lease; a single one may be a long lease that arrived late."""
        previous, self._short_lease = self._short_lease, content
        if previous is not None and previous != content:
            raise UnsupportedTableFeature(
                "hoodie.write.lock.provider: a writer of Hudi 1.0 holds the storage lock, for a "
                "third of a second each time",
                hint="Use Hudi 1.1.1 or later, or another lock for all writers.",
            )

    def _acquire(self, version: str | None) -> bool:
        owner = self._clock.uuid()
        bucket = is_bucket(self._storage.uri)
        process = "" if bucket else process_liveness.owner(owner).decode()
        valid_until, ends_ticks_ms = self._next_ends()
        content = _Content(expired=False, valid_until=valid_until, owner=owner, process=process)
        # Set before the file is written: an interrupt can come at any time.
        self._content, self._version, self._ends_ticks_ms = content, None, ends_ticks_ms
        process_liveness.active_owners.add(owner)
        self._version = self._swap(content, version)
        if self._version is None:
            self._content = None
            process_liveness.active_owners.discard(owner)
            return False
        self._renewal.start()
        return True

    def _swap(self, content: _Content, version: str | None) -> str | None:
        data = content.encode()
        try:
            return self._storage.replace_version(PATH, data, version)
        except OSError:
            # The response may have been lost.
            current = self._storage.read_version(PATH)
            if current is None or current[0] != data:
                raise
            return current[1]

    def _renew(self) -> None:
        current = self._content
        if current is None or self._remaining_ms(current) <= 0:
            return
        valid_until, ends_ticks_ms = self._next_ends()
        renewed = _Content(
            expired=False, valid_until=valid_until, owner=current.owner, process=current.process
        )
        version = self._swap(renewed, self._version)
        if version is None:
            self._content = None
            return
        self._content, self._version, self._ends_ticks_ms = renewed, version, ends_ticks_ms

    def _next_ends(self) -> tuple[int, int]:
        """Return the end of a lease that begins now, in the time of day and in ticks."""
        now, ticks = self._clock.now_ms(), self._clock.ticks_ms()
        return now + self._validity_ms, ticks + self._validity_ms

    def _remaining_ms(self, content: _Content) -> int:
        """Return the rest of the lease, by the clock that shows less."""
        by_time_of_day = content.valid_until - self._clock.now_ms()
        return min(by_time_of_day, self._ends_ticks_ms - self._clock.ticks_ms())

    @property
    def min_lease_ms(self) -> int | None:
        """Renewals may fail for this long."""
        return self._validity_ms // 2

    def check(self, within_ms: int = 0) -> None:
        """Raise `CommitConflict` if another writer may hold the lock, now or soon."""
        content = self._content
        remaining_ms = 0 if content is None else self._remaining_ms(content)
        if remaining_ms < max(self._validity_ms // 10, within_ms):
            raise retryable_conflict("the table's lock was lost")

    def release(self) -> None:
        """Release the lock; the next writer can acquire it immediately."""
        self._renewal.stop()
        content = self._content
        if content is None:
            return
        process_liveness.active_owners.discard(content.owner)
        released = _Content(expired=True, valid_until=content.valid_until, owner=content.owner)
        version = self._version
        if version is None:
            # Interrupted: this writer may have written the file.
            current = self._storage.read_version(PATH)
            if current is not None and current[0] == content.encode():
                version = current[1]
        free = None if version is None else self._swap(released, version)
        if free is not None:
            self._storage.own_versions[PATH] = free
        self._content = None

    def holder(self) -> str:
        """Return the owner that was read last."""
        owner = ascii(self._last_owner)[1:-1] if self._last_owner else "another writer"
        return f"{owner} ({PATH})"

    def read_holder(self) -> str | None:
        """Return the owner that the file names, None if the file does not exist or has expired."""
        current = self._storage.read_or_none(PATH)
        content = None if current is None else _Content.parse(current)
        if content is None or self._has_ended(content):
            return None
        process = content.process.encode(errors="surrogatepass")
        return process_liveness.describe(ascii(content.owner)[1:-1], process)
