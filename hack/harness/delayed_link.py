"""A link to a network namespace whose packets take their time, for machines without the kernel's own delay (netem).

Two TUN interfaces, one here and one in the namespace, and a process that carries packets from one to the other, each
after half of the round trip. Whatever speaks IP sees a far place, the kernel's own round trips included. As root.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Final, Self

from hack.localcluster.kubelets.delay import DelayLine

_INPUT: Final = 0
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN: Final = 0x0001
_IFF_NO_PI: Final = 0x1000


class DelayedLink:
    """The running link."""

    def __init__(self, process: subprocess.Popen[bytes], namespace: str, near: str, far: str) -> None:
        """Keep what belongs to it."""
        self._process = process
        self.namespace = namespace
        """name of the namespace at the other end"""
        self.near = near
        """address of this end"""
        self.far = far
        """address of the other one"""

    def take(self, milliseconds: float) -> Self:
        """Have round trips take so long from now on."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{milliseconds}\n".encode())
        self._process.stdin.flush()
        return self

    def enter(self) -> list[str]:
        """What to write before a command that is to run at the other end."""
        return ["nsenter", f"--net=/run/netns/{self.namespace}"]


@contextlib.contextmanager
def delayed_link(name: str, *, milliseconds: float, number: int = 0) -> Iterator[DelayedLink]:
    """Make a namespace behind a link with such a round trip.

    Args:
        name: of the namespace, 10 characters at most.
        milliseconds: round trip in the beginning.
        number: tells links of one machine from each other, 0 to 63.
    """
    near, far = (f"10.214.{number}.{host}" for host in (1, 2))
    _ip("netns", "add", name)
    process = None
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "hack.harness.delayed_link", f"{name}-0", f"{name}-1", str(milliseconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()  # the interfaces are there
        _ip("link", "set", f"{name}-1", "netns", name)
        _ip("addr", "add", f"{near}/30", "dev", f"{name}-0")
        _ip("link", "set", f"{name}-0", "up")
        _ip("-n", name, "addr", "add", f"{far}/30", "dev", f"{name}-1")
        _ip("-n", name, "link", "set", f"{name}-1", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        yield DelayedLink(process, name, near, far)
    finally:
        if process is not None:
            process.kill()
            process.wait()
        _ip("netns", "delete", name)


def carry(near: int, far: int, milliseconds: float) -> None:
    """Carry packets between two TUN devices until standard input ends, whose lines are new round trips."""
    lines = {near: DelayLine(milliseconds / 2000), far: DelayLine(milliseconds / 2000)}
    targets = {near: far, far: near}
    while True:
        now = time.monotonic()
        waits = [wait for line in lines.values() if (wait := line.wait(now)) is not None]
        ready, _, _ = select.select([near, far, _INPUT], [], [], min(waits, default=None))
        now = time.monotonic()
        for source in ready:
            if source != _INPUT:
                lines[source].put(os.read(source, 65_536), now)
            elif text := os.read(_INPUT, 100):
                for line in lines.values():
                    line.seconds = float(text.splitlines()[-1]) / 2000
            else:
                return
        now = time.monotonic()
        for source, line in lines.items():
            for packet in line.due(now):
                with contextlib.suppress(OSError):  # an interface that is not up yet
                    os.write(targets[source], packet)


def _tun(name: str) -> int:
    device = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TUN | _IFF_NO_PI))
    return device


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


if __name__ == "__main__":
    # Ahead of what else the machine does: packets that are carried late are those of a place further off.
    with contextlib.suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    _devices = [_tun(_name) for _name in sys.argv[1:3]]
    print(flush=True)
    carry(_devices[0], _devices[1], float(sys.argv[3]))
