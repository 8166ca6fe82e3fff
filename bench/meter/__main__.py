"""``python -m bench.meter``: measure and print tables; ``--help`` shows what can be changed."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.load import load
from hack.harness.processes import ControllerProcess

REQUEST = b"GET /cart?id=7 HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: bench\r\nAccept: */*\r\nX-User: %d\r\n\r\n"
USERS = 200
"""Users whose requests take turns."""


class Block(NamedTuple):
    """What some requests took."""

    p50: float
    """milliseconds"""
    p99: float
    """milliseconds"""
    rate: float
    """requests a second"""
    meter: float
    """microseconds of processor time of the meter for each"""


@contextmanager
def places() -> Iterator[tuple[int, int, psutil.Process]]:
    """An application and a meter before it: the ports of both, and the meter's process."""
    with (
        tempfile.TemporaryDirectory() as directory,
        subprocess.Popen([sys.executable, "-m", "bench.load"], stdout=subprocess.PIPE) as application,
    ):
        try:
            assert application.stdout is not None
            direct = int(application.stdout.readline())
            options = ["--meter-address=127.0.0.1", "--meter-port=0", f"--meter-application=127.0.0.1:{direct}"]
            options += ["--meter-identity=Header", "--meter-identity-name=X-User", "--meter-linger=0"]
            with ControllerProcess.start(
                ["meter"], kubeconfig="unused", directory=Path(directory), arguments=options
            ) as process:
                process.wait_ready()
                [line] = process.records("users are measured")
                yield direct, int(line["port"]), psutil.Process(process.pid)
        finally:
            application.kill()


def block(port: int, count: int, connections: int, meter: psutil.Process) -> Block:
    """Send requests of many users."""
    used = sum(meter.cpu_times()[:2])
    requests = [REQUEST % (number % USERS) for number in range(count)]
    seconds, took = asyncio.run(load(port, requests, connections))
    used = sum(meter.cpu_times()[:2]) - used
    return Block(1e3 * seconds[count // 2], 1e3 * seconds[count * 99 // 100], count / took, 1e6 * used / count)


def compare(direct: int, metered: int, meter: psutil.Process, options: argparse.Namespace, connections: int) -> None:
    """Print a line: blocks of requests by turns direct and through the meter, medians of the blocks."""
    found: dict[int, list[Block]] = {direct: [], metered: []}
    for port in found:
        block(port, options.requests // 4, connections, meter)
    for _ in range(options.blocks):
        for port, blocks in found.items():
            blocks.append(block(port, options.requests, connections, meter))
    without, through = (Block(*map(statistics.median, zip(*blocks, strict=True))) for blocks in found.values())
    times = f"{without.p50:.2f} / {without.p99:.2f} | {through.p50:.2f} / {through.p99:.2f}"
    added = f"{through.p50 - without.p50:.2f} / {through.p99 - without.p99:.2f}"
    print(
        f"| {connections} | {times} | {added} | {without.rate:.0f} | {through.rate:.0f} | {through.meter:.0f} |",
        flush=True,
    )


def main() -> None:
    """Measure, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.meter", description=__doc__)
    parser.add_argument("--requests", type=int, default=4000, help="requests of a block (default: 4000)")
    parser.add_argument("--blocks", type=int, default=9, help="blocks of each kind (default: 9)")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 32], help="at a time (default: 1 32)")
    parser.add_argument("--users", type=int, default=10_000, help="for the memory (default: 10000)")
    options = parser.parse_args()
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    print(f"{machine}, load average {os.getloadavg()[0]:.0f}\n")
    print("| connections | direct p50 / p99 ms | metered | added | direct req/s | metered | meter's us of CPU |")
    print("|---|---|---|---|---|---|---|")
    with places() as (direct, metered, meter):
        resident = meter.memory_info().rss / 2**20
        for connections in options.connections:
            compare(direct, metered, meter, options, connections)
    command = [sys.executable, "-m", "bench.meter.memory", str(options.users)]
    users, kibibytes = map(int, subprocess.check_output(command, text=True).split())
    print(f"\nMemory of the meter when it starts: {resident:.0f} MiB; {users} users: {kibibytes / 1024:.1f} MiB more.")


if __name__ == "__main__":
    main()
