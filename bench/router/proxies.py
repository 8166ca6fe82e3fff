"""``python -m bench.router.proxies router|aiohttp PORT...``: a proxy before applications on this machine.

The router is all that answers requests in `berth run router`, users and associations among them, without what watches
the API server. The other is the least that aiohttp makes a proxy of: its server, its client, fields and bodies copied.
"""

from __future__ import annotations

import asyncio
import sys
import time

import aiohttp
from aiohttp import web

from agents.router.balancer import Balancer
from agents.router.endpoints import Backend
from agents.router.knowledge import Knowledge
from agents.router.measuring import Measuring
from agents.router.routing import Routing
from agents.router.settings import RouterSettings
from agents.router.steering import Steering
from berth.api.latency_exchange import Identity, IdentitySource, Instructions, hash_identity
from berth.runtime.proxy.forwarding import Forwarding
from berth.runtime.proxy.pool import UpstreamPool
from berth.runtime.proxy.server import ProxyServer
from berth.runtime.proxy.upstream import Address

KEY = b"a key for measuring, of 32 bytes"


async def router(ports: list[int]) -> int:
    """Start a router; the user of the load belongs to the first application's node."""
    identity = Identity(IdentitySource.HEADER, "X-User")
    knowledge = Knowledge(KEY, Instructions(policy="p", identity=identity), {hash_identity(KEY, "ann"): "n0"})
    balancer = Balancer(time.monotonic)
    balancer.replace(Backend(Address("127.0.0.1", port), f"n{at}", f"p{at}") for at, port in enumerate(ports))
    routing = Routing(
        Forwarding(UpstreamPool()),
        balancer,
        Steering("", "n0", time.monotonic),
        knowledge,
        Measuring(RouterSettings(), knowledge),
        answer_seconds=60.0,
        access_log=False,
    )
    server = ProxyServer(routing.handle, host="127.0.0.1", port=0)
    await server.start()
    return server.port


async def plain(ports: list[int]) -> int:
    """Start a proxy of aiohttp's parts."""
    session = aiohttp.ClientSession(auto_decompress=False, connector=aiohttp.TCPConnector(limit=0))

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        url = f"http://127.0.0.1:{ports[0]}{request.raw_path}"
        data = request.content if request.body_exists else None
        async with session.request(
            request.method, url, headers=request.headers, data=data, allow_redirects=False
        ) as answer:
            response = web.StreamResponse(status=answer.status, headers=answer.headers)
            await response.prepare(request)
            async for part in answer.content.iter_any():
                await response.write(part)
            await response.write_eof()
            return response

    runner = web.ServerRunner(web.Server(handle, access_log=None))
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return int(runner.addresses[0][1])


async def main() -> None:
    """Run one; its port is told on standard output."""
    kind, *ports = sys.argv[1:]
    print(await (router if kind == "router" else plain)([int(port) for port in ports]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
