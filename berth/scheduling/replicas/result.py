"""What became of a plan: counts by node, what it costs term by term, and what it survives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.problem import Counts, Floats
from berth.scheduling.replicas.runner_ups import RunnerUps
from berth.scheduling.replicas.search.draft import Draft
from berth.scheduling.replicas.terms.survival import survives


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The objective, term by term, weighted."""

    network: Floats
    """float64[edges], in the order of the problem's edges"""
    survival: Floats
    """float64[W]"""
    load: Floats
    """float64[W], of workloads whose Service keeps calls near"""
    rules: Floats
    """float64[rules], preferred terms and ScheduleAnyway constraints, in the order of the problem's rules"""
    charges: Floats
    """float64[M], what plugins charge for the pods of each set"""
    interference: Floats
    """float64[M], what the pods of each set and those beside them add to the harm on nodes"""

    @property
    def objective(self) -> float:
        """The sum."""
        parts = (self.network, self.survival, self.load, self.rules, self.charges, self.interference)
        return float(sum(part.sum() for part in parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer to a problem."""

    counts: tuple[Mapping[int, int], ...]
    """pods by node, one mapping per pod set; those nodes first that its pods should keep longest"""
    missing: tuple[int, ...]
    """pods without a node, per pod set; without `partial` all of them as soon as one has none"""
    blocked: tuple[int, ...]
    """pods for which the search found no node, per pod set; none, with all pods missing, where a rule stays broken"""
    terms: Terms
    """what the plan costs"""
    survives_node: tuple[bool, ...]
    """per workload: whether a replica is left when any one node fails; true below two replicas"""
    survives_zone: tuple[bool, ...]
    """likewise for zones"""
    cut_short: bool
    """whether time was over before everything was tried"""
    runner_ups: RunnerUps = field(default_factory=dict)
    """the next best nodes of pods, by pod set and planned node; of a large plan only for some"""

    @property
    def objective(self) -> float:
        """The sum of all terms."""
        return self.terms.objective

    @property
    def complete(self) -> bool:
        """Whether every pod has a node."""
        return not any(self.missing)


def terms_of(books: Books) -> Terms:
    """The objective of what is planned in the books."""
    model, network = books.model, books.network
    edges = model.problem.edges
    cost = np.zeros(len(edges))
    reached: dict[int, Floats] = {}
    for number, (edge, target) in enumerate(zip(edges, model.target_of, strict=True)):
        if target not in reached:
            reached[target] = network.reached(model.plain(target))
        cost[number] = float(network.share[edge.caller] @ reached[target])
    rules = np.zeros(len(model.problem.rules))
    for number, term in zip(model.rule_numbers, books.rules, strict=True):
        rules[number] = 0.0 if term.required else term.value()
    return Terms(
        network=cost,
        survival=np.array([books.survival.value(w) for w in range(len(books.total))]),
        load=np.array([books.load.value(w) for w in range(len(books.total))]),
        rules=rules,
        charges=np.array(
            [0.0 if charge is None else float(books.planned[m] @ charge) for m, charge in enumerate(model.charge)]
        ),
        interference=books.interference.shares(books.planned),
    )


def result_of(
    draft: Draft, *, keep: bool, cut_short: bool, runner_ups: RunnerUps, lasting: Sequence[Sequence[int]]
) -> Plan:
    """Read a plan off a draft; one that is not to be kept places nothing.

    Args:
        draft: who is where.
        keep: whether the plan is to be kept.
        cut_short: whether time was over.
        runner_ups: the next best nodes.
        lasting: columns of each pod set in the order in which its nodes are told.
    """
    books = draft.books
    blocked = tuple(draft.missing)
    if not keep:
        draft.clear(range(len(draft.missing)), range(draft.model.size))
    planned: Counts = books.planned
    nodes = draft.model.columns
    return Plan(
        counts=tuple(
            {int(nodes[column]): int(planned[row, column]) for column in columns if planned[row, column]}
            for row, columns in enumerate(lasting)
        ),
        missing=tuple(draft.missing),
        blocked=blocked,
        terms=terms_of(books),
        survives_node=tuple(survives(books.x).tolist()),
        survives_zone=tuple(survives(books.by_zone).tolist()),
        cut_short=cut_short,
        runner_ups=runner_ups,
    )
