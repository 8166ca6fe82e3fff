"""``python -m bench.meter.flood``: new users without end at a meter and at a router, beside some who are known."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import psutil

from bench.load import ANSWER
from bench.meter.flood_stand import FloodStand, Target, flood_stand
from hack.harness.cluster import eventually

REQUEST: Final = b"GET /cart?id=7 HTTP/1.1\r\nHost: shop.example\r\nAccept: */*\r\nX-User: known-%d\r\n\r\n"
KNOWN: Final = 50
"""Users who are there before, while and after."""
PAUSE_SECONDS: Final = 0.5
"""Seconds from an answer to the next request of one of them."""
FLOODERS: Final = 2
"""Processes that the flood comes from."""


COLUMNS: Final = (
    "at",
    "connections",
    "new users/s sent",
    "answered",
    "broken",
    "known users before: p50 / p99 ms",
    "failed",
    "during: p50 / p99 ms",
    "failed",
    "after: p50 / p99 ms",
    "failed",
    "associations kept, s unheard of",
    "messages/s, failed",
    "round trips told/s",
    "MiB",
    "cores of it, of the controller",
    "controller's MiB",
)
"""Of the table."""


class Asked(NamedTuple):
    """A request of a known user."""

    sent: float
    took: float
    well: bool


class Told(NamedTuple):
    """Counters at one time."""

    measured: float
    """round trips measured of known and new users"""
    reports: float
    """messages to the controller"""
    refused: float
    """messages that failed"""
    seconds: float
    """of processor time of the proxy"""
    controller: float
    """the same of the controller"""


async def known(port: int, number: int, log: list[Asked], stop: asyncio.Event) -> None:
    """Ask now and then, not all at the same time."""
    await asyncio.sleep(PAUSE_SECONDS * number / KNOWN)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not stop.is_set():
        sent = time.perf_counter()
        try:
            writer.write(REQUEST % number)
            head = await reader.readuntil(ANSWER[-6:])
            well = head.startswith(b"HTTP/1.1 200")
        except (asyncio.IncompleteReadError, ConnectionError):
            well = False
            writer.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        log.append(Asked(sent, time.perf_counter() - sent, well))
        await asyncio.sleep(PAUSE_SECONDS)
    writer.close()


async def flooded(port: int, options: argparse.Namespace, *, fresh: bool) -> dict[str, int]:
    """Have new users come for a while; what the processes say that send them."""
    command = ["-m", "bench.meter.new_users", str(port), f"--rate={options.rate / FLOODERS}"]
    command += [f"--seconds={options.seconds}", f"--connections={options.connections // FLOODERS}"]
    command += ["--fresh"] if fresh else []
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
        for _ in range(FLOODERS)
    ]
    found = [json.loads((await process.communicate())[0]) for process in processes]
    return {name: sum(each[name] for each in found) for name in found[0]}


def told(stand: FloodStand, target: Target) -> Told:
    """Read counters."""
    reports = "berth_round_trip_reports_total"
    return Told(
        target.process.metric("berth_round_trips_told_total"),
        target.process.metric(reports, outcome="answered"),
        target.process.metric(reports, outcome="failed"),
        sum(psutil.Process(target.process.pid).cpu_times()[:2]),
        sum(psutil.Process(stand.controller.pid).cpu_times()[:2]),
    )


@dataclass
class Seen:
    """What was seen while the flood went on, and after it."""

    mine: set[str]
    """known users who had an association before it"""
    lost: set[str] = field(default_factory=set)
    """those of them who had none at some time"""
    unheard: float = 0.0
    """greatest age of what an association of them says of when its user was heard of, in seconds"""
    resident: list[int] = field(default_factory=list)
    """memory of the proxy in bytes"""

    async def watch(self, stand: FloodStand, target: Target) -> None:
        """Look until cancelled."""
        while True:
            found = await asyncio.to_thread(stand.associated, target.namespace)
            self.lost |= self.mine - found.keys()
            self.unheard = max(self.unheard, *(age for user, age in found.items() if user in self.mine))
            self.resident.append(target.process.resident_bytes())
            await asyncio.sleep(0.5)


def times(log: list[Asked], since: float, until: float) -> str:
    """Median and 99th percentile in milliseconds of what was sent in between, and what failed."""
    found = [each for each in log if since <= each.sent < until]
    took = sorted(1e3 * each.took for each in found)
    failed = sum(not each.well for each in found)
    return f"{took[len(took) // 2]:.1f} / {took[len(took) * 99 // 100]:.1f} | {failed} of {len(found)}"


async def measure(stand: FloodStand, target: Target, kind: str, options: argparse.Namespace, *, fresh: bool) -> str:
    """Flood a proxy; a line of Markdown."""
    log: list[Asked] = []
    stop = asyncio.Event()
    asking = [asyncio.create_task(known(target.port, number, log, stop)) for number in range(KNOWN)]
    mine = await asyncio.to_thread(
        eventually,
        lambda: stand.associated(target.namespace),
        accept=lambda users: len(users) == KNOWN,
        what="users with their node",
    )
    quiet = time.perf_counter()
    await asyncio.sleep(options.before)
    seen = Seen(set(mine), resident=[target.process.resident_bytes()])
    before, begun = await asyncio.to_thread(told, stand, target), time.perf_counter()
    watching = asyncio.create_task(seen.watch(stand, target))
    came = await flooded(target.port, options, fresh=fresh)
    ended = time.perf_counter()
    after = await asyncio.to_thread(told, stand, target)
    await asyncio.sleep(options.after)
    stop.set()
    await asyncio.gather(*asking)
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
    assert target.process.running, target.process.tail()
    took = ended - begun
    cells = (
        kind,
        "of its own" if fresh else "kept",
        f"{came['sent'] / options.seconds:.0f}",
        f"{came['answered'] / options.seconds:.0f}",
        came["broken"],
        times(log, quiet, begun),
        times(log, begun, ended),
        times(log, ended, time.perf_counter()),
        f"{len(seen.mine - seen.lost)} of {len(seen.mine)}, {seen.unheard:.0f}",
        f"{(after.reports - before.reports) / took:.2f}, {after.refused - before.refused:.0f}",
        f"{(after.measured - before.measured) / took:.0f}",
        f"{seen.resident[0] / 2**20:.0f} -> {max(seen.resident) / 2**20:.0f}",
        f"{(after.seconds - before.seconds) / took:.2f}, {(after.controller - before.controller) / took:.2f}",
        f"{stand.controller.resident_bytes() / 2**20:.0f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def main() -> None:
    """Measure, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.meter.flood", description=__doc__)
    parser.add_argument("--rate", type=float, default=10_000.0, help="new users a second (default: 10000)")
    parser.add_argument("--connections", type=int, default=64, help="of them at a time at most (default: 64)")
    parser.add_argument("--before", type=float, default=15.0, help="seconds before the flood (default: 15)")
    parser.add_argument("--seconds", type=float, default=30.0, help="of the flood (default: 30)")
    parser.add_argument("--after", type=float, default=15.0, help="seconds after it (default: 15)")
    options = parser.parse_args()
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    print(f"{machine}, load average {os.getloadavg()[0]:.0f}\n")
    print("| " + " | ".join(COLUMNS) + " |", "|---" * len(COLUMNS) + "|", sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as directory, flood_stand(Path(directory)) as stand:
        for kind in ("meter", "router"):
            for fresh in (False, True):
                with stand.proxy(kind) as target:
                    print(asyncio.run(measure(stand, target, kind, options, fresh=fresh)), flush=True)


if __name__ == "__main__":
    main()
