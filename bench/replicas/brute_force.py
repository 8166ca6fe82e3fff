"""The best placement of a small AppGroup's replicas: every one is looked at, or ruled out by a bound.

Workloads are decided one after another. A choice is how many replicas are on each node, so that identical replicas are
not permuted; of nodes that are alike and still empty alike, the first ones are filled. What is decided, the least that
each open workload costs beside it, and the least that each pair of open ones costs, is a bound for all that follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.replicas.cluster import Cluster, Pod
from bench.replicas.evaluator import ALL, Group
from bench.replicas.objective import DEFAULT_WEIGHTS, Weights, objective
from bench.replicas.rules import affinity_violations, constraints_of, requests, terms_of, violations
from bench.replicas.selection import term_selects
from bench.replicas.tables import (
    REQUIRED,
    Counts,
    Floats,
    Problem,
    Workload,
    call_shares,
    counts_others,
    mode_of,
    pair,
    shared_company,
    workload,
)

HOSTNAME = "kubernetes.io/hostname"
_TOLERANCE = 1e-9

Partition = tuple[tuple[int, ...], ...]
"""Nodes that are interchangeable so far."""


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best placement."""

    value: float
    """its objective"""
    nodes: dict[str, str]
    """node by name of the pod"""
    visited: int
    """choices that were looked at"""


def optimum(
    cluster: Cluster, group: Group, waiting: Sequence[Pod], weights: Weights = DEFAULT_WEIGHTS
) -> Optimum | None:
    """Place the waiting pods of an AppGroup at the least objective without breaking a hard rule.

    Args:
        cluster: nodes and pods that have one, of the group or not; these break no hard rule among themselves.
        group: the AppGroup.
        waiting: its pods without a node; those of one workload are alike, and like those that have a node.
        weights: of the objective.

    Returns:
        None when no placement of all of them keeps all hard rules.
    """
    return _Search(cluster, group, list(waiting), weights).run()


