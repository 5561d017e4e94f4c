"""The manifests of an LSM history: which of its files count.

`manifest_<n>` lists them, `_version_` holds n in decimal (`LSMTimeline`, Hudi 1.2.0). A manifest is
never changed; those that a reader may still hold are kept for a while.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyhudi.config.bounded_json import parse_json
from pyhudi.errors import CommitConflict, CorruptTable
from pyhudi.storage.storage import Storage
from pyhudi.timeline import serde

_PREFIX = "manifest_"
_VERSION = "_version_"
_DIGITS = 19

Check = Callable[[], None]
"""Raises `CommitConflict` where the table's lock may be another writer's by now."""


@dataclass(frozen=True)
class Manifest:
    """One snapshot of a history."""

    number: int
    """From 1 on; 0 where there is no history yet."""
    files: Mapping[str, int]
    """Sizes in bytes by name."""


def current_manifest(storage: Storage, folder: str) -> Manifest:
    """The manifest that counts. Raises `CorruptTable` naming the file for one that is none."""
    version = storage.read_or_none(f"{folder}/{_VERSION}")
    text = version.decode(errors="replace").strip() if version else ""
    if text.isdecimal() and len(text) <= _DIGITS:
        found = read_manifest(storage, folder, int(text))
        if found is not None:
            return found
    # The moment in which Hudi replaces the version file.
    newest = max(manifest_numbers(storage, folder), default=0)
    return read_manifest(storage, folder, newest) or Manifest(0, {})


def manifest_numbers(storage: Storage, folder: str) -> list[int]:
    """Numbers of all manifests that are there."""
    names = (entry.name for entry in storage.list_dir(folder)[1])
    digits = (name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))
    return [int(number) for number in digits if number.isdecimal()]


def read_manifest(storage: Storage, folder: str, number: int) -> Manifest | None:
    """One manifest, None where it is missing."""
    path = _path(folder, number)
    data = storage.read_or_none(path)
    if data is None:
        return None
    found = parse_json(data, path)
    try:
        files = {str(entry["fileName"]): int(entry["fileLen"]) for entry in found["files"]}
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise CorruptTable(f"{path}: not a timeline manifest", file=path) from error
    return Manifest(number, files)


def write_manifest(
    storage: Storage, folder: str, before: Manifest, files: Mapping[str, int], check: Check
) -> None:
    """Writes the manifest that comes after one, and makes it the one that counts.

    check: raises `CommitConflict` where the lock may be another's. A writer that stood still before
    one of the two steps neither hides what others have archived meanwhile nor sets them back.
    """
    listed = [{"fileName": name, "fileLen": size} for name, size in files.items()]
    data, number = serde.encode_json({"files": listed}), before.number + 1
    check()
    while not storage.put_if_absent(_path(folder, number), data):
        check()  # else it is of a writer that died, and does not count
        number = max(manifest_numbers(storage, folder)) + 1
    check()
    storage.put(f"{folder}/{_VERSION}", str(number).encode())
    try:
        check()
    except CommitConflict:
        newest = max(manifest_numbers(storage, folder))
        if newest > number:
            storage.put(f"{folder}/{_VERSION}", str(newest).encode())
        raise


def no_check() -> None:
    """The `Check` of who is alone."""


def remove_manifest(storage: Storage, folder: str, number: int) -> None:
    """Removes an old manifest."""
    storage.delete(_path(folder, number))


def _path(folder: str, number: int) -> str:
    return f"{folder}/{_PREFIX}{number}"
