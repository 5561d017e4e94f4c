"""Heartbeats: the file of a write under way, written again and again while its writer lives.

Whoever finds a pending write looks here before taking it back. A file is alive for two minutes
after it was last written, as for Hudi, whose own files are empty (`HoodieHeartbeatClient`,
`HeartbeatUtils`, 1.2.0)::

    .hoodie/.heartbeat/<instant>

pyhudi's files say which process beats, so that a writer of this machine that has died is known to
be dead at once. A write that many processes carry on has a heartbeat without an owner, which each
of them keeps alive while it works.
"""

from __future__ import annotations

import json
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyhudi.clock import Clock
from pyhudi.errors import UnsupportedTableFeature
from pyhudi.storage.options import is_remote
from pyhudi.storage.storage import Entry, Storage
from pyhudi.storage.threads import start
from pyhudi.txn import process_liveness

HEARTBEAT_FOLDER = ".hoodie/.heartbeat"
EXPIRES_MS = 120_000
"""A heartbeat this old is dead, as by default for Hudi: it tolerates two misses
(`hoodie.client.heartbeat.tolerable.misses`) of a minute (`….interval_in_ms`). Both are refused as
options (`config/unknown_options.py`), since all writers must go by the same."""

UNSEEN_MS = 3_600_000
"""What is at work without a heartbeat counts as dead once it has written nothing for so long.

Hudi shows none for restores, and up to 1.0.2 none for compactions and clusterings; 1.2.0 shows that
of a clustering only with `hoodie.clustering.enable.expirations`, and that of a compaction only
where there are several writers."""

_INTERVAL_MS = 30_000
_LATE_MS = 90_000
"""A writer that did not beat for so long must not publish: soon it counts as dead."""
_ALWAYS_LATE_MS = -(10**12)
"""What a heartbeat says whose writer takes its publication back."""
_ROUNDED_MS = 2_000
"""Times of files in buckets are whole seconds."""
_COPIED_MS = 900_000
"""A file is a copy whose time is so far from what it says itself: no clock of a writer is."""


def path_of(instant: str) -> str:
    """The heartbeat file of an instant, relative to the table."""
    return f"{HEARTBEAT_FOLDER}/{instant}"


def live_instants(
    storage: Storage, instants: Collection[str], clock: Clock, *, only_reads: bool = False
) -> list[str]:
    """Those of pending instants whose writers are alive, sorted. Lists nothing for no instants.

    only_reads: a bucket is not asked for its time, which takes a file.
    """
    beating = files_of(storage, instants)
    now = clock.now_ms() if only_reads else _now_ms(storage, beating, clock)
    return sorted(file.name for file in beating if _is_alive(storage, file, now))


def live_hudi_instants(storage: Storage, instants: Collection[str], clock: Clock) -> list[str]:
    """Those of pending instants that living writers of Apache Hudi are at work on, sorted.

    Their files are empty.
    """
    beating = [file for file in files_of(storage, instants) if not file.size]
    now = _now_ms(storage, beating, clock)
    return sorted(file.name for file in beating if now - file.modified_ms < EXPIRES_MS)


def may_be_running_without_heartbeat(
    storage: Storage, instant: str, begun: Entry | None, written: Iterable[Entry], clock: Clock
) -> bool:
    """Whether somebody who shows no heartbeat may be at work on an instant.

    begun: the timeline's file that tells of it; None where it has just gone. written: what else
    there is of the work, asked for only where no heartbeat tells.
    """
    if begun is None:
        return True
    # A heartbeat that was dead by then is of an attempt before.
    if any(
        begun.modified_ms - beat.modified_ms < EXPIRES_MS for beat in files_of(storage, [instant])
    ):
        return False
    files = [begun, *written]
    now = _now_ms(storage, files, clock)
    return any(now - file.modified_ms < UNSEEN_MS for file in files)


