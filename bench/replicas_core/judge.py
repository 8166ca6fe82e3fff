"""A judge of plans in counts: plain loops over pods, from the definition of the objective, without the planner's code.

A *state* is a list of tuples, one per pod set: the node of each of its pods. Every term and every rule says which pod
sets it depends on, so that a brute force can ask each as soon as these are decided.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from berth.network.routing import Routing
from berth.scheduling.replicas.problem import Edge, Ints, Problem
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread

Nodes = tuple[int, ...]
State = Sequence[Nodes]
EPS = 1e-9


@dataclass(frozen=True)
class Part:
    """A term (value) or a rule (infinite when broken) and the pod sets that it depends on."""

    name: str
    rows: tuple[int, ...]
    value: Callable[[State], float]


class Judge:
    """All parts of a problem's objective and its rules."""

    def __init__(self, problem: Problem) -> None:
        """Take a problem apart."""
        self.problem = problem
        self.sets = problem.pod_sets
        self.cost = problem.nodes.location_cost.tolist()
        self.location = problem.nodes.location.tolist()
        self.zone = problem.nodes.zone.tolist()
        named = problem.nodes.service_zone
        names = list(range(len(self.cost))) if named is None else named.tolist()
        self.name = [names[place] for place in self.location]
        """what kube-proxy compares, by node; -1 without a zone"""
        self.rows_of = [
            tuple(row for row, pod_set in enumerate(self.sets) if pod_set.workload == w)
            for w in range(len(problem.workloads))
        ]
        self.parts = [*self._terms(), *self._rules()]

    def objective(self, state: State) -> float:
        """The whole objective; infinite where a rule is broken."""
        return sum(part.value(state) for part in self.parts)

    def broken(self, state: State) -> list[str]:
        """Names of broken rules."""
        return [part.name for part in self.parts if math.isinf(part.value(state))]

    def replicas(self, state: State, workload: int) -> list[int]:
        """Node of each replica of a workload, placed ones among them."""
        placed = self.problem.workloads[workload].placed
        nodes = [node for node, count in placed.items() for _ in range(count)]
        return nodes + [node for row in self.rows_of[workload] for node in state[row]]

    def distance(self, one: int, other: int) -> float:
        """Cost between two nodes."""
        return 0.0 if one == other else self.cost[self.location[one]][self.location[other]]

    def reached(self, caller: int, endpoints: list[int], routing: Routing) -> list[int]:
        """Nodes of the endpoints that a caller reaches, each with the same share."""
        here = [node for node in endpoints if node == caller]
        if routing is Routing.LOCAL or (routing is Routing.SAME_NODE and here):
            return here
        hints = all(self.name[node] >= 0 for node in endpoints)
        if routing is not Routing.ALL and self.name[caller] >= 0 and hints:
            near = [node for node in endpoints if self.name[node] == self.name[caller]]
            if near:
                return near
        return endpoints

    def _terms(self) -> Iterator[Part]:
        problem = self.problem
        for edge in problem.edges:
            rows = self.rows_of[edge.caller] + self.rows_of[edge.callee]
            yield Part("network", rows, partial(self._network, edge=edge))
        for w in range(len(problem.workloads)):
            yield Part("survival", self.rows_of[w], partial(self._survival, w=w))
            callers = [edge.caller for edge in problem.edges if edge.callee == w]
            if callers and problem.workloads[w].routing is not Routing.ALL:
                rows = self.rows_of[w] + tuple(row for caller in set(callers) for row in self.rows_of[caller])
                yield Part("load", rows, partial(self._load, w=w, callers=callers))
        for row, pod_set in enumerate(self.sets):
            if pod_set.cost is not None:
                charge = pod_set.cost.tolist()
                yield Part("charge", (row,), partial(_charged, row=row, charge=charge))

    def _network(self, state: State, edge: Edge) -> float:
        return self.problem.prices.network * self._edge(state, edge)

    def _edge(self, state: State, edge: Edge) -> float:
        callers, endpoints = self.replicas(state, edge.caller), self.replicas(state, edge.callee)
        if not callers or not endpoints:
            return 0.0
        problem, prices = self.problem, self.problem.prices
        routing = problem.workloads[edge.callee].routing
        lost = max(map(max, self.cost)) if prices.lost_calls is None else prices.lost_calls
        total = 0.0
        for caller in callers:
            everywhere = sum(self.distance(caller, node) for node in endpoints) / len(endpoints)
            if routing is Routing.ALL:
                total += everywhere
                continue
            reached = self.reached(caller, endpoints, routing)
            routed = sum(self.distance(caller, node) for node in reached) / len(reached) if reached else lost
            total += (1 - prices.failover) * routed + prices.failover * everywhere
        return total / len(callers)

    def _survival(self, state: State, w: int) -> float:
        nodes, prices = self.replicas(state, w), self.problem.prices
        if len(nodes) < 2:
            return 0.0
        one_node, one_zone = len(set(nodes)) == 1, len({self.zone[k] for k in nodes}) == 1
        return prices.survive_node * one_node + prices.survive_zone * one_zone

    def _load(self, state: State, w: int, callers: list[int]) -> float:
        endpoints, routing = self.replicas(state, w), self.problem.workloads[w].routing
        calls = dict.fromkeys(range(len(endpoints)), 0.0)
        for caller in callers:
            homes = self.replicas(state, caller)
            for home in homes:
                reached = Counter(self.reached(home, endpoints, routing))
                for number, node in enumerate(endpoints):
                    if node in reached:
                        calls[number] += 1 / len(homes) / sum(reached.values())
        arrived = sum(calls.values())
        if not arrived:
            return 0.0
        return self.problem.prices.load * (len(endpoints) * sum((c / arrived) ** 2 for c in calls.values()) - 1)

    def _rules(self) -> Iterator[Part]:
        problem = self.problem
        everybody = tuple(range(len(self.sets)))
        for row, pod_set in enumerate(self.sets):
            if pod_set.mask is not None:
                mask = pod_set.mask.tolist()
                yield Part("mask", (row,), partial(_masked, row=row, mask=mask))
        for edge in problem.edges:
            if edge.max_cost < math.inf:
                rows = self.rows_of[edge.caller] + self.rows_of[edge.callee]
                yield Part("limit", rows, partial(self._limit, edge=edge))
        yield Part("room", everybody, lambda state: _never(self._room(state)))
        if problem.nodes.bandwidth is not None or problem.nodes.links:
            for edge in problem.edges:
                # One that takes too much by itself is found before all others are decided.
                rows = self.rows_of[edge.caller] + self.rows_of[edge.callee]
                yield Part("bandwidth", rows, partial(self._bandwidth, edges=[edge]))
            yield Part("bandwidth", everybody, partial(self._bandwidth, edges=problem.edges))
        for rule in problem.rules:
            rows = tuple(sorted({*rule.subjects, *rule.selects}))
            if isinstance(rule, AntiAffinity):
                yield Part("anti-affinity", rows, partial(self._anti, rule=rule))
            elif isinstance(rule, Spread):
                yield Part("spread", rows, partial(self._spread, rule=rule))
            elif rule.weight is not None:
                yield Part("affinity", rows, partial(self._preferred, rule=rule))
        wanted = [rule for rule in problem.rules if isinstance(rule, Affinity) and rule.weight is None]
        if wanted:
            rows = tuple(sorted({row for rule in wanted for row in (*rule.subjects, *rule.selects)}))
            yield Part("required affinity", rows, lambda state: _never(self._bindable(state, wanted)))

    def _limit(self, state: State, edge: Edge) -> float:
        return _never(self._within(state, edge))

    def _within(self, state: State, edge: Edge) -> bool:
        endpoints, routing = self.replicas(state, edge.callee), self.problem.workloads[edge.callee].routing
        placed = self.problem.workloads[edge.callee].placed
        before = [node for node, count in placed.items() for _ in range(count)]

        def beyond(caller: int, ends: list[int]) -> int:
            return sum(self.distance(caller, node) > edge.max_cost for node in self.reached(caller, ends, routing))

        planned = [caller for row in self.rows_of[edge.caller] for caller in state[row]]
        there = self.problem.workloads[edge.caller].placed
        return not any(beyond(caller, endpoints) for caller in planned) and all(
            beyond(caller, endpoints) <= beyond(caller, before) for caller in there
        )

    def _room(self, state: State) -> bool:
        """Pods that name nodes may come last: only others must leave what is kept for them."""
        nodes = self.problem.nodes
        for node in range(nodes.size):
            here = [self.sets[row] for row, homes in enumerate(state) for k in homes if k == node]
            others = [pod_set for pod_set in here if not pod_set.names_nodes]
            for r in range(nodes.free.shape[1] if here else 0):
                kept = 0 if nodes.reserve is None else int(nodes.reserve[node, r])
                for pods, left in ((here, int(nodes.free[node, r])), (others, int(nodes.free[node, r]) - kept)):
                    wanted = [int(pod_set.request[r]) for pod_set in pods]
                    if any(wanted) and sum(wanted) > left:
                        return False
        return True

    def _bandwidth(self, state: State, edges: Sequence[Edge]) -> float:
        """Whether some edges alone stay within the budgets, or take no more than placed pods do."""
        nodes = self.problem.nodes
        budget = [math.inf] * nodes.size if nodes.bandwidth is None else nodes.bandwidth.tolist()
        budget += [link.free for link in nodes.links]
        before, after = self.usage([()] * len(self.sets), self.problem.edges), self.usage(state, edges)
        return _never(all(used <= max(0.0, left, was) for used, left, was in zip(after, budget, before, strict=True)))

    def usage(self, state: State, edges: Sequence[Edge]) -> list[float]:
        """bit/s that edges take of every node, then of every link, with the calls of those that are leaving."""
        size, links = self.problem.nodes.size, self.problem.nodes.links
        usage = [0.0] * (size + len(links))
        for edge in edges:
            callers, endpoints = (self._all(state, end) for end in (edge.caller, edge.callee))
            routing = self.problem.workloads[edge.callee].routing
            for caller in callers:
                reached = self.reached(caller, endpoints, routing)
                for node in reached:
                    if node != caller:
                        amount = math.ceil(edge.bandwidth / len(reached))
                        usage[caller] += amount
                        usage[node] += amount
                        pair = tuple(sorted((self.location[caller], self.location[node])))
                        for number, link in enumerate(links, start=size):
                            usage[number] += amount * (pair in link.between)
        return usage

    def _all(self, state: State, workload: int) -> list[int]:
        """Node of each replica of a workload, those that are leaving among them."""
        leaving = self.problem.workloads[workload].leaving
        return [*self.replicas(state, workload), *(node for node, count in leaving.items() for _ in range(count))]

    def _pods(self, state: State, rows: Sequence[int]) -> list[tuple[int, int, int]]:
        """(pod set, number, node) of planned pods."""
        return [(row, number, node) for row in rows for number, node in enumerate(state[row])]

    def _anti(self, state: State, rule: AntiAffinity) -> float:
        domain = rule.domain.tolist()
        pairs = 0
        subjects, selected = self._pods(state, rule.subjects), self._pods(state, rule.selects)
        for subject in subjects:
            if domain[subject[2]] >= 0:
                pairs += sum(domain[other[2]] == domain[subject[2]] for other in selected if other != subject)
                pairs += _placed(rule.placed, domain, domain[subject[2]])
        for pod in selected:
            if domain[pod[2]] >= 0:
                pairs += _placed(rule.placed_subjects, domain, domain[pod[2]])
        if rule.weight is None:
            return _never(not pairs)
        return self.problem.prices.soft_affinity * rule.weight / 100 * pairs

    def _preferred(self, state: State, rule: Affinity) -> float:
        domain = rule.domain.tolist()
        unmet = 0
        selected = self._pods(state, rule.selects)
        for subject in self._pods(state, rule.subjects):
            place = domain[subject[2]]
            near = any(domain[other[2]] == place for other in selected if other != subject)
            unmet += place < 0 or not (near or _placed(rule.placed, domain, place))
        alike = bool(rule.subjects) and set(rule.subjects) <= set(rule.selects)
        for place in _homes(rule.placed_subjects, domain):
            # One that is selected by its own term does not meet it by itself.
            others = _placed(rule.placed, domain, place) - alike
            unmet += others + sum(domain[other[2]] == place for other in selected) <= 0
        return self.problem.prices.soft_affinity * (rule.weight or 0) / 100 * unmet

    def _spread(self, state: State, rule: Spread) -> float:
        domain = rule.domain.tolist()
        size = len(domain)
        counted = [domain[k] >= 0 and (rule.eligible is None or bool(rule.eligible[k])) for k in range(size)]
        table = {domain[k]: 0 for k in range(size) if counted[k]}
        for _, _, node in self._pods(state, rule.selects):
            if counted[node]:
                table[domain[node]] += 1
        for k in range(size):
            if counted[k] and rule.placed is not None:
                table[domain[k]] += int(rule.placed[k])
        if rule.hard:
            used = {domain[node] for _, _, node in self._pods(state, rule.subjects)}
            if -1 in used:
                return math.inf
            if not table:
                return 0.0
            least = min(table.values()) if len(table) >= rule.min_domains else 0
            return _never(all(table.get(d, 0) - least <= rule.max_skew for d in used))
        if not table:
            return 0.0
        least = min(table.values())
        excess = sum(max(0, count - least - rule.max_skew) for count in table.values())
        return (self.problem.prices.soft_spread if rule.price is None else rule.price) * excess

    def _bindable(self, state: State, rules: list[Affinity]) -> bool:
        """Whether the pods with required affinity can be bound in some order."""
        rows = {row for rule in rules for row in (*rule.subjects, *rule.selects)}
        pods = frozenset((row, node) for row in rows for node in state[row])
        return all(_hopeful(rule, pods) for rule in rules) and _ordered(rules, pods)


