"""An application that answers at once, and clients that ask again as soon as they are answered."""

from __future__ import annotations

import asyncio
import time
from typing import cast

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"


class Application(asyncio.Protocol):
    """Answers every request, which has no body."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer; a request comes in one piece here."""
        if data.endswith(b"\r\n\r\n"):
            self._transport.write(ANSWER)


class Client(asyncio.Protocol):
    """One connection, on which one request follows the other."""

    def __init__(self, requests: list[bytes]) -> None:
        """Prepare; the requests are taken from the end of the list, which others may share."""
        self._requests = requests
        self._sent = 0.0
        self.seconds: list[float] = []
        """what each request took"""
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """done once there are no more requests"""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first."""
        self._transport = cast("asyncio.Transport", transport)
        self._next()

    def data_received(self, data: bytes) -> None:
        """Note the time of an answer and send the next request."""
        if data.endswith(b"\r\n\r\nok"):
            self.seconds.append(time.perf_counter() - self._sent)
            self._next()

    def connection_lost(self, error: Exception | None) -> None:
        """End."""
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the connection ended"))

    def _next(self) -> None:
        if not self._requests:
            if not self.done.done():
                self.done.set_result(None)
            self._transport.close()
            return
        self._sent = time.perf_counter()
        self._transport.write(self._requests.pop())


async def load(port: int, requests: list[bytes], connections: int) -> tuple[list[float], float]:
    """Send requests over so many connections: seconds that each took, in order, and those that all took."""
    loop, left = asyncio.get_running_loop(), list(reversed(requests))
    begun = time.perf_counter()
    made = [await loop.create_connection(lambda: Client(left), "127.0.0.1", port) for _ in range(connections)]
    await asyncio.gather(*(client.done for _, client in made))
    return sorted(second for _, client in made for second in client.seconds), time.perf_counter() - begun


async def serve() -> None:
    """Run the application; its port is told on standard output."""
    server = await asyncio.get_running_loop().create_server(Application, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
