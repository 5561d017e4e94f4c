"""A table's files in Python: a location, and the calls that read and change it.

The location is a local directory or a prefix on an object store; only the Rust core knows which.

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
from pyhudi.clock import SystemClock
from pyhudi.errors import ConfigError
from pyhudi.storage.lru_cache import LruCache
from pyhudi.storage.options import (
    StorageOptions,
    check_no_credentials,
    check_storage_options,
    is_remote,
    is_s3,
)
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

_RENEW_MS = 300_000
"""Time before their end at which credentials are renewed."""
_CACHED_STATS = 20_000
"""Number of cached write stats of commits, some 20 MB."""


class Storage:
    """The files below one location. Paths are relative to it, parts joined by `/`.

    It pickles as its location and options; the native store is created on first use and again after
    a fork, since a store belongs to one process. Each process takes options that are not set from
    its own environment.
    """

    def __init__(self, uri: str, options: Mapping[str, object] | None = None) -> None:
        """Raise `ConfigError` for an option that storage of the URI's type does not have.

        Also for a URI with credentials in it, which each error that names the table would show.
        """
        check_no_credentials(uri)
        if uri == "~" or uri.startswith("~/"):
            uri = str(Path(uri).expanduser())
        self.uri = uri if ":" in uri.split("/", 1)[0] else _absolute(Path(uri))
        self.options = check_storage_options(uri, options)
        self.cache = LruCache(_CACHED_STATS)
        """Cached content of files that never change: commits, weighted by their write stats."""
        self.listings: dict[str, Any] = {}
        """The last listing of each timeline, parsed; used only if a new listing is equal."""
        self.own_versions: dict[str, str] = {}
        """Versions of files that this process wrote last; other writers may have written since."""
        self._above: tuple[str, str] | None = None
        self._native: _native.Store | None = None
        self._process = 0
        self._expires_ms: int | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.uri!r})"

    def __getstate__(self) -> dict[str, Any]:
        state = {
            **self.__dict__,
            "_native": None,
            "_process": 0,
            "_expires_ms": None,
            "own_versions": {},
            "listings": {},
        }
        del state["cache"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.cache = LruCache(_CACHED_STATS)

    @property
    def native(self) -> _native.Store:
        """The Rust store of this process."""
        process = os.getpid()
        if self._native is None or self._process != process or self._is_expired():
            from pyhudi import _native  # noqa: PLC0415 - keeps this module importable without it

            options = self._complete_options()
            if self._above is None:
                self._native = _native.Store(self.uri, options)
            else:
                uri, folder = self._above
                self._native = _native.Store(uri, options).below(folder)
            self._process = process
        return self._native

    def _complete_options(self) -> StorageOptions:
        """Return the options with those of the process: on S3 the files of AWS' tools."""
        if not is_s3(self.uri):
            return self.options
        from pyhudi.storage.aws_files import with_aws_files  # noqa: PLC0415 - other storage needs none

        settings = with_aws_files(self.uri, self.options)
        self._expires_ms = settings.expires_ms
        return settings.options

    def _is_expired(self) -> bool:
        """Return whether credentials of a program or a role end soon; the core renews others."""
        return (
            self._expires_ms is not None and SystemClock().now_ms() > self._expires_ms - _RENEW_MS
        )

    def below(self, folder: str) -> Storage:
        """Return the storage of one of its directories, with the same options."""
        part = Storage(f"{self.uri.rstrip('/')}/{folder}", self.options)
        # The core changes only files in the table's own directories, and must know where it begins.
        uri, outer = self._above or (self.uri, "")
        part._above = uri, f"{outer}/{folder}".lstrip("/")  # noqa: SLF001 - of its own class
        part.cache, part.listings = self.cache, self.listings
        return part

    def read(self, path: str) -> bytes:
        """Return the content of a file. Raises `MissingFile` if it does not exist."""
        prefetched: Future[bytes] | None = take_prefetched(("read", self.uri, path))
        return self.native.read(path) if prefetched is None else prefetched.result()

    def read_or_none(self, path: str) -> bytes | None:
        """Return the content of a file, None if it does not exist."""
        try:
            return self.read(path)
        except FileNotFoundError:
            return None

    def head(self, path: str) -> Entry | None:
        """Return the entry of a file without its content, None if it does not exist."""
        prefetched: Future[Entry | None] | None = take_prefetched(("head", self.uri, path))
        if prefetched is not None:
            return prefetched.result()
        entry = self.native.head(path)
        return None if entry is None else Entry(*entry)

    def exists(self, path: str) -> bool:
        """Return whether there is a file at the path."""
        return self.head(path) is not None

    def list(self, prefix: str = "") -> Entries:
        """Return all files below a directory, at any depth, sorted by path."""
        prefetched: Future[Entries] | None = take_prefetched(("list", self.uri, prefix))
        return _entries(self.native.list(prefix)) if prefetched is None else prefetched.result()

    def list_dir(self, prefix: str = "") -> tuple[Paths, Entries]:
        """List one level: paths of directories, and files. A missing directory is empty."""
        request = ("list_dir", self.uri, prefix)
        prefetched: Future[tuple[Paths, Entries]] | None = take_prefetched(request)
        if prefetched is not None:
            return prefetched.result()
        folders, files = self.native.list_dir(prefix)
        return folders, _entries(files)

    def list_dirs(self, prefixes: Sequence[str]) -> Iterator[tuple[Paths, Entries]]:
        """`list_dir` of several directories in order, concurrently if each is a round trip."""
        if len(prefixes) < 2 or not is_remote(self.uri):
            yield from map(self.list_dir, prefixes)
            return
        # All in the block: the caller may consume the results long after other writes.
        with self.prefetch(folders=prefixes):
            listings = [self.list_dir(prefix) for prefix in prefixes]
        yield from listings

    def prefetch(
        self,
        *,
        files: Iterable[str] = (),
        folders: Iterable[str] = (),
        trees: Iterable[str] = (),
        heads: Iterable[str] = (),
    ) -> AbstractContextManager[None]:
        """Prefetch for a block that will `read` files, and `list_dir`, `list` and `head` paths.

        If each is a round trip, they are requested concurrently, and the block's first call for
        each waits for the result. It may miss what other writers have written since the block
        began.
        """
        if not is_remote(self.uri):
            return nullcontext()
        methods: tuple[tuple[Callable[[str], Any], Iterable[str]], ...] = (
            (self.read, files),
            (self.list_dir, folders),
            (self.list, trees),
            (self.head, heads),
        )
        return prefetch(
            {
                (method.__name__, self.uri, path): partial(method, path)
                for method, paths in methods
                for path in paths
            }
        )

    def run_concurrently(self, *steps: Callable[[], object]) -> None:
        """Run independent steps: concurrently if they have round trips."""
        if len(steps) > 1 and is_remote(self.uri):
            run_concurrently(steps)
            return
        for step in steps:
            step()

    def put(self, path: str, data: bytes) -> None:
        """Write or replace a file; a reader sees the whole of either content."""
        self.native.put(path, data)

    def put_if_absent(self, path: str, data: bytes) -> bool:
        """Write a file unless it exists; return False if it did."""
        return self.native.put_if_absent(path, data)

    def set_modified(self, path: str, modified_ms: int) -> bool:
        """Set the modification time of a file, in epoch ms.

        Returns False if only the storage can set it, as on object stores.
        """
        return self.native.set_modified(path, modified_ms)

    def read_version(self, path: str) -> tuple[bytes, str] | None:
        """Return a file and its version, which `replace_version` compares; None without a file."""
        return self.native.read_version(path)

    def replace_version(
        self, path: str, data: bytes, expected: str | None, *, durable: bool = False
    ) -> str | None:
        """Write a file if its version is still `expected`, None for no file.

        Returns the new version, None if another writer was first. Each content must be new.
        durable: it is synced to disk, to survive a crash of the machine. Raises
        `UnsupportedTableFeature` if the storage has neither conditional writes nor locks.
        """
        return self.native.replace_version(path, data, expected, durable)

    def sync_directories(self, paths: Iterable[str]) -> None:
        """Make the names of files durable, before a commit that names them is published.

        The core makes the content of each data file durable, and leaves its name to this call: a
        commit of many files syncs each of their directories once. Other storage needs no call.
        """
        if not is_remote(self.uri):
            self.native.sync_directories(sorted({path.rpartition("/")[0] for path in paths}))

    def delete(self, path: str) -> bool:
        """Delete a file; return False if there was none."""
        return self.native.delete(path)

    def delete_all(self, paths: Iterable[str]) -> None:
        """Delete files, in no order; missing ones are ignored.

        On object stores many are deleted with one request.
        """
        if is_remote(self.uri):
            self.native.delete_all(list(paths))
            return
        for path in paths:
            self.delete(path)

    def delete_dir(self, path: str) -> None:
        """Delete a directory and everything below it; a missing one is ignored."""
        self.native.delete_dir(path)


def _entries(rows: Iterable[tuple[str, int, int]]) -> Entries:
    # Without a Python call for each file.
    return list(map(partial(tuple.__new__, Entry), rows))


def _absolute(path: Path) -> str:
    """Resolve a relative path now, so that it survives a chdir and other processes."""
    if path.is_absolute():
        return str(path)
    try:
        return str(Path.cwd() / path)
    except FileNotFoundError as error:
        msg = f"{str(path)!r} is relative to the working directory, which no longer exists"
        raise ConfigError(msg, hint="Give an absolute path.") from error
