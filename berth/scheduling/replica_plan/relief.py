"""Which pods of a plan are given up where its calls exceed a budget: as few as will do, the last ones first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache
from operator import itemgetter
from typing import TYPE_CHECKING

from berth.scheduling.single import workload_of
from berth.scheduling.turns import selects

if TYPE_CHECKING:
    from berth.network.groups import GroupEdge, GroupKey
    from berth.scheduling.cache.cache import Cache
    from berth.scheduling.cache.pod_templates import PodTemplateInfo
    from berth.scheduling.decision import Decision
    from berth.scheduling.gang.state import InfrastructureState
    from berth.scheduling.replica_plan.shared_budgets import BudgetName, SharedBudgets

Rank = Callable[[str, int], int | None]
"""Of a pod of a workload on a node slot: how late it is given up for a budget; None where that is no use."""


class Relief:
    """Relieves budgets that a plan exceeds."""

    def __init__(
        self,
        cache: Cache,
        shared: SharedBudgets,
        infrastructure: Callable[[], InfrastructureState],
        key: GroupKey,
        calls: Iterable[GroupEdge],
    ) -> None:
        """Share the books of a plan.

        Args:
            cache: where its pods are assumed.
            shared: what it takes of budgets.
            infrastructure: asks for nodes and links as of now.
            key: its AppGroup.
            calls: those of its calls that take from budgets.
        """
        self._cache = cache
        self._shared = shared
        self._infrastructure = infrastructure
        self._key = key
        self._callers: defaultdict[str, set[str]] = defaultdict(set)
        """workloads that are called, by caller"""
        self._called: defaultdict[str, set[str]] = defaultdict(set)
        """workloads that call, by whom they call"""
        for edge in calls:
            self._callers[edge.dependent].add(edge.dependency)
            self._called[edge.dependency].add(edge.dependent)

    def give_up(self, decisions: Sequence[Decision]) -> list[Decision]:
        """Forget some of a plan's pods, so that what is left of it exceeds no budget.

        Budgets are relieved one by one, each by the fewest of the last pods that will do. A pod that was admitted next
        to one that is given up goes as well: its rules may have asked for that one.

        Args:
            decisions: pods of the plan that are assumed, in that order.

        Returns those that are forgotten, in the same order.
        """
        gone: set[str] = set()
        hopeless: set[BudgetName] = set()
        while True:
            over = next((name for name in self._shared.exceeded() if name not in hopeless), None)
            if over is not None:
                staying = [decision for decision in decisions if decision.pod.metadata.uid not in gone]
                going = self._relieve(over, self._last_first(over, staying))
                if self._shared.exceeds(over):
                    hopeless.add(over)
            else:
                going = self._lost(decisions, gone)
            gone.update(decision.pod.metadata.uid for decision in going)
            if over is None and not going:
                return [decision for decision in decisions if decision.pod.metadata.uid in gone]

    def _last_first(self, name: BudgetName, decisions: Sequence[Decision]) -> list[Decision]:
        """Pods whose end relieves a budget; those that relieve it most surely come first, of these the last."""
        index = self._cache.state.node_index
        rank = self._by_node(index[name.node]) if name.node else self._by_link(name.link)
        ranked = (
            (rank(workload_of(one.pod), index[one.node]), one) for one in reversed(decisions) if one.node in index
        )
        able = [(number, one) for number, one in ranked if number is not None]
        return [one for _, one in sorted(able, key=itemgetter(0))]

    def _by_node(self, there: int) -> Rank:
        """For the budget of a node: pods on it, callers elsewhere, last endpoints on it that have no like elsewhere.

        Without some of these, callers call the rest, and the node carries as much as before.
        """
        name, places = self._cache.state.node_name(there), self._cache.members.places(self._key)
        elsewhere = {workload for workload in self._called if places.nodes(workload).keys() - {name}}

        def rank(workload: str, slot: int) -> int | None:
            if workload in self._callers:
                return 0 if slot == there else 1
            if workload not in self._called:
                return None
            return 0 if slot == there and workload in elsewhere else 2

        return rank

    def _by_link(self, link: str) -> Rank:
        """For a link: who calls across it, then who is called: without some of these, callers call the rest."""
        model, index = self._infrastructure().infrastructure, self._cache.state.node_index
        if model.links is None or link not in model.links.names:
            return lambda *_: None
        links, number, location = model.links, model.links.names.index(link), model.location.tolist()
        places = self._cache.members.places(self._key)
        where = {
            workload: {location[index[node]] for node in places.nodes(workload) if node in index}
            for workload in (*self._callers, *self._called)
        }

        @cache
        def crosses(workload: str, here: int, calls: bool) -> bool:
            peers = (self._callers if calls else self._called).get(workload, ())
            return any(number in links.between(here, there) for peer in peers for there in where[peer])

        def rank(workload: str, slot: int) -> int | None:
            here = location[slot]
            return 0 if crosses(workload, here, True) else 1 if crosses(workload, here, False) else None

        return rank

    def _relieve(self, name: BudgetName, going: Sequence[Decision]) -> Sequence[Decision]:
        """Forget the fewest of these, from the first on, with which a budget is not exceeded; else all of them."""
        enough, short = 0, 0
        while enough < len(going) and self._shared.exceeds(name):
            short, enough = enough, max(1, 2 * enough)
            self._forget(going[short:enough])
        now = enough
        while enough - short > 1:
            middle = (enough + short) // 2
            self._forget(going[now:middle])
            self._assume(going[middle:now])
            now = middle
            if self._shared.exceeds(name):
                short = middle
            else:
                enough = middle
        self._forget(going[now:enough])
        return going[:enough]

    def _forget(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            self._cache.forget(decision.pod)

    def _assume(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            self._cache.assume(decision.pod, decision.node)

    def _lost(self, decisions: Sequence[Decision], gone: Collection[str]) -> list[Decision]:
        """Forget pods that were admitted after one that is gone, and whose rules select it or another one of these."""
        state = self._cache.state
        templates: dict[bytes, PodTemplateInfo] = {}
        known: dict[tuple[bytes, bytes], bool] = {}
        lost: list[Decision] = []
        for decision in decisions:
            template = state.info(decision.pod).template
            if decision.pod.metadata.uid not in gone:
                if not (template.hard_spread or template.terms_of("affinity")):
                    continue
                for key, other in templates.items():
                    if (template.key, key) not in known:
                        known[template.key, key] = selects(state, template, other)
                if not any(known[template.key, key] for key in templates):
                    continue
                lost.append(decision)
                self._cache.forget(decision.pod)
            templates[template.key] = template
        return lost
