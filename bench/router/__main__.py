"""``python -m bench.router``: measure and print tables; ``--help`` shows what can be changed. nginx is left out where
there is none (``apt-get install nginx-light``)."""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from bench.load import load
from bench.router.failover import REQUEST, failover

NGINX = """
daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/error;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path {directory}; proxy_temp_path {directory}; fastcgi_temp_path {directory};
  uwsgi_temp_path {directory}; scgi_temp_path {directory}; keepalive_requests 100000000;
  upstream app {{ server 127.0.0.1:{application}; keepalive 64; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header X-Forwarded-For $remote_addr; }}
  }}
}}
"""


class Block(NamedTuple):
    """What some requests took."""

    p50: float
    """milliseconds"""
    p99: float
    """milliseconds"""
    rate: float
    """requests a second"""
    work: float
    """microseconds of processor time of the proxy for each"""


class Place(NamedTuple):
    """Somewhere to send requests."""

    port: int
    process: psutil.Process


@contextmanager
def program(*arguments: str) -> Iterator[Place]:
    """Run a module that tells its port."""
    with subprocess.Popen([sys.executable, "-m", *arguments], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            yield Place(int(process.stdout.readline()), psutil.Process(process.pid))
        finally:
            process.kill()


@contextmanager
def nginx(binary: str, application: int) -> Iterator[Place]:
    """Run nginx with one worker, which does all the work."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o777)  # its worker is another user
        config = Path(directory) / "nginx.conf"
        config.write_text(NGINX.format(directory=directory, application=application, port=port))
        with subprocess.Popen([binary, "-p", directory, "-c", str(config)], stderr=subprocess.DEVNULL) as process:
            try:
                while not (workers := psutil.Process(process.pid).children()):
                    if process.poll() is not None:
                        raise SystemExit(f"nginx does not start: {(Path(directory) / 'error').read_text()}")
                    time.sleep(0.05)
                yield Place(port, workers[0])
            finally:
                process.terminate()


def block(place: Place, count: int, connections: int) -> Block:
    """Send requests."""
    used = sum(place.process.cpu_times()[:2])
    seconds, took = asyncio.run(load(place.port, [REQUEST] * count, connections))
    used = sum(place.process.cpu_times()[:2]) - used
    sent = len(seconds)
    return Block(1e3 * seconds[sent // 2], 1e3 * seconds[sent * 99 // 100], sent / took, 1e6 * used / sent)


def compare(places: dict[str, Place], options: argparse.Namespace, connections: int) -> None:
    """Print a line for each place: blocks of requests by turns, medians of the blocks."""
    found: dict[str, list[Block]] = {name: [] for name in places}
    for place in places.values():
        block(place, options.requests // 4, connections)
    for _ in range(options.blocks):
        for name, place in places.items():
            found[name].append(block(place, options.requests, connections))
    medians = {name: Block(*map(statistics.median, zip(*blocks, strict=True))) for name, blocks in found.items()}
    direct = medians["direct"]
    for name, seen in medians.items():
        added = f"{seen.p50 - direct.p50:.2f} / {seen.p99 - direct.p99:.2f}" if name != "direct" else ""
        work = f"{seen.work:.0f}" if name != "direct" else ""
        times = f"{seen.p50:.2f} / {seen.p99:.2f}"
        print(f"| {connections} | {name} | {times} | {added} | {seen.rate:.0f} | {work} |", flush=True)


def main() -> None:
    """Measure, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.router", description=__doc__)
    parser.add_argument("--requests", type=int, default=3000, help="requests of a block (default: 3000)")
    parser.add_argument("--blocks", type=int, default=7, help="blocks of each kind (default: 7)")
    parser.add_argument("--connections", type=int, nargs="+", default=[1, 32], help="at a time (default: 1 32)")
    parser.add_argument("--deaths", type=int, default=20, help="pods that die (default: 20)")
    parser.add_argument("--nginx", default=shutil.which("nginx"), help="its program")
    options = parser.parse_args()
    machine = f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}"
    print(f"{machine}, load average {os.getloadavg()[0]:.0f}\n")
    print("| connections | by | p50 / p99 ms | added | requests/s | us of processor time |")
    print("|---|---|---|---|---|---|")
    with ExitStack() as stack:
        application = stack.enter_context(program("bench.load"))
        places = {"direct": application}
        if options.nginx:
            places["nginx"] = stack.enter_context(nginx(options.nginx, application.port))
        port = str(application.port)
        places["aiohttp"] = stack.enter_context(program("bench.router.proxies", "aiohttp", port))
        places["router"] = stack.enter_context(program("bench.router.proxies", "router", port))
        for connections in options.connections:
            compare(places, options, connections)
        resident = {name: places[name].process.memory_info().rss / 2**20 for name in ("aiohttp", "router")}
    print(f"\nResident: plain proxy {resident['aiohttp']:.0f} MiB, router {resident['router']:.0f} MiB\n")
    print("| deaths | requests | failed | longest ms, p50 / most | ms to the other pod's first answer, p50 / most |")
    print("|---|---|---|---|---|")
    print(failover(options.deaths), flush=True)


if __name__ == "__main__":
    main()
