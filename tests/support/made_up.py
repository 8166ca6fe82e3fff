"""Users that are made up, and reports that are forged: ``python -m tests.support.made_up``, where users are.

``requests HOST PORT COUNT``: so many requests, as fast as a router takes them, each of a user of its own and with a
time of sending that cannot be. The router refuses them by their target, and so takes more than an application would.

``reports URL COUNT SECONDS``, with certificate and token as two lines of JSON: so many users a second in reports of a
pod, all of them with round trips that cannot be. Prints how often which status was answered.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections import Counter

import aiohttp
import msgspec

from berth.api import latency_exchange as exchange
from hack.harness.asking import USER_HEADER

BATCH = 100
"""Requests that are sent before their answers are read."""
ABSURD = (-1, -(2**40), 0, 2**40)
"""Round trips that cannot be, in microseconds."""


async def requests(host: str, port: str, count: str) -> None:
    """Send requests of users who are made up."""
    reader, writer = await asyncio.open_connection(host, int(port))
    for first in range(0, int(count), BATCH):
        for number in range(first, first + BATCH):
            stated = (-1, 0, 10**18)[number % 3]
            fields = f"Host: web\r\n{USER_HEADER}: made-up-{number}\r\nX-Timestamp: {stated}\r\n"
            writer.write(f"GET http://nobody@web/ HTTP/1.1\r\n{fields}\r\n".encode())
        for _ in range(BATCH):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
    writer.close()


async def reports(url: str, count: str, seconds: str) -> None:
    """Send reports that are forged."""
    certificate, token = map(json.loads, sys.stdin)
    context = ssl.create_default_context(cadata=certificate)
    statuses: Counter[int] = Counter()
    messages = int(count) * int(seconds) // exchange.MAX_USERS
    loop = asyncio.get_running_loop()
    async with aiohttp.ClientSession() as session:

        async def send(number: int) -> None:
            users = tuple(
                exchange.UserRoundTrips(f"made-up-{number}-{at}", ABSURD, age=(-5.0, 1e12)[at % 2])
                for at in range(exchange.MAX_USERS)
            )
            async with session.post(
                url + exchange.ROUND_TRIPS_PATH,
                data=msgspec.json.encode(exchange.RoundTrips("forged", number, users)),
                headers={"Authorization": f"Bearer {token}"},
                ssl=context,
                server_hostname=exchange.SERVER_NAME,
            ) as answer:
                statuses[answer.status] += 1

        begun, sent = loop.time(), list[asyncio.Task[None]]()
        for number in range(messages):
            await asyncio.sleep(begun + number * int(seconds) / messages - loop.time())
            sent.append(asyncio.create_task(send(number + 1)))
        await asyncio.gather(*sent)
    print(json.dumps(statuses))


if __name__ == "__main__":
    asyncio.run({"requests": requests, "reports": reports}[sys.argv[1]](*sys.argv[2:]))
