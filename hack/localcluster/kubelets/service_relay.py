"""Pass connections on to the API server: what kube-proxy does for the Service ``kubernetes``, without its rules.

Run as a script in a node's network namespace: ``python service_relay.py ADDRESS PORT TARGET-ADDRESS TARGET-PORT``.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys

CHUNK = 65536
"""Bytes read at a time."""


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until the end or a broken connection, then close *writer*."""
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
    writer.close()


async def serve(address: str, port: int, target: str, target_port: int) -> asyncio.Server:
    """Listen on *address*:*port* and join every connection to one to *target*:*target_port*."""

    async def join(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there, back = await asyncio.open_connection(target, target_port)
        except OSError:
            writer.transport.abort()
            return
        await asyncio.gather(pump(reader, back), pump(there, writer))

    return await asyncio.start_server(join, address, port)


async def main() -> None:
    """Relay until killed."""
    address, port, target, target_port = sys.argv[1:]
    server = await serve(address, int(port), target, int(target_port))
    print(f"listening on {address}:{port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