def of_pyhudi(storage: Storage, instants: Collection[str]) -> set[str]:
    """Those of pending instants that pyhudi's writers have begun, alive or dead."""
    return {file.name for file in files_of(storage, instants) if file.size}


def files_of(storage: Storage, instants: Collection[str]) -> list[Entry]:
    """The heartbeats that there are of some instants. Lists nothing for no instants."""
    files = storage.list_dir(HEARTBEAT_FOLDER)[1] if instants else ()
    return [file for file in files if file.name in instants]


def late_ms_of(content: bytes, file: Entry) -> int | None:
    """How long after it a publication of its writer is too late.

    None where that cannot be told: of Hudi's, and where the file was copied.
    """
    said = process_liveness.said_in(content)
    late_ms, at_ms = said.get("late_ms"), said.get("at_ms")
    if not isinstance(late_ms, int) or not isinstance(at_ms, int):
        return None
    return late_ms if abs(file.modified_ms - at_ms) < _COPIED_MS else None


def _name_in(content: bytes | None) -> Any:
    return process_liveness.said_in(content or b"").get("name")


def _now_ms(storage: Storage, beating: Collection[Entry], clock: Clock) -> int:
    """The time by the clock that dates the files.

    A bucket's may differ from this machine's; it is asked where by this one somebody is dead.
    """
    now = clock.now_ms()
    late = any(now - file.modified_ms >= EXPIRES_MS for file in beating)
    if not late or not is_remote(storage.uri):
        return now
    probe = f"{HEARTBEAT_FOLDER}/probe-{clock.uuid()}"
    storage.put(probe, b"")
    written = storage.head(probe)
    storage.delete(probe)
    return now if written is None else written.modified_ms


def _is_alive(storage: Storage, file: Entry, now_ms: int) -> bool:
    if now_ms - file.modified_ms >= EXPIRES_MS:
        return False
    content = storage.read_or_none(file.path)
    # One that has just gone was alive; what its write left has to be looked at again.
    return content is None or not process_liveness.is_dead_here(content)


