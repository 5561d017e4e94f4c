"""Every content that a storage goes through while a table is written to, kept in memory.

A writer that dies instead of a change leaves the content that the storage has before that change.
So the write runs once, and is looked at before each change: there is no need to run it to each of
its deaths. Files keep their times of modification, which tell the order of log files up to version
6.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyhudi.storage.storage import Storage
from tests.sim.crash import CrashingStorage


@dataclass(frozen=True)
class State:
    """A folder's content: of each file what is in it and when it was modified; the folders."""

    files: dict[str, tuple[bytes, int]]
    folders: frozenset[str]

    @classmethod
    def of(cls, base: Path) -> State:
        """Other threads may change it meanwhile: what goes while it is looked at is not in it."""
        files: dict[str, tuple[bytes, int]] = {}
        folders = set()
        for folder, _, names in os.walk(base):
            inside = Path(folder).relative_to(base)
            folders.add(str(inside))
            for name in names:
                path = Path(folder, name)
                with contextlib.suppress(FileNotFoundError):
                    files[str(inside / name)] = (path.read_bytes(), path.stat().st_mtime_ns)
        return cls(files, frozenset(folders - {"."}))

    @property
    def content(self) -> tuple[frozenset[tuple[str, bytes]], frozenset[str]]:
        """What makes two states equal: all but the times."""
        return frozenset((path, data) for path, (data, _) in self.files.items()), self.folders

    def restore(self, base: Path) -> None:
        """Makes the folder what it was; the folder itself stays."""
        for path in sorted(base.rglob("*"), reverse=True):
            if not path.is_dir():
                path.unlink()
            elif str(path.relative_to(base)) not in self.folders:
                path.rmdir()
        for folder in sorted(self.folders):
            (base / folder).mkdir(exist_ok=True)
        for name, (data, modified) in self.files.items():
            (base / name).write_bytes(data)
            os.utime(base / name, ns=(modified, modified))


class RecordingStorage(CrashingStorage):
    """Keeps the state before each change, and with half of each file of the Rust core written."""

    def __init__(self, uri: str) -> None:
        super().__init__(uri)
        self.states: list[State] = []

    def below(self, folder: str) -> Storage:
        part = RecordingStorage(f"{self.uri}/{folder}")
        part.above = self.above or self
        return part

    def step(self) -> None:
        super().step()
        if self.above is None:
            self.states.append(State.of(Path(self.uri)))

    def native_write(self, path: str, write: Callable[[], Any]) -> Any:
        self.step()
        written = write()
        file = Path(self.uri) / path
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        self.step()
        file.write_bytes(whole)
        return written


@dataclass
class Recorded:
    """A write that has been carried out at `base`, and the states that it went through."""

    base: Path
    states: list[State]
    """Before each change."""
    done: State

    def stops_at(self, n: int) -> State:
        """What a writer has made that got as far as change n (from 1), 0 for all of them."""
        return self.states[n - 1] if n else self.done

    def deaths(self, one_in: int = 1) -> Iterator[tuple[int, Path]]:
        """The table as a writer leaves it that dies at change n (from 1); equal states come once.

        All are at the same place, one after the other.

        one_in: of so many states one is taken, of a long work whose states are much alike; all of
        them by `make test-every-setting`.
        """
        different = {state.content: n for n, state in reversed([*enumerate(self.states, 1)])}
        step = 1 if os.environ.get("PYHUDI_EVERY_SETTING") else one_in
        for n in sorted(different.values())[::step]:
            self.states[n - 1].restore(self.base)
            yield n, self.base


def recorded(start: Path, into: Path, write: Callable[[Storage], object]) -> Recorded:
    """Carries out a write on a copy of a table below `into`."""
    base = shutil.copytree(start, into / "recorded" / start.name)
    storage = RecordingStorage(str(base))
    write(storage)
    assert storage.changes > 5
    return Recorded(base, storage.states, State.of(base))


def deaths(
    start: Path, into: Path, write: Callable[[Storage], object]
) -> Iterator[tuple[int, Path]]:
    """`Recorded.deaths` of a write on a copy of a table, which then goes."""
    found = recorded(start, into, write)
    yield from found.deaths()
    shutil.rmtree(found.base)
