"""One run of a published rule: rounds every 31 seconds, pods deleted before their successors are there (R1 to R7)."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from bench.latency.scenarios import SERVICE, Noise, Scenario
from berth.api.latencypolicy import PublishedRule
from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.published import search
from berth.scheduling.latency.published.rounds import ROUND_SECONDS
from berth.scheduling.latency.published.rules import RULES
from berth.scheduling.latency.published.search import Visited

PUBLISHING: Final = 5.0
"""Seconds between what the meter tells."""
HORIZON: Final = 600.0
"""Seconds after which a run ends in any case."""
LAST: Final = 3
"""Requests in a row below the threshold that end a run."""
NOISE: Final = Noise(0.03)
"""Of the published experiments."""


class Mode(NamedTuple):
    """A published rule, and what it is to reach."""

    rule: PublishedRule
    """the rule"""
    goal: Callable[[Scenario], float]
    """round trip in milliseconds that is low enough"""
    after_all: bool = False
    """whether it is looked at only when all clusters were visited"""


MODES: Final = {
    "LAIS-H": Mode(PublishedRule.HARD, lambda scenario: scenario.hard),
    "LAIS-S": Mode(PublishedRule.HARD_AND_SOFT, lambda scenario: scenario.soft),
    "LAIS-0": Mode(PublishedRule.MINIMUM, lambda scenario: scenario.nearest, after_all=True),
}
"""The published modes by name."""


class Outcome(NamedTuple):
    """What one run gave."""

    latency: float
    """mean of the last requests that the user saw, in milliseconds"""
    convergence: float | None
    """when the last request above the threshold was, in seconds; None: the run ended without three below it"""
    first: float
    """mean of the first 300 seconds, in milliseconds"""
    moves: int
    """how often a pod was deleted"""
    failed: int
    """requests without a pod"""


class Search:
    """The clusters as the rounds know them."""

    def __init__(self, scenario: Scenario, mode: Mode, chance: random.Random) -> None:
        """Begin with a pod on a cluster by chance."""
        self.rule, self.chance = RULES[mode.rule], chance
        self.limits = Limits(scenario.hard * 1000.0, scenario.soft * 1000.0)
        self.nodes = {name: Visited(name) for name in scenario.nodes}
        self.place = self._go(search.destination)
        self.moves = 0

    def _go(self, destination: Callable[[Sequence[Visited]], str]) -> str:
        shuffled = self.chance.sample(list(self.nodes.values()), len(self.nodes))
        node = self.nodes[destination(shuffled)]
        self.nodes[node.node] = node.reached()
        return node.node

    def round(self) -> bool:
        """Do what a round does; return whether the pod has gone to another cluster."""
        left = self.rule.leave(tuple(self.nodes.values()), self.limits)
        if self.place not in left:
            return False
        self.nodes[self.place] = self.nodes[self.place]._replace(pods=0, dropped=True)
        self.place = self._go(self.rule.destination)
        self.moves += 1
        return True

    def measured(self, values: Sequence[float]) -> None:
        """Take in what the meter tells of the cluster where the pod is: round trips in milliseconds."""
        mean = sum(values) / len(values) * 1000
        self.nodes[self.place] = self.nodes[self.place]._replace(microseconds=mean)

    @property
    def complete(self) -> bool:
        """Whether all clusters were visited."""
        return all(node.visits for node in self.nodes.values())


def run(scenario: Scenario, mode: Mode, seed: int, *, early: bool = True) -> Outcome:
    """Return the outcome of one run.

    Args:
        scenario: the clusters.
        mode: the rule.
        seed: of all that is by chance.
        early: end after three requests in a row below the threshold.
    """
    chance = random.Random(seed)
    known, threshold = Search(scenario, mode, chance), mode.goal(scenario) + SERVICE
    at = dict(zip(scenario.nodes, scenario.latencies, strict=True))
    ready, time, next_round, next_told = 0.0, chance.uniform(0, 1), ROUND_SECONDS, PUBLISHING
    values: list[float] = []
    seen: list[tuple[float, float]] = []
    below = failed = 0
    above: float = 0.0
    while time < HORIZON:
        while min(next_round, next_told) <= time:
            if next_told <= next_round:
                if values:
                    known.measured(values)
                values, next_told = [], next_told + PUBLISHING
            else:
                if known.round():
                    ready, values = next_round + chance.uniform(1, 3), []
                next_round += ROUND_SECONDS
        if time < ready:
            failed, time = failed + 1, time + 0.5
            continue
        trip = NOISE.apply(at[known.place], chance)
        values.append(trip)
        seen.append((time, trip + SERVICE))
        counts = trip + SERVICE < threshold and (known.complete or not mode.after_all)
        below, above = (below + 1, above) if counts else (0, time)
        if early and below == LAST and (not mode.after_all or known.moves >= len(at) - 1):
            break
        time += chance.uniform(4, 6)
    first = [latency for when, latency in seen if when < 300]
    last = [latency for _, latency in seen[-LAST:]]
    convergence = above if below >= LAST else None
    return Outcome(sum(last) / LAST, convergence, sum(first) / len(first), known.moves, failed)
