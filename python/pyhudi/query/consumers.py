"""The positions of consumers, which streams store in the table.

A consumer has one small file, which is only replaced at the version that was read. Neither
other parts of pyhudi nor Apache Hudi use the directory::

    .hoodie/.pyhudi/consumers/<name>/position.json
        {"order": "completion", "shards": [{"position": ..., "owner": ..., "updated": <ms>}]}

`position` is the time of the last commit whose rows are used, "" before the first. `owner` is the
stream that stored it. Decision 30 has the reasons
(docs/decisions/0030-consumer-positions-are-files-of-the-table.md).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from pyhudi.clock import Clock
from pyhudi.config.formatting import count_text
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.errors import ConfigError, ConsumerConflict, CorruptTable
from pyhudi.query.commit_range import Shard
from pyhudi.storage.storage import Storage

FOLDER = f"{META_FOLDER}/.pyhudi/consumers"
_FILE = "position.json"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}(?<!\.)")
CONSUMERS = pa.schema(
    [
        ("consumer", pa.string()),
        ("shard", pa.int32()),
        ("shards", pa.int32()),
        ("position", pa.string()),
        ("updated", pa.timestamp("ms", "UTC")),
    ]
)


@dataclass(frozen=True)
class ShardPosition:
    """The position of one shard, as it is stored."""

    position: str
    owner: str
    updated: int


@dataclass(frozen=True)
class _Content:
    """The content of a consumer's file."""

    order: str
    shards: tuple[ShardPosition, ...]

    def encode(self) -> bytes:
        return json.dumps(asdict(self), separators=(",", ":")).encode()

    @classmethod
    def parse(cls, path: str, data: bytes) -> _Content:
        try:
            fields: Any = json.loads(data)
            shards = tuple(ShardPosition(**shard) for shard in fields["shards"])
            order = fields["order"]
            is_valid = order in ("completion", "requested") and all(map(_is_valid, shards))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise _corrupt_error(path) from error
        if not shards or not is_valid:
            raise _corrupt_error(path)
        return cls(order, shards)


def _is_valid(shard: ShardPosition) -> bool:
    text = all(isinstance(value, str) for value in (shard.position, shard.owner))
    is_position = text and (not shard.position or shard.position.isdecimal())
    return is_position and type(shard.updated) is int


def _corrupt_error(path: str) -> CorruptTable:
    hint = "Delete the consumer, and begin its stream at a time that you know."
    return CorruptTable(f"{path} does not contain positions", file=path, hint=hint)


