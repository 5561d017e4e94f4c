"""Markers: one small file for every data file that a transaction starts, created before it.

They name the files to remove when the transaction fails, or files of an attempt that are not in
the commit. pyhudi creates DIRECT markers, which every Hudi release can roll back by; it also reads
the batched format of Hudi's timeline server. Source: `MarkerType`, `WriteMarkers` (1.2.0)::

    .hoodie/.temp/<instant>/<partition>/<data file name>.marker.<CREATE|MERGE|APPEND>     DIRECT
    .hoodie/.temp/<instant>/MARKERS.type, MARKERS0 … MARKERSn     TIMELINE_SERVER_BASED
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal, cast

from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.storage.options import is_bucket
from pyhudi.storage.storage import Entry, Storage

MARKER_FOLDER = ".hoodie/.temp"

MarkerType = Literal["CREATE", "MERGE", "APPEND"]
"""A new file, a new version of a base file, or a log file up to table version 6."""

_MARKER_TYPES = ("CREATE", "MERGE", "APPEND")
_INFIX = ".marker."
_TYPE_FILE = "MARKERS.type"
_BATCH_PREFIX = "MARKERS"
_BATCHED = "TIMELINE_SERVER_BASED"
_LINE_END = re.compile("\r\n|\n|\r")
"""Lines as Java reads them. Names may have blanks at both ends, and Python's other line ends."""
_IN_BUCKETS = b"a marker"
"""Content of a marker on object stores, where each empty object costs a request: it may be a
directory."""


@dataclass(frozen=True)
class Marker:
    """A data file that was started."""

    partition: str
    name: str
    """File name of the data file."""
    kind: MarkerType

    @property
    def path(self) -> str:
        """The data file, relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


def folder(instant: str) -> str:
    """Return the directory of an instant's markers, relative to the table."""
    return f"{MARKER_FOLDER}/{instant}"


def create(storage: Storage, instant: str, marker: Marker) -> None:
    """Create a DIRECT marker; an existing one is kept."""
    content = _IN_BUCKETS if is_bucket(storage.uri) else b""
    path = f"{folder(instant)}/{marker.path}{_INFIX}{marker.kind}"
    storage.put_if_absent(path, content)
    if (started := _STARTED.get()) is not None:
        started.append(StartedFile(storage, instant, path, marker.path))


@dataclass(frozen=True)
class StartedFile:
    """A data file of which this process has created the marker."""

    storage: Storage
    instant: str
    marker_path: str
    path: str

    @property
    def write(self) -> tuple[Storage, str]:
        """The write to which it belongs."""
        return self.storage, self.instant


_STARTED: ContextVar[list[StartedFile] | None] = ContextVar("started", default=None)


@contextmanager
def recording_started() -> Iterator[list[StartedFile]]:
    """Yield the files that the block starts, without those of writes that it ends."""
    started: list[StartedFile] = []
    _STARTED.set(started)
    try:
        yield started
    finally:
        _STARTED.set(None)  # not a token's reset: another thread may close a generator


def delete_all(storage: Storage, instant: str) -> None:
    """Remove the markers of an instant, in any format."""
    storage.delete_dir(folder(instant))
    if started := _STARTED.get():
        # This process ends the write, so its files are not late.
        started[:] = [file for file in started if file.instant != instant]


def instants_with_markers(storage: Storage) -> list[str]:
    """Return the instants that have a marker directory, sorted."""
    names = (path.rstrip("/").rsplit("/", 1)[-1] for path in storage.list_dir(MARKER_FOLDER)[0])
    return sorted(name for name in names if name.isdecimal())


def read_all(storage: Storage, instant: str) -> list[Marker] | None:
    """Return the markers of an instant, None if it has no marker files at all.

    None does not mean that there are no data files: Hudi removes markers before the last step of a
    rollback, and a user may have emptied the directory. Raises `UnsupportedTableFeature` for an
    unknown format, `CorruptTable` for content that is not text.
    """
    files = storage.list(folder(instant))
    if not files:
        return None
    type_file = next((file for file in files if file.name == _TYPE_FILE), None)
    if type_file is None:
        names = [file.path.removeprefix(f"{folder(instant)}/") for file in files]
    else:
        names = _read_batched(storage, type_file, files)
    parsed = (_parse(name) for name in names)
    return sorted(
        {marker for marker in parsed if marker is not None},
        key=lambda marker: (marker.path, marker.kind),
    )


def _read_batched(storage: Storage, type_file: Entry, files: list[Entry]) -> list[str]:
    marker_type = _text(storage, type_file).strip()
    if marker_type != _BATCHED:
        msg = f"{type_file.path} has the marker type {marker_type!r}"
        raise UnsupportedTableFeature(msg, hint="Roll this write back with Apache Hudi.")
    return [
        line.removeprefix("/")
        for file in files
        if file.name.startswith(_BATCH_PREFIX) and file.path != type_file.path
        for line in _LINE_END.split(_text(storage, file))
        if line
    ]


def _text(storage: Storage, file: Entry) -> str:
    try:
        return storage.read(file.path).decode()
    except UnicodeDecodeError as error:
        msg = f"{file.path} is not text: {error}"
        raise CorruptTable(msg, file=file.path, offset=error.start) from error


def _parse(relative: str) -> Marker | None:
    """Parse a marker's name below the instant's directory; None for Hadoop's checksum files."""
    data_path, infix, marker_type = relative.rpartition(_INFIX)
    if not infix or marker_type not in _MARKER_TYPES:
        return None
    partition, _, name = data_path.rpartition("/")
    return Marker(partition, name, cast("MarkerType", marker_type))
