"""Detection of other writers that use a different lock.

No property of a table names the lock of its writers. The signs are lock files, heartbeats of active
Apache Hudi writers, and commits that ran concurrently. If the user configures a lock, pyhudi
ignores them; otherwise it raises instead of guessing.
"""

from __future__ import annotations

from itertools import pairwise

from pyhudi.clock import Clock, Zone, parse_instant
from pyhudi.config.actions import COMMIT, DELTA_COMMIT, Instant
from pyhudi.config.lock_options import PROVIDER, ConcurrencyMode, LockOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.config.timeline_layout import META_FOLDER
from pyhudi.errors import ConfigError, CorruptTable, UnsupportedTableFeature
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn import heartbeat
from pyhudi.txn.locks.storage_lock import PATH

_LOCK_FILE = f"{META_FOLDER}/lock"
"""The default file of `FileSystemBasedLockProvider`."""
_AUX_FOLDER = f"{META_FOLDER}/.aux"
_AUX_LOCK_FILE = f"{_AUX_FOLDER}/lock"
"""The same for Flink and Hudi's tools."""
_HINT = (
    f"Give open_table the lock's options, such as {PROVIDER}. If no other writer is active, "
    "remove the lock file, or use StorageBasedLockProvider."
)
_MAX_WRITE_MS = 24 * 3_600_000
_RECENT_MS = 7 * 24 * 3_600_000


def check_no_other_lock(
    storage: Storage, config: TableConfig, timeline: Timeline, options: LockOptions, clock: Clock
) -> None:
    """Raise `UnsupportedTableFeature` if other writers use a lock that no option names.

    The lock file of a failed writer counts, too; the message names it.
    """
    if options.is_given or options.mode is ConcurrencyMode.SINGLE_WRITER:
        return
    folders, files = timeline.meta_folder
    if any(file.path == _LOCK_FILE for file in files):
        raise _error_of_unknown_lock(f"the lock file {_LOCK_FILE} exists")
    if _AUX_FOLDER in folders and storage.exists(_AUX_LOCK_FILE):
        raise _error_of_unknown_lock(f"the lock file {_AUX_LOCK_FILE} exists")
    pending = {instant.requested for instant in timeline.pending()}
    for instant in heartbeat.live_hudi_instants(storage, pending, clock):
        raise _error_of_unknown_lock(f"a writer of Apache Hudi is active at instant {instant}")
    concurrent_writes = _find_concurrent_writes(timeline, config.timezone, clock)
    # Concurrent writers may have used the storage lock if its file exists.
    if concurrent_writes is not None and not storage.exists(PATH):
        raise _error_of_unknown_lock(
            f"{concurrent_writes[0]} and {concurrent_writes[1]} ran concurrently"
        )


def _find_concurrent_writes(
    timeline: Timeline, zone: Zone, clock: Clock
) -> tuple[Instant, Instant] | None:
    """Return two recent writes that overlap in time, or None.

    Actions that table services use are ignored, since services run concurrently with writes. So are
    tables whose completion times change with a copy of the table.
    """
    if not timeline.completes_in_names:
        return None
    action = DELTA_COMMIT if timeline.filter_completed(DELTA_COMMIT) else COMMIT
    now = clock.now_ms()
    writes = []
    for instant in timeline.filter_completed(action):
        try:
            started = parse_instant(instant.requested, zone)
            completed = parse_instant(instant.completed or "", zone)
        except ConfigError as error:
            path = timeline.path(instant)
            raise CorruptTable(f"{path}: {error}", file=path) from error
        if completed - started < _MAX_WRITE_MS and now - completed < _RECENT_MS:
            writes.append((started, completed, instant))
    for (_, completed, previous), (started, _, next_write) in pairwise(
        sorted(writes, key=lambda write: write[:2])
    ):
        if started < completed:
            return previous, next_write
    return None


def _error_of_unknown_lock(sign: str) -> UnsupportedTableFeature:
    msg = f"{PROVIDER}: the table's writers use an unknown lock: {sign}"
    return UnsupportedTableFeature(msg, hint=_HINT)
