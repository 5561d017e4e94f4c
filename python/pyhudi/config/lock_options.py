"""Options of concurrent writers, read once, with Hudi's names and (unless noted) its defaults.

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
"""Simple names of the provider classes whose protocol pyhudi supports."""

_PREFER_WRITERS = "PreferWriterConflictResolutionStrategy"
_STRATEGIES = (
    "SimpleConcurrentFileWritesConflictResolutionStrategy",
    "BucketIndexConcurrentFileWritesConflictResolutionStrategy",
    _PREFER_WRITERS,
)
"""Of the first two, pyhudi always uses the one that matches the table's index."""

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
"""All options that `LockOptions.of` reads."""

_MOST_ROUNDS = 10
"""Default number of rounds in which a writer waits for the lock; Hudi's is 51."""


@dataclass(frozen=True)
class LockOptions:
    """The lock of a table's writers, and how long they wait for it."""

    mode: ConcurrencyMode = ConcurrencyMode.OPTIMISTIC
    """Hudi's default is a single writer."""
    retries: int = 5
    """How often a write is retried after a conflict; Hudi's default is 0."""
    early_detection: bool = False
    """Check before writing files whether an active writer changes the same file groups."""
    given_skew_ms: int | None = None
    """Maximum clock difference of writers, if an option sets it."""
    provider: str = STORAGE
    """Simple name of Hudi's class."""
    is_given: bool = False
    """Whether the options name the provider."""
    wait_ms: int = 60_000
    """Length of one round; DynamoDB's lease is as long."""
    rounds: int = _MOST_ROUNDS
    validity_ms: int = 60_000
    """How long a storage lock is valid unless it is renewed: other writers wait this long for a
    holder that has failed. Hudi's default is 300 s."""
    renew_ms: int = 6_000
    """Interval of renewals. Hudi's default is 30 s."""
    file_path: str = ""
    """Directory of the file lock, "" for the table's `.hoodie`."""
    file_expires_ms: int = 0
    """Age at which a file lock belongs to a failed writer; 0 for never."""
    zookeeper: Mapping[str, str] = field(default_factory=dict)
    dynamodb: Mapping[str, str] = field(default_factory=dict)
    hive: Mapping[str, str] = field(default_factory=dict)
    heartbeat_ms: int = 60_000
    """Interval at which a lock of the Hive metastore is renewed."""
    prefers_writers: bool = False
    """If a write and a clustering change the same file groups, the clustering aborts."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LockOptions:
        """Read the options from `hoodie.…` names.

        Raises `ConfigError` for a number out of bounds and for a missing name,
        `UnsupportedTableFeature` for a provider or strategy that pyhudi does not support.
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
_ONE_LOCK = "All writers of a table need one lock; "


def _class_of(options: Mapping[str, str], key: str, supported: tuple[str, ...], why: str) -> str:
    """Return the simple name of the class that an option names, by default the first."""
    class_name = options.get(key, supported[0])
    name = class_name.strip().rsplit(".", 1)[-1]
    if name not in supported:
        raise UnsupportedTableFeature(
            f"{key} is {class_name!r}, which pyhudi does not support",
            hint=f"{why}pyhudi has {', '.join(supported)}.",
        )
    return name


def _group(options: Mapping[str, str], prefix: str, names: tuple[str, ...]) -> dict[str, str]:
    return {name: options[prefix + name] for name in names if prefix + name in options}
