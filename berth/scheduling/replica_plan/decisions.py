"""A plan in counts as decisions about pods, in an order in which rules between them are likely to hold all the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.kube.objects import Pod
from berth.network.groups import Group
from berth.scheduling.decision import Alternative, Decision
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import BEFORE_LONG, UNLIMITED, Budget
from berth.scheduling.gang.strategies import REPLICAS
from berth.scheduling.replica_plan.choosiness import EASY, Choosiness
from berth.scheduling.replica_plan.filling import filling_order
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.replica_plan.question import Question
from berth.scheduling.replicas.order import binding_order
from berth.scheduling.replicas.result import Plan
from berth.scheduling.replicas.rule import Affinity
from berth.scheduling.replicas.runner_ups import RunnerUp

POD_INDEX = "apps.kubernetes.io/pod-index"
"""Label of a StatefulSet's pods."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A plan, pod by pod."""

    decisions: list[Decision]
    """pods that get a node"""
    rest: list[Candidate]
    """pods that get none"""


def read(
    question: Question,
    plan: Plan,
    group: Group,
    names: Sequence[str],
    budget: Budget = UNLIMITED,
    choosy: Callable[[Pod, int], Choosiness] = lambda _pod, _slot: EASY,
) -> Generator[None, None, Reading]:
    """Give the pods of each set the nodes that are planned for it, the first ones to those that stay longest, in turns.

    Args:
        question: what was asked.
        plan: the answer.
        group: the AppGroup.
        names: node names by slot.
        budget: time, in turns.
        choosy: how choosy a pod is about volumes of a node: who finds fewer comes first.
    """
    slots = yield from filling_order(question.problem.rules, plan.counts, budget)
    yield from budget.pause(BEFORE_LONG)
    total = sum(min(len(each), len(pods.candidates)) for each, pods in zip(slots, question.pod_sets, strict=True))
    shared = _shares(question, plan)
    reading = Reading([], [])
    rounds: list[tuple[int, int, int, Choosiness, Decision]] = []
    for number, pods in enumerate(question.pod_sets):
        placed = sorted(pods.candidates[: len(slots[number])], key=_lasting, reverse=True)
        for place, (candidate, slot) in enumerate(zip(placed, slots[number], strict=False)):
            terms = shared[number] | {name: float(cost[slot]) for name, cost in pods.costs.items()}
            decision = Decision(
                pod=candidate.info.pod,
                node=names[slot],
                strategy=REPLICAS,
                value=sum(terms.values()),
                terms=terms,
                runner_ups=tuple(
                    _alternative(option, names, terms, pods, slot) for option in plan.runner_ups.get((number, slot), ())
                ),
                feasible=pods.result.feasible,
                nodes=pods.result.nodes,
                rejections=tuple(pods.result.rejections),
                group=group.key,
                planned_with=total,
            )
            yield from budget.pause()
            rounds.append((place, number, slot, choosy(candidate.info.pod, slot), decision))
        reading.rest.extend(pods.candidates[len(slots[number]) :])
    early = _by_affinity(question, slots)
    rounds.sort(key=lambda each: (early.get(each[1:3], len(early)), each[3], *each[:2]))
    reading.decisions.extend(decision for *_, decision in rounds)
    return reading


def _lasting(candidate: Candidate) -> tuple[int, str]:
    """How long a pod stays when its workload shrinks, the higher the longer.

    A StatefulSet deletes pods from its last index on, a ReplicaSet of pods that have been ready for as long those with
    the lowest UID first (kubernetes, pkg/controller/controller_utils.go, ActivePodsWithRanks).
    """
    meta = candidate.info.pod.metadata
    index = meta.labels.get(POD_INDEX, "")
    return -int(index) if index.isdecimal() else 0, meta.uid


def _by_affinity(question: Question, slots: Sequence[Sequence[int]]) -> Mapping[tuple[int, int], int]:
    """Pod sets and node slots that required affinity asks an order of, with their places in it; nothing without one.

    Where it leaves a choice, slots of a set are in the order that they have.
    """
    rules = [rule for rule in question.problem.rules if isinstance(rule, Affinity) and rule.weight is None]
    concerned = sorted({row for rule in rules for row in (*rule.subjects, *rule.selects)})
    pods = [(row, slot) for row in concerned for slot in dict.fromkeys(slots[row])]
    domains = {key: domain.tolist() for key, domain in {id(rule.domain): rule.domain for rule in rules}.items()}
    of_rules = [domains[id(rule.domain)] for rule in rules]
    # Of many pods not all orders are tried: the search for the plan has found one that begins with the first slots.
    order = (binding_order(rules, of_rules, pods) or binding_order(rules, of_rules, sorted(pods))) if rules else None
    return {pod: place for place, pod in enumerate(order or ())}


def _alternative(
    option: RunnerUp, names: Sequence[str], terms: Mapping[str, float], pods: Alike, slot: int
) -> Alternative:
    """Another node for a pod: its share, and what the objective would change."""
    changes = {name: float(cost[option.node] - cost[slot]) for name, cost in pods.costs.items()}
    for name, change in option.changes.items():
        changes[name] = changes.get(name, 0.0) + change
    then = {name: terms.get(name, 0.0) + changes.get(name, 0.0) for name in {**terms, **changes}}
    return Alternative(names[option.node], sum(then.values()), {name: cost for name, cost in then.items() if cost})


def _shares(question: Question, plan: Plan) -> list[dict[str, float]]:
    """Each pod's share of the objective by term, per pod set: alike pods pay alike.

    An edge is shared by its two workloads (towards placed pods, the other pays it all), a rule by the pods that have
    it, or else those that it selects.
    """
    problem, terms = question.problem, plan.terms
    planned = [sum(each.values()) for each in plan.counts]
    sets: defaultdict[int, list[int]] = defaultdict(list)
    for number, pod_set in enumerate(problem.pod_sets):
        if planned[number]:
            sets[pod_set.workload].append(number)
    shares: list[dict[str, float]] = [{"network": 0.0} for _ in planned]

    def charge(term: str, amount: float, numbers: Iterable[int]) -> None:
        paying = [number for number in numbers if planned[number]]
        pods = sum(planned[number] for number in paying)
        if amount:
            for number in paying:
                shares[number][term] = shares[number].get(term, 0.0) + amount / pods

    for edge, cost in zip(problem.edges, terms.network.tolist(), strict=True):
        ends = [sets[end] for end in (edge.caller, edge.callee) if sets[end]]
        for end in ends:
            charge("network", cost / len(ends), end)
    for workload, numbers in list(sets.items()):
        charge("survival", float(terms.survival[workload]), numbers)
        charge("load", float(terms.load[workload]), numbers)
    for number, cost in enumerate(terms.interference.tolist()):
        charge("interference", cost, [number])
    for rule, cost in zip(problem.rules, terms.rules.tolist(), strict=True):
        subjects = [number for number in rule.subjects if planned[number]]
        charge("rules", cost, subjects or rule.selects)
    return shares
