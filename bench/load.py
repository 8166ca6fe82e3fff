"""``python -m bench.load [ADDRESS]``: an application that answers at once. And clients, which ask on when answered."""

from __future__ import annotations

import asyncio
import sys
import time
from typing import cast

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


class Application(asyncio.Protocol):
    """Answers every request, which has no body and comes in one piece."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer."""
        if data.endswith(b"\r\n\r\n"):
            self._transport.write(ANSWER)


class Client(asyncio.Protocol):
    """One connection, on which one request follows the other."""

    def __init__(self, requests: list[bytes]) -> None:
        """Prepare; the requests are taken from the end of the list, which others may share."""
        self._requests = requests
        self._sent = 0.0
        self._come = b""
        self.seconds: list[float] = []
        """what each took"""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """done once there are no more requests"""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first."""
        self._transport = cast("asyncio.Transport", transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        """Note how long an answer took, and go on; it may come in pieces."""
        self._come += data
        if not self._come.endswith(b"\r\n\r\nok"):
            return
        if self._come.startswith(b"HTTP/1.1 200"):
            self.seconds.append(time.perf_counter() - self._sent)
            self._next()
        else:
            self.done.set_exception(ConnectionError(f"answered {self._come[:40]!r}"))

    def connection_lost(self, error: Exception | None) -> None:
        """Tell if it was too early."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the connection ended"))

    def _next(self) -> None:
        if not self._requests:
            self.done.set_result(None)
            self._transport.close()
            return
        self._come = b""
        self._sent = time.perf_counter()
        self._transport.write(self._requests.pop())


async def load(port: int, requests: list[bytes], connections: int) -> tuple[list[float], float]:
    """Send requests over so many connections: what each took in seconds, in order, and what all took."""
    loop, left = asyncio.get_running_loop(), list(reversed(requests))
    begun = time.perf_counter()
    made = [await loop.create_connection(lambda: Client(left), "127.0.0.1", port) for _ in range(connections)]
    await asyncio.gather(*(client.done for _, client in made))
    return sorted(second for _, client in made for second in client.seconds), time.perf_counter() - begun


async def serve() -> None:
    """Run the application; its port is told on standard output."""
    address = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1"
    server = await asyncio.get_running_loop().create_server(Application, address, 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
