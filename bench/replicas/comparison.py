"""`berth plan` beside the optimum on generated problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import yaml

from bench.replicas.brute_force import optimum
from bench.replicas.cluster import read_cluster
from bench.replicas.objective import DEFAULT_WEIGHTS, Weights, objective
from bench.replicas.problems import GROUP, problem, waiting_pods
from bench.replicas.rules import violations
from berth.cli.plan.run import FORECASTS, plan

_CLOSE = 1e-6


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a plan made of one problem."""

    seed: int
    best: float | None
    """objective of the optimum, None when no placement keeps the hard rules"""
    planned: float | None
    """objective of the plan, None when a pod has no node"""
    broken: int
    """hard rules that the plan breaks"""

    @property
    def missed(self) -> bool:
        """Whether there is a placement and the plan has none, or one that breaks a rule."""
        return self.best is not None and (self.planned is None or self.broken > 0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of them together."""

    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def feasible(self) -> list[Outcome]:
        """Problems that have a placement."""
        return [item for item in self.outcomes if item.best is not None]

    @property
    def found(self) -> list[tuple[float, float]]:
        """Objectives of the plan and of the optimum, where there are both."""
        return [
            (item.planned, item.best)
            for item in self.outcomes
            if item.best is not None and item.planned is not None and not item.broken
        ]

    def lines(self) -> list[str]:
        """For people."""
        found, feasible = self.found, len(self.feasible)
        best = sum(best for _, best in found)
        optimal = sum(planned <= best + _CLOSE for planned, best in found)
        rows = [
            ("problems", f"{len(self.outcomes)}"),
            ("with a placement that keeps all hard rules", f"{feasible}"),
            ("of these placed whole, no rule broken", f"{len(found)} ({_share(len(found), feasible)})"),
            ("at the optimum", f"{optimal} ({_share(optimal, feasible)})"),
            ("sum of their objectives", f"{sum(planned for planned, _ in found):.0f}"),
            ("sum of the optima", f"{best:.0f}"),
            ("plans that break a hard rule", f"{sum(item.broken > 0 for item in self.outcomes)}"),
        ]
        return [f"| {words} | {number} |" for words, number in rows]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "-"


def outcome(
    seed: int,
    *,
    grown: bool = False,
    preferences: bool = False,
    weights: Weights = DEFAULT_WEIGHTS,
    strategy: str | None = None,
) -> Outcome:
    """Plan one problem, by another strategy than the default one if it is named, and solve it."""
    documents = problem(seed, grown=grown, preferences=preferences)
    cluster, waiting = read_cluster(documents), waiting_pods(documents)
    best = optimum(cluster, GROUP, waiting, weights)
    text = yaml.dump_all(documents, Dumper=yaml.CSafeDumper)
    made = plan([("problem.yaml", text)], forecasts=FORECASTS, strategy=strategy)
    placed = read_cluster(documents, made)
    whole = len(placed.pods) == len(cluster.pods) + len(waiting)
    return Outcome(
        seed,
        best.value if best is not None else None,
        objective(placed, GROUP, weights) if whole else None,
        len(violations(placed, cluster.pods)),
    )


def compare(
    seeds: Iterable[int], *, grown: bool = False, preferences: bool = False, strategy: str | None = None
) -> Comparison:
    """Plan and solve generated problems."""
    return Comparison([outcome(seed, grown=grown, preferences=preferences, strategy=strategy) for seed in seeds])


def page(comparison: Comparison, *, listed: int = 10) -> str:
    """The figures, and seeds to look at: those with no placement found, then those farthest from the optimum."""
    missed = [item.seed for item in comparison.outcomes if item.missed]
    gaps: Sequence[Outcome] = sorted(
        (
            item
            for item in comparison.outcomes
            if item.planned is not None and item.best is not None and not item.broken
        ),
        key=lambda item: (item.best or 0.0) - (item.planned or 0.0),
    )
    far = [f"{item.seed} ({item.planned:.2f} for {item.best:.2f})" for item in gaps[:listed]]
    return "\n".join(
        [
            "| | |",
            "|---|---|",
            *comparison.lines(),
            "",
            f"Seeds without a placement: {', '.join(map(str, missed[:listed])) or 'none'}",
            f"Seeds farthest from the optimum: {', '.join(far) or 'none'}",
        ]
    )
