"""When and how `.hoodie/hoodie.properties` is read, made and changed.

A change first keeps the old file as `hoodie.properties.backup`; readers take whichever of the two
is valid, so a writer that dies at any point loses nothing (`HoodieTableConfig`, Hudi 1.2.0). Hudi
deletes the file before it writes the new one, so readers must bear its absence for a moment;
storage that replaces a file in one step spares pyhudi the deletion. What the keys mean is
`table_config.py`'s part.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timezone
from functools import lru_cache

from pyhudi.clock import Clock
from pyhudi.config.properties import (
    CHECKSUM,
    checksum,
    has_valid_checksum,
    parse_properties,
    render_properties,
)
from pyhudi.errors import (
    ConfigError,
    CorruptTable,
    StorageError,
    TableNotFound,
    UnsupportedTableFeature,
    retryable_conflict,
)
from pyhudi.storage.storage import Storage

FOLDER = ".hoodie"
FILE = f"{FOLDER}/hoodie.properties"
BACKUP = f"{FILE}.backup"

_PARSED = 64
"""Files that are remembered: each commit reads those of its two tables again and again."""
_ROUNDS = 5
_SECONDS_BETWEEN_ROUNDS = 1.0


def read_config(storage: Storage, clock: Clock) -> dict[str, str]:
    """The table's properties: the file's, or the backup's where the file is missing or invalid.

    Waits a few seconds for a file that is invalid while another writer may be replacing it. Raises
    `TableNotFound` when there is no file, `CorruptTable` when none is valid.
    """
    damage: CorruptTable | None = None
    missed = 0
    for remaining in reversed(range(_ROUNDS)):
        try:
            found = _read_once(storage)
        except CorruptTable as error:
            damage = error
        else:
            if found is not None:
                return found
            # There is a valid backup while Hudi replaces the file. So both lack at most between
            # two calls, where the file came after it was looked for.
            missed += 1
            if missed > 1 or not _may_appear(storage):
                break
            continue
        if remaining:
            clock.sleep(_SECONDS_BETWEEN_ROUNDS)
    if damage is not None:
        raise damage
    msg = f"no Hudi table at {storage.uri}: {FILE} does not exist"
    raise TableNotFound(msg, hint="Check the location; create_table makes a new table.")


def read_now(storage: Storage) -> dict[str, str] | None:
    """The properties as `read_config` gives them, without waiting: None when there are none."""
    return _read_once(storage)


def _may_appear(storage: Storage) -> bool:
    folders, files = storage.list_dir(FOLDER)
    return bool(folders or files)


def _read_once(storage: Storage) -> dict[str, str] | None:
    """The properties of the first valid file, None when there is no file at all.

    A file without a checksum, as tables before version 4 have, is taken if no backup is valid.
    """
    without_checksum: dict[str, str] | None = None
    damage: CorruptTable | None = None
    for path in (FILE, BACKUP):
        data = storage.read_or_none(path)
        if data is None:
            continue
        try:
            properties = _parse_valid(data, path)
        except CorruptTable as error:
            damage = damage or error
            continue
        if CHECKSUM in properties:
            return properties
        without_checksum = without_checksum or properties
    if without_checksum is None and damage is not None:
        raise damage
    return without_checksum


def _parse_valid(data: bytes, path: str) -> dict[str, str]:
    return dict(_parse(data, path))


@lru_cache(_PARSED)
def _parse(data: bytes, path: str) -> Mapping[str, str]:
    properties = parse_properties(data, path)
    if not properties:
        msg = f"{path}: it has no properties"
        raise CorruptTable(msg, file=path, offset=0)
    if CHECKSUM in properties and not has_valid_checksum(properties):
        offset = max(data.find(CHECKSUM.encode()), 0)
        msg = f"{path}: {CHECKSUM} at byte {offset} does not fit the table's name"
        raise CorruptTable(msg, file=path, offset=offset)
    return properties


def create_config(storage: Storage, properties: Mapping[str, str], clock: Clock) -> None:
    """Writes a new table's file. Raises `ConfigError` when there is a table already."""
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
    """Sets and removes properties, keeps all others, and gives the new ones.

    Of two writers at a time one fails, also where one stands still meanwhile: the file is replaced
    only while it is the one that was read. before: what the properties have to be, where the change
    goes by that. Raises `CommitConflict` where they are not, or another writer was faster,
    `CorruptTable` or `TableNotFound` as reading does, `StorageError` while another writer changes
    them, or when what was written does not read back; the backup then still holds the old ones.
    """
    recover_config(storage, clock)
    found = storage.read_version(FILE)
    if found is None:
        raise retryable_conflict(f"another writer is changing {FILE}")
    old, version = found
    was = _parse_valid(old, FILE)
    if before is not None and was != before:
        raise retryable_conflict("another writer changed the table's properties concurrently")
    properties = {k: v for k, v in was.items() if k not in removed}
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
    """Whether the file was that version still, where the storage can tell."""
    try:
        return storage.replace_version(FILE, data, version, durable=True) is not None
    except UnsupportedTableFeature:
        storage.put(FILE, data)
        return True


def recover_config(storage: Storage, clock: Clock) -> None:
    """Ends a change that another writer left half done: the valid file stays, the backup goes."""
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
    return render_properties({**properties, CHECKSUM: checksum(properties)}, [comment])


def _iso(clock: Clock) -> str:
    moment = datetime.fromtimestamp(clock.now_ms() / 1000, tz=timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
