"""Hudi's ZooKeeper lock, by the protocol of Curator's `InterProcessMutex` (4.3).

Each that waits makes an ephemeral sequential node, `_c_<uuid>-lock-<sequence>`, below the lock's
path; the smallest sequence has the lock, and every other one watches the one before it. A session
that ends takes the nodes along, which the holder is told: no node, no lock.
Sources: `ZookeeperBasedLockProvider`, `ZookeeperBasedImplicitBasePathLockProvider` (Hudi 1.2.0).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pyhudi.clock import Clock
from pyhudi.errors import StorageError, retryable_conflict
from pyhudi.txn.locks.optional_imports import extra

_MARK = "lock-"
_LONGEST_SESSION_MS = 40_000
"""What servers grant, by default."""


class ZooKeeperLock:
    """The lock at one path of a ZooKeeper ensemble."""

    def __init__(
        self,
        hosts: str,
        path: str,
        *,
        session_ms: int = 60_000,
        connection_ms: int = 15_000,
        clock: Clock,
    ) -> None:
        """hosts: the connect string."""
        self._clock = clock
        self._hosts = hosts
        self._path = path
        self._session_s = session_ms / 1000
        self._lasts_ms = min(session_ms, _LONGEST_SESSION_MS) * 2 // 3
        self._connection_s = connection_ms / 1000
        self._prefix = ""
        self._client: Any = None
        self._node = ""
        self._lost = threading.Event()

    def acquire(self, timeout_ms: int) -> bool:
        """Takes the lock. Raises `StorageError` where no server answers."""
        kazoo = extra("kazoo.client", "zookeeper")
        until = self._clock.now_ms() + timeout_ms
        self._prefix = f"_c_{self._clock.uuid()}-{_MARK}"
        self._lost.clear()
        self._client = kazoo.KazooClient(self._hosts, timeout=self._session_s)
        self._client.add_listener(self._on_state)
        taken = False
        try:
            self._client.start(timeout=self._connection_s)
            self._answer(self._client.ensure_path_async(self._path))
            self._node = self._create_node()
            taken = self._wait(until)
        except Exception as error:
            msg = f"ZooKeeper at {self._hosts}: {type(error).__name__} {error}"
            raise StorageError(msg) from error
        finally:
            # A node of one that was interrupted would keep all behind it waiting.
            if not taken:
                self._close()
        return taken

    def _create_node(self) -> str:
        """The own node; one that was made and whose answer was lost is found again."""
        path = f"{self._path}/{self._prefix}"
        how = {"ephemeral": True, "sequence": True}
        try:
            made = self._answer(self._client.create_async(path, b"pyhudi", **how))
        except extra("kazoo.exceptions", "zookeeper").ConnectionLoss:
            names = self._answer(self._client.get_children_async(self._path))
            own = [name for name in names if name.startswith(self._prefix)]
            if own:
                return str(own[0])
            made = self._answer(self._client.create_async(path, b"pyhudi", **how))
        return str(made).rsplit("/", 1)[-1]

    def _answer(self, request: Any) -> Any:
        """What the servers say; without a limit a request waits until some server is back."""
        return request.get(timeout=self._connection_s)

    def _wait(self, until: int) -> bool:
        client = self._client
        gone = extra("kazoo.exceptions", "zookeeper").NoNodeError
        while not self._lost.is_set():
            waiting = sorted(self._answer(client.get_children_async(self._path)), key=_sequence)
            if self._node not in waiting:
                return False
            at = waiting.index(self._node)
            if at == 0:
                return True
            changed = threading.Event()
            try:
                before = f"{self._path}/{waiting[at - 1]}"
                self._answer(client.get_async(before, watch=_setting(changed)))
            except gone:
                continue
            left = until - self._clock.now_ms()
            if left <= 0 or not changed.wait(left / 1000):
                return False
        return False

    def _on_state(self, state: Any) -> None:
        # Suspended counts as lost: the session may have ended for the servers already.
        if str(state) != "CONNECTED":
            self._lost.set()

    @property
    def lasts_ms(self) -> int | None:
        """The client shows itself in each third of the session."""
        return self._lasts_ms

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002
        """Raises `CommitConflict` where the session was cut off at any time since.

        The servers are asked: one who stood still may come here before the listener is told.
        """
        told = ""
        if self._client is not None and not self._lost.is_set():
            try:
                there = self._answer(self._client.exists_async(f"{self._path}/{self._node}"))
            except Exception as error:  # noqa: BLE001 - whatever it is, nobody knows
                told = f": {type(error).__name__} {error}"
            else:
                if there is not None and not self._lost.is_set():
                    return
        msg = f"the session of the table's lock {self._path} in ZooKeeper was lost{told}"
        raise retryable_conflict(msg)

    def release(self) -> None:
        """Deletes the own node, by ending the session."""
        self._close()

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        client.remove_listener(self._on_state)
        try:
            if self._node and client.connected:
                self._answer(client.delete_async(f"{self._path}/{self._node}"))
        except Exception:  # noqa: BLE001, S110  the session's end takes the node along
            pass
        finally:
            client.stop()
            client.close()
            self._node = ""

    def holder(self) -> str:
        """The path of the lock."""
        return f"a holder of {self._path} in ZooKeeper at {self._hosts}"


def _setting(event: threading.Event) -> Callable[[Any], None]:
    return lambda _: event.set()


def _sequence(name: str) -> str:
    """What nodes are ordered by, whoever made them."""
    return name.rsplit(_MARK, 1)[-1]
