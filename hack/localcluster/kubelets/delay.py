"""Delay what one node sends to others, without netem in the kernel: packets pass a TUN device and wait in this process.

Run as a script in the sender's network namespace: ``python delay.py MILLISECONDS PEER-ADDRESS...``. Round trips between
it and the peers take longer by that time, whoever begins. Device and routes, and so the delay, end with the process.
"""

from __future__ import annotations

import fcntl
import os
import selectors
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence

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


def destination(packet: bytes) -> str | None:
    """Where an IPv4 packet goes, None if it is none: the kernel sends notices of IPv6 by every device."""
    return socket.inet_ntoa(packet[16:20]) if len(packet) >= 20 and packet[0] >> 4 == 4 else None


def open_device() -> int:
    """File descriptor of a new TUN device, at which packets sent by the device are read."""
    descriptor = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", DEVICE.encode(), _IFF_TUN | _IFF_NO_PI))
    return descriptor


def routes(peers: Sequence[str]) -> list[list[str]]:
    """Commands by which packets to *peers* go to the device."""
    up = ["ip", "link", "set", DEVICE, "mtu", str(MTU), "up"]
    return [up, *(["ip", "route", "add", f"{peer}/32", "dev", DEVICE, "src", source(peer)] for peer in peers)]


def source(peer: str) -> str:
    """The address that packets to *peer* come from; without it those by the device would have none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((peer, 9))
        return str(asking.getsockname()[0])


def run(seconds: float, peers: Sequence[str]) -> None:
    """Pass packets on until killed."""
    commands = routes(peers)
    device = open_device()
    # Bound to the link, or what is passed on would take the way of the device again.
    link = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, LINK.encode())
    for command in commands:
        subprocess.run(command, check=True)
    print(f"delaying packets to {', '.join(peers)} by {seconds * 1000:g} ms", flush=True)
    line = DelayLine(seconds)
    selector = selectors.DefaultSelector()
    selector.register(device, selectors.EVENT_READ)
    while True:
        if selector.select(line.wait(time.monotonic())):
            line.put(os.read(device, MTU), time.monotonic())
        for packet in line.due(time.monotonic()):
            target = destination(packet)
            if target is not None:
                link.sendto(packet, (target, 0))


if __name__ == "__main__":
    run(float(sys.argv[1]) / 1000, sys.argv[2:])
