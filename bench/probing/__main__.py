"""``python -m bench.probing``: measure and print a table; ``--help`` shows what can be changed. As root, for veth."""

from __future__ import annotations

import argparse
import os
import platform
import socket
import statistics
import subprocess
import sys
import time

import psutil

from agents.node import boot_clock
from agents.node.probing.messages import Order, decode_round, encode_order
from agents.node.probing.responder import acknowledge_at_once
from agents.node.probing.rounds import Target
from agents.node.probing.window import Window
from bench.probing.places import PORT, loopback, veth
from berth.runtime.tcp_info import tcp_info

EXCHANGES = 300
"""Exchanges behind the kernel's own figure."""


def kernel_round_trip(address: str) -> float:
    """Median of the kernel's smoothed round trip of one connection on which nothing else happens, microseconds."""
    with socket.create_connection((address, PORT)) as connection:
        acknowledge_at_once(connection)
        found = []
        for _ in range(EXCHANGES):
            connection.send(b"?")
            connection.recv(1)
            found.append(tcp_info(connection).round_trip)
            time.sleep(0.002)
    return statistics.median(found[50:])


def measure(addresses: list[str], rounds: int, interval: float, rate: float) -> tuple[float, ...]:
    """Run the prober: median p50 of the peers by TCP, greatest, by ICMP, CPU share of a core, MiB resident."""
    options = ["--address", "127.0.0.1", "--port", "0", "--interval", str(interval), "--rate", str(rate)]
    tcp, icmp = {name: Window(1e9) for name in addresses}, {name: Window(1e9) for name in addresses}
    with subprocess.Popen(
        [sys.executable, "-m", "agents.node.probing.prober", *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode_order(Order(tuple(Target(name, name, PORT) for name in addresses))))
        process.stdin.flush()
        process.stdout.readline()  # the first makes the connections
        watched = psutil.Process(process.pid)
        start, used = time.monotonic(), sum(watched.cpu_times()[:2])
        for _ in range(rounds):
            for name, samples in decode_round(process.stdout.readline()).samples.items():
                tcp[name].add(sample for sample in samples if sample.method == "TCP")
                icmp[name].add(sample for sample in samples if sample.method == "ICMP")
        share = (sum(watched.cpu_times()[:2]) - used) / (time.monotonic() - start)
        resident = watched.memory_info().rss / 2**20
        process.kill()
    by_tcp, by_icmp = (sorted(_p50(window) for window in windows.values()) for windows in (tcp, icmp))
    return statistics.median(by_tcp), by_tcp[-1], statistics.median(by_icmp), 100 * share, resident


def _p50(window: Window) -> float:
    figures = window.figures(boot_clock.now())
    return figures.latency.p50 if figures and figures.latency else float("nan")


def main() -> None:
    """Measure, print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.probing", description=__doc__)
    parser.add_argument("--rounds", type=int, default=12, help="rounds of each measurement (default: 12)")
    parser.add_argument("--interval", type=float, default=5.0, help="seconds between rounds (default: 5)")
    parser.add_argument("--rate", type=float, default=20.0, help="probes a second at most (default: 20)")
    parser.add_argument("--peers", type=int, nargs="+", default=[1, 10, 50], help="peers (default: 1 10 50)")
    options = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}\n")
    print("| network | peers | kernel us | TCP p50 us, median | greatest | ICMP p50 us | CPU % of a core | RSS MiB |")
    print("|---|---|---|---|---|---|---|---|")
    for name, place in (("loopback", loopback), ("veth", veth)):
        for peers in options.peers:
            with place(peers) as addresses:
                kernel = kernel_round_trip(addresses[0])
                found = measure(addresses, options.rounds, options.interval, options.rate)
            tcp, greatest, icmp, share, resident = found
            times = " | ".join(f"{value:.0f}" for value in (kernel, tcp, greatest, icmp))
            print(f"| {name} | {peers} | {times} | {share:.2f} | {resident:.0f} |", flush=True)


if __name__ == "__main__":
    main()
