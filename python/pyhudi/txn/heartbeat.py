"""Heartbeats: a file for each active write, which its writer rewrites periodically.

Before a writer rolls a pending write back, it checks the write's heartbeat. A heartbeat expires two
minutes after it was last written, as in Hudi, whose own files are empty (`HoodieHeartbeatClient`,
`HeartbeatUtils`, 1.2.0)::

    .hoodie/.heartbeat/<instant>

pyhudi's files contain the process, so other writers on the same machine detect its crash
immediately. If several processes share a write, its heartbeat has no owner, and each of them renews
it while it is running.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pyhudi.clock import Clock
from pyhudi.config.timeline_layout import HEARTBEAT_FOLDER
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.storage.options import is_remote
from pyhudi.storage.storage import Entry, Storage
from pyhudi.txn import process_liveness
from pyhudi.txn.renewal import Renewal
from pyhudi.txn.storage_time import storage_now_ms

EXPIRES_MS = 120_000
"""Age at which a heartbeat is expired: Hudi's default of two misses
(`hoodie.client.heartbeat.tolerable.misses`) of a minute (`….interval_in_ms`). pyhudi supports
neither option (`config/unknown_options.py`), since all writers must use the same values."""

UNSEEN_MS = 3_600_000
"""An action without a heartbeat counts as failed after it has written nothing for this long.

Hudi has no heartbeat for restores, and up to 1.0.2 none for compactions and clusterings. 1.2.0 has
one for a clustering only with `hoodie.clustering.enable.expirations`, and for a compaction only
with several writers."""

_INTERVAL_MS = 30_000
_LATE_MS = 90_000
"""A writer without a beat for this long must not publish, since its heartbeat expires soon."""
_ALWAYS_LATE_MS = -(10**12)
"""`late_ms` in the heartbeat of a writer that revokes its own publication."""
_ROUNDED_MS = 2_000
"""Modification times on object stores have whole seconds."""
_COPIED_MS = 900_000
"""A file whose time differs this much from its content is a copy, not a wrong clock."""


def path_of(instant: str) -> str:
    """Return the path of an instant's heartbeat file, relative to the table."""
    return f"{HEARTBEAT_FOLDER}/{instant}"


def live_instants(
    storage: Storage, instants: Collection[str], clock: Clock, *, only_reads: bool = False
) -> list[str]:
    """Return the pending instants with active writers, sorted.

    only_reads: do not determine an object store's time, which would write a file.
    """
    beating = files_of(storage, instants)
    now = clock.now_ms() if only_reads else _now_ms(storage, beating, clock)
    return sorted(file.name for file in beating if _is_alive(storage, file, now))


def live_hudi_instants(storage: Storage, instants: Collection[str], clock: Clock) -> list[str]:
    """Return the pending instants of active Apache Hudi writers, whose files are empty, sorted."""
    beating = [file for file in files_of(storage, instants) if not file.size]
    now = _now_ms(storage, beating, clock)
    return sorted(file.name for file in beating if now - file.modified_ms < EXPIRES_MS)


def may_be_running_without_heartbeat(
    storage: Storage, instant: str, started: Entry | None, written: Iterable[Entry], clock: Clock
) -> bool:
    """Return whether a writer without a heartbeat may be executing an instant.

    started: the instant's timeline file; None if it was just deleted. written: other files of the
    execution, which are listed only if there is no heartbeat.
    """
    if started is None:
        return True
    # A heartbeat that expired before belongs to an earlier attempt.
    if any(
        started.modified_ms - beat.modified_ms < EXPIRES_MS for beat in files_of(storage, [instant])
    ):
        return False
    files = [started, *written]
    now = _now_ms(storage, files, clock)
    return any(now - file.modified_ms < UNSEEN_MS for file in files)


def of_pyhudi(storage: Storage, instants: Collection[str]) -> set[str]:
    """Return the pending instants of pyhudi writers, active or failed."""
    return {file.name for file in files_of(storage, instants) if file.size}


