"""Signs on storage that a table's other writers use another lock than this one.

No property of a table says what its writers lock with. What can be seen are lock files, heartbeats
of living writers, and commits that ran beside each other. Where a user has named the lock these
mean nothing new; where not, to write would be to guess.
"""

from __future__ import annotations

from itertools import pairwise

from pyhudi.clock import Clock, Zone, parse_instant
from pyhudi.config.actions import COMMIT, DELTA_COMMIT
from pyhudi.config.concurrency_mode import ConcurrencyMode
from pyhudi.config.lock_options import PROVIDER, LockOptions
from pyhudi.config.table_config import TableConfig
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.storage.storage import Storage
from pyhudi.timeline import Timeline
from pyhudi.txn import heartbeat
from pyhudi.txn.locks.storage_lock import PATH

_LOCK_FILES = (".hoodie/lock", ".hoodie/.aux/lock")
"""Of `FileSystemBasedLockProvider`: by default, and as Flink and Hudi's tools have it."""
_HINT = (
    f"Give open_table the lock's options, such as {PROVIDER}. Where no other writer is left, "
    "remove the lock file, or name StorageBasedLockProvider."
)
_LONGEST_WRITE_MS = 24 * 3_600_000
_OF_LATE_MS = 7 * 24 * 3_600_000


def check_no_other_lock(
    storage: Storage, config: TableConfig, timeline: Timeline, options: LockOptions, clock: Clock
) -> None:
    """Raises `UnsupportedTableFeature` where others write under a lock that no option names.

    A lock file that a dead writer has left counts; its name is in the message.
    """
    if options.is_given or options.mode is ConcurrencyMode.SINGLE_WRITER:
        return
    for path in _LOCK_FILES:
        if storage.exists(path):
            raise _other(f"the lock file {path} is there")
    pending = {instant.requested for instant in timeline.pending()}
    for instant in heartbeat.live_of_hudi(storage, pending, clock):
        raise _other(f"a writer of Apache Hudi is at work on instant {instant}")
    if timeline.completes_in_names and not storage.exists(PATH):
        _check_one_by_one(timeline, config.timezone, clock)


def _check_one_by_one(timeline: Timeline, zone: Zone, clock: Clock) -> None:
    """Looks at writes of late; nobody has had the storage lock yet.

    Services run beside writes anyway, so an action that may be a service's does not count. Nor does
    a time of completion that a copy of the table has made up.
    """
    action = DELTA_COMMIT if timeline.completed(DELTA_COMMIT) else COMMIT
    now = clock.now_ms()
    spans = []
    for instant in timeline.completed(action):
        begun, done = (
            parse_instant(instant.requested, zone),
            parse_instant(instant.completed or "", zone),
        )
        if done - begun < _LONGEST_WRITE_MS and now - done < _OF_LATE_MS:
            spans.append((begun, done, instant))
    for (_, done, one), (begun, _, other) in pairwise(sorted(spans, key=lambda span: span[:2])):
        if begun < done:
            raise _other(f"{one} and {other} were at work at the same time")


def _other(sign: str) -> UnsupportedTableFeature:
    msg = f"{PROVIDER}: the table's writers use a lock that no option names: {sign}"
    return UnsupportedTableFeature(msg, hint=_HINT)
