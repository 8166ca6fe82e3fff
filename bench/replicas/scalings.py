"""Whole applications that are scaled time after time, each step beside a plan of as many replicas from scratch.

All Deployments of Online Boutique get another number of replicas at once, up or down, again and again. Pods come as a
controller creates them, and are planned as the controller plans them; who goes is the choice of ReplicaSets.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Final

from bench.replicas.boutique import RULES, Case
from bench.replicas.growth import Planner, by_berth_plan
from bench.replicas.rollouts import PACES, Ending, Rollout, judged
from bench.replicas.waves import Cluster

MOST: Final = 6
"""Replicas of each workload."""
STEPS: Final = 6
"""Times that an application is scaled."""
RESTS: Final = (5.0, 60.0, 600.0)
"""Seconds between two of them, one by chance: ReplicaSets compare ages by powers of two."""


def scaled(seed: int, planner: Planner = by_berth_plan) -> Iterator[Ending]:
    """Place an application, scale it by chance and judge every step."""
    chance = Random(seed)
    rule, prefer = chance.choice(list(RULES)[:5]), chance.choice(("", "PreferSameZone"))
    case = Case(chance.randint(1, MOST), prefer, rule)
    walk = Rollout(case, ((1, 0),), "near", (), seed)
    cluster = Cluster(case, walk.limits, PACES[walk.pace], chance, planner)
    cluster.place()
    replicas = case.replicas
    for _ in range(STEPS):
        replicas = chance.choice([number for number in range(1, MOST + 1) if number != replicas])
        for deployment in cluster.deployments:
            deployment.scale(replicas)
        cluster.sync()
        before = cluster.plans
        cluster.run()
        yield judged(walk, cluster, replicas, plans=cluster.plans - before)
        cluster.now += chance.choice(RESTS)
