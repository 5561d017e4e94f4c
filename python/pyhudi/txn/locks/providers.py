"""Creation of a table's lock by the options, by default the storage lock."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from pyhudi import _native
from pyhudi.clock import Clock
from pyhudi.config import lock_options
from pyhudi.config.lock_options import FILE_PATH, PREFIX, LockOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.errors import ConfigError
from pyhudi.storage.options import is_bucket, is_hdfs, scheme_of
from pyhudi.storage.storage import Storage
from pyhudi.txn.locks.base import TableLock
from pyhudi.txn.locks.dynamodb import DynamoDbLock
from pyhudi.txn.locks.file_lock import NAME, FileLock
from pyhudi.txn.locks.hive_metastore import HiveMetastoreLock
from pyhudi.txn.locks.storage_lock import StorageLock
from pyhudi.txn.locks.zookeeper import ZooKeeperLock


def table_lock(storage: Storage, options: LockOptions, clock: Clock) -> TableLock:
    """Create the lock. Raises `ConfigError` if an option that it needs is missing."""
    provider = options.provider
    if provider == lock_options.IN_PROCESS:
        return ProcessLock(_with_s3(storage.native.uri))
    if provider == lock_options.FILE_SYSTEM:
        return _file_lock(storage, options, clock)
    if provider in (lock_options.ZOOKEEPER_PATH, lock_options.ZOOKEEPER_IMPLICIT):
        return _zookeeper(storage, options, clock)
    if provider in (lock_options.DYNAMODB_KEY, lock_options.DYNAMODB_IMPLICIT):
        return _dynamodb(storage, options, clock)
    if provider == lock_options.HIVE_METASTORE:
        return _hive_metastore(options, clock)
    return StorageLock(storage, clock, validity_ms=options.validity_ms, renew_ms=options.renew_ms)


def _file_lock(storage: Storage, options: LockOptions, clock: Clock) -> FileLock:
    if is_bucket(storage.uri):
        msg = f"{PREFIX}provider: object stores do not support the file lock ({storage.uri})"
        raise ConfigError(msg, hint="Use the StorageBasedLockProvider.")
    if not options.file_path:
        return FileLock(storage, f"{META_FOLDER}/{NAME}", clock, options.file_expires_ms)
    parent_uri, _, name = _lock_folder(options.file_path).rpartition("/")
    parent = _open_directory(storage, parent_uri)
    return FileLock(parent, f"{name}/{NAME}", clock, options.file_expires_ms)


def _lock_folder(path: str) -> str:
    """Return an absolute directory. A relative one would be another directory for each process."""
    scheme = scheme_of(path)
    if scheme is None and not path.startswith("/"):
        msg = f"{FILE_PATH} is {path!r}, which is not absolute"
        raise ConfigError(msg, hint="Give all writers of the table the same absolute path.")
    if scheme not in (None, "file", "hdfs"):
        raise ConfigError(f"{FILE_PATH} is {path!r}: pyhudi keeps no file lock on {scheme}:")
    folder = (path[len("file:") :] if scheme == "file" else path).rstrip("/")
    if not folder:
        raise ConfigError(f"{FILE_PATH} does not name a directory")
    return folder


def _open_directory(storage: Storage, folder: str) -> Storage:
    """Open a directory; a path without scheme is on the HDFS of the table, if it is on HDFS."""
    if is_hdfs(folder):
        return Storage(folder, storage.options if is_hdfs(storage.uri) else None)
    if is_hdfs(storage.uri):
        host = storage.uri.split("/")[2]
        return Storage(f"hdfs://{host}{folder}", storage.options)
    return Storage(folder or "/")


def _zookeeper(storage: Storage, options: LockOptions, clock: Clock) -> ZooKeeperLock:
    lock_settings = options.zookeeper
    if options.provider == lock_options.ZOOKEEPER_IMPLICIT:
        path = f"/tmp/{implicit_key(storage)}/lock_key"  # noqa: S108 - of ZooKeeper's tree
    else:
        base = _require(lock_settings, "base_path", lock_options.ZOOKEEPER)
        name = lock_settings.get("lock_key") or TableConfig.load(storage, clock).name
        path = f"{base.rstrip('/')}/{name}"
    return ZooKeeperLock(
        _require(lock_settings, "url", lock_options.ZOOKEEPER),
        path,
        session_ms=int(lock_settings.get("session_timeout_ms", 60_000)),
        connection_ms=int(lock_settings.get("connection_timeout_ms", 15_000)),
        clock=clock,
    )


def _dynamodb(storage: Storage, options: LockOptions, clock: Clock) -> DynamoDbLock:
    lock_settings = options.dynamodb
    if options.provider == lock_options.DYNAMODB_IMPLICIT:
        key = implicit_key(storage)
    else:
        key = lock_settings.get("partition_key") or TableConfig.load(storage, clock).name
    return DynamoDbLock(
        key,
        clock,
        table=lock_settings.get("table", "hudi_locks"),
        region=lock_settings.get("region", os.environ.get("AWS_REGION", "us-east-1")),
        endpoint_url=lock_settings.get("endpoint_url", ""),
        lease_ms=options.wait_ms,
    )


def _hive_metastore(options: LockOptions, clock: Clock) -> HiveMetastoreLock:
    uris, database, table = (
        _require(options.hive, name, lock_options.HIVE) for name in ("uris", "database", "table")
    )
    return HiveMetastoreLock(
        uris,
        database,
        table,
        clock,
        heartbeat_ms=options.heartbeat_ms,
        options=options.metastore,
    )


def implicit_key(storage: Storage) -> str:
    """Return Hudi's lock key for a table without a configured one (`HashID`, 1.2.0).

    Like Hudi, it hashes the base path as written in the options (`hoodie.base.path`).
    """
    return f"{_native.text_hash(_with_s3(storage.uri)):016X}"


def _with_s3(uri: str) -> str:
    """Return the `s3://` form of a location (`FSUtils.s3aToS3`, 1.2.0)."""
    return f"s3://{uri[6:]}" if uri.lower().startswith("s3a://") else uri


def _require(lock_settings: Mapping[str, str], name: str, prefix: str) -> str:
    if name not in lock_settings:
        raise ConfigError(f"the lock needs the option {prefix}{name}")
    return lock_settings[name]


_locks: dict[str, threading.Lock] = {}
_locks_mutex = threading.Lock()


class ProcessLock:
    """A lock between threads of one process, which other processes ignore.

    Source: `InProcessLockProvider`.
    """

    def __init__(self, uri: str) -> None:
        """uri: the normalized location of the table."""
        self._uri = uri
        with _locks_mutex:
            self._lock = _locks.setdefault(uri, threading.Lock())
        self._held = False

    def acquire(self, timeout_ms: int) -> bool:
        """Acquire the lock."""
        self._held = self._lock.acquire(timeout=timeout_ms / 1000)
        return self._held

    @property
    def min_lease_ms(self) -> None:
        """No writer can take it over."""

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002
        """No writer can take it over."""

    def release(self) -> None:
        """Release the lock."""
        if self._held:
            self._held = False
            self._lock.release()

    def holder(self) -> str:
        """Return the process."""
        return f"another thread that writes to {self._uri}"

    def read_holder(self) -> str | None:
        """Return a thread of this process; locks of other processes are not visible."""
        return "a thread of this process" if self._lock.locked() else None
