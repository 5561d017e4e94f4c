"""A proxy that has TLS on one side: servers without TLS are behind it."""

from __future__ import annotations

import asyncio
import ssl
import threading


class TlsProxy:
    """The proxy's thread. `close` ends it."""

    def __init__(self, context: ssl.SSLContext, port: int) -> None:
        """context: of a server. port: of the server on this machine that is behind the proxy."""
        self._behind = port
        self._loop = asyncio.new_event_loop()
        self._connections: list[asyncio.Task[None]] = []
        self._server = self._loop.run_until_complete(
            asyncio.start_server(self._connect, "127.0.0.1", ssl=context)
        )
        self.port: int = self._server.sockets[0].getsockname()[1]
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._behind)
        for source, target in ((reader, to_server), (from_server, writer)):
            self._connections.append(self._loop.create_task(_copy(source, target)))

    def close(self) -> None:
        """End the thread, after the connections."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _stop(self) -> None:
        self._server.close()
        await asyncio.gather(*self._connections)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
