"""A storage whose observer can hold a client before a call while other clients run.

`StepNames` names the steps of reads and writes by the files that they use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from pyhudi.storage.storage import Entry, Storage

BEGIN_LOCK, COMMIT_LOCK = "acquire the lock to begin", "acquire the lock to commit"
REQUEST, INFLIGHT = "request the instant", "start the instant"
DATA, METADATA = "write data files", "write the metadata table"
COMPLETE, CLEAN_UP, RELEASE = "complete the instant", "clean up", "release the lock"
READ_PROPERTIES, READ_TIMELINE = "read the properties", "read the timeline"
READ_METADATA, LIST_FILES = "read the metadata table", "list the files"


class Observer(Protocol):
    """What a holding storage calls. `path` is that of the table, also below its directories."""

    def before(self, verb: str, path: str) -> None:
        """Called before a call of the storage."""

    def after(self, verb: str, path: str, result: Any) -> None:
        """Called after a call with its result."""


class HoldingStorage(Storage):
    """Tells an observer of each call, in the thread that makes the call."""

    def __init__(
        self,
        uri: str,
        observer: Observer,
        options: Mapping[str, object] | None = None,
        prefix: str = "",
    ) -> None:
        super().__init__(uri, options)
        self._observer = observer
        self._prefix = prefix

    def below(self, folder: str) -> Storage:
        plain = super().below(folder)
        part = HoldingStorage(plain.uri, self._observer, self.options, f"{self._prefix}{folder}/")
        # The core knows where the table begins.
        part._above = plain._above
        part.cache, part.listings = self.cache, self.listings
        return part

    def _call(self, verb: str, path: str, call: Callable[[], Any]) -> Any:
        self._observer.before(verb, self._prefix + path)
        result = call()
        self._observer.after(verb, self._prefix + path, result)
        return result

    def read(self, path: str) -> bytes:
        result: bytes = self._call("read", path, lambda: super(HoldingStorage, self).read(path))
        return result

    def head(self, path: str) -> Entry | None:
        result: Entry | None = self._call(
            "head", path, lambda: super(HoldingStorage, self).head(path)
        )
        return result

    def list_dir(self, prefix: str = "") -> tuple[list[str], list[Entry]]:
        result: tuple[list[str], list[Entry]] = self._call(
            "list_dir", prefix, lambda: super(HoldingStorage, self).list_dir(prefix)
        )
        return result

    def put(self, path: str, data: bytes) -> None:
        self._call("put", path, lambda: super(HoldingStorage, self).put(path, data))

    def put_if_absent(self, path: str, data: bytes) -> bool:
        result: bool = self._call(
            "put_if_absent", path, lambda: super(HoldingStorage, self).put_if_absent(path, data)
        )
        return result

    def replace_version(
        self, path: str, data: bytes, expected: str | None, *, durable: bool = False
    ) -> str | None:
        result: str | None = self._call(
            "replace_version",
            path,
            lambda: super(HoldingStorage, self).replace_version(
                path, data, expected, durable=durable
            ),
        )
        return result

    def delete(self, path: str) -> bool:
        result: bool = self._call("delete", path, lambda: super(HoldingStorage, self).delete(path))
        return result

    def delete_dir(self, path: str) -> None:
        self._call("delete_dir", path, lambda: super(HoldingStorage, self).delete_dir(path))


CHANGES = frozenset({"put", "put_if_absent", "replace_version", "delete", "delete_dir"})
LOCK_FILES = ("table_lock.json", "lock")


class StepNames:
    """Names the calls of one client in their order."""

    def __init__(self) -> None:
        self._lock_changes = 0
        self._is_complete = False

    def name(self, verb: str, path: str) -> str:
        """The step of a read or write to which a call belongs."""
        return self._change(verb, path) if verb in CHANGES else _read(path)

    def _change(self, verb: str, path: str) -> str:
        name = path.rsplit("/", 1)[-1]
        if name in LOCK_FILES:
            self._lock_changes += 1
            is_release = self._lock_changes % 2 == 0
            return RELEASE if is_release else COMMIT_LOCK if self._lock_changes > 1 else BEGIN_LOCK
        if path.startswith(".hoodie/metadata/"):
            return METADATA
        if is_completion(path):
            self._is_complete = True
            return COMPLETE
        if self._is_complete or verb in ("delete", "delete_dir"):
            return CLEAN_UP
        if ".heartbeat" in path:
            return REQUEST
        if ".temp" in path:
            return DATA
        return REQUEST if name.endswith(".requested") else INFLIGHT


def _read(path: str) -> str:
    if path.endswith("hoodie.properties"):
        return READ_PROPERTIES
    if path.startswith(".hoodie/metadata"):
        return READ_METADATA
    return READ_TIMELINE if path.startswith(".hoodie") else f"{LIST_FILES} of {path or 'the table'}"


def is_completion(path: str) -> bool:
    """Whether this is the completed file of a write to the table."""
    folder, _, name = path.rpartition("/")
    is_instant = folder in (".hoodie", ".hoodie/timeline")
    return is_instant and name.endswith((".commit", ".deltacommit", ".replacecommit"))