def files_of(storage: Storage, instants: Collection[str]) -> list[Entry]:
    """Return the heartbeat files of these instants. Lists nothing without instants."""
    files = storage.list_dir(HEARTBEAT_FOLDER)[1] if instants else ()
    return [file for file in files if file.name in instants]


def late_ms_of(content: bytes, file: Entry) -> int | None:
    """Return how long after this heartbeat its writer may publish; None for Hudi's or a copy."""
    fields = process_liveness.parse_json_object(content)
    late_ms, at_ms = fields.get("late_ms"), fields.get("at_ms")
    if not isinstance(late_ms, int) or not isinstance(at_ms, int):
        return None
    return late_ms if abs(file.modified_ms - at_ms) < _COPIED_MS else None


def _name_in(content: bytes | None) -> Any:
    return process_liveness.parse_json_object(content or b"").get("name")


def _now_ms(storage: Storage, beating: Collection[Entry], clock: Clock) -> int:
    """Return the time by the clock that sets the files' modification times.

    An object store's clock may differ from this machine's. It is read if a heartbeat has expired by
    this machine's clock.
    """
    now = clock.now_ms()
    is_late = any(now - file.modified_ms >= EXPIRES_MS for file in beating)
    if not is_late or not is_remote(storage.uri):
        return now
    return storage_now_ms(storage, clock)


def _is_alive(storage: Storage, file: Entry, now_ms: int) -> bool:
    if now_ms - file.modified_ms >= EXPIRES_MS:
        return False
    content = storage.read_or_none(file.path)
    # A heartbeat that was just deleted was active; the caller checks its write again.
    return content is None or not process_liveness.is_from_dead_process(content)