class Heartbeat:
    """The heartbeat of one write, kept alive by a thread from `start` to `stop` or `rest`.

    The thread ends with the object, so that a write that nobody ends does not stay alive for ever.
    """

    def __init__(
        self,
        storage: Storage,
        instant: str,
        clock: Clock,
        *,
        owned: bool = True,
        lock_lasts_ms: int | None = None,
    ) -> None:
        """owned: the write lives and dies with this process.

        lock_lasts_ms: how long the table's lock stays that of a writer who stands still; None: for
        ever.
        """
        self._storage = storage
        self._path = path_of(instant)
        self._clock = clock
        self._name = clock.uuid()
        self._owned = owned
        late_ms = _LATE_MS
        if lock_lasts_ms is not None:
            late_ms = min(max(lock_lasts_ms - _ROUNDED_MS, lock_lasts_ms // 2), _LATE_MS)
        self._said: dict[str, Any] = {}
        if owned:
            process = process_liveness.said_in(process_liveness.owner(self._name))
            self._said = {"name": self._name, **process, "late_ms": late_ms}
        self.every_ms = min(_INTERVAL_MS, max(late_ms // 3, 1))
        """How often it beats."""
        # Sooner for itself than for others, whose times are of whole seconds.
        self._publishes_ms = late_ms - min(_ROUNDED_MS // 2, late_ms // 4)
        self.late_ms = late_ms
        """A publication so long after a beat is late to everybody."""
        self._late_ms = _LATE_MS
        self._last: tuple[int, int] | None = None
        """Of the last beat, by the time of day and by the clock's ticks."""
        self._lost = False
        self._ended = threading.Event()
        self._lock = threading.Lock()

    def start(self) -> None:
        """The first beat, and a thread for those that follow. Raises what the storage raises."""
        process_liveness.at_work.add(self._name)
        self.beat()
        start(
            threading.Thread(
                target=_keep_beating,
                args=(weakref.ref(self), self._ended, self.every_ms / 1000),
                name="pyhudi-heartbeat",
                daemon=True,
            )
        )

    def beat(self) -> None:
        """Writes the file anew, unless the heartbeat has ended or counts as dead already."""
        with self._lock:
            if self._ended.is_set() or self.is_late:
                self._lost = True
                return
            if not self._owned and self._last is not None and self._is_over():
                self._lost = True
                return
            now, ticks = self._clock.now_ms(), self._clock.ticks_ms()
            said = {**self._said, "at_ms": now} if self._owned else {}
            self._storage.put(self._path, json.dumps(said).encode())
            self._last = (now, ticks)

    def _is_over(self) -> bool:
        """Whether somebody publishes, or has, what this process has written a part of."""
        there = self._storage.read_or_none(self._path)
        return there is None or _name_in(there) is not None

    @property
    def is_late(self) -> bool:
        """Whether others may take the writer for dead, or soon will. That does not end any more."""
        if self._lost:
            return True
        return self._since_ms() > self._late_ms

    def _since_ms(self) -> int:
        """Since the last beat: the time of day may be set back, the ticks may miss a sleep."""
        if self._last is None:
            return 0
        now, ticks = self._last
        return max(self._clock.now_ms() - now, self._clock.ticks_ms() - ticks)

    def begin_publication(self) -> None:
        """Within the section in which the write is published: from now on it is late sooner.

        Beats that come after a stand would tell others that there was none (`zombie_commits.py`).
        """
        if self._since_ms() > self.every_ms:
            self.beat()
        self._late_ms = self._publishes_ms

    @contextmanager
    def between_beats(self) -> Iterator[None]:
        """A block in which no beat is on its way."""
        with self._lock:
            yield

    @property
    def is_taken_over(self) -> bool:
        """Whether another process goes on with what this one has begun."""
        there = self._storage.read_or_none(self._path)
        return there is not None and _name_in(there) != self._said.get("name")

    def mark_zombie(self) -> bool:
        """Has everybody find that what was published came late, and ends beating.

        False where others have found before that it counts, or have taken it back. That of another
        process stays, which goes on with what this one has begun.
        """
        self.stop_beating()
        with self._lock:
            there = self._storage.read_version(self._path)
            if there is None:
                return False
            content, version = there
            if _name_in(content) != self._said.get("name"):
                return True
            said = {**self._said, "at_ms": self._clock.now_ms(), "late_ms": _ALWAYS_LATE_MS}
            data = json.dumps(said).encode()
            try:
                return self._storage.replace_version(self._path, data, version) is not None
            except UnsupportedTableFeature:
                self._storage.put(self._path, data)
                return True

    def stop_beating(self) -> None:
        """Ends beating and leaves the file: others go on with the write, or it has failed."""
        self._ended.set()
        process_liveness.at_work.discard(self._name)

    def stop(self) -> None:
        """Ends beating and removes the file. Raises what the storage raises.

        That of another process stays, which goes on with what a late one has begun.
        """
        self.stop_beating()
        with self._lock:
            if not (self.is_late and self.is_taken_over):
                self._storage.delete_all([self._path])

    def __del__(self) -> None:
        """Lets the thread end."""
        self.stop_beating()


@contextmanager
def beating(storage: Storage, instant: str, clock: Clock) -> Iterator[None]:
    """Shows a heartbeat while the block runs. Where that fails the file stays, of a dead writer."""
    beat = Heartbeat(storage, instant, clock)
    beat.start()
    try:
        yield
    except BaseException:
        beat.stop_beating()
        raise
    beat.stop()


def _keep_beating(
    heartbeat: weakref.ref[Heartbeat], ended: threading.Event, every_s: float
) -> None:
    while not ended.wait(every_s):
        alive = heartbeat()
        if alive is None:
            return
        # The next beat may work; if none does, the heartbeat is late.
        with suppress(Exception):
            alive.beat()
        del alive
