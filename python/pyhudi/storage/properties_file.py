"""Reads, creates and changes `.hoodie/hoodie.properties`.

A change first copies the old file to `hoodie.properties.backup`; readers use whichever of the two
is valid, so a writer that crashes loses nothing (`HoodieTableConfig`, Hudi 1.2.0). Hudi deletes the
file before it writes the new one, so readers must tolerate its absence for a short time. On storage
that replaces a file in one step, pyhudi does not delete it. `config/table_config.py` interprets the
keys.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from functools import lru_cache

from pyhudi.clock import Clock
from pyhudi.errors import (
    ConfigError,
    CorruptTable,
    StorageError,
    TableNotFound,
    UnsupportedTableFeature,
    retryable_conflict,
)
from pyhudi.storage.properties import (
    CHECKSUM,
    checksum,
    has_valid_checksum,
    parse_properties,
    render_properties,
    with_checksum_comment,
)
from pyhudi.storage.storage import Storage

FOLDER = ".hoodie"
FILE: str = f"{FOLDER}/hoodie.properties"
BACKUP = f"{FILE}.backup"

_PARSED = 64
"""Number of cached files: each commit reads those of its two tables repeatedly."""
_ROUNDS = 5
_SECONDS_BETWEEN_ROUNDS = 1.0
_RESTORE = f"Restore {FILE} from a copy, such as an earlier version of the object or a snapshot."


def read_config(storage: Storage, clock: Clock) -> dict[str, str]:
    """Return the table's properties: of the file, or of the backup if the file is not valid.

    Waits a few seconds if the file is invalid, because another writer may be replacing it. Raises
    `TableNotFound` if there is no file, `CorruptTable` if none is valid.
    """
    damage: CorruptTable | None = None
    missed = 0
    for remaining in reversed(range(_ROUNDS)):
        try:
            properties = read_now(storage)
        except CorruptTable as error:
            damage = error
        else:
            if properties is not None:
                return properties
            # A valid backup exists while Hudi replaces the file. So both can only be missing if the
            # file appeared after this reader looked for it.
            missed += 1
            folders, files = storage.list_dir(FOLDER)
            if missed > 1 or not (folders or files):
                break
            continue
        if remaining:
            clock.sleep(_SECONDS_BETWEEN_ROUNDS)
    if damage is not None:
        raise damage
    msg = f"no Hudi table at {storage.uri}: {FILE} does not exist"
    raise TableNotFound(msg, hint="Check the location; create_table creates a new table.")


def read_now(storage: Storage) -> dict[str, str] | None:
    """Return the properties of the first valid file without waiting, None if there is no file.

    A file without a checksum, as in tables before version 4, is used if no backup is valid.
    """
    without_checksum: dict[str, str] | None = None
    damage: CorruptTable | None = None
    for path in (FILE, BACKUP):
        data = storage.read_or_none(path)
        if data is None:
            continue
        try:
            properties = dict(_parse(data, path))
        except CorruptTable as error:
            damage = damage or error
            continue
        if CHECKSUM in properties:
            return properties
        without_checksum = without_checksum or properties
    if without_checksum is None and damage is not None:
        raise damage
    return without_checksum


@lru_cache(_PARSED)
def _parse(data: bytes, path: str) -> Mapping[str, str]:
    properties = parse_properties(data, path)
    if not properties:
        msg = f"{path}: it has no properties"
        raise CorruptTable(msg, file=path, offset=0, hint=_RESTORE)
    if CHECKSUM in properties and not has_valid_checksum(properties):
        offset = max(data.find(CHECKSUM.encode()), 0)
        msg = f"{path}: {CHECKSUM} at byte {offset} does not match the table's name"
        raise CorruptTable(msg, file=path, offset=offset, hint=_RESTORE)
    return properties


def create_config(storage: Storage, properties: Mapping[str, str], clock: Clock) -> None:
    """Write a new table's file. Raises `ConfigError` if a table exists already."""
    data = _render(properties, f"Properties saved on {_iso(clock)}")
    if storage.exists(BACKUP) or not storage.put_if_absent(FILE, data):
        msg = f"a Hudi table exists at {storage.uri}"
        raise ConfigError(msg, hint="Use open_table, or choose another location.")


def update_config(
    storage: Storage,
    changes: Mapping[str, str],
    clock: Clock,
    *,
    removed: Collection[str] = (),
    before: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Set and remove properties, keep all others, and return the new ones.

    One of two concurrent writers fails, even if one stalls: the file is replaced only while it is
    the version that was read. Raises `CommitConflict` if the properties are not `before` or another
    writer was faster, `CorruptTable` or `TableNotFound` as reading does, `StorageError` while
    another writer changes them, or if the written file does not read back; the backup then still
    has the old properties.

    before: the properties that the change depends on.
    """
    recover_config(storage, clock)
    stored = storage.read_version(FILE)
    if stored is None:
        raise retryable_conflict(f"another writer is changing {FILE}")
    old, version = stored
    current = _parse(old, FILE)
    if before is not None and current != before:
        raise retryable_conflict("another writer changed the table's properties concurrently")
    properties = {k: v for k, v in current.items() if k not in removed}
    properties.update(changes)
    if not storage.put_if_absent(BACKUP, old):
        msg = f"another writer is changing {FILE}"
        raise StorageError(msg, hint="Try again.")
    data = _render(properties, f"Updated at {_iso(clock)}")
    if not _replace(storage, data, version):
        if storage.read_or_none(BACKUP) == old:
            storage.delete(BACKUP)
        raise retryable_conflict(f"another writer changed {FILE} concurrently")
    written = parse_properties(storage.read(FILE), FILE)
    if len(written) != len(properties | {CHECKSUM: ""}) or not has_valid_checksum(written):
        msg = f"{FILE} differs from what was written"
        raise StorageError(msg, hint=f"{BACKUP} holds the properties from before.")
    storage.delete(BACKUP)
    return written


def _replace(storage: Storage, data: bytes, version: str) -> bool:
    """Replace the file; return false if it had another version and the storage can check that."""
    try:
        return storage.replace_version(FILE, data, version, durable=True) is not None
    except UnsupportedTableFeature:
        storage.put(FILE, data)
        return True


def recover_config(storage: Storage, clock: Clock) -> None:
    """Complete an interrupted change of another writer: keep the valid file, delete the backup."""
    backup = storage.read_or_none(BACKUP)
    if backup is None:
        return
    main = storage.read_or_none(FILE)
    if main is None or not _has_checksum(main, FILE):
        if not _has_checksum(backup, BACKUP):
            read_config(storage, clock)
            return
        storage.put(FILE, backup)
    storage.delete(BACKUP)


def _has_checksum(data: bytes, path: str) -> bool:
    try:
        return has_valid_checksum(parse_properties(data, path))
    except CorruptTable:
        return False


def _render(properties: Mapping[str, str], comment: str) -> bytes:
    text = render_properties({**properties, CHECKSUM: checksum(properties)}, [comment])
    return with_checksum_comment(text)


def _iso(clock: Clock) -> str:
    now = datetime.fromtimestamp(clock.now_ms() / 1000, tz=timezone.utc)
    return now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
