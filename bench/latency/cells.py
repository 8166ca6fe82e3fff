"""What is simulated, cell by cell, and the goal of each."""

from __future__ import annotations

from typing import Final, NamedTuple

from bench.latency.crowd import HARD
from bench.latency.crowd import Outcome as CrowdOutcome
from bench.latency.crowd import Simulation as CrowdSimulation
from bench.latency.policy import Outcome, Simulation, Terms
from bench.latency.published import MODES, run
from bench.latency.published import Outcome as PublishedOutcome
from bench.latency.scenarios import SCENARIOS, Scenario
from berth.api.latencypolicy import LatencyPolicySpec, Objective, Target, UserMode, Users

Row = dict[str, list[float]]
"""Figures of a cell by name: mean, standard deviation, number of runs that have it."""
SHARES: Final = (0.0, 0.3, 1.0)
"""Shares of users that agents cannot probe."""
CROWD: Final = (0.0, 0.3, 1.0)
"""The same of many users."""
TARGET: Final = Target(name="web")
"""Workload of all policies."""


class Cell(NamedTuple):
    """Berth's own decisions in one scenario, and what they are to reach."""

    kind: str
    """minimum, soft or hard"""
    scenario: Scenario
    """the clusters"""
    unreachable: float
    """share of users that agents cannot probe"""

    @property
    def name(self) -> str:
        """Name of the row."""
        return f"{self.kind} {self.unreachable:g} {self.scenario.name}"

    @property
    def terms(self) -> Terms:
        """What a run is about."""
        scenario = self.scenario
        match self.kind:
            case "minimum":
                spec = LatencyPolicySpec(target_ref=TARGET, objective=Objective.MINIMUM)
                return Terms(scenario, spec, scenario.nearest, self.unreachable)
            case "soft":
                spec = LatencyPolicySpec(
                    target_ref=TARGET, hard_max_latency=scenario.hard, soft_max_latency=scenario.soft
                )
                return Terms(scenario, spec, scenario.soft, self.unreachable)
            case _:
                spec = LatencyPolicySpec(target_ref=TARGET, hard_max_latency=scenario.hard)
                return Terms(scenario, spec, scenario.hard, self.unreachable)


CELLS: Final = [
    Cell(kind, each, share) for kind in ("minimum", "soft", "hard") for share in SHARES for each in SCENARIOS
]
"""All cells of one user."""

NEAR_EQUAL: Final = Scenario("near-equal", (40, 40, 41, 41, 41, 42, 42, 42), 60, 60)
"""Clusters among which no move is needed: they differ by 5 %."""
CALM: Final = {
    "calm minimum": Terms(
        NEAR_EQUAL, LatencyPolicySpec(target_ref=TARGET, objective=Objective.MINIMUM), 60, horizon=3600.0
    ),
    "calm limits": Terms(
        Scenario("about the limit", (36, 36, 37, 37, 38, 38, 39, 39), 40, 40),
        LatencyPolicySpec(target_ref=TARGET, hard_max_latency=40),
        40,
        horizon=3600.0,
    ),
}
"""An hour in which nothing has to move: each move counts as unneeded."""

GOALS: Final[dict[str, tuple[float | None, float | None, float | None]]] = {
    "minimum 0": (20, 8, 0.95),
    "minimum 0.3": (20, 20, None),
    "minimum 1": (20, 44, None),
    "soft 0": (21, 6, 0.85),
    "soft 0.3": (21.5, 12, None),
    "soft 1": (23, 23, 2.2),
}
"""Latency in milliseconds, convergence in seconds and moves at most, by kind and share."""
HARD_GOALS: Final[dict[str, tuple[float, float]]] = {
    "hard 0 S1": (26.5, 5),
    "hard 0 S2": (35.5, 5),
    "hard 0 S3": (40.5, 5),
    "hard 1 S1": (32, 12),
    "hard 1 S2": (44, 7),
    "hard 1 S3": (53, 7),
}
"""Latency and convergence at most with a hard limit alone."""
FIRST_GOAL: Final = 22.5
"""Mean of the first 300 seconds at most: minimum, all users can be probed."""
SUCCESS_GOAL: Final = 0.995
"""Share of runs at least that end within their goal."""


def goals(name: str) -> dict[str, float]:
    """Return what the figures of a row may be at most, by figure."""
    kind_share, _, scenario = name.rpartition(" ")
    if name in HARD_GOALS:
        return dict(zip(("latency", "convergence"), HARD_GOALS[name], strict=True))
    if scenario.startswith("S") and kind_share in GOALS:
        stated = zip(("latency", "convergence", "moves"), GOALS[kind_share], strict=True)
        found = {figure: most for figure, most in stated if most is not None}
        return found | ({"first": FIRST_GOAL} if kind_share == "minimum 0" else {})
    if name.startswith("calm"):
        return {"moves": 1.0}
    if name in ("crowd 0.0", "crowd 0.3"):
        return {"ratio": 1.02, "convergence": 15, "moves": 3, "convergence then": 10, "moves then": 1}
    return {}


def published(mode: str, scenario: Scenario, seed: int) -> dict[str, float | None]:
    """Return the figures of one run of a published rule, and those of a run that is not ended early."""
    early: PublishedOutcome = run(scenario, MODES[mode], seed)
    whole: PublishedOutcome = run(scenario, MODES[mode], seed, early=False)
    return {
        "latency": early.latency,
        "convergence": early.convergence,
        "success": float(early.convergence is not None),
        "first": whole.first,
        "moves": whole.moves,
        "failed": whole.failed,
    }


def own(cell: Cell, seed: int) -> dict[str, float | None]:
    """Return the figures of one run of Berth's own decisions."""
    return _figures(Simulation(cell.terms, seed).run())


def calm(name: str, seed: int) -> dict[str, float | None]:
    """Return the figures of an hour in which nothing has to move."""
    return _figures(Simulation(CALM[name], seed).run())


def _figures(found: Outcome) -> dict[str, float | None]:
    return {name: float(value) for name, value in found._asdict().items()}


def crowd(share: float, seed: int) -> dict[str, float | None]:
    """Return the figures of one run with many users."""
    users = Users(mode=UserMode.PER_USER)
    spec = LatencyPolicySpec(target_ref=TARGET, hard_max_latency=HARD, users=users)
    found: CrowdOutcome = CrowdSimulation(spec, share, seed).run()
    return {
        "start": found.start,
        "mean": found.first.mean,
        "ratio": found.first.mean / found.first.best,
        "convergence": found.first.convergence,
        "moves": found.first.moves,
        "within": found.first.within,
        "ratio then": found.then.mean / found.then.best,
        "convergence then": found.then.convergence,
        "moves then": found.then.moves,
        "failed": found.failed,
        "extra": found.extra,
    }
