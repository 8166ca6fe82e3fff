"""What a user notices when the pod of the association is killed while requests are under way."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time
from typing import NamedTuple

from bench.load import ANSWER

REQUEST = b"GET /cart?id=7 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench\r\nAccept: */*\r\nX-User: ann\r\n\r\n"
"""What is asked; the user belongs to the first pod."""
USERS = 8
"""Users who ask all the time, each by a connection of its own."""
BEFORE_SECONDS, AFTER_SECONDS = 0.3, 0.7
"""How long they ask before the pod dies and after that."""


class Death(NamedTuple):
    """What came of one."""

    requests: int
    failed: int
    longest: float
    """seconds that the longest request after the death took"""
    first: float
    """seconds until a request that was sent after the death was answered"""


async def user(port: int, until: float, log: list[tuple[float, float, bool]]) -> None:
    """Ask until then; notes when each request was sent, when it was answered, and whether well."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while time.perf_counter() < until:
        sent = time.perf_counter()
        writer.write(REQUEST)
        try:
            answer = await reader.readexactly(len(ANSWER))
        except (asyncio.IncompleteReadError, ConnectionError):
            answer = b""
        log.append((sent, time.perf_counter(), answer == ANSWER))
        if answer != ANSWER:
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


async def death(port: int, victim: subprocess.Popen[bytes]) -> Death:
    """Have users ask, kill the pod, and look at what they got."""
    log: list[tuple[float, float, bool]] = []
    begun = time.perf_counter()
    until = begun + BEFORE_SECONDS + AFTER_SECONDS
    asking = [asyncio.create_task(user(port, until, log)) for _ in range(USERS)]
    await asyncio.sleep(BEFORE_SECONDS)
    victim.kill()
    died = time.perf_counter()
    await asyncio.gather(*asking)
    after = [(sent, answered) for sent, answered, _ in log if answered > died]
    return Death(
        len(log),
        sum(not well for _, _, well in log),
        max(answered - sent for sent, answered in after),
        min(answered for sent, answered in after if sent > died) - died,
    )


def failover(deaths: int) -> str:
    """Kill so many pods, each with a router of its own before it and another pod; a line of Markdown."""
    found = []
    for _ in range(deaths):
        command = [sys.executable, "-m", "bench.load"]
        with (
            subprocess.Popen(command, stdout=subprocess.PIPE) as near,
            subprocess.Popen(command, stdout=subprocess.PIPE) as other,
        ):
            assert near.stdout is not None
            assert other.stdout is not None
            ports = [int(near.stdout.readline()), int(other.stdout.readline())]
            routing = [sys.executable, "-m", "bench.router.proxies", "router", *map(str, ports)]
            with subprocess.Popen(routing, stdout=subprocess.PIPE) as router:
                assert router.stdout is not None
                try:
                    found.append(asyncio.run(death(int(router.stdout.readline()), near)))
                finally:
                    for process in (router, near, other):
                        process.kill()
    longest, first = [1e3 * each.longest for each in found], [1e3 * each.first for each in found]
    cells = (
        len(found),
        sum(each.requests for each in found),
        sum(each.failed for each in found),
        f"{statistics.median(longest):.0f} / {max(longest):.0f}",
        f"{statistics.median(first):.1f} / {max(first):.1f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"
