"""Plans in counts, made anew where the cluster, or what a plan knew of its volumes, turns out to be another."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from berth.kube.objects import Pod
from berth.scheduling.cache.cache import Cache
from berth.scheduling.candidates import CandidateFilter
from berth.scheduling.carrying_out import CarryingOut
from berth.scheduling.decision import Decision, Failure
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import STRETCH_SECONDS
from berth.scheduling.planning import JointPlan
from berth.scheduling.replica_plan.planner import ReplicaPlanner

MAX_PLANS = 3
"""How often a plan in counts is made at the most while others take the room that it was made with, and as often while
volumes are others than it thought."""


class Placed(NamedTuple):
    """What became of the pods of a plan that are not settled."""

    rest: list[Pod]
    """those that the plan has no node for"""
    held: list[Decision]
    """decisions that cannot be carried out"""
    unmet: list[Failure]
    """why"""
    failures: list[Failure]
    """pods that no node takes any more"""


class InCounts:
    """Plans in counts and carries them out."""

    def __init__(
        self, cache: Cache, filtered: CandidateFilter, planner: ReplicaPlanner, carrying_out: CarryingOut
    ) -> None:
        """Share the parts of the planner that asks."""
        self._cache = cache
        self._filtered = filtered
        self._planner = planner
        self._carrying_out = carrying_out

    def place(self, joint: JointPlan, candidates: Sequence[Candidate], since: int) -> Generator[None, None, Placed]:
        """Settle what can be carried out; all or nothing is planned anew with what its volumes have shown.

        Args:
            joint: what they are for.
            candidates: the pods, filtered.
            since: pauses of the budget before they were filtered.
        """
        first, budget, pods = len(joint.settled), joint.budget, [candidate.info.pod for candidate in candidates]
        failures, plans = list[Failure](), 0
        while True:
            known = len(joint.cuts)
            rest, held, lost = yield from self._plan(joint, candidates, since)
            failures += lost
            if lost and not joint.partial:
                return Placed(rest, held, [], failures)
            held, unmet = yield from self._carrying_out.settle(joint, held)
            plans += 1
            learned = len(joint.cuts) > known
            if not (unmet and learned) or joint.partial or plans == MAX_PLANS or budget.over:
                return Placed(rest, held, unmet, failures)
            self._take_back(joint, first)
            since = budget.pauses
            candidates, failures = yield from self._filtered.candidates(joint, pods, in_counts=True)
            if failures:
                return Placed([], [], [], failures)

    def _plan(
        self, joint: JointPlan, candidates: Sequence[Candidate], since: int
    ) -> Generator[None, None, tuple[list[Pod], list[Decision], list[Failure]]]:
        """Plan, and anew if others took room meanwhile that the plan was made with.

        One by one, its pods would go away from those that they call. The last time nobody else has a turn, if that does
        not take long: of many groups that are planned by turns, most lose their room each time. Returns pods that the
        plan has no node for, decisions whose node a filter rejects, and pods that no node took any more.
        """
        first, budget, took, known = len(joint.settled), joint.budget, 0.0, len(joint.cuts)
        pods, failures = [candidate.info.pod for candidate in candidates], list[Failure]()
        for attempt in range(1, MAX_PLANS + 1):
            last, began = attempt == MAX_PLANS and took < STRETCH_SECONDS, budget.spent
            with budget.at_a_stretch() if last else nullcontext():
                if attempt > 1:
                    since = budget.pauses
                    candidates, failures = yield from self._filtered.candidates(joint, pods, in_counts=True)
                    if failures and not joint.partial:
                        return [], [], failures
                rest, held = yield from self._planner.place(joint, candidates)
            if not held or attempt == MAX_PLANS or budget.pauses == since or budget.over:
                break
            took = budget.spent - began
            self._take_back(joint, first)
            del joint.cuts[known:]  # it is not the volumes that were others
        return rest, held, failures

    def _take_back(self, joint: JointPlan, first: int) -> None:
        """Give back what decisions from one on have assumed."""
        for decision in joint.settled[first:]:
            self._cache.forget(decision.pod)
        del joint.settled[first:]
