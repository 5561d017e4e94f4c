"""Markers: one small file for every data file a transaction begins, made before the data file.

They name what has to be removed when the transaction fails, or what an attempt left that did not
get into the commit. pyhudi makes DIRECT markers, which every Hudi release can roll back by; the
batched form that Hudi's timeline server makes is read too. Source: `MarkerType`, `WriteMarkers`
(1.2.0)::

    .hoodie/.temp/<instant>/<partition>/<data file name>.marker.<CREATE|MERGE|APPEND>     DIRECT
    .hoodie/.temp/<instant>/MARKERS.type, MARKERS0 … MARKERSn     TIMELINE_SERVER_BASED
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast

from pyhudi.errors import CorruptTable, UnsupportedTableFeature
from pyhudi.storage.options import is_bucket
from pyhudi.storage.storage import Entry, Storage

MARKER_FOLDER = ".hoodie/.temp"

MarkerKind = Literal["CREATE", "MERGE", "APPEND"]
"""A new file, a new version of a base file, or a log file up to table version 6."""

_KINDS = ("CREATE", "MERGE", "APPEND")
_INFIX = ".marker."
_TYPE_FILE = "MARKERS.type"
_BATCH_PREFIX = "MARKERS"
_BATCHED = "TIMELINE_SERVER_BASED"
_LINE_END = re.compile("\r\n|\n|\r")
"""As Java reads lines. Names may have blanks at both ends, and what else Python ends lines with."""
_IN_BUCKETS = b"a marker"
"""Content of a marker in a bucket, where each empty object is asked about: it may be a folder's."""


@dataclass(frozen=True)
class Marker:
    """A data file that was begun."""

    partition: str
    name: str
    """File name of the data file."""
    kind: MarkerKind

    @property
    def path(self) -> str:
        """The data file, relative to the table."""
        return f"{self.partition}/{self.name}" if self.partition else self.name


def folder(instant: str) -> str:
    """Where the markers of an instant lie, relative to the table."""
    return f"{MARKER_FOLDER}/{instant}"


def create(storage: Storage, instant: str, marker: Marker) -> None:
    """Makes a DIRECT marker; one that is there already is fine."""
    content = _IN_BUCKETS if is_bucket(storage.uri) else b""
    storage.put_if_absent(f"{folder(instant)}/{marker.path}{_INFIX}{marker.kind}", content)


def delete_all(storage: Storage, instant: str) -> None:
    """Removes the markers of an instant, whatever their form."""
    storage.delete_dir(folder(instant))


def instants_with_markers(storage: Storage) -> list[str]:
    """Instants that have a marker folder, sorted."""
    names = (path.rstrip("/").rsplit("/", 1)[-1] for path in storage.list_dir(MARKER_FOLDER)[0])
    return sorted(name for name in names if name.isdecimal())


def read_all(storage: Storage, instant: str) -> list[Marker] | None:
    """The markers of an instant, None when it has no marker files at all.

    None says nothing about the data files: Hudi removes markers before the last step of a rollback,
    and someone may have emptied the folder. Raises `UnsupportedTableFeature` for an unknown form,
    `CorruptTable` for what is no text.
    """
    files = storage.list(folder(instant))
    if not files:
        return None
    type_file = next((file for file in files if file.name == _TYPE_FILE), None)
    if type_file is None:
        names = [_relative(file, instant) for file in files]
    else:
        names = _read_batched(storage, type_file, files)
    parsed = (_parse(name) for name in names)
    return sorted(
        {marker for marker in parsed if marker is not None},
        key=lambda marker: (marker.path, marker.kind),
    )


def _relative(file: Entry, instant: str) -> str:
    return file.path.removeprefix(f"{folder(instant)}/")


def _read_batched(storage: Storage, type_file: Entry, files: list[Entry]) -> list[str]:
    kind = _text(storage, type_file).strip()
    if kind != _BATCHED:
        msg = f"{type_file.path} has the marker type {kind!r}"
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
    """A marker of its name below the instant's folder; None for Hadoop's checksum side files."""
    data_path, found, kind = relative.rpartition(_INFIX)
    if not found or kind not in _KINDS:
        return None
    partition, _, name = data_path.rpartition("/")
    return Marker(partition, name, cast("MarkerKind", kind))
