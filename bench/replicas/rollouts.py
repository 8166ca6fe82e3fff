"""Whole applications that are rolled out, wave after wave, beside a plan of them from scratch.

All Deployments of Online Boutique get another template at once. Their new pods come as those before them are ready, and
are planned as the controller plans them: together with what came within a moment. No pod is moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from bench.replicas.boutique import GROUP, RULES, Case
from bench.replicas.cluster import read_cluster
from bench.replicas.evaluator import Evaluation, evaluate
from bench.replicas.growth import Planner, by_berth_plan
from bench.replicas.objective import objective
from bench.replicas.report import table
from bench.replicas.rules import violations
from bench.replicas.waves import Cluster

PACES: Final = {"together": (0.2, 0.3), "near": (0.3, 2.0), "apart": (1.0, 20.0)}
"""Seconds that a pod takes to be ready, the least and the most."""
LIMITS: Final = ((1, 0), (1, 0), (1, 0), (2, 0), (3, 0), (0, 1), (1, 1), (2, 1))
"""maxSurge and maxUnavailable of three replicas: 25 % more often than others."""
KILLED: Final = 0.2
"""Share of pods that are killed at once."""
WORSE: Final = 1.2
"""Times a plan from scratch that is too much."""
EXACT: Final = 1e-6
"""Below which figures differ by their rounding alone."""
TURNS: Final = ("again", "back", "grown", "shrunk", "killed")
"""What may happen in the middle of a rollout."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """One application and what it goes through."""

    case: Case
    limits: tuple[tuple[int, int], ...]
    """maxSurge and maxUnavailable, by Deployment in turn"""
    pace: str
    turns: tuple[str, ...]
    seed: int

    @classmethod
    def of(cls, seed: int) -> Rollout:
        """One by chance."""
        chance = Random(seed)
        case = Case(rule=chance.choice(list(RULES)), prefer=chance.choice(("", "PreferSameZone")))
        limits = tuple(chance.choices(LIMITS, k=chance.choice((1, 1, 11))))
        turns = tuple(chance.choices(TURNS, k=chance.choice((0, 1, 1, 2))))
        return cls(case, limits, chance.choice(list(PACES)), turns, seed)


@dataclass(frozen=True, slots=True)
class Ending:
    """The application once all is ready, and as many replicas placed from scratch."""

    rollout: Rollout
    lived: Evaluation
    fresh: Evaluation
    objectives: tuple[float, float]
    """of both"""
    plans: int
    settled: bool
    """whether the rollout came to its end"""
    broken: int
    """hard rules that the placement breaks"""

    @property
    def dearer(self) -> bool:
        """Whether it costs more than 1.2 times a plan from scratch."""
        return self.lived.cost > WORSE * self.fresh.cost + EXACT

    @property
    def loses(self) -> tuple[bool, bool]:
        """Whether fewer workloads survive a node, and a zone."""
        return self.lived.survive_node < self.fresh.survive_node, self.lived.survive_zone < self.fresh.survive_zone


def roll_out(rollout: Rollout, planner: Planner = by_berth_plan) -> Ending:
    """Place an application, roll it out and judge where it ends."""
    pace, chance = PACES[rollout.pace], Random(rollout.seed)
    cluster = Cluster(rollout.case, rollout.limits, pace, chance, planner)
    cluster.place()
    replicas, revision = rollout.case.replicas, 1
    for turn in ("again", *rollout.turns):
        if turn == "killed":
            cluster.kill(KILLED)
        elif turn in ("again", "back"):
            revision += 1 if turn == "again" else -1
            for deployment in cluster.deployments:
                deployment.begin(f"v{revision}")
        else:
            replicas = max(2, replicas + (1 if turn == "grown" else -1))
            for deployment in cluster.deployments:
                deployment.scale(replicas)
        cluster.sync()
        cluster.run(chance.uniform(0.2, 1.5) * pace[1])
    cluster.run()
    return judged(rollout, cluster, replicas, plans=cluster.plans)


def judged(rollout: Rollout, cluster: Cluster, replicas: int, *, plans: int) -> Ending:
    """What is there now beside so many replicas placed from scratch; `plans` is how many it took."""
    fresh = Cluster(
        replace(rollout.case, replicas=replicas), rollout.limits, cluster.pace, cluster.chance, cluster.planner
    )
    fresh.place()
    now, scratch = (read_cluster(each.documents()) for each in (cluster, fresh))
    return Ending(
        rollout=rollout,
        lived=evaluate(now, GROUP),
        fresh=evaluate(scratch, GROUP),
        objectives=(objective(now, GROUP), objective(scratch, GROUP)),
        plans=plans,
        settled=cluster.settled,
        broken=len(violations(now)),
    )


def page(endings: Iterable[Ending], what: str = "rollouts") -> str:
    """A row for those with each kind of rules, and one for all."""
    found = list(endings)
    rules = {rule: [each for each in found if each.rollout.case.rule == rule] for rule in RULES}
    rows = [_row(rule, those) for rule, those in rules.items() if those]
    header = ["rules", what, "dearer than 1.2 x", "lose a node", "lose a zone", "any of these"]
    more = ["objective above 1.2 x", "cost above", "unfinished", "hard rules broken", "plans"]
    return table([*header, *more], [*rows, _row("all", found)])


def _row(name: str, endings: Sequence[Ending]) -> list[str]:
    above = sum(max(0.0, each.lived.cost - each.fresh.cost) for each in endings)
    figures = [
        len(endings),
        sum(each.dearer for each in endings),
        *(sum(each.loses[number] for each in endings) for number in (0, 1)),
        sum(each.dearer or any(each.loses) for each in endings),
        sum(each.objectives[0] > WORSE * each.objectives[1] + EXACT for each in endings),
    ]
    counts = (sum(not each.settled for each in endings), sum(each.broken for each in endings))
    return [name, *map(str, figures), f"{above:.2f}", *map(str, counts), str(sum(each.plans for each in endings))]
