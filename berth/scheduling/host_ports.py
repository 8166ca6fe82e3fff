"""Which pods cannot share a node for their host ports."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from berth.scheduling.cache.pod_templates import ANY_ADDRESS, HostPort

Conflict = tuple[tuple[int, ...], tuple[int, ...]]
"""Users of a port, and all that none of them may share a node with; both in ascending order."""


def port_conflicts(users: Mapping[HostPort, Sequence[int]]) -> Iterator[Conflict]:
    """Yield what the ports of users come to, given by number, each conflict once.

    Ports conflict when protocol and number are the same, and so is the address or one of them is any. Pods may have
    thousands of ports, most of which are used by the same pods.
    """
    by_number: defaultdict[tuple[str, int], dict[str, Sequence[int]]] = defaultdict(dict)
    for (address, protocol, number), those in users.items():
        by_number[protocol, number][address] = those
    found: dict[Conflict, None] = {}
    for by_address in by_number.values():
        everybody = tuple(sorted({user for those in by_address.values() for user in those}))
        anywhere = by_address.get(ANY_ADDRESS, ())
        for address, those in by_address.items():
            others = everybody if address == ANY_ADDRESS else tuple(sorted({*those, *anywhere}))
            found[tuple(sorted(those)), others] = None
    yield from found
