"""Assuming the pods of a plan one by one, each where the filters still admit it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berth.scheduling.decision import Decision
from berth.scheduling.gang.application import beyond_template
from berth.scheduling.gang.budget import Budget
from berth.scheduling.gang.exact import ExactAmounts, fits
from berth.scheduling.single import workload_of
from berth.scheduling.turns import Turns, depends_on_others

if TYPE_CHECKING:
    from berth.kube.objects import Pod
    from berth.network.limits import Planned
    from berth.scheduling.cache.cache import Cache
    from berth.scheduling.cache.pod_templates import PodInfo

Bools = npt.NDArray[np.bool_]
Filters = Callable[["Pod", "Planned"], "Bools"]
"""bool[N], nodes that all filters admit a pod to with what is assumed by now, and as to calls with what is planned."""


class Assuming:
    """Carries out one plan in counts.

    A pod is judged by the filters if it has rules about other pods, or if what the plan knew may be old: others have
    had a turn since. Then pods that are alike are judged once, until others have another turn.
    """

    def __init__(
        self,
        cache: Cache,
        decisions: Sequence[Decision],
        filters: Filters,
        exact: Callable[[], ExactAmounts],
        budget: Budget,
        *,
        judge_all: bool,
        limited: bool,
    ) -> None:
        """Take a plan.

        Args:
            cache: where pods are assumed.
            decisions: the plan, in an order in which rules between its pods are likely to hold all the way.
            filters: run for one pod.
            exact: asks for the amounts of nodes as of now.
            budget: time, in turns.
            judge_all: judge every pod: amounts are shared in a way that the plan rounds.
            limited: whether some call has a limit: then alike pods are told apart by their nodes.
        """
        self._cache = cache
        self._decisions = decisions
        self._filters = filters
        self._amounts = exact
        self._exact = exact()
        self._budget = budget
        self._judge_all = judge_all
        self._limited = limited
        self._judged_any = False
        self._coming: defaultdict[str, Counter[str]] = defaultdict(Counter)
        """Pods of the plan that are not assumed yet, by workload and node."""
        for decision in decisions:
            self._coming[workload_of(decision.pod)][decision.node] += 1
        self._pauses = budget.pauses
        self._known: dict[Hashable, Bools] = {}
        """What the filters have said since the last pause."""

    def run(self, settled: list[Decision]) -> Generator[None, None, list[Decision]]:
        """Assume what holds and add it to `settled`; a pod whose rule needs a later pod waits for its turn.

        Returns decisions whose node a filter rejects to the end, or that there was no time to judge. One pod is judged
        in any case, so that every plan gets somewhere.
        """
        state = self._cache.state
        infos = [state.info(decision.pod) for decision in self._decisions]
        turns = Turns(state, infos)
        waiting, first = self._in_turn(infos), True
        while waiting:
            later: list[tuple[Decision, PodInfo]] = []
            for decision, info in waiting:
                if not (first or turns.due(info)) or not self._holds(decision, info):
                    turns.judged(info)
                    later.append((decision, info))
                    continue
                self._coming[workload_of(decision.pod)][decision.node] -= 1
                self._cache.assume(decision.pod, decision.node)
                settled.append(decision)
                turns.assumed(info)
                yield from self._budget.pause()
            if len(later) == len(waiting):
                return [decision for decision, _ in later]
            waiting, first = later, False
        return []

    def _in_turn(self, infos: Sequence[PodInfo]) -> list[tuple[Decision, PodInfo]]:
        """The decisions in their order, or alike pods together where that does not matter: pauses forget verdicts."""
        waiting = list(zip(self._decisions, infos, strict=True))
        if not self._judge_all and not any(map(depends_on_others, infos)):
            first: dict[int, int] = {}
            for info in infos:
                first.setdefault(id(info.template), len(first))
            waiting.sort(key=lambda each: (first[id(each[1].template)], each[0].node))
        return waiting

    def _holds(self, decision: Decision, info: PodInfo) -> bool:
        """Whether a pod may still have the node that is planned for it."""
        slot = self._cache.state.node_index.get(decision.node)
        if slot is None:
            return False
        if self._pauses != self._budget.pauses:
            self._pauses, self._exact = self._budget.pauses, self._amounts()
            self._known.clear()
        if self._judge_all or depends_on_others(info) or not fits(self._cache.state, self._exact, slot, info.template):
            admitted = self._judge(decision)
            return admitted is not None and bool(admitted[slot])
        if not self._budget.pauses:
            return True
        rejected = self._cache.recently_rejected(decision.pod)
        alike = (id(info.template), rejected, slot if self._limited else None, *beyond_template(decision.pod))
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
        admitted = self._filters(decision.pod, self._coming)
        others[decision.node] += 1
        return admitted
