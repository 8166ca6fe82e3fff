"""Delay what one node sends to others, without netem in the kernel: packets pass a TUN device and wait in this process.

Run as a script in the sender's network namespace: ``python delay.py PEER=MILLISECONDS...``; a peer is an address or a
network. Round trips between it and the peers take longer by that time, whoever begins. A line of standard input with
such words sets other times. Device and routes, and so the delay, end with the process.
"""

from __future__ import annotations

import contextlib
import fcntl
import ipaddress
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Sequence

DEVICE = "delay0"
LINK = "eth0"
MTU = 1500

# From linux/if_tun.h.
_TUNSETIFF = 0x400454CA
_IFF_TUN = 0x0001
_IFF_NO_PI = 0x1000


class DelayLine:
    """Packets that wait, each for the same time."""

    def __init__(self, seconds: float) -> None:
        """Prepare; every packet waits *seconds*."""
        self.seconds = seconds
        """how long packets wait that come from now on"""
        self._waiting: deque[tuple[float, bytes]] = deque()

    def put(self, packet: bytes, now: float) -> None:
        """Have *packet* wait, which came at *now*."""
        self._waiting.append((now + self.seconds, packet))

    def due(self, now: float) -> list[bytes]:
        """Take those out that have waited long enough at *now*, in the order in which they came."""
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(self._waiting.popleft()[1])
        return found

    def wait(self, now: float) -> float | None:
        """Seconds from *now* until the next one is due, None if none waits."""
        return max(0.0, self._waiting[0][0] - now) if self._waiting else None


def read(words: Iterable[str]) -> dict[ipaddress.IPv4Network, float]:
    """Seconds by peer, of words like ``10.244.1.0/24=40``, in milliseconds."""
    pairs = (word.split("=") for word in words)
    return {ipaddress.IPv4Network(peer): float(milliseconds) / 1000 for peer, milliseconds in pairs}


class Delays:
    """What waits for each peer."""

    def __init__(self, words: Iterable[str]) -> None:
        """Begin with the times of words like ``PEER=MILLISECONDS``."""
        self._lines = {peer: DelayLine(seconds) for peer, seconds in read(words).items()}

    @property
    def peers(self) -> list[ipaddress.IPv4Network]:
        """To whom packets are delayed."""
        return list(self._lines)

    def change(self, words: Iterable[str]) -> None:
        """Set other times for some of the peers; packets that wait already keep theirs.

        Raises:
            KeyError: a peer is none of those at the beginning.
        """
        for peer, seconds in read(words).items():
            self._lines[peer].seconds = seconds

    def put(self, packet: bytes, now: float) -> None:
        """Have *packet* wait, which came at *now*; one that goes to no peer is dropped."""
        target = destination(packet)
        for peer, line in self._lines.items():
            if target is not None and ipaddress.IPv4Address(target) in peer:
                return line.put(packet, now)
        return None

    def due(self, now: float) -> list[bytes]:
        """Take out what has waited long enough at *now*."""
        return [packet for line in self._lines.values() for packet in line.due(now)]

    def wait(self, now: float) -> float | None:
        """Seconds from *now* until the next packet is due, None if none waits."""
        return min((wait for line in self._lines.values() if (wait := line.wait(now)) is not None), default=None)


def destination(packet: bytes) -> str | None:
    """Where an IPv4 packet goes, None if it is none: the kernel sends notices of IPv6 by every device."""
    return socket.inet_ntoa(packet[16:20]) if len(packet) >= 20 and packet[0] >> 4 == 4 else None


def open_device() -> int:
    """File descriptor of a new TUN device, at which packets sent by the device are read."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
    return descriptor


def routes(peers: Sequence[ipaddress.IPv4Network]) -> list[list[str]]:
    """Commands by which packets to *peers* go to the device, ahead of a route to the same network by the link."""
    up = ["ip", "link", "set", DEVICE, "mtu", str(MTU), "up"]
    return [up, *(["ip", "route", "prepend", str(peer), "dev", DEVICE, "src", source(str(peer[0]))] for peer in peers)]


def source(peer: str) -> str:
    """The address that packets to *peer* come from; without it those by the device would have none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((peer, 9))
        return str(asking.getsockname()[0])


def run(delays: Delays) -> None:
    """Pass packets on until killed."""
    commands = routes(delays.peers)
    device, changes = open_device(), sys.stdin.fileno()
    # Bound to the link, or what is passed on would take the way of the device again.
    link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LINK.encode())
    for command in commands:
        subprocess.run(command, check=True)
    print("delaying", flush=True)
    # Of those in the library the one that takes standard input whatever it is.
    selector = selectors.SelectSelector()
    for descriptor in (device, changes):
        selector.register(descriptor, selectors.EVENT_READ)
    while True:
        for ready, _ in selector.select(delays.wait(time.monotonic())):
            if ready.fd == device:
                delays.put(os.read(device, MTU), time.monotonic())
            elif words := os.read(changes, 4096).split():
                delays.change(word.decode() for word in words)
                print("changed", flush=True)
            else:
                selector.unregister(changes)
        for packet in delays.due(time.monotonic()):
            link.sendto(packet, (destination(packet), 0))


if __name__ == "__main__":
    # Ahead of what else the machine does: packets that are passed on late are those of a place further off.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    run(Delays(sys.argv[1:]))
