"""Rules between pods for generated problems: every kind that workloads may state, hard and soft, with placed pods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.scheduling.replicas.problem import Rule
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Draw:
    """What the rules of one workload are made of."""

    rng: np.random.Generator
    zone: Ints
    """int64[N]"""
    own: list[int]
    """the pod set that has the rule"""
    others: list[int]
    """another pod set, or the same"""

    @property
    def both(self) -> list[int]:
        """The two."""
        return sorted({*self.own, *self.others})

    @property
    def host(self) -> Ints:
        """int64[N], nodes as domains."""
        return np.arange(len(self.zone))

    def domain(self) -> Ints:
        """int64[N], nodes or zones; now and then a node does not have the label."""
        domain = self.host if self.rng.random() < 0.5 else self.zone.copy()
        if self.rng.random() < 0.1:
            domain[self.rng.integers(len(domain))] = -1
        return domain

    def placed(self, share: float = 0.2) -> Ints | None:
        """int64[N] or nothing, placed pods."""
        if self.rng.random() >= share:
            return None
        size = len(self.zone)
        return (self.rng.random(size) < 0.3) * self.rng.integers(1, 4, size)

    def weight(self) -> int:
        """Of a preferred term."""
        return int(self.rng.choice([1, 50, 100]))


def _preferred_apart(draw: Draw) -> list[Rule]:
    """Preferred anti-affinity between replicas."""
    return [AntiAffinity(domain=draw.domain(), subjects=draw.own, selects=draw.own, weight=draw.weight())]


def _preferred_apart_from_others(draw: Draw) -> list[Rule]:
    """Preferred anti-affinity towards others, some of them placed, some of which prefer the same."""
    return [
        AntiAffinity(
            domain=draw.domain(),
            subjects=draw.own,
            selects=draw.others,
            placed=draw.placed(),
            placed_subjects=draw.placed(),
            weight=draw.weight(),
        )
    ]


def _apart(draw: Draw) -> list[Rule]:
    """Required anti-affinity between replicas."""
    return [AntiAffinity(domain=draw.domain(), subjects=draw.own, selects=draw.own, placed=draw.placed(0.1))]


def _apart_from_others(draw: Draw) -> list[Rule]:
    """Required anti-affinity towards others, which placed pods may have as well."""
    placed = draw.placed()
    return [AntiAffinity(domain=draw.domain(), subjects=draw.own, selects=draw.others, placed_subjects=placed)]


def _host_port(draw: Draw) -> list[Rule]:
    """A port of the node that both pod sets use, and placed pods."""
    there = draw.placed(0.3)
    return [AntiAffinity(domain=draw.host, subjects=draw.both, selects=draw.both, placed=there, placed_subjects=there)]


def _preferred_near(draw: Draw) -> list[Rule]:
    """Preferred affinity, some towards placed pods, some of placed pods."""
    placed, owners = draw.placed(0.4), draw.placed()
    if owners is not None and draw.own == draw.others:
        # They are selected by their own term.
        placed = owners if placed is None else placed + owners
    return [
        Affinity(
            domain=draw.domain(),
            subjects=draw.own,
            selects=draw.others,
            placed=placed,
            placed_subjects=owners,
            weight=draw.weight(),
        )
    ]


def _near(draw: Draw) -> list[Rule]:
    """Required affinity towards its own kind and maybe others."""
    return [Affinity(domain=draw.domain(), subjects=draw.own, selects=draw.both, placed=draw.placed())]


def _near_others(draw: Draw) -> list[Rule]:
    """Required affinity towards others."""
    return [Affinity(domain=draw.domain(), subjects=draw.own, selects=draw.others, placed=draw.placed(0.4))]


def _spread(draw: Draw, *, hard: bool) -> list[Rule]:
    rng = draw.rng
    return [
        Spread(
            domain=draw.domain(),
            subjects=draw.own,
            selects=draw.both if rng.random() < 0.2 else draw.own,
            max_skew=int(rng.integers(1, 3)),
            hard=hard,
            min_domains=int(rng.integers(1, 4)) if hard else 1,
            eligible=rng.random(len(draw.zone)) < 0.8 if rng.random() < 0.25 else None,
            placed=draw.placed(),
        )
    ]


def _hard_spread(draw: Draw) -> list[Rule]:
    """DoNotSchedule with minDomains and node policies."""
    return _spread(draw, hard=True)


def _soft_spread(draw: Draw) -> list[Rule]:
    """ScheduleAnyway."""
    return _spread(draw, hard=False)


def _default_spread(draw: Draw) -> list[Rule]:
    """Default spreading: softly by host and zone, towards replicas that are placed as well."""
    there = draw.placed(0.7)
    return [
        Spread(domain=domain, subjects=draw.own, selects=draw.own, max_skew=skew, hard=False, placed=there)
        for domain, skew in ((draw.host, 3), (draw.zone, 5))
    ]


KINDS: list[Callable[[Draw], list[Rule]]] = [
    _preferred_apart,
    _preferred_apart_from_others,
    _apart,
    _apart_from_others,
    _host_port,
    _preferred_near,
    _near,
    _near_others,
    _hard_spread,
    _soft_spread,
    _default_spread,
]


def small_rules(rng: np.random.Generator, zone: Ints, sets: int) -> tuple[Rule, ...]:
    """Up to five rules of any kind, for nodes in these zones, int64[N], and so many pod sets."""
    rules: list[Rule] = []
    for kind in rng.choice(len(KINDS), int(rng.integers(0, 6))).tolist():
        rules += KINDS[kind](Draw(rng, zone, [int(rng.integers(sets))], [int(rng.integers(sets))]))
    return tuple(rules)
