"""Which interface leads to other nodes, how fast its link is, and what it has carried."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

NETWORK_CLASS: Final = Path("/sys/class/net")
"""A directory for each interface of the process's network namespace."""
ROUTES: Final = Path("/proc/net")
"""Files ``route`` and ``ipv6_route``: the routing tables."""

_UP: Final = 0x1
_REJECT: Final = 0x200
_MEGABIT: Final = 1_000_000
_DEEPEST: Final = 4
"""Interfaces on top of each other: a bridge over a VLAN over a bond over a card."""


class Octets(NamedTuple):
    """What an interface has carried since it was made, in bytes."""

    received: int
    """received"""
    sent: int
    """sent"""


def default_interface(routes: Path = ROUTES) -> str | None:
    """Return the interface of the default route, IPv4 before IPv6, the least metric first; None without one."""
    found = [
        (int(metric), name)
        for name, destination, _, flags, _, _, metric, mask, *_ in _lines(routes / "route", 11, skip=1)
        if destination == mask == "00000000" and _usable(flags)
    ] or [
        (int(line[5], 16), line[9])
        for line in _lines(routes / "ipv6_route", 10)
        if line[0] == "0" * 32 and line[1] == "00" and _usable(line[8])
    ]
    return min(found)[1] if found else None


def link_of(interface: str, classes: Path = NETWORK_CLASS) -> str | None:
    """Return the interface whose link carries what ``interface`` does: itself, or below a bridge or VLAN the fastest.

    None if it has no link of its own, as the end of a pod's veth pair, whose speed means nothing.
    """
    return _link(interface, classes, _DEEPEST)


def speed(link: str, classes: Path = NETWORK_CLASS) -> int | None:
    """Return bit/s of a link; None where the driver states none (virtio) or while there is no carrier."""
    try:
        megabits = int((classes / link / "speed").read_text())
    except (OSError, ValueError):
        return None
    # An unknown speed is -1, of some drivers as an unsigned number of 16 or 32 bits.
    return megabits * _MEGABIT if megabits > 0 and megabits not in (2**16 - 1, 2**32 - 1) else None


def octets(interface: str, classes: Path = NETWORK_CLASS) -> Octets | None:
    """Return what an interface has carried; None if there is no such interface."""
    statistics = classes / interface / "statistics"
    try:
        return Octets(*(int((statistics / name).read_text()) for name in ("rx_bytes", "tx_bytes")))
    except (OSError, ValueError):
        return None


def _link(interface: str, classes: Path, deepest: int) -> str | None:
    directory = classes / interface
    if (directory / "device").exists() or (directory / "bonding").exists():
        return interface
    if not deepest:
        return None
    below = (path.name.removeprefix("lower_") for path in sorted(directory.glob("lower_*")))
    links = [found for name in below if (found := _link(name, classes, deepest - 1)) is not None]
    return max(links, key=lambda name: speed(name, classes) or 0, default=None)


def _lines(file: Path, fields: int, *, skip: int = 0) -> list[list[str]]:
    try:
        # Not as text: an interface may have any bytes in its name, and is found by the same ones.
        lines = file.read_bytes().splitlines()[skip:]
    except OSError:
        return []  # a kernel without this protocol
    return [[*map(os.fsdecode, parts)] for line in lines if len(parts := line.split()) >= fields]


def _usable(flags: str) -> bool:
    return int(flags, 16) & (_UP | _REJECT) == _UP
