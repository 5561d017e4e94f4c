"""Options of concurrent writers, read once, with Hudi's names and (unless noted) its defaults.

Sources: `WriteConcurrencyMode`, `LockConfiguration`, `HoodieLockConfig`, `StorageBasedLockConfig`,
`HoodieTimeGeneratorConfig` and the configurations of the providers (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any

from pyhudi.config.metastore_options import METASTORE_OPTIONS, MetastoreOptions
from pyhudi.config.option_parsing import (
    OptionGroup,
    custom,
    flag,
    integer,
    option,
    option_names,
    parse_class,
    parse_int,
    text,
)
from pyhudi.errors import ConfigError, UnsupportedTableFeature

MODE = "hoodie.write.concurrency.mode"
CONFLICT_RETRIES = "hoodie.write.num.retries.on.conflict.failures"
SKEW_MS = "hoodie.time.generator.max_expected_clock_skew_ms"
PREFIX = "hoodie.write.lock."
PROVIDER = f"{PREFIX}provider"
RETRIES = f"{PREFIX}client.num_retries"
VALIDITY_SECS = f"{PREFIX}storage.validity.timeout.secs"
RENEW_SECS = f"{PREFIX}storage.renew.interval.secs"
FILE_PATH = f"{PREFIX}filesystem.path"
FILE_EXPIRE = f"{PREFIX}filesystem.expire"
ZOOKEEPER = f"{PREFIX}zookeeper."
DYNAMODB = f"{PREFIX}dynamodb."
HIVE = f"{PREFIX}hivemetastore."
STRATEGY = f"{PREFIX}conflict.resolution.strategy"

STORAGE = "StorageBasedLockProvider"
FILE_SYSTEM = "FileSystemBasedLockProvider"
IN_PROCESS = "InProcessLockProvider"
ZOOKEEPER_PATH = "ZookeeperBasedLockProvider"
ZOOKEEPER_IMPLICIT = "ZookeeperBasedImplicitBasePathLockProvider"
DYNAMODB_KEY = "DynamoDBBasedLockProvider"
DYNAMODB_IMPLICIT = "DynamoDBBasedImplicitPartitionKeyLockProvider"
HIVE_METASTORE = "HiveMetastoreBasedLockProvider"

PROVIDERS = (
    STORAGE,
    FILE_SYSTEM,
    IN_PROCESS,
    ZOOKEEPER_PATH,
    ZOOKEEPER_IMPLICIT,
    DYNAMODB_KEY,
    DYNAMODB_IMPLICIT,
    HIVE_METASTORE,
)
"""Simple names of the provider classes whose protocol pyhudi supports."""

_PREFER_WRITERS = "PreferWriterConflictResolutionStrategy"
_STRATEGIES = (
    "SimpleConcurrentFileWritesConflictResolutionStrategy",
    "BucketIndexConcurrentFileWritesConflictResolutionStrategy",
    _PREFER_WRITERS,
)
"""The index of the table decides between the first two."""

_ZOOKEEPER_NAMES = ("url", "base_path", "lock_key", "session_timeout_ms", "connection_timeout_ms")
_DYNAMODB_NAMES = ("table", "partition_key", "region", "endpoint_url")
_HIVE_NAMES = ("uris", "database", "table")


class ConcurrencyMode(Enum):
    """How the writers of a table handle conflicts."""

    SINGLE_WRITER = "SINGLE_WRITER"
    """There is one writer, so there are no conflicts."""
    OPTIMISTIC = "OPTIMISTIC_CONCURRENCY_CONTROL"
    """The writer that completes second aborts, if both changed the same file groups."""
    NON_BLOCKING = "NON_BLOCKING_CONCURRENCY_CONTROL"
    """No writer aborts: writers append to the same buckets, and readers merge."""


def mode_of(options: Mapping[str, str]) -> ConcurrencyMode:
    """Read the mode from the options. Raises `UnsupportedTableFeature` for an unknown one."""
    mode = options.get(MODE, ConcurrencyMode.OPTIMISTIC.value)
    try:
        return ConcurrencyMode(mode.strip().upper())
    except ValueError as error:
        supported = ", ".join(mode.value for mode in ConcurrencyMode)
        raise UnsupportedTableFeature(
            f"{MODE} is {mode!r}, which pyhudi does not support", hint=f"Choose one of {supported}."
        ) from error


def _validity(options: Mapping[str, str]) -> int:
    return parse_int(options, VALIDITY_SECS, default=60, minimum=10)


def _renewal(options: Mapping[str, str]) -> int:
    validity = _validity(options)
    renew = parse_int(options, RENEW_SECS, default=max(validity // 10, 1))
    if validity < 10 * renew:
        msg = f"{VALIDITY_SECS} is {validity}, less than ten times {RENEW_SECS}, {renew}"
        raise ConfigError(msg)
    return renew


def _skew(options: Mapping[str, str]) -> int | None:
    return parse_int(options, SKEW_MS, default=0, minimum=0) if SKEW_MS in options else None


def _prefers_writers(options: Mapping[str, str]) -> bool:
    return parse_class(options, STRATEGY, _STRATEGIES, _STRATEGIES[0]) == _PREFER_WRITERS


def _settings(prefix: str, names: tuple[str, ...], meaning: str) -> Any:
    """Declare a field with the settings of one lock service, by name."""

    def parse(options: Mapping[str, str]) -> dict[str, str]:
        return {name: options[prefix + name] for name in names if prefix + name in options}

    displayed = option(tuple(prefix + name for name in names), meaning)
    return custom(parse, displayed)


@dataclass(frozen=True)
class LockOptions(OptionGroup):
    """The lock of a table's writers, and how long they wait for it."""

    mode: ConcurrencyMode = custom(
        mode_of,
        option(
            MODE,
            "or `SINGLE_WRITER` (Hudi's default), `NON_BLOCKING_CONCURRENCY_CONTROL`",
            default=ConcurrencyMode.OPTIMISTIC.value,
        ),
    )
    retries: int = integer(
        CONFLICT_RETRIES, "retries after a conflict. Hudi's default is 0", default=5, minimum=0
    )
    early_detection: bool = flag(
        "hoodie.write.concurrency.early.conflict.detection.enable",
        "check for conflicts with active writers before files are written",
        default=False,
    )
    given_skew_ms: int | None = custom(
        _skew,
        option(
            SKEW_MS,
            "maximum clock skew between writers",
            default="200 in buckets and with a named lock, otherwise 0",
        ),
    )
    provider: str = custom(
        partial(
            parse_class,
            name=PROVIDER,
            supported=PROVIDERS,
            default=STORAGE,
            why="All writers of a table need one lock. ",
        ),
        option(PROVIDER, "the [lock](../how-to/locks.md): Hudi's class", default=STORAGE),
    )
    is_given: bool = custom(lambda options: PROVIDER in options)
    """Whether the options name the provider."""
    wait_ms: int = integer(
        f"{PREFIX}wait_time_ms",
        "how long a writer waits for the lock in one try; DynamoDB's lease is as long",
        default=60_000,
    )
    rounds: int = custom(
        lambda options: 1 + parse_int(options, RETRIES, default=9, minimum=0),
        option(RETRIES, "more tries to take the lock. Hudi's default is 50", default=9),
    )
    validity_ms: int = custom(
        lambda options: _validity(options) * 1000,
        option(
            VALIDITY_SECS,
            "lease of the storage lock: how long writers wait for a failed one. Hudi's "
            "default is 300",
            default=60,
        ),
    )
    renew_ms: int = custom(
        lambda options: _renewal(options) * 1000,
        option(
            RENEW_SECS,
            "renewal of the lease; at most a tenth of it. Hudi's default is 30",
            default=6,
        ),
    )
    file_path: str = text(FILE_PATH, "the directory of the lock", displayed="the table's `.hoodie`")
    file_expires_ms: int = custom(
        lambda options: parse_int(options, FILE_EXPIRE, default=0, minimum=0) * 60_000,
        option(FILE_EXPIRE, "minutes until a file lock expires; 0: never", default=0),
    )
    zookeeper: Mapping[str, str] = _settings(ZOOKEEPER, _ZOOKEEPER_NAMES, "ZooKeeper")
    dynamodb: Mapping[str, str] = _settings(DYNAMODB, _DYNAMODB_NAMES, "DynamoDB")
    hive: Mapping[str, str] = _settings(HIVE, _HIVE_NAMES, "Hive metastore")
    metastore: MetastoreOptions = custom(MetastoreOptions.of)
    heartbeat_ms: int = integer(
        f"{PREFIX}heartbeat_interval_ms", "renewal of a lock of the Hive metastore", default=60_000
    )
    prefers_writers: bool = custom(
        _prefers_writers,
        option(
            STRATEGY,
            f"`{_PREFER_WRITERS}`: a clustering aborts if it conflicts with a write",
            default="by the index",
        ),
    )

    @property
    def patience_ms(self) -> int:
        """How long a writer waits for the lock in total."""
        return self.wait_ms * self.rounds

    def skew_ms(self, *, remote: bool) -> int:
        """Return how long a writer waits until its time has passed on the clocks of all writers.

        Hudi's writers do not check which times are used already. A local table with the default
        lock has only pyhudi's writers, which do check.

        remote: the table is on object storage.
        """
        if self.given_skew_ms is not None:
            return self.given_skew_ms
        return _SKEW_MS if remote or self.is_given else 0


_SKEW_MS = 200

LOCK_OPTIONS = (*option_names(LockOptions), *METASTORE_OPTIONS)