def check_name(name: str) -> None:
    """Raise `ConfigError` for a name that a consumer cannot have."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} is not a name of a consumer",
            hint="Use at most 100 letters, digits, dots, hyphens and underscores, without a dot in "
            "front or at the end.",
        )


class ConsumerPosition:
    """The stored position of one shard of a consumer, for one stream."""

    def __init__(self, storage: Storage, name: str, shard: Shard, clock: Clock) -> None:
        """Raise `ConfigError` for a name that is not valid."""
        check_name(name)
        self._storage = storage
        self._name = name
        self._shard = shard
        self._clock = clock
        self._owner = clock.uuid()
        self._path = _path(name)
        self._version: str | None = None
        self._content: _Content | None = None

    def load(self, order: str) -> str | None:
        """Return the stored position, "" for the beginning; None for a new consumer.

        order: type of the table's times: "completion" or "requested".

        Raises `ConfigError` for a consumer with another number of shards, or whose position is of
        another order.
        """
        content, self._version = self._read()
        self._content = content
        if content is None:
            return None
        stored = len(content.shards)
        if stored != self._shard.count:
            raise ConfigError(
                f"the consumer {self._name!r} has {count_text(stored, 'shard')}, not "
                f"{self._shard.count}",
                hint="Pass the stored number, or delete the consumer to begin with another one.",
            )
        if content.order != order:
            raise ConfigError(
                f"the position of the consumer {self._name!r} is a {content.order} time, and the "
                f"table has {order} times now",
                hint="The table's version was changed: call reset_consumer with the last commit "
                "whose rows were used.",
            )
        return content.shards[self._shard.number].position

    def begin(self, order: str, position: str) -> str:
        """Store where a new consumer begins, for all its shards.

        Returns the stored position, which another stream may have set first.
        """
        while not self._replace(_Content(order, (self._entry(position),) * self._shard.count)):
            stored = self.load(order)
            if stored is not None:
                return stored
        return position

    def advance(self, order: str, position: str) -> None:
        """Store that everything up to a position is used; a later position stays.

        Raises `ConsumerConflict` if another stream has stored a position since this one read it.
        """
        while True:
            entry, shards = self._entry(position), [self._entry("")]
            if self._content is not None:
                shards = [*self._content.shards]
                stored = shards[self._shard.number]
                if stored.owner == self._owner and position <= stored.position:
                    return
            shards[self._shard.number] = entry
            if self._replace(_Content(order, tuple(shards))):
                return
            self._refresh()

    def _refresh(self) -> None:
        """Read the file again. Raises `ConsumerConflict` if another stream changed this shard."""
        content, version = self._read()
        before, now = self._own_entry(self._content), self._own_entry(content)
        if now is None or (now != before and now.owner != self._owner):
            label = (
                f"shard {self._shard.number} of the consumer"
                if self._shard.count > 1
                else "the consumer"
            )
            state = f"is at {now.position or 'the beginning'}" if now else "is deleted"
            raise ConsumerConflict(
                f"{label} {self._name!r} {state}: another process changed it in the meantime",
                hint="Run one process for a consumer, or divide the stream with `shard`. A new "
                "stream goes on at the stored position.",
            )
        self._content, self._version = content, version

    def _own_entry(self, content: _Content | None) -> ShardPosition | None:
        """Return the entry of this shard; None without a file with this number of shards."""
        if content is None or len(content.shards) != self._shard.count:
            return None
        return content.shards[self._shard.number]

    def _entry(self, position: str) -> ShardPosition:
        return ShardPosition(position, self._owner, self._clock.now_ms())

    def _read(self) -> tuple[_Content | None, str | None]:
        current = self._storage.read_version(self._path)
        if current is None:
            return None, None
        return _Content.parse(self._path, current[0]), current[1]

    def _replace(self, content: _Content) -> bool:
        """Replace the file at the version that was read; return False if it has another one."""
        version = _swap(self._storage, self._path, content, self._version)
        if version is None:
            return False
        self._content, self._version = content, version
        return True


def _path(name: str) -> str:
    return f"{FOLDER}/{name}/{_FILE}"


def _swap(storage: Storage, path: str, content: _Content, version: str | None) -> str | None:
    """Replace a consumer's file, unless it has another version.

    Returns the new version, None if another process was first.
    """
    data = content.encode()
    try:
        written = storage.replace_version(path, data, version, durable=True)
    except OSError:
        # The response may have been lost.
        current = storage.read_version(path)
        if current is None or current[0] != data:
            raise
        return current[1]
    if written is None:
        # A client that repeats a request whose response was lost finds its own file.
        current = storage.read_version(path)
        if current is not None and current[0] == data:
            return current[1]
    return written


def parse_positions(path: str, data: bytes) -> tuple[str, tuple[ShardPosition, ...]]:
    """Return the order of a consumer's times, and its shards. Raises `CorruptTable`."""
    content = _Content.parse(path, data)
    return content.order, content.shards


def consumer_table(storage: Storage) -> pa.Table:
    """Return the consumers by name and shard, see `HudiTable.consumers`."""
    folders, _ = storage.list_dir(FOLDER)
    rows: list[dict[str, Any]] = []
    for folder in sorted(folders):
        path = f"{folder}/{_FILE}"
        data = storage.read_or_none(path)
        if data is None:
            continue
        shards = _Content.parse(path, data).shards
        rows += [
            {
                "consumer": folder.rpartition("/")[2],
                "shard": number,
                "shards": len(shards),
                "position": shard.position or None,
                "updated": shard.updated,
            }
            for number, shard in enumerate(shards)
        ]
    return pa.Table.from_pylist(rows, CONSUMERS)


def reset_consumer(storage: Storage, name: str, order: str, position: str, clock: Clock) -> None:
    """Set the position of all shards of a consumer, "" for the beginning.

    Raises `ConfigError` for a consumer that does not exist.
    """
    check_name(name)
    path = _path(name)
    while True:
        current = storage.read_version(path)
        if current is None:
            raise _missing_consumer(name)
        shards: Sequence[ShardPosition] = _Content.parse(path, current[0]).shards
        entry = ShardPosition(position, clock.uuid(), clock.now_ms())
        content = _Content(order, (entry,) * len(shards))
        if _swap(storage, path, content, current[1]) is not None:
            return


def delete_consumer(storage: Storage, name: str) -> None:
    """Remove a consumer. Raises `ConfigError` for a consumer that does not exist."""
    check_name(name)
    if not storage.exists(_path(name)):
        raise _missing_consumer(name)
    storage.delete_dir(f"{FOLDER}/{name}")


def _missing_consumer(name: str) -> ConfigError:
    return ConfigError(
        f"the table has no consumer {name!r}", hint="consumers() lists the consumers."
    )
