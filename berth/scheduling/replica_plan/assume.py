"""Assuming the pods of a plan one by one, each where the filters still admit it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from berth.scheduling.decision import Decision
from berth.scheduling.gang.application import beyond_template
from berth.scheduling.gang.budget import Budget
from berth.scheduling.gang.exact import ExactAmounts, fits
from berth.scheduling.replica_plan.shared_budgets import SharedBudgets
from berth.scheduling.single import workload_of
from berth.scheduling.turns import Turns, depends_on_others

if TYPE_CHECKING:
    from berth.kube.objects import Pod
    from berth.network.limits import Planned
    from berth.scheduling.cache.cache import Cache
    from berth.scheduling.cache.pod_templates import PodInfo

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
    budgets is judged once for all pods, and only where that does not hold, pod by pod.
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
        carried: bool,
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
            carried: whether its calls take from budgets.
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
        self._shared = SharedBudgets(exact) if carried and not judge_all else None
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
        first = len(settled)
        held = yield from self._assume(settled)
        if self._shared is None or self._shared.kept:
            return held
        self._shared, self._judge_all = None, True
        for decision in settled[first:]:
            self._cache.forget(decision.pod)
        del settled[first:]
        self._exact = self._amounts()
        return (yield from self._assume(settled))

    def _assume(self, settled: list[Decision]) -> Generator[None, None, list[Decision]]:
        """Do so with every decision, and have budgets judged pod by pod or not at all."""
        self._coming.clear()
        for decision in self._decisions:
            self._coming[workload_of(decision.pod)][decision.node] += 1
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
                yield from self._pause()
            if len(later) == len(waiting):
                return [decision for decision, _ in later]
            waiting, first = later, False
        return []

    def _pause(self) -> Generator[None, None, None]:
        for _ in self._budget.pause():
            over = self._shared.others_turn() if self._shared is not None else None
            yield
            if over is not None:
                over()

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
        admitted = self._filters(decision.pod, self._coming, budgets=self._shared is None)
        others[decision.node] += 1
        return admitted
