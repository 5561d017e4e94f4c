"""Removal of directories that were created at a location and are still empty.

Object stores have no directories, so there is nothing to do there; on HDFS empty ones stay. A
directory is removed only by the call that fails for a non-empty one: files that other writers add
concurrently stay.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pyhudi.storage.options import is_remote
from pyhudi.storage.storage import Storage


class MadeFolders:
    """The directories that are created at and above a location from now on."""

    def __init__(self, storage: Storage) -> None:
        """Record the existing directories."""
        self._base = None if is_remote(storage.uri) else Path(storage.native.uri)
        self._earlier = set() if self._base is None else {*_above(self._base), *_below(self._base)}

    def has(self, folder: str) -> bool:
        """Return whether a directory existed before, by its path within the location."""
        return self._base is not None and self._base / folder in self._earlier

    def remove_empty(self) -> None:
        """Remove directories that did not exist before and are empty."""
        if self._base is None:
            return
        for folder in (*_below(self._base), *_above(self._base)):
            if folder not in self._earlier:
                with suppress(OSError):
                    folder.rmdir()


def _below(base: Path) -> Iterator[Path]:
    """The directories within one, the deepest first."""
    for folder, names, _ in os.walk(base, topdown=False):
        yield from (Path(folder, name) for name in names)


def _above(base: Path) -> Iterator[Path]:
    """The existing ones of a directory and its parents, the deepest first."""
    return (folder for folder in (base, *base.parents) if folder.is_dir())
