"""Applications of many replicas that are rolled out: with all pods to come in the plan of each wave, none, or some.

All Deployments of Online Boutique get another template at once; a quarter of their replicas surge, and each wave is
ready before the next comes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import ceil
from typing import NamedTuple

from bench.replicas.boutique import GROUP, Case
from bench.replicas.cluster import read_cluster
from bench.replicas.evaluator import evaluate
from bench.replicas.growth import Application, Planner, by_berth_plan
from bench.replicas.objective import objective
from bench.replicas.report import table
from berth.scheduling.replica_plan import question

CASES = tuple(Case(replicas, prefer, nodes=200) for replicas in (12, 18, 27) for prefer in ("", "PreferSameZone"))


class Judged(NamedTuple):
    """An application as it is."""

    cost: float
    """mean cost of an edge"""
    objective: float


class Waves(NamedTuple):
    """A rollout."""

    end: Judged
    seconds: float
    """processor time of all waves, reading included"""


def run(case: Case, *, most: int, planner: Planner = by_berth_plan) -> tuple[Judged, Waves]:
    """Return a plan from scratch, and the rollout of it where up to `most` pods count as to come."""
    application = Application.of(case, planner)
    application.add(case.replicas, revision="v1")
    _become_ready(application)
    scratch, left, surge = _judged(application), case.replicas, ceil(case.replicas / 4)
    with _ahead(most):
        began = time.process_time()
        while left:
            count = min(surge, left)
            application.add(count, revision="v2")
            _become_ready(application)
            application.remove(count, revision="v1")
            left -= count
        return scratch, Waves(_judged(application), time.process_time() - began)


def page(cases: Sequence[Case] = CASES) -> str:
    """A row for every case and bound of the pods to come: all of them, none, and as many as the planner counts."""
    rows = []
    for case in cases:
        for name, most in (("all", 1 << 30), ("none", 0), (f"up to {question.MOST_AHEAD} pods", question.MOST_AHEAD)):
            scratch, waves = run(case, most=most)
            figures = [f"{each:.2f} / {fresh:.2f}" for each, fresh in zip(waves.end, scratch, strict=True)]
            rows.append([str(case.replicas), case.prefer or "all endpoints", name, *figures, f"{waves.seconds:.1f}"])
    header = ["replicas of each", "Services", "pods to come in the plan", "cost / from scratch", "objective", "seconds"]
    return table(header, rows)


@contextmanager
def _ahead(most: int) -> Iterator[None]:
    before, question.MOST_AHEAD = question.MOST_AHEAD, most
    try:
        yield
    finally:
        question.MOST_AHEAD = before


def _become_ready(application: Application) -> None:
    for pod in application.pods:
        pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _judged(application: Application) -> Judged:
    cluster = read_cluster([*application.base, *application.pods])
    return Judged(evaluate(cluster, GROUP).cost, objective(cluster, GROUP))
