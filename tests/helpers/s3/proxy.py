"""A way to an S3 server on which each request takes a while, and is counted."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from multiprocessing import get_context
from typing import Any

_REQUEST = re.compile(rb"^(GET|PUT|POST|HEAD|DELETE) (\S+) HTTP")
_NEVER = 1 << 62
_KINDS = ("read", "head", "list", "write", "delete")
_SPAWN = get_context("spawn")
_SLOW_DOWN = (
    b"<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>"
)
_REFUSAL = b"HTTP/1.1 503 Slow Down\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (
    len(_SLOW_DOWN),
    _SLOW_DOWN,
)


class Proxy:
    """Passes on requests after the delay, and answers at once.

    A process of its own, so that it takes no time of who asks. `close` ends it.
    """

    def __init__(self, port: int) -> None:
        """port: the server's, on this machine."""
        self._delay = _SPAWN.Value("d", 0.0)
        self._counts = _SPAWN.Array("q", 2 + len(_KINDS))
        self._outage = _SPAWN.Array("q", [_NEVER, 0])
        ours, theirs = _SPAWN.Pipe()
        self._process = _SPAWN.Process(
            target=_serve, args=(port, theirs, self._delay, self._counts, self._outage), daemon=True
        )
        self._process.start()
        self.port: int = ours.recv()

    def set_delay(self, seconds: float) -> None:
        """Has each request from now on wait so long; sets the counters to nothing."""
        self._delay.value = seconds
        self._counts[:] = [0] * len(self._counts)

    def refuse_after(self, requests: int) -> None:
        """Has all requests after so many be answered with 503, until `serve_again`."""
        self._outage[:] = [requests, 0]

    def serve_again(self) -> int:
        """Ends the outage; gives how many requests were refused."""
        self._outage[0] = _NEVER
        return int(self._outage[1])

    @property
    def requests(self) -> int:
        """How many came."""
        return int(self._counts[0])

    @property
    def rounds(self) -> int:
        """How many came after a time without any under way: calls that wait for one another."""
        return int(self._counts[1])

    @property
    def by_kind(self) -> dict[str, int]:
        """How many came of each kind, by the names of pyhudi's counters."""
        return dict(zip(_KINDS, self._counts[2:], strict=True))

    def close(self) -> None:
        """Ends the process."""
        self._process.terminate()
        self._process.join()


def _serve(port: int, said: Any, delay: Any, counts: Any, outage: Any) -> None:
    asyncio.run(_Server(port, delay, counts, outage).serve(said))


class _Refused(ConnectionError):
    """The request gets no answer of the server."""


class _Server:
    def __init__(self, port: int, delay: Any, counts: Any, outage: Any) -> None:
        self._port = port
        self._delay = delay
        self._counts = counts
        self._outage = outage
        self._under_way = 0

    async def serve(self, said: Any) -> None:
        server = await asyncio.start_server(self._meet, "127.0.0.1", 0)
        said.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    async def _meet(self, client: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        server, requests = await asyncio.open_connection("127.0.0.1", self._port)

        async def hold_back(data: bytes) -> None:
            if not _REQUEST.match(data):
                # The rest of a request's body.
                return
            if self._refuses():
                answers.write(_REFUSAL)
                await answers.drain()
                while await client.read(1 << 20):
                    pass
                raise _Refused
            await self._hold_back(data)

        await asyncio.gather(
            _pass_on(client, requests, hold_back), _pass_on(server, answers, _at_once)
        )

    def _refuses(self) -> bool:
        if self._outage[0] > 0:
            self._outage[0] -= 1
            return False
        self._outage[1] += 1
        return True

    async def _hold_back(self, data: bytes) -> None:
        request = _REQUEST.match(data)
        assert request is not None
        self._counts[0] += 1
        self._counts[2 + _KINDS.index(_kind(*request.groups()))] += 1
        self._counts[1] += not self._under_way
        self._under_way += 1
        try:
            await asyncio.sleep(self._delay.value)
        finally:
            self._under_way -= 1


def _kind(method: bytes, target: bytes) -> str:
    if method == b"GET":
        return "list" if b"list-type=" in target else "read"
    if method == b"POST":
        return "delete" if target.endswith(b"?delete") else "write"
    return {b"HEAD": "head", b"PUT": "write", b"DELETE": "delete"}[method]


async def _at_once(data: bytes) -> None:
    """Holds nothing back."""


async def _pass_on(
    given: asyncio.StreamReader,
    to: asyncio.StreamWriter,
    before: Callable[[bytes], Awaitable[None]],
) -> None:
    try:
        while data := await given.read(1 << 20):
            await before(data)
            to.write(data)
            await to.drain()
    except ConnectionError:
        pass
    finally:
        to.close()
