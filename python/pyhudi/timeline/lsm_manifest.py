"""The manifests of an LSM history, which list its valid files.

`manifest_<n>` lists them, `_version_` has n in decimal (`LSMTimeline`, Hudi 1.2.0). A manifest
never changes; those that a reader may still use are kept for a while.
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
"""Raises `CommitConflict` if another writer may hold the table's lock."""


@dataclass(frozen=True)
class Manifest:
    """One snapshot of a history."""

    number: int
    """From 1 on; 0 if there is no history yet."""
    files: Mapping[str, int]
    """Sizes in bytes by name."""


def current_manifest(storage: Storage, folder: str) -> Manifest:
    """Return the current manifest. Raises `CorruptTable` naming the file if it is invalid."""
    version = storage.read_or_none(f"{folder}/{_VERSION}")
    digits = version.decode(errors="replace").strip() if version else ""
    if digits.isdecimal() and len(digits) <= _DIGITS:
        manifest = read_manifest(storage, folder, int(digits))
        if manifest is not None:
            return manifest
    # Hudi is replacing the version file.
    newest = max(manifest_numbers(storage, folder), default=0)
    return read_manifest(storage, folder, newest) or Manifest(0, {})


def manifest_numbers(storage: Storage, folder: str) -> list[int]:
    """Return the numbers of all existing manifests."""
    names = (entry.name for entry in storage.list_dir(folder)[1])
    digits = (name.removeprefix(_PREFIX) for name in names if name.startswith(_PREFIX))
    return [int(number) for number in digits if number.isdecimal()]


def read_manifest(storage: Storage, folder: str, number: int) -> Manifest | None:
    """Return one manifest, None if it is missing."""
    path = _path(folder, number)
    data = storage.read_or_none(path)
    if data is None:
        return None
    manifest = parse_json(data, path)
    try:
        files = {str(entry["fileName"]): int(entry["fileLen"]) for entry in manifest["files"]}
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise CorruptTable(f"{path}: not a timeline manifest", file=path) from error
    return Manifest(number, files)


def write_manifest(
    storage: Storage, folder: str, before: Manifest, files: Mapping[str, int], check: Check
) -> None:
    """Write the next manifest, and make it the current one.

    check: raises `CommitConflict` if another writer may hold the lock. A writer that stalls before
    one of the two steps neither hides nor reverts what other writers have archived since.
    """
    listed = [{"fileName": name, "fileLen": size} for name, size in files.items()]
    data, number = serde.encode_json({"files": listed}), before.number + 1
    check()
    while not storage.put_if_absent(_path(folder, number), data):
        check()  # otherwise it is that of a failed writer, and not valid
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
    """The `Check` of a writer that runs alone."""


def remove_manifest(storage: Storage, folder: str, number: int) -> None:
    """Remove an old manifest."""
    storage.delete(_path(folder, number))


def _path(folder: str, number: int) -> str:
    return f"{folder}/{_PREFIX}{number}"
