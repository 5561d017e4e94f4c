"""A storage in memory and a clock that stands still, for tests of what Python does with both."""

from __future__ import annotations

from collections.abc import Iterable

from pyhudi.storage.storage import Entry, Storage


class MemoryStorage(Storage):
    """Files in a dictionary. `fail_at`: the change, from 1, that raises and does not happen."""

    def __init__(self, files: dict[str, bytes] | None = None, *, modified_ms: int = 0) -> None:
        super().__init__("memory:///table")
        self.files = dict(files or {})
        self.modified_ms = modified_ms
        self.changes = 0
        self.fail_at = 0

    def read(self, path: str) -> bytes:
        if path not in self.files:
            raise FileNotFoundError(path)
        return self.files[path]

    def head(self, path: str) -> Entry | None:
        return self._entry(path) if path in self.files else None

    def list_dir(self, prefix: str = "") -> tuple[list[str], list[Entry]]:
        start = f"{prefix}/" if prefix else ""
        below = sorted(path for path in self.files if path.startswith(start))
        inner = [path for path in below if "/" in path[len(start) :]]
        folders = {start + path[len(start) :].split("/")[0] for path in inner}
        return sorted(folders), [self._entry(path) for path in below if path not in inner]

    def put(self, path: str, data: bytes) -> None:
        self._change()
        self.files[path] = data

    def put_if_absent(self, path: str, data: bytes) -> bool:
        self._change()
        return self.files.setdefault(path, data) is data

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        data = self.files.get(path)
        return None if data is None else (data, data.hex())

    def replace_version(
        self,
        path: str,
        data: bytes,
        expected: str | None,
        *,
        durable: bool = False,  # noqa: ARG002
    ) -> str | None:
        self._change()
        found = self.read_version(path)
        if (found and found[1]) != expected:
            return None
        self.files[path] = data
        return data.hex()

    def sync_directories(self, paths: Iterable[str]) -> None:
        """Nothing: it does not survive its process."""

    def delete(self, path: str) -> bool:
        self._change()
        return self.files.pop(path, None) is not None

    def _entry(self, path: str) -> Entry:
        return Entry(path, len(self.files[path]), self.modified_ms)

    def _change(self) -> None:
        self.changes += 1
        if self.changes == self.fail_at:
            raise ConnectionError(f"change {self.changes} fails")


class StillClock:
    """Stands at `ms` until someone sleeps; ids count up."""

    def __init__(self, ms: int = 1_700_000_000_000) -> None:
        self.ms = ms
        self.slept: list[float] = []
        self._ids = 0

    def now_ms(self) -> int:
        return self.ms

    def ticks_ms(self) -> int:
        return self.ms

    def uuid(self) -> str:
        self._ids += 1
        return f"00000000-0000-4000-8000-{self._ids:012d}"

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.ms += round(seconds * 1000)
