"""Who probes whom: a few peers a node, and every pair of zones by several nodes.

A full mesh of 5000 nodes would be 25 million links. A pure function of the list of nodes chooses instead, so every
agent knows what all others do without asking. Choices go by rendezvous hashing: each candidate has a rank of its own
for each question, so a node that comes or goes changes the answers in which it is among the first, and the last choices
of the nodes of zones whose pairs get other samplers by that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from typing import Final, NamedTuple

DEFAULT_PEERS: Final = 10
"""Peers that a node probes at most."""
SAMPLERS: Final = 3
"""Nodes that probe a pair of zones, where their zones have so many and these have peers left."""
OWN_ZONE_PEERS: Final = 2
"""Peers of a node in its own zone."""
MOST_ZONES: Final = 400
"""Zones whose pairs are shared out. Where there are more, 5000 nodes do not have peers for half of the pairs, and every
agent would need memory for all of them: each takes nodes at random then, which is hardly worse."""
MOST_CANDIDATES: Final = 6_000_000
"""Nodes that may sample a pair of zones, of all pairs together, as long as these are shared out: 15,000 nodes in 400
zones. Their ranks take 80 MiB; where there are more, enough nodes come to a pair at random."""

_BITS: Final = (1 << 64) - 1
_ODD: Final = 0x9E3779B97F4A7C15


class NodePlace(NamedTuple):
    """A node that can be probed."""

    name: str
    """its name"""
    zone: str
    """its zone; nodes without one are in a zone of the empty name"""


def choose_peers(own: str, nodes: Iterable[NodePlace], limit: int = DEFAULT_PEERS) -> tuple[str, ...]:
    """Return the nodes that ``own`` probes, at most ``limit``, sorted.

    They are some of its own zone, those by which it samples pairs of zones, and others until there are ``limit``. The
    samplers of a pair probe different nodes, none of which is one of them as long as their zones have enough: a node
    that is slow or cut off is then in one of three figures. So that it stays so, the others are first of all nodes of
    the own zone, and of those zones in whose pair with it ``own`` has no part, nodes that have none either.

    Args:
        own: name of a node of ``nodes``; of another, or one that is not listed yet, there are none.
        nodes: all nodes with an agent, in any order; each name once.
        limit: at least 1.
    """
    places = sorted(set(nodes))
    zone_of = dict(places)
    if own not in zone_of:
        return ()
    zones = _by_zone(places)
    chosen = set(_first(own, zones[zone_of[own]], _own_zone_share(len(zones), limit), leave_out={own}))
    last: set[str] = set()
    for pair, names in _samplers_by_pair(places, limit).items():
        if zone_of[own] not in pair:
            continue
        probed = _probed(pair, names, zones, zone_of)
        taking_part = {*names, *probed.values()}
        last.update(zones[_other(pair, zone_of[own])] if own in taking_part else taking_part)
        if own in names:
            chosen.add(probed[own])
    last.difference_update(zones[zone_of[own]])
    # The rank of a name for a name is the same both ways: two nodes would choose each other, and measure one pair.
    question = own if _shared_out(zones) else f"{own}\0"
    others = _first(question, list(zone_of), len(zone_of), leave_out={own, *chosen})
    chosen.update(sorted(others, key=last.__contains__)[: limit - len(chosen)])
    return tuple(sorted(chosen))


def samplers(nodes: Iterable[NodePlace], limit: int = DEFAULT_PEERS) -> dict[str, tuple[str, ...]]:
    """Return which other zones each node samples, by node; those that sample none are left out.

    Every pair of zones gets one node of either zone, then every pair a second, then a third. A pair has fewer only
    when all other nodes of its two zones sample as many pairs as ``limit`` leaves them. Of more than
    :data:`MOST_ZONES` zones, or :data:`MOST_CANDIDATES`, nobody samples any by duty.

    Args:
        nodes: all nodes with an agent; each name once.
        limit: peers of a node at most, at least 1.
    """
    sampled: dict[str, list[str]] = defaultdict(list)
    places = sorted(set(nodes))
    zone_of = dict(places)
    for pair, names in _samplers_by_pair(places, limit).items():
        for name in names:
            sampled[name].append(_other(pair, zone_of[name]))
    return {name: tuple(sorted(others)) for name, others in sampled.items()}


def _shared_out(zones: Mapping[str, Sequence[str]]) -> bool:
    """Whether the pairs of these zones are."""
    candidates = (len(zones) - 1) * sum(map(len, zones.values()))
    return len(zones) <= MOST_ZONES and candidates <= MOST_CANDIDATES


def _samplers_by_pair(places: Sequence[NodePlace], limit: int) -> dict[tuple[str, str], list[str]]:
    """The samplers of every pair of zones, in the order in which it got them."""
    zones = _by_zone(places)
    if not _shared_out(zones):
        return {}
    zone_of = dict(places)
    hashes = {zone: [(_hash(name), name) for name in names] for zone, names in zones.items()}
    own_zone = _own_zone_share(len(zones), limit)
    room = {name: limit - min(own_zone, len(names) - 1) for names in zones.values() for name in names}
    zone_room = {zone: sum(room[name] for name in names) for zone, names in zones.items()}
    sampled: dict[tuple[str, str], list[str]] = defaultdict(list)
    pairs = sorted(combinations(zones, 2), key=_pair_hash)
    ranked: dict[tuple[str, str], list[str]] = {}
    for _ in range(SAMPLERS):
        for pair in pairs:
            one, other = pair
            if not (zone_room[one] or zone_room[other]):
                continue
            if pair not in ranked:
                ranked[pair] = _ranked(_pair_hash(pair), hashes[one] + hashes[other])
            candidates = ranked[pair]
            # Whoever has no peers left now has none later; whoever samples the pair does so once.
            while candidates and not room[candidates[-1]]:
                candidates.pop()
            if candidates:
                name = candidates.pop()
                room[name] -= 1
                zone_room[zone_of[name]] -= 1
                sampled[pair].append(name)
    return sampled


def _probed(
    pair: tuple[str, str], names: Sequence[str], zones: Mapping[str, Sequence[str]], zone_of: Mapping[str, str]
) -> dict[str, str]:
    """Whom each sampler of a pair probes in the other zone: the first in its order that has no part in the pair yet."""
    taken, found = set(names), dict[str, str]()
    for name in names:
        others = zones[_other(pair, zone_of[name])]
        ranked = _first(name, others, len(others))
        found[name] = next((other for other in ranked if other not in taken), ranked[0])
        taken.add(found[name])
    return found


def _other(pair: tuple[str, str], zone: str) -> str:
    one, other = pair
    return other if zone == one else one


def _own_zone_share(zones: int, limit: int) -> int:
    """Peers in the own zone: at most half of all when there are other zones."""
    return limit if zones == 1 else min(OWN_ZONE_PEERS, limit // 2)


def _by_zone(places: Sequence[NodePlace]) -> dict[str, list[str]]:
    zones: dict[str, list[str]] = defaultdict(list)
    for name, zone in places:
        zones[zone].append(name)
    return dict(sorted(zones.items()))


def _first(question: str, names: Sequence[str], count: int, *, leave_out: Iterable[str] = ()) -> list[str]:
    """The first ``count`` of ``names`` in their order for this question."""
    without = set(leave_out)
    ranked = _ranked(_hash(question), [(_hash(name), name) for name in names if name not in without])
    return ranked[::-1][: max(0, count)]


def _ranked(question: int, candidates: Sequence[tuple[int, str]]) -> list[str]:
    """Names of candidates (hash, name) in their order for this question, everywhere the same; the first comes last."""
    return [name for _, name in sorted([((question ^ own) * _ODD & _BITS, name) for own, name in candidates])]


def _pair_hash(pair: tuple[str, str]) -> int:
    return _hash("\0".join(pair))


def _hash(text: str) -> int:
    # Python's own hash differs between processes.
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
