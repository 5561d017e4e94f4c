"""Signs on storage that other writers of a table use a different lock.

No property of a table names the lock of its writers. The visible signs are lock files, heartbeats
of active writers, and commits that ran concurrently. They do not matter if the user has named the
lock. Otherwise pyhudi would have to guess before it writes.
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
"""The file of `FileSystemBasedLockProvider`, by default."""
_AUX_FOLDER = f"{META_FOLDER}/.aux"
_AUX_LOCK_FILE = f"{_AUX_FOLDER}/lock"
"""The same for Flink and Hudi's tools."""
_HINT = (
    f"Give open_table the lock's options, such as {PROVIDER}. If no other writer is active, "
    "remove the lock file, or use StorageBasedLockProvider."
)
_LONGEST_WRITE_MS = 24 * 3_600_000
_OF_LATE_MS = 7 * 24 * 3_600_000


def check_no_other_lock(
    storage: Storage, config: TableConfig, timeline: Timeline, options: LockOptions, clock: Clock
) -> None:
    """Raise `UnsupportedTableFeature` if other writers use a lock that no option names.

    A lock file that a failed writer has left counts; the message names it.
    """
    if options.is_given or options.mode is ConcurrencyMode.SINGLE_WRITER:
        return
    folders, files = timeline.meta_folder
    if any(file.path == _LOCK_FILE for file in files):
        raise _other(f"the lock file {_LOCK_FILE} exists")
    if _AUX_FOLDER in folders and storage.exists(_AUX_LOCK_FILE):
        raise _other(f"the lock file {_AUX_LOCK_FILE} exists")
    pending = {instant.requested for instant in timeline.pending()}
    for instant in heartbeat.live_hudi_instants(storage, pending, clock):
        raise _other(f"a writer of Apache Hudi is active at instant {instant}")
    both = _beside_each_other(timeline, config.timezone, clock)
    # If the storage lock exists, concurrent writers may have used it.
    if both is not None and not storage.exists(PATH):
        raise _other(f"{both[0]} and {both[1]} ran concurrently")


def _beside_each_other(
    timeline: Timeline, zone: Zone, clock: Clock
) -> tuple[Instant, Instant] | None:
    """Return two recent writes that overlap in time, or None.

    Services run concurrently with writes anyway, so an action that a service may have is not
    counted. Neither is a completion time that a copy of the table has changed.
    """
    if not timeline.completes_in_names:
        return None
    action = DELTA_COMMIT if timeline.filter_completed(DELTA_COMMIT) else COMMIT
    now = clock.now_ms()
    spans = []
    for instant in timeline.filter_completed(action):
        try:
            started = parse_instant(instant.requested, zone)
            completed = parse_instant(instant.completed or "", zone)
        except ConfigError as error:
            path = timeline.path(instant)
            raise CorruptTable(f"{path}: {error}", file=path) from error
        if completed - started < _LONGEST_WRITE_MS and now - completed < _OF_LATE_MS:
            spans.append((started, completed, instant))
    for (_, completed, previous), (started, _, other) in pairwise(
        sorted(spans, key=lambda span: span[:2])
    ):
        if started < completed:
            return previous, other
    return None


def _other(sign: str) -> UnsupportedTableFeature:
    msg = f"{PROVIDER}: the table's writers use an unknown lock: {sign}"
    return UnsupportedTableFeature(msg, hint=_HINT)
