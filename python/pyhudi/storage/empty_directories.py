"""Folders that were made at a place, taken away again where they are empty.

A bucket has no folders, so there is nothing to do there; on HDFS empty ones stay. A folder is
removed only by the call that refuses one with something in it: what others put there meanwhile
stays.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pyhudi.storage.options import is_remote
from pyhudi.storage.storage import Storage


class MadeFolders:
    """The folders that come to be at and above a location from now on."""

    def __init__(self, storage: Storage) -> None:
        """Remembers which there are."""
        self._base = None if is_remote(storage.uri) else Path(storage.native.uri)
        self._earlier = set() if self._base is None else {*_above(self._base), *_below(self._base)}

    def has(self, folder: str) -> bool:
        """Whether a folder was there before, by its path within the location."""
        return self._base is not None and self._base / folder in self._earlier

    def remove_empty(self) -> None:
        """Removes those that were not there before and have nothing in them."""
        if self._base is None:
            return
        for folder in (*_below(self._base), *_above(self._base)):
            if folder not in self._earlier:
                with suppress(OSError):
                    folder.rmdir()


def _below(base: Path) -> Iterator[Path]:
    """The folders within one, the deepest first."""
    for folder, names, _ in os.walk(base, topdown=False):
        yield from (Path(folder, name) for name in names)


def _above(base: Path) -> Iterator[Path]:
    """A folder and those that it is in, as far as they are there; the deepest first."""
    return (folder for folder in (base, *base.parents) if folder.is_dir())
