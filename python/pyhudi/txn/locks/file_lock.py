"""Hudi's file lock: the creator of the file holds the lock (`FileSystemBasedLockProvider`).

Hudi writes no owner into the file and deletes it without checking the owner (0.15.0, 1.0.2, 1.2.0).
pyhudi writes the process that holds the lock, and removes another writer's file only after it has
expired. It checks that its file still exists just after it acquired the lock and before it
publishes. It rewrites the file while it holds the lock, because expiry depends on the file's age.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone

from pyhudi.clock import Clock
from pyhudi.errors import CommitConflict
from pyhudi.storage.storage import Storage
from pyhudi.txn import process_liveness
from pyhudi.txn.locks.base import attempts
from pyhudi.txn.renewal import Renewal
from pyhudi.txn.storage_time import is_older

NAME = "lock"
_VERIFY_DELAY_S = 0.05
"""Within this time, another waiting writer that deletes the new lock by mistake has done so."""
_RENEWED_MS = 20_000


class FileLock:
    """The file lock of one directory, for one writer."""

    def __init__(self, storage: Storage, path: str, clock: Clock, expires_ms: int = 0) -> None:
        """path: of the lock file. expires_ms: age at which it expires, 0 for never.

        All writers of the table must use the same age.
        """
        self._storage = storage
        self._path = path
        self._clock = clock
        self._expires_ms = expires_ms
        self._owner = ""
        self._content = b""
        self._version: str | None = None
        self._last_ms = 0
        """In the clock's ticks: the file was written at this time or later."""
        every = min(expires_ms // 3, _RENEWED_MS) if expires_ms else _RENEWED_MS
        self._renewal = Renewal(self._renew, every, "pyhudi-file-lock")

    def acquire(self, timeout_ms: int) -> bool:
        """Acquire the lock."""
        return any(self._try() for _ in attempts(self._clock, timeout_ms))

    def _try(self) -> bool:
        current = self._storage.read_version(self._path)
        if current is not None and not self._is_expired(current[0]):
            return False
        owner = self._clock.uuid()
        content = self._encode_content(owner)
        # Set before the file exists: an interrupt can come at any time, and `release` needs them.
        self._owner, self._content = owner, content
        process_liveness.active_owners.add(owner)
        expected, self._last_ms = None if current is None else current[1], self._clock.ticks_ms()
        self._version = self._storage.replace_version(self._path, content, expected)
        if self._version is not None:
            self._clock.sleep(_VERIFY_DELAY_S)
            if self._is_own():
                self._renewal.start()
                return True
        process_liveness.active_owners.discard(owner)
        self._version = None
        return False

    def _is_expired(self, content: bytes) -> bool:
        if process_liveness.is_from_dead_process(_process(content)):
            return True
        file = self._storage.head(self._path)
        if file is None or not self._expires_ms:
            return False
        return is_older(self._storage, self._clock, file.modified_ms, self._expires_ms)

    def _encode_content(self, owner: str) -> bytes:
        """Return Hudi's intended content, with the process added."""
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, timezone.utc)
        fields = {
            "lockCreateTime": now.strftime("%Y-%m-%d %H:%M:%S.%f")[:-3],
            "lockThreadName": f"pyhudi-{owner}",
            "lockStacksInfo": [],
            "process": process_liveness.owner(owner).decode(),
        }
        return json.dumps(fields).encode()

    def _is_own(self) -> bool:
        return self._storage.read_or_none(self._path) == self._content

    def _renew(self) -> None:
        """Rewrite the file to renew its time, unless it is deleted or another writer's."""
        if self._version is None:
            return
        now = self._clock.ticks_ms()
        self._version = self._storage.replace_version(self._path, self._content, self._version)
        self._last_ms = now

    @property
    def min_lease_ms(self) -> int | None:
        """Renewals may fail for this long."""
        return self._expires_ms // 2 if self._expires_ms else None

    def check(self, within_ms: int = 0) -> None:
        """Raise `CommitConflict` if the file is deleted, another writer's, or about to expire."""
        since = self._clock.ticks_ms() - self._last_ms
        is_old = self._expires_ms and since + within_ms > self._expires_ms
        if self._version is None or is_old or not self._is_own():
            msg = f"lost lock {self._path}: another writer took it over"
            hint = "Run the operation again. Give all writers the same hoodie.write.lock options."
            raise CommitConflict(msg, hint=hint, retry=True)

    def release(self) -> None:
        """Delete the file if it is still this writer's."""
        try:
            self._renewal.stop()
            if self._content and self._is_own():
                self._storage.delete(self._path)
                self._content = b""
        finally:
            process_liveness.active_owners.discard(self._owner)
            self._version = None

    def holder(self) -> str:
        """Return the lock file."""
        return f"the writer that created {self._storage.uri.rstrip('/')}/{self._path}"

    def read_holder(self) -> str | None:
        """Return the thread that the file names, None without a valid file."""
        content = self._storage.read_or_none(self._path)
        if content is None or self._is_expired(content):
            return None
        thread = process_liveness.parse_json_object(content).get("lockThreadName")
        return process_liveness.describe(str(thread or "a writer"), _process(content))


def _process(content: bytes) -> bytes:
    process = str(process_liveness.parse_json_object(content).get("process", ""))
    return process.encode(errors="surrogatepass")
