"""The lock that lies with the table: one small file, replaced only at the version that was read.

It is Hudi's (`StorageBasedLockProvider`, from 1.1.1 on), on every storage that can replace a
version, be it by conditional writes or otherwise; Hudi itself has it in buckets alone. The file is
never deleted::

    .hoodie/.locks/table_lock.json   {"expired":false,"validUntil":<ms>,"owner":"<uuid>"}

A lock is free when it is expired or its time is over, with half a second for clocks that differ.
Outside of buckets the file says besides which process has it, so that one that has died on the same
machine is known to be dead at once.
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
from pyhudi.txn.locks.base import pauses
from pyhudi.txn.locks.lease_renewal import Renewal

PATH = ".hoodie/.locks/table_lock.json"
SKEW_MS = 500
"""What clocks may differ by (`CLOCK_DRIFT_BUFFER_MS`)."""
_SHORTEST_MS = 5_000
"""Half of what any release but 1.0 gives a lock at least: the file is dated when it has arrived."""


@dataclass(frozen=True)
class _Content:
    """What the file says."""

    expired: bool
    valid_until: int
    owner: str
    process: str = ""
    """Which process has it, outside of buckets."""

    def encode(self) -> bytes:
        said: dict[str, Any] = {
            "expired": self.expired,
            "validUntil": self.valid_until,
            "owner": self.owner,
        }
        if self.process:
            said["process"] = self.process
        return json.dumps(said, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, data: bytes) -> _Content:
        if not data:
            # Left by a crash of the machine, and of the holder with it.
            return cls(expired=True, valid_until=0, owner="")
        try:
            said = json.loads(data)
            return cls(
                _flag(said["expired"]),
                int(said["validUntil"]),
                _text(said["owner"]),
                _text(said.get("process", "")),
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


def _flag(said: object) -> bool:
    """As Jackson takes it, which writes JSON's own and reads texts too."""
    known = {True: True, False: False, "true": True, "false": False}
    if not isinstance(said, (bool, str)) or said not in known:
        msg = f"{said!r} is neither true nor false"
        raise ValueError(msg)
    return known[said]


def _text(said: object) -> str:
    if not isinstance(said, str):
        msg = f"{said!r} is no text"
        raise TypeError(msg)
    return said


def _corrupt_error(message: str) -> CorruptTable:
    return CorruptTable(message, file=PATH, hint="Remove it once no other writer is active.")


class StorageLock:
    """The storage lock of a table, as one writer sees it."""

    def __init__(
        self, storage: Storage, clock: Clock, *, validity_ms: int = 60_000, renew_ms: int = 6_000
    ) -> None:
        """validity_ms: how long it is held without a sign of life. renew_ms: time between these."""
        self._storage = storage
        self._clock = clock
        self._validity_ms = validity_ms
        self._renewal = Renewal(self._renew, renew_ms, "pyhudi-lock")
        self._content: _Content | None = None
        """Of the lock that is held."""
        self._version: str | None = None
        self._seen = ""
        self._short: _Content | None = None

    def acquire(self, timeout_ms: int) -> bool:
        """Takes the lock. Raises `UnsupportedTableFeature` beside writers that rob each other."""
        # Most often it is the file's still.
        free = self._storage.own_versions.pop(PATH, None)
        if free is not None and self._take(free):
            return True
        return any(self._try() for _ in pauses(self._clock, timeout_ms))

    def _try(self) -> bool:
        found = self._storage.read_version(PATH)
        if found is None:
            taken = self._take(None)
            if not taken and self._storage.read_version(PATH) is None:
                # No writer deletes it.
                raise _corrupt_error(f"{PATH} is no file: it can neither be read nor created")
            return taken
        content, version = _Content.parse(found[0]), found[1]
        self._seen = content.owner
        return self._is_free(content) and self._take(version)

    def _is_free(self, content: _Content) -> bool:
        if content.expired or self._clock.now_ms() > content.valid_until + SKEW_MS:
            return True
        if content.process and process_liveness.is_dead_here(
            content.process.encode(errors="surrogatepass")
        ):
            return True
        file = self._storage.head(PATH)
        if file is not None and 0 <= content.valid_until - file.modified_ms < _SHORTEST_MS:
            self._note_short(content)
        return False

    def _note_short(self, content: _Content) -> None:
        """Raises for the second lock that is short: one alone may be long and have come late."""
        before, self._short = self._short, content
        if before is not None and before != content:
            raise UnsupportedTableFeature(
                "hoodie.write.lock.provider: a writer of Hudi 1.0 holds the storage lock, for a "
                "third of a second each time",
                hint="Use Hudi 1.1.1 or later, or another lock for all writers.",
            )

    def _take(self, version: str | None) -> bool:
        owner = self._clock.uuid()
        bucket = is_bucket(self._storage.uri)
        process = "" if bucket else process_liveness.owner(owner).decode()
        until = self._clock.now_ms() + self._validity_ms
        content = _Content(expired=False, valid_until=until, owner=owner, process=process)
        # Before the file says so: what interrupts comes at any time, and `release` looks for it.
        self._content, self._version = content, None
        process_liveness.at_work.add(owner)
        self._version = self._swap(content, version)
        if self._version is None:
            self._content = None
            process_liveness.at_work.discard(owner)
            return False
        self._renewal.start()
        return True

    def _swap(self, content: _Content, version: str | None) -> str | None:
        data = content.encode()
        try:
            return self._storage.replace_version(PATH, data, version)
        except OSError:
            # The answer may have been lost on the way.
            found = self._storage.read_version(PATH)
            if found is None or found[0] != data:
                raise
            return found[1]

    def _renew(self) -> None:
        held = self._content
        if held is None or self._clock.now_ms() >= held.valid_until:
            return
        until = self._clock.now_ms() + self._validity_ms
        renewed = _Content(expired=False, valid_until=until, owner=held.owner, process=held.process)
        version = self._swap(renewed, self._version)
        if version is None:
            self._content = None
            return
        self._content, self._version = renewed, version

    @property
    def lasts_ms(self) -> int | None:
        """Renewals may fail for so long."""
        return self._validity_ms // 2

    def check(self, within_ms: int = 0) -> None:
        """Raises `CommitConflict` once the lock may be another's, or soon can be."""
        held = self._content
        left = 0 if held is None else held.valid_until - self._clock.now_ms()
        if left < max(self._validity_ms // 10, within_ms):
            msg = "the table's lock was lost"
            raise retryable_conflict(msg)

    def release(self) -> None:
        """Gives it back, for the next one to take at once."""
        self._renewal.stop()
        held = self._content
        if held is None:
            return
        process_liveness.at_work.discard(held.owner)
        given = _Content(expired=True, valid_until=held.valid_until, owner=held.owner)
        version = self._version or self._version_of(held)
        free = None if version is None else self._swap(given, version)
        if free is not None:
            self._storage.own_versions[PATH] = free
        self._content = None

    def _version_of(self, held: _Content) -> str | None:
        """The file's where it says what this writer was about to write when it was interrupted."""
        found = self._storage.read_version(PATH)
        return found[1] if found is not None and found[0] == held.encode() else None

    def holder(self) -> str:
        """The owner that was seen last."""
        owner = ascii(self._seen)[1:-1] if self._seen else "another writer"
        return f"{owner} ({PATH})"