@dataclass(slots=True)
class _Search:
    cluster: Cluster
    group: Group
    waiting: list[Pod]
    weights: Weights
    best: float = np.inf
    chosen: list[int] = field(default_factory=list)
    visited: int = 0
    problem: Problem = field(init=False)
    workloads: list[Workload] = field(init=False)
    pairs: dict[tuple[int, int], Floats] = field(init=False)
    use: list[npt.NDArray[np.float64]] = field(init=False)
    rooms: Floats = field(init=False)
    joint: bool = field(init=False)
    followers: bool = field(init=False)

    def __post_init__(self) -> None:
        names = list(self.cluster.nodes)
        zones = [self.cluster.nodes[name].zone for name in names]
        known = sorted(set(zones))
        members = self.cluster.members(self.group)
        for pod in self.waiting:
            members.setdefault(pod.workload, [])
        placed = {name: list(pods) for name, pods in members.items()}
        open_ = {name: [pod for pod in self.waiting if pod.workload == name] for name in placed}
        self.problem = Problem(
            self.cluster,
            self.group,
            self.weights,
            names,
            np.array([[self.cluster.cost(one, other) for other in names] for one in names]),
            np.array([known.index(zone) if zone else -1 for zone in zones]),
            [pod for pod in self.cluster.pods if pod.group != self.group],
            [(open_[name] or placed[name])[0] for name in placed],
        )
        made = [workload(self.problem, name, open_[name], placed[name]) for name in placed]
        touched = [end for edge in self.cluster.groups[self.group] for end in (edge.caller, edge.callee)]
        self.workloads = sorted(made, key=lambda item: (-touched.count(item.name), len(item.counts)))

    def _tables(self) -> None:
        problem, made = self.problem, self.workloads
        for item in made:
            self._affinity(item)
        self.pairs = {
            (one, other): pair(problem, made[one], made[other]) for one in range(len(made)) for other in range(one)
        }
        for item in made:
            self._sole_affinity(item)
            self._sole_caller(item)
        kinds = sorted({name for pod in (*self.waiting, *self.cluster.pods) for name in requests(pod)})
        taken = np.zeros((len(problem.names), len(kinds)))
        for pod in self.cluster.pods:
            taken[problem.names.index(pod.node)] += [requests(pod).get(kind, 0.0) for kind in kinds]
        room = [[self.cluster.nodes[name].allocatable.get(kind, 0.0) for kind in kinds] for name in problem.names]
        self.rooms = np.array(room) * (1 + _TOLERANCE) - taken
        self.use = [
            item.new[:, :, None] * np.array([requests(item.pod).get(kind, 0.0) for kind in kinds]) for item in made
        ]
        default = self.weights.default_spread
        pods = [(item.pod, when) for item in made for when in ("DoNotSchedule", "ScheduleAnyway")]
        self.joint = any(
            counts_others(item, pod, problem.members)
            for pod, when in pods
            for item in constraints_of(pod, when, default)
        )
        self.followers = any(terms_of(item.pod, "podAffinity", REQUIRED) for item in made)

    def _meant(self, item: Workload) -> tuple[list[Any], list[Workload], list[Pod]]:
        """Required affinity terms of a workload, the workloads that all of them mean, and such pods that have a node.

        Of these last, those outside, the workload's own, and none on nodes where nobody sees them: without any key.
        """
        terms = list(terms_of(item.pod, "podAffinity", REQUIRED))

        def means(pod: Pod) -> bool:
            return all(term_selects(self.cluster, term, item.pod, pod) for term in terms)

        def seen(pod: Pod) -> bool:
            return any(term["topologyKey"] in self.cluster.nodes[pod.node].labels for term in terms)

        own = [pod for pod in self.cluster.pods if pod.group == self.group and pod.workload == item.name]
        return (
            terms,
            [one for one in self.workloads if means(one.pod)],
            [pod for pod in (*self.problem.others, *own) if means(pod) and seen(pod)],
        )

    def _affinity(self, item: Workload) -> None:
        """Choices against required affinity to the own replicas, to pods that have a node, or to nobody."""
        terms, meant, before = self._meant(item)
        if meant not in ([], [item]):
            return
        for term in terms:
            used = self.problem.by_domain(term["topologyKey"], item.new) > 0
            there = self._there(term, before)
            # Pods that have a node came before: none of the replicas is the first of its kind where there are any.
            lonely = (
                (used & ~there).any(axis=1) if before else (used.sum(axis=1) > 1) | (used.any(axis=1) & (not meant))
            )
            bare = item.new[:, self.problem.domains(term["topologyKey"]) < 0].any(axis=1)
            item.alone[lonely | bare] = np.inf

    def _sole_affinity(self, item: Workload) -> None:
        """Choices against required affinity that a workload has to one other and to pods that have a node."""
        terms, meant, before = self._meant(item)
        if len(meant) != 1 or meant[0] is item:
            return
        for term in terms:
            key = term["topologyKey"]
            mine, theirs = (self.problem.by_domain(key, counts) > 0 for counts in (item.new, meant[0].counts))
            missing = mine.astype(int) @ (~(theirs | self._there(term, before))).astype(int).T > 0
            self._add(item, meant[0], np.where(missing, np.inf, 0.0))

    def _there(self, term: Any, pods: Sequence[Pod]) -> npt.NDArray[np.bool_]:
        """bool[D], domains of a term with one of these pods."""
        found: npt.NDArray[np.bool_] = (
            self.problem.by_domain(term["topologyKey"], self.problem.at(pods)[None, :])[0] > 0
        )
        return found

    def _sole_caller(self, callee: Workload) -> None:
        """The load of a workload that one other calls."""
        callers = self._callers(callee)
        if len(callers) != 1:
            return
        shares = call_shares(self.problem, callee, mode_of(self.problem, callee))
        calls = callers[0].counts / callers[0].replicas
        taken = np.einsum("on,pnm->opm", calls, shares)
        self._add(callers[0], callee, self.weights.load * self._variance(taken, callee.counts[None]))

    def _callers(self, callee: Workload) -> list[Workload]:
        """Workloads that call it; none where its load does not count."""
        if mode_of(self.problem, callee) == ALL:
            return []
        names = [edge.caller for edge in self.cluster.groups[self.group] if edge.callee == callee.name]
        return [next(item for item in self.workloads if item.name == name) for name in names if self._has(name)]

    def _has(self, name: str) -> bool:
        return any(item.name == name for item in self.workloads)

    @staticmethod
    def _variance(taken: Floats, counts: Counts) -> Floats:
        """Mean over endpoints of (load - 1)^2, 0 where no call arrives; `taken` is what each node's get together."""
        total, arrived = counts.sum(axis=-1, keepdims=True), taken.sum(axis=-1, keepdims=True)
        blank = np.zeros(np.broadcast_shapes(taken.shape, counts.shape))
        load = np.divide(taken * total, counts * arrived, out=blank, where=(counts > 0) & (arrived > 0))
        found: Floats = (np.where(arrived > 0, (load - 1) ** 2, 0.0) * counts).sum(axis=-1) / total[..., 0]
        return found

    def _add(self, one: Workload, other: Workload, table: Floats) -> None:
        first, second = self.workloads.index(one), self.workloads.index(other)
        if first > second:
            self.pairs[first, second] += table
        else:
            self.pairs[second, first] += table.T

    # The search

    def run(self) -> Optimum | None:
        """Look at everything."""
        if all(len(item.counts) for item in self.workloads):
            self._tables()
            self._decide(0, 0.0, [item.alone for item in self.workloads], self.rooms, self._alike(), [])
        if not np.isfinite(self.best):
            return None
        nodes: dict[str, str] = {}
        for item, choice in zip(self.workloads, self.chosen, strict=True):
            places = np.repeat(np.arange(len(self.problem.names)), item.new[choice])
            nodes |= {pod.name: self.problem.names[place] for pod, place in zip(item.waiting, places, strict=True)}
        return Optimum(self.best, nodes, self.visited)

    def _alike(self) -> Partition:
        """Nodes that differ in name alone, as long as no pod asks for one by name."""
        found: dict[str, list[int]] = {}
        named = any(_by_name(pod) for pod in self.waiting)
        used = {pod.node for pod in self.cluster.pods}
        for number, name in enumerate(self.problem.names):
            node = self.cluster.nodes[name]
            labels = sorted((key, value) for key, value in node.labels.items() if key != HOSTNAME)
            mark = name if named or name in used else ""
            found.setdefault(str((mark, labels, node.taints, sorted(node.allocatable.items()))), []).append(number)
        return tuple(tuple(numbers) for numbers in found.values())

    def _decide(
        self, at: int, value: float, costs: list[Floats], room: Floats, alike: Partition, chosen: list[int]
    ) -> None:
        """Choose for workload `at` and those after it; `costs` are float64[O] of each beside what is decided."""
        if at == len(self.workloads):
            total = value + self._rest(chosen) if value < self.best - _TOLERANCE else np.inf
            if total < self.best - _TOLERANCE:
                self.best, self.chosen = total, list(chosen)
            return
        fits = [
            np.isfinite(costs[number]) & (self.use[number] <= room).all(axis=(1, 2)) for number in range(at, len(costs))
        ]
        if not all(mask.any() for mask in fits):
            return
        later = sum(float(costs[at + number][mask].min()) for number, mask in enumerate(fits) if number)
        later += sum(self._least(one, other) for one in range(at + 1, len(costs)) for other in range(at + 1, one))
        counts, mask = self.workloads[at].new, fits[0]
        for group in alike:
            if len(group) > 1:
                mask = mask & (np.diff(counts[:, list(group)], axis=1) <= 0).all(axis=1)
        options = np.flatnonzero(mask)
        for choice in options[np.argsort(costs[at][options], kind="stable")].tolist():
            now = value + float(costs[at][choice])
            if now + later >= self.best - _TOLERANCE:
                return
            self.visited += 1
            beside = [
                cost if number <= at else cost + self.pairs[number, at][:, choice] for number, cost in enumerate(costs)
            ]
            self._decide(
                at + 1, now, beside, room - self.use[at][choice], _split(alike, counts[choice]), [*chosen, choice]
            )

    def _least(self, one: int, other: int) -> float:
        return float(self.pairs[one, other].min())

    def _rest(self, chosen: list[int]) -> float:
        """What only a whole placement shows: infinite if it breaks a hard rule."""
        if self.followers or self.joint:
            placement = self._placement(chosen)
            before = self.cluster.pods
            if violations(placement, before) if self.joint else list(affinity_violations(placement, before)):
                return np.inf
            if self.joint:
                return objective(placement, self.group, self.weights) - self._decomposed(chosen)
        rows = [item.counts[choice] for item, choice in zip(self.workloads, chosen, strict=True)]
        loads = sum(self._several_callers(number, chosen) for number in range(len(chosen)))
        return loads + shared_company(self.problem, self.workloads, rows)

    def _several_callers(self, number: int, chosen: list[int]) -> float:
        """The load of a workload that several others call."""
        callee = self.workloads[number]
        callers = self._callers(callee)
        if len(callers) < 2:
            return 0.0
        shares = call_shares(
            self.problem, replace(callee, counts=callee.counts[[chosen[number]]]), mode_of(self.problem, callee)
        )
        taken = np.zeros(len(self.problem.names))
        for caller in callers:
            counts = caller.counts[chosen[self.workloads.index(caller)]]
            taken += counts / counts.sum() @ shares[0] / len(callers)
        return float(self.weights.load * self._variance(taken, callee.counts[chosen[number]]))

    def _decomposed(self, chosen: list[int]) -> float:
        alone = sum(float(item.alone[choice]) for item, choice in zip(self.workloads, chosen, strict=True))
        return alone + sum(float(table[chosen[one], chosen[other]]) for (one, other), table in self.pairs.items())

    def _placement(self, chosen: list[int]) -> Cluster:
        pods = list(self.cluster.pods)
        for item, choice in zip(self.workloads, chosen, strict=True):
            places = np.repeat(np.arange(len(self.problem.names)), item.new[choice])
            pods += [replace(pod, node=self.problem.names[at]) for pod, at in zip(item.waiting, places, strict=True)]
        return replace(self.cluster, pods=pods)


def _by_name(pod: Pod) -> bool:
    """Whether a pod asks for nodes by their names."""
    rules = str((pod.spec.get("nodeSelector"), (pod.spec.get("affinity") or {}).get("nodeAffinity")))
    return HOSTNAME in rules or "matchFields" in rules


def _split(alike: Partition, counts: Counts) -> Partition:
    """Interchangeable nodes after a choice: those with as many replicas."""
    parts: list[tuple[int, ...]] = []
    for group in alike:
        by_count: dict[int, list[int]] = {}
        for node in group:
            by_count.setdefault(int(counts[node]), []).append(node)
        parts += [tuple(nodes) for nodes in by_count.values()]
    return tuple(parts)
