"""The options of many writers, read once. Names and defaults are Hudi's where not said otherwise.

Sources: `WriteConcurrencyMode`, `LockConfiguration`, `HoodieLockConfig`, `StorageBasedLockConfig`,
`HoodieTimeGeneratorConfig` and the configurations of the providers (Hudi 1.2.0).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyhudi.config.concurrency_mode import MODE, ConcurrencyMode, mode_of
from pyhudi.config.option_parsing import parse_bool, parse_int
from pyhudi.errors import ConfigError, UnsupportedTableFeature

CONFLICT_RETRIES = "hoodie.write.num.retries.on.conflict.failures"
EARLY_DETECTION = "hoodie.write.concurrency.early.conflict.detection.enable"
SKEW_MS = "hoodie.time.generator.max_expected_clock_skew_ms"
PREFIX = "hoodie.write.lock."
PROVIDER = f"{PREFIX}provider"
WAIT_MS = f"{PREFIX}wait_time_ms"
RETRIES = f"{PREFIX}client.num_retries"
VALIDITY_SECS = f"{PREFIX}storage.validity.timeout.secs"
RENEW_SECS = f"{PREFIX}storage.renew.interval.secs"
FILE_PATH = f"{PREFIX}filesystem.path"
FILE_EXPIRE = f"{PREFIX}filesystem.expire"
ZOOKEEPER = f"{PREFIX}zookeeper."
DYNAMODB = f"{PREFIX}dynamodb."
HIVE = f"{PREFIX}hivemetastore."
HEARTBEAT_MS = f"{PREFIX}heartbeat_interval_ms"
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
"""Simple names of the provider classes that pyhudi speaks the protocol of."""

_PREFER_WRITERS = "PreferWriterConflictResolutionStrategy"
_STRATEGIES = (
    "SimpleConcurrentFileWritesConflictResolutionStrategy",
    "BucketIndexConcurrentFileWritesConflictResolutionStrategy",
    _PREFER_WRITERS,
)
"""Of the first two pyhudi always takes the one that fits the table's index."""

_ZOOKEEPER_NAMES = ("url", "base_path", "lock_key", "session_timeout_ms", "connection_timeout_ms")
_DYNAMODB_NAMES = ("table", "partition_key", "region", "endpoint_url")
_HIVE_NAMES = ("uris", "database", "table")

LOCK_OPTIONS = (
    MODE,
    CONFLICT_RETRIES,
    EARLY_DETECTION,
    SKEW_MS,
    PROVIDER,
    WAIT_MS,
    RETRIES,
    VALIDITY_SECS,
    RENEW_SECS,
    FILE_PATH,
    FILE_EXPIRE,
    HEARTBEAT_MS,
    STRATEGY,
    *(f"{ZOOKEEPER}{name}" for name in _ZOOKEEPER_NAMES),
    *(f"{DYNAMODB}{name}" for name in _DYNAMODB_NAMES),
    *(f"{HIVE}{name}" for name in _HIVE_NAMES),
)
"""Every option that `LockOptions.of` reads."""

_MOST_ROUNDS = 10
"""A writer waits so many rounds at most unless it is told otherwise; Hudi waits 51."""