def _hopeful(rule: Affinity, pods: frozenset[tuple[int, int]]) -> bool:
    """Whether at most one domain of subjects depends on somebody being the first of the kind."""
    domain = rule.domain.tolist()
    anchors = {domain[node] for row, node in pods if row in rule.selects and row not in rule.subjects}
    alone = {domain[node] for row, node in pods if row in rule.subjects} - anchors
    lonely = [place for place in alone if not _placed(rule.placed, domain, place)]
    first = bool(set(rule.subjects) & set(rule.selects)) and (rule.placed is None or not rule.placed.any())
    return len(lonely) <= first


def _ordered(rules: list[Affinity], pods: frozenset[tuple[int, int]]) -> bool:
    """Depth-first over the sets of (pod set, node) that are bound."""
    seen = set()
    stack: list[frozenset[tuple[int, int]]] = [frozenset()]
    while stack:
        bound = stack.pop()
        if bound == pods:
            return True
        if bound in seen:
            continue
        seen.add(bound)
        stack.extend(
            bound | {pod}
            for pod in sorted(pods - bound)
            if all(_meets(rule, pod, bound) for rule in rules if pod[0] in rule.subjects)
        )
    return False


def _meets(rule: Affinity, pod: tuple[int, int], bound: frozenset[tuple[int, int]]) -> bool:
    row, node = pod
    domain = rule.domain.tolist()
    if domain[node] < 0:
        return False
    if _placed(rule.placed, domain, domain[node]):
        return True
    matching = [k for r, k in bound if r in rule.selects]
    if any(domain[k] == domain[node] for k in matching):
        return True
    return row in rule.selects and not matching and (rule.placed is None or not rule.placed.any())


def _placed(counts: Ints | None, domain: list[int], place: int) -> int:
    if counts is None or place < 0:
        return 0
    return sum(int(counts[k]) for k in range(len(domain)) if domain[k] == place)


def _homes(counts: Ints | None, domain: list[int]) -> list[int]:
    """Domain of each placed pod that is in one."""
    return [] if counts is None else [d for k, d in enumerate(domain) if d >= 0 for _ in range(int(counts[k]))]


def _charged(state: State, row: int, charge: list[float]) -> float:
    return sum(charge[k] for k in state[row])


def _masked(state: State, row: int, mask: list[bool]) -> float:
    return _never(all(mask[k] for k in state[row]))


def _never(holds: bool) -> float:
    return 0.0 if holds else math.inf
