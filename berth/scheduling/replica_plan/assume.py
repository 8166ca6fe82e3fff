"""Assuming the pods of a plan one by one, each where the filters still admit it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Generator, Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from berth.scheduling.decision import Decision
from berth.scheduling.gang.application import beyond_template
from berth.scheduling.gang.budget import Budget
from berth.scheduling.gang.exact import fits
from berth.scheduling.replica_plan.relief import Relief
from berth.scheduling.replica_plan.shared_budgets import Left, SharedBudgets
from berth.scheduling.single import workload_of
from berth.scheduling.turns import Turns, depends_on_others

if TYPE_CHECKING:
    from berth.kube.objects import Pod
    from berth.network.groups import GroupEdge, GroupKey
    from berth.network.limits import Planned
    from berth.scheduling.cache.cache import Cache
    from berth.scheduling.cache.pod_templates import PodInfo
    from berth.scheduling.gang.state import InfrastructureState

Bools = npt.NDArray[np.bool_]


class Filters(Protocol):
    """Runs the filters for one pod."""

    def __call__(self, pod: Pod, planned: Planned, *, budgets: bool) -> Bools:
        """Return bool[N], the nodes that admit a pod with what is assumed by now, and as to calls with what is planned.

        Without `budgets`, what calls take of nodes and links is left out.
        """


class Assuming:
    """Carries out one plan in counts.

    A pod is judged by the filters if it has rules about other pods, or if what the plan knew may be old: others have
    had a turn since. Then pods that are alike are judged once, until others have another turn. What calls take of
    budgets is judged once for all pods; where they take too much, the fewest that will do are given up, and judged one
    by one.
    """

    def __init__(
        self,
        cache: Cache,
        decisions: Sequence[Decision],
        filters: Filters,
        infrastructure: Callable[[], InfrastructureState],
        budget: Budget,
        *,
        judge_all: bool,
        key: GroupKey,
        calls: Collection[GroupEdge],
        limited: bool,
    ) -> None:
        """Take a plan.

        Args:
            cache: where pods are assumed.
            decisions: the plan, in an order in which rules between its pods are likely to hold all the way.
            filters: run for one pod.
            infrastructure: asks for the amounts of nodes and links as of now.
            budget: time, in turns.
            judge_all: judge every pod: amounts are shared in a way that the plan rounds.
            key: their AppGroup.
            calls: those of its calls that take from budgets.
            limited: whether some call has a limit: then alike pods are told apart by their nodes.
        """
        self._cache = cache
        self._decisions = decisions
        self._filters = filters
        self._infrastructure = infrastructure
        self._exact = infrastructure().exact
        self._budget = budget
        self._judge_all = judge_all
        self._limited = limited
        self._judged_any = False
        self._key, self._calls = key, calls
        self._shared: SharedBudgets | None = None
        if calls and not judge_all:
            self._shared = SharedBudgets(lambda: Left.of(infrastructure()))
        self._coming: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Pods of the plan that are not assumed yet, by workload and node."""
        self._pauses = budget.pauses
        self._known: dict[Hashable, Bools] = {}
        """What the filters have said since the last pause."""

    def run(self, settled: list[Decision]) -> Generator[None, None, list[Decision]]:
        """Assume what holds and add it to `settled`; a pod whose rule needs a later pod waits for its turn.

        Returns decisions whose node a filter rejects to the end, or that there was no time to judge. One pod is judged
        in any case, so that every plan gets somewhere.
        """
        if self._shared is None:
            return (yield from self._assume(settled))
        first = len(settled)
        try:
            # What other groups take differently by their Services is not to count as the plan's.
            self._cache.recounts_held = True
            held = yield from self._assume(settled)
            relief = Relief(self._cache, self._shared, self._infrastructure, self._key, self._calls)
            given_up = relief.give_up(settled[first:])
        finally:
            self._cache.recounts_held = False
        if not given_up:
            return held
        uids = {decision.pod.metadata.uid for decision in given_up}
        settled[first:] = [decision for decision in settled[first:] if decision.pod.metadata.uid not in uids]
        self._decisions, self._shared = given_up, None
        self._judge_all, self._judged_any = True, False
        return held + (yield from self._assume(settled))

    def _assume(self, settled: list[Decision]) -> Generator[None, None, list[Decision]]:
        """Do so with every decision, and have budgets judged pod by pod or not at all.

        Who is decided about first stays longest when its workload shrinks: that is the order of the plan, but for pods
        whose rules need others before them.
        """
        begin, infos = len(settled), [self._cache.state.info(decision.pod) for decision in self._decisions]
        waiting = list(zip(self._decisions, infos, strict=True))
        any_order = not self._judge_all and not any(map(depends_on_others, infos))
        if any_order:
            # Alike pods together: pauses forget verdicts.
            first: dict[bytes, int] = {}
            for info in infos:
                first.setdefault(info.template.key, len(first))
            waiting.sort(key=lambda each: (first[each[1].template.key], each[0].node))
        held = yield from self._assume_in_turn(waiting, settled)
        if any_order:
            place = {decision.pod.metadata.uid: at for at, decision in enumerate(self._decisions)}
            settled[begin:] = sorted(settled[begin:], key=lambda decision: place[decision.pod.metadata.uid])
        return held

    def _assume_in_turn(
        self, waiting: list[tuple[Decision, PodInfo]], settled: list[Decision]
    ) -> Generator[None, None, list[Decision]]:
        self._coming.clear()
        for decision, _ in waiting:
            self._coming[workload_of(decision.pod)][decision.node] += 1
        turns, first = Turns(self._cache.state, [info for _, info in waiting]), True
        while waiting:
            later: list[tuple[Decision, PodInfo]] = []
            for decision, info in waiting:
                if not (first or turns.due(info)):
                    later.append((decision, info))
                    continue
                yield from self._pause()
                if not self._holds(decision, info):
                    turns.judged(info)
                    later.append((decision, info))
                    continue
                self._coming[workload_of(decision.pod)][decision.node] -= 1
                self._cache.assume(decision.pod, decision.node)
                settled.append(decision)
                turns.assumed(info)
            if len(later) == len(waiting):
                return [decision for decision, _ in later]
            waiting, first = later, False
        return []

    def _pause(self) -> Generator[None, None, None]:
        for _ in self._budget.pause():
            if self._shared is None:
                yield
                continue
            self._shared.end_turn()
            self._cache.recounts_held = False
            yield
            self._shared.begin_turn()
            self._cache.recounts_held = True

    def _holds(self, decision: Decision, info: PodInfo) -> bool:
        """Whether a pod may still have the node that is planned for it."""
        slot = self._cache.state.node_index.get(decision.node)
        if slot is None:
            return False
        if self._pauses != self._budget.pauses:
            self._pauses, self._exact = self._budget.pauses, self._infrastructure().exact
            self._known.clear()
        if self._judge_all or depends_on_others(info) or not fits(self._cache.state, self._exact, slot, info.template):
            admitted = self._judge(decision)
            return admitted is not None and bool(admitted[slot])
        if not self._budget.pauses:
            return True
        rejected = self._cache.recently_rejected(decision.pod)
        alike = (info.template.key, rejected, slot if self._limited else None, *beyond_template(decision.pod))
        if alike not in self._known:
            admitted = self._judge(decision)
            if admitted is None:
                return False
            self._known[alike] = admitted
        return bool(self._known[alike][slot])

    def _judge(self, decision: Decision) -> Bools | None:
        """Run the filters; None without time left."""
        if self._judged_any and self._budget.exhausted:
            return None
        self._judged_any = True
        # Which endpoints a call reaches is judged as it will be when all others are there.
        others = self._coming[workload_of(decision.pod)]
        others[decision.node] -= 1
        admitted = self._filters(decision.pod, self._coming, budgets=self._shared is None)
        others[decision.node] += 1
        return admitted