@dataclass(frozen=True)
class LockOptions:
    """Which lock a table is written under, and how long it is waited for."""

    mode: ConcurrencyMode = ConcurrencyMode.OPTIMISTIC
    """Hudi's default is a single writer."""
    retries: int = 5
    """How often a write that gave way is made again; Hudi's default is 0."""
    early_detection: bool = False
    """A write looks, before it writes files, whether a living one changes the same file groups."""
    given_skew_ms: int | None = None
    """What the clocks of writers may differ by, where an option says it."""
    provider: str = STORAGE
    """Simple name of Hudi's class."""
    is_given: bool = False
    """The options name the provider: it is no default."""
    wait_ms: int = 60_000
    """Of one round; DynamoDB's lease is as long."""
    rounds: int = _MOST_ROUNDS
    validity_ms: int = 60_000
    """How long a storage lock is valid unless it is renewed: so long others wait for a holder that
    has died. Hudi's default is 300 s."""
    renew_ms: int = 6_000
    """Hudi's default is 30 s."""
    file_path: str = ""
    """Folder of the file lock, "" for the table's `.hoodie`."""
    file_expires_ms: int = 0
    """Age at which a file lock is a dead writer's; 0 for never."""
    zookeeper: Mapping[str, str] = field(default_factory=dict)
    dynamodb: Mapping[str, str] = field(default_factory=dict)
    hive: Mapping[str, str] = field(default_factory=dict)
    heartbeat_ms: int = 60_000
    """How often a lock of the Hive metastore is renewed."""
    prefers_writers: bool = False
    """Of a write and a clustering of the same file groups the clustering gives way."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LockOptions:
        """From `hoodie.…` options.

        Raises `ConfigError` for a number out of bounds and for a name that is missing,
        `UnsupportedTableFeature` for a provider that pyhudi cannot speak to, and for a strategy
        that it does not have.
        """
        provider = _class_of(options, PROVIDER, PROVIDERS, _ONE_LOCK)
        validity = parse_int(options, VALIDITY_SECS, default=cls.validity_ms // 1000, least=10)
        renew = parse_int(options, RENEW_SECS, default=max(validity // 10, 1))
        if validity < 10 * renew:
            msg = f"{VALIDITY_SECS} is {validity}, less than ten times {RENEW_SECS}, {renew}"
            raise ConfigError(msg)
        minutes = parse_int(options, FILE_EXPIRE, default=0, least=0)
        skew = parse_int(options, SKEW_MS, default=-1, least=0)
        return cls(
            mode=mode_of(options),
            retries=parse_int(options, CONFLICT_RETRIES, default=cls.retries, least=0),
            early_detection=parse_bool(options, EARLY_DETECTION, default=False),
            given_skew_ms=None if skew < 0 else skew,
            provider=provider,
            is_given=PROVIDER in options,
            wait_ms=parse_int(options, WAIT_MS, default=cls.wait_ms),
            rounds=1 + parse_int(options, RETRIES, default=_MOST_ROUNDS - 1, least=0),
            validity_ms=validity * 1000,
            renew_ms=renew * 1000,
            file_path=options.get(FILE_PATH, cls.file_path),
            file_expires_ms=minutes * 60_000,
            zookeeper=_group(options, ZOOKEEPER, _ZOOKEEPER_NAMES),
            dynamodb=_group(options, DYNAMODB, _DYNAMODB_NAMES),
            hive=_group(options, HIVE, _HIVE_NAMES),
            heartbeat_ms=parse_int(options, HEARTBEAT_MS, default=cls.heartbeat_ms),
            prefers_writers=_class_of(options, STRATEGY, _STRATEGIES, "") == _PREFER_WRITERS,
        )

    @property
    def patience_ms(self) -> int:
        """How long a writer waits for the lock in all."""
        return self.wait_ms * self.rounds

    def skew_ms(self, *, remote: bool) -> int:
        """How long a writer waits until a time that it took is past for every writer's clock.

        Hudi's writers do not look which times are taken. remote: the table lies in a bucket. A
        local table under the default lock has no writers but pyhudi's, which do look.
        """
        if self.given_skew_ms is not None:
            return self.given_skew_ms
        return _SKEW_MS if remote or self.is_given else 0


_SKEW_MS = 200
_ONE_LOCK = "All writers of a table need one lock; "


def _class_of(options: Mapping[str, str], key: str, known: tuple[str, ...], why: str) -> str:
    """The simple name of a class that an option names, the first where it names none."""
    text = options.get(key, known[0])
    name = text.strip().rsplit(".", 1)[-1]
    if name not in known:
        raise UnsupportedTableFeature(
            f"{key} is {text!r}, which pyhudi does not support",
            hint=f"{why}pyhudi has {', '.join(known)}.",
        )
    return name


def _group(options: Mapping[str, str], prefix: str, names: tuple[str, ...]) -> dict[str, str]:
    return {name: options[prefix + name] for name in names if prefix + name in options}
