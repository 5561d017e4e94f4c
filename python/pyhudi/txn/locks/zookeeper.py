"""Hudi's ZooKeeper lock, by the protocol of Curator's `InterProcessMutex` (4.3).

Each waiting writer creates an ephemeral sequential node, `_c_<uuid>-lock-<sequence>`, below the
lock's path. The writer with the lowest sequence holds the lock; every other writer watches the node
before its own. When a session ends, its nodes are removed and the lock is lost.
Sources: `ZookeeperBasedLockProvider`, `ZookeeperBasedImplicitBasePathLockProvider` (Hudi 1.2.0).
"""

from __future__ import annotations

import threading
from typing import Any

from pyhudi.clock import Clock
from pyhudi.errors import StorageError, retryable_conflict
from pyhudi.txn.locks.optional_imports import extra

_MARK = "lock-"
_LONGEST_SESSION_MS = 40_000
"""The servers' default limit."""


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
        self._min_lease_ms = min(session_ms, _LONGEST_SESSION_MS) * 2 // 3
        self._connection_s = connection_ms / 1000
        self._prefix = ""
        self._client: Any = None
        self._node = ""
        self._lost = threading.Event()

    def acquire(self, timeout_ms: int) -> bool:
        """Acquire the lock. Raises `StorageError` if no server responds."""
        kazoo = extra("kazoo.client", "zookeeper")
        deadline_ms = self._clock.ticks_ms() + timeout_ms
        self._prefix = f"_c_{self._clock.uuid()}-{_MARK}"
        self._lost.clear()
        self._client = kazoo.KazooClient(self._hosts, timeout=self._session_s)
        self._client.add_listener(self._on_state)
        is_acquired = False
        try:
            self._client.start(timeout=self._connection_s)
            self._wait_for(self._client.ensure_path_async(self._path))
            self._node = self._create_node()
            is_acquired = self._wait(deadline_ms)
        except Exception as error:
            msg = f"ZooKeeper at {self._hosts}: {type(error).__name__} {error}"
            raise StorageError(msg) from error
        finally:
            # The node of an interrupted writer would block all later ones.
            if not is_acquired:
                self._close()
        return is_acquired

    def _create_node(self) -> str:
        """Create this writer's node; after a lost response, find it by its prefix."""
        path = f"{self._path}/{self._prefix}"
        options = {"ephemeral": True, "sequence": True}
        try:
            node = self._wait_for(self._client.create_async(path, b"pyhudi", **options))
        except extra("kazoo.exceptions", "zookeeper").ConnectionLoss:
            names = self._wait_for(self._client.get_children_async(self._path))
            own_nodes = [name for name in names if name.startswith(self._prefix)]
            if own_nodes:
                return str(own_nodes[0])
            node = self._wait_for(self._client.create_async(path, b"pyhudi", **options))
        return str(node).rsplit("/", 1)[-1]

    def _wait_for(self, request: Any) -> Any:
        """Return the servers' response to a request, within the timeout."""
        return request.get(timeout=self._connection_s)

    def _wait(self, deadline_ms: int) -> bool:
        client = self._client
        no_node_error = extra("kazoo.exceptions", "zookeeper").NoNodeError
        while not self._lost.is_set():
            nodes = self._wait_for(client.get_children_async(self._path))
            waiting = sorted(nodes, key=_sequence)
            if self._node not in waiting:
                return False
            position = waiting.index(self._node)
            if position == 0:
                return True
            changed = threading.Event()
            try:
                previous_node = f"{self._path}/{waiting[position - 1]}"
                request = client.get_async(previous_node, watch=lambda _, done=changed: done.set())
                self._wait_for(request)
            except no_node_error:
                continue
            remaining_ms = deadline_ms - self._clock.ticks_ms()
            if remaining_ms <= 0 or not changed.wait(remaining_ms / 1000):
                return False
        return False

    def _on_state(self, state: Any) -> None:
        # Suspended counts as lost: the servers may have ended the session already.
        if str(state) != "CONNECTED":
            self._lost.set()

    @property
    def min_lease_ms(self) -> int | None:
        """The client sends a heartbeat in each third of the session."""
        return self._min_lease_ms

    def check(self, within_ms: int = 0) -> None:  # noqa: ARG002
        """Raise `CommitConflict` if the session was interrupted.

        It asks the servers, since a stalled writer's listener may not be notified yet.
        """
        cause = ""
        if self._client is not None and not self._lost.is_set():
            try:
                node = self._wait_for(self._client.exists_async(f"{self._path}/{self._node}"))
            except Exception as error:  # noqa: BLE001 - any failure leaves it unknown
                cause = f": {type(error).__name__} {error}"
            else:
                if node is not None and not self._lost.is_set():
                    return
        msg = f"the session of the table's lock {self._path} in ZooKeeper was lost{cause}"
        raise retryable_conflict(msg)

    def release(self) -> None:
        """Delete this writer's node and end the session."""
        self._close()

    def _close(self) -> None:
        client, self._client = self._client, None
        if client is None:
            return
        client.remove_listener(self._on_state)
        try:
            if self._node and client.connected:
                self._wait_for(client.delete_async(f"{self._path}/{self._node}"))
        except Exception:  # noqa: BLE001, S110 - the end of the session removes the node
            pass
        finally:
            client.stop()
            client.close()
            self._node = ""

    def holder(self) -> str:
        """Return the path of the lock."""
        return f"a holder of {self._path} in ZooKeeper at {self._hosts}"

    def read_holder(self) -> str | None:
        """Return the node with the lowest sequence and its session, None without a node."""
        errors = extra("kazoo.exceptions", "zookeeper")
        client = extra("kazoo.client", "zookeeper").KazooClient(
            self._hosts, timeout=self._session_s
        )
        try:
            client.start(timeout=self._connection_s)
            nodes = self._wait_for(client.get_children_async(self._path))
            for node in sorted(nodes, key=_sequence):
                stat = self._wait_for(client.exists_async(f"{self._path}/{node}"))
                if stat is not None:
                    session = f"session 0x{stat.ephemeralOwner:x}"
                    return f"{ascii(node)[1:-1]} ({session})"
        except errors.NoNodeError:
            return None
        except Exception as error:
            msg = f"ZooKeeper at {self._hosts}: {type(error).__name__} {error}"
            raise StorageError(msg) from error
        finally:
            client.stop()
            client.close()
        return None


def _sequence(node: str) -> str:
    """Return the sequence in a node's name, which begins otherwise for other clients."""
    return node.rsplit(_MARK, 1)[-1]