class Heartbeat:
    """The heartbeat of one write; a thread renews it from `start` to `stop` or `stop_beating`.

    The thread ends with the object, so an abandoned write does not stay active forever. After a
    failed beat a later one may succeed; otherwise the heartbeat becomes late.
    """

    def __init__(
        self,
        storage: Storage,
        instant: str,
        clock: Clock,
        *,
        owned: bool = True,
        lock_lease_ms: int | None = None,
    ) -> None:
        """owned: whether the write ends with this process.

        lock_lease_ms: how long a stalled writer keeps the table's lock; None: for ever.
        """
        self._storage = storage
        self._path = path_of(instant)
        self._clock = clock
        self._name = clock.uuid()
        self._owned = owned
        late_ms = _LATE_MS
        if lock_lease_ms is not None:
            late_ms = min(max(lock_lease_ms - _ROUNDED_MS, lock_lease_ms // 2), _LATE_MS)
        self._fields: dict[str, Any] = {}
        if owned:
            process = process_liveness.parse_json_object(process_liveness.owner(self._name))
            self._fields = {"name": self._name, **process, "late_ms": late_ms}
        self.every_ms = min(_INTERVAL_MS, max(late_ms // 3, 1))
        """The interval of beats."""
        # This writer's limit is earlier than that of others, which may see whole seconds only.
        self._publishes_ms = late_ms - min(_ROUNDED_MS // 2, late_ms // 4)
        self.late_ms = late_ms
        """Every writer regards a publication this long after a beat as too late."""
        self._late_ms = _LATE_MS
        self._last: tuple[int, int] | None = None
        """The last beat, in the time of day and in the clock's ticks."""
        self._lost = False
        self._renewal = Renewal(self.beat, self.every_ms, "pyhudi-heartbeat")
        self._lock = threading.Lock()

    def start(self) -> None:
        """Beat once and start the thread for further beats. Raises the storage's errors."""
        process_liveness.active_owners.add(self._name)
        self.beat()
        self._renew()

    def start_new(self) -> None:
        """Create the file and start the thread, unless another writer has a heartbeat of this time.

        The clock of this writer may lag behind. Raises the storage's errors.
        """
        process_liveness.active_owners.add(self._name)
        with self._lock:
            self._write(self._storage.put_if_absent)
        if self.has_started:
            self._renew()
        else:
            self.stop_beating()

    def _renew(self) -> None:
        self._renewal.start()

    @property
    def has_started(self) -> bool:
        """Whether this writer has written the file."""
        return self._last is not None

    def join(self) -> None:
        """Renew the heartbeat of another process, as `start`, unless its write has ended."""
        if self._is_published():
            self._lost = True
            return
        self.start()

    def beat(self) -> None:
        """Rewrite the file, unless the heartbeat has ended or has expired."""
        with self._lock:
            if self._renewal.is_ended or self.is_late:
                self._lost = True
                return
            if not self._owned and self._last is not None and self._is_published():
                self._lost = True
                return
            self._write(self._storage.put)

    def _write(self, put: Callable[[str, bytes], bool | None]) -> None:
        """Write the file. put: returns False if it has not written it."""
        now, ticks = self._clock.now_ms(), self._clock.ticks_ms()
        fields = {**self._fields, "at_ms": now} if self._owned else {}
        if put(self._path, json.dumps(fields).encode()) is not False:
            self._last = (now, ticks)

    def _is_published(self) -> bool:
        """Return whether another process publishes, or has published, the shared write."""
        content = self._storage.read_or_none(self._path)
        return content is None or _name_in(content) is not None

    @property
    def is_late(self) -> bool:
        """Whether other writers may regard this writer as failed. Once true, it stays true."""
        if self._lost:
            return True
        return self._since_ms() > self._late_ms

    def _since_ms(self) -> int:
        """Return the time since the last beat, by the clock that shows more.

        The time of day may be set back; the ticks may stop while the machine sleeps.
        """
        if self._last is None:
            return 0
        now, ticks = self._last
        return max(self._clock.now_ms() - now, self._clock.ticks_ms() - ticks)

    def begin_publication(self) -> None:
        """Shorten this writer's limit within the critical section that publishes.

        Otherwise beats after a stall would hide it from other writers (`zombie_commits.py`).
        """
        if self._since_ms() > self.every_ms:
            self.beat()
        self._late_ms = self._publishes_ms

    @contextmanager
    def between_beats(self) -> Iterator[None]:
        """A block in which no beat is written."""
        with self._lock:
            yield

    @property
    def is_taken_over(self) -> bool:
        """Whether another process continues the work that this one started."""
        content = self._storage.read_or_none(self._path)
        return content is not None and _name_in(content) != self._fields.get("name")

    def mark_zombie(self) -> bool:
        """End the beats and mark the published commit as a zombie for other writers.

        Returns False if another writer has already accepted or revoked the commit. Keeps the
        heartbeat of a process that took the work over.
        """
        self.stop_beating()
        with self._lock:
            current = self._storage.read_version(self._path)
            if current is None:
                return False
            content, version = current
            if _name_in(content) != self._fields.get("name"):
                return True
            fields = {**self._fields, "at_ms": self._clock.now_ms(), "late_ms": _ALWAYS_LATE_MS}
            data = json.dumps(fields).encode()
            try:
                return self._storage.replace_version(self._path, data, version) is not None
            except UnsupportedTableFeature:
                self._storage.put(self._path, data)
                return True

    def stop_beating(self) -> None:
        """End the beats and keep the file: the write failed, or another process took it over."""
        self._renewal.end()
        process_liveness.active_owners.discard(self._name)

    def stop(self) -> None:
        """End the beats and remove the file, unless it belongs to another writer.

        Another process may have taken a late write over. Raises the storage's errors.
        """
        self.stop_beating()
        with self._lock:
            may_be_foreign = self.is_late or not self.has_started
            if not (may_be_foreign and self.is_taken_over):
                self._storage.delete_all([self._path])

    def __del__(self) -> None:
        """End the thread."""
        self.stop_beating()


@contextmanager
def beating(storage: Storage, instant: str, clock: Clock) -> Iterator[None]:
    """Keep a heartbeat during the block. After a failure the file stays, as after a crash."""
    beat = Heartbeat(storage, instant, clock)
    beat.start()
    try:
        yield
    except BaseException:
        beat.stop_beating()
        raise
    beat.stop()
