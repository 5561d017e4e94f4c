"""A table's files as Python sees them: a location, and the calls that read and change it.

The location is a local folder or a prefix of a bucket; which of them, only the Rust core knows.

Every change that Python makes to storage goes through the methods below, so a test can subclass
`Storage` and fail at any one call. Bytes of data files are not read here; the Rust core takes
`Storage.native` for that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from pyhudi import _native
from pyhudi.errors import ConfigError
from pyhudi.storage.credentials import check_no_credentials
from pyhudi.storage.lru_cache import LruCache
from pyhudi.storage.options import check_storage_options, is_remote
from pyhudi.storage.prefetch import prefetch, run_concurrently, take_prefetched

Paths: TypeAlias = list[str]


class Entry(NamedTuple):
    """A file: path relative to the store, size in bytes, modification time in epoch ms."""

    path: str
    size: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rsplit("/", 1)[-1]


Entries: TypeAlias = list[Entry]

_KEPT = 20_000
"""Write stats of commits, some 20 MB."""


class Storage:
    """The files below one location. Paths are relative to it, parts joined by `/`.

    It pickles as its location and options; the native store is made on first use and again after a
    fork, since a store belongs to one process. What the options leave open, each process takes from
    its own environment.
    """

    def __init__(self, uri: str, options: Mapping[str, object] | None = None) -> None:
        """Raises `ConfigError` for an option that storage of the URI's kind does not have.

        And for a URI with credentials in it, which each error that names the table would show.
        """
        check_no_credentials(uri)
        if uri == "~" or uri.startswith("~/"):
            uri = str(Path(uri).expanduser())
        self.uri = uri if ":" in uri.split("/", 1)[0] else _absolute(Path(uri))
        self.options = check_storage_options(uri, options)
        self.kept = LruCache(_KEPT)
        """What files said that never change: commits, by the number of their write stats."""
        self.own_versions: dict[str, str] = {}
        """Versions of files that this process wrote last; others may have written since."""
        self._above: tuple[str, str] | None = None
        self._native: _native.Store | None = None
        self._process = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_native": None, "_process": 0, "own_versions": {}}
        del state["kept"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.kept = LruCache(_KEPT)

    @property
    def native(self) -> _native.Store:
        """The Rust store of this process."""
        process = os.getpid()
        if self._native is None or self._process != process:
            from pyhudi import _native  # noqa: PLC0415 - keeps this module importable without it

            if self._above is None:
                self._native = _native.Store(self.uri, self.options)
            else:
                uri, folder = self._above
                self._native = _native.Store(uri, self.options).below(folder)
            self._process = process
        return self._native

    def below(self, folder: str) -> Storage:
        """A folder of it as a storage of its own, with the same options."""
        part = Storage(f"{self.uri.rstrip('/')}/{folder}", self.options)
        # The core changes files in the table's own folders alone, and must know where it begins.
        uri, outer = self._above or (self.uri, "")
        part._above = uri, f"{outer}/{folder}".lstrip("/")  # noqa: SLF001 - of its own class
        part.kept = self.kept
        return part

    def read(self, path: str) -> bytes:
        """The whole file. Raises `MissingFile` when it is not there."""
        coming: Future[bytes] | None = take_prefetched(("read", self.uri, path))
        return self.native.read(path) if coming is None else coming.result()

    def read_or_none(self, path: str) -> bytes | None:
        """The whole file, None when it is not there."""
        try:
            return self.read(path)
        except FileNotFoundError:
            return None

    def head(self, path: str) -> Entry | None:
        """What is known of a file without reading it, None when it is not there."""
        coming: Future[Entry | None] | None = take_prefetched(("head", self.uri, path))
        if coming is not None:
            return coming.result()
        found = self.native.head(path)
        return None if found is None else Entry(*found)

    def exists(self, path: str) -> bool:
        """Whether there is a file at the path."""
        return self.head(path) is not None

    def list(self, prefix: str = "") -> Entries:
        """Every file below a folder, at any depth, sorted by path."""
        coming: Future[Entries] | None = take_prefetched(("list", self.uri, prefix))
        if coming is not None:
            return coming.result()
        return [Entry(*found) for found in self.native.list(prefix)]

    def list_dir(self, prefix: str = "") -> tuple[Paths, Entries]:
        """One level: paths of folders, and files. A missing folder is empty."""
        coming: Future[tuple[Paths, Entries]] | None = take_prefetched(
            ("list_dir", self.uri, prefix)
        )
        if coming is not None:
            return coming.result()
        folders, files = self.native.list_dir(prefix)
        return folders, [Entry(*found) for found in files]

    def list_dirs(self, prefixes: Sequence[str]) -> Iterator[tuple[Paths, Entries]]:
        """`list_dir` of several folders in their order, at once where each is a round trip."""
        if len(prefixes) < 2 or not is_remote(self.uri):
            yield from map(self.list_dir, prefixes)
            return
        # All in the block: whoever takes the answers one by one may leave it long after others.
        with self.prefetch(folders=prefixes):
            found = [self.list_dir(prefix) for prefix in prefixes]
        yield from found

    def prefetch(
        self,
        *,
        files: Iterable[str] = (),
        folders: Iterable[str] = (),
        trees: Iterable[str] = (),
        heads: Iterable[str] = (),
    ) -> AbstractContextManager[None]:
        """A block that will `read` files, `list_dir` folders, `list` trees and ask for `head`s.

        Where each is a round trip they are asked for at once, and the block's first call for each
        waits for that. What others have written since the block began may be missing in it.
        """
        if not is_remote(self.uri):
            return nullcontext()
        verbs: tuple[tuple[Callable[[str], Any], Iterable[str]], ...] = (
            (self.read, files),
            (self.list_dir, folders),
            (self.list, trees),
            (self.head, heads),
        )
        return prefetch(
            {
                (verb.__name__, self.uri, path): partial(verb, path)
                for verb, paths in verbs
                for path in paths
            }
        )

    def run_concurrently(self, *steps: Callable[[], object]) -> None:
        """Takes steps that do not need each other: at once where each has round trips."""
        if len(steps) > 1 and is_remote(self.uri):
            run_concurrently(steps)
            return
        for step in steps:
            step()

    def put(self, path: str, data: bytes) -> None:
        """Writes a file in place of any older one; a reader sees all of one or all of the other."""
        self.native.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Writes a file unless one is there; False when there was one."""
        return self.native.put_if_absent(path, data)

    def set_modified(self, path: str, modified_ms: int) -> bool:
        """Has a file count as changed at another time, in epoch ms.

        False where the storage alone says when it was, as in buckets.
        """
        return self.native.set_modified(path, modified_ms)

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        """The whole file and its version, which `replace_version` compares; None without a file."""
        return self.native.read_version(path)

    def replace_version(
        self, path: str, data: bytes, expected: str | None, *, durable: bool = False
    ) -> str | None:
        """Writes a file if its version is `expected` still, None for no file.

        Gives the new version, None where another writer was first. Each content must be new.
        durable: it means something after a crash of the machine. Raises `UnsupportedTableFeature`
        where the storage has neither conditional writes nor locks.
        """
        return self.native.replace_version(path, data, expected, durable)

    def delete(self, path: str) -> bool:
        """Removes a file; False when there was none."""
        return self.native.delete(path)

    def delete_all(self, paths: Iterable[str]) -> None:
        """Removes files, in no order; those that are gone already are fine.

        In a bucket many go at a time.
        """
        if is_remote(self.uri):
            self.native.delete_all(list(paths))
            return
        for path in paths:
            self.delete(path)

    def delete_dir(self, path: str) -> None:
        """Removes a folder and all below it; a missing one is fine."""
        self.native.delete_dir(path)


def _absolute(path: Path) -> str:
    """A relative path means the folder of now, also after a chdir or in another process."""
    if path.is_absolute():
        return str(path)
    try:
        return str(Path.cwd() / path)
    except FileNotFoundError as error:
        msg = f"{str(path)!r} is below this process's folder, which is gone"
        raise ConfigError(msg, hint="Give an absolute path.") from error
