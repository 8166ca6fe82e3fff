"""What a plan in counts is asked: nodes, workloads with replicas, edges, rules and prices, all as data.

Shapes use N nodes, R resources, L network locations. Identical pods are one *pod set*: a plan says how many of them go
to each node. Pods of one workload with different templates (a rollout) are two pod sets of one workload: edges,
survival and load belong to the workload, requests, masks and rules to the pod set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from berth.network.routing import Routing
from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread
from berth.scheduling.replicas.sharing import Sharing

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Counts = npt.NDArray[np.int32]
"""Pods by set and column: of large plans there are millions, and several copies at a time."""
Bools = npt.NDArray[np.bool_]


class ProblemError(ValueError):
    """A problem that contradicts itself: names the object, the field and what would be right."""


SOFT_RULE = 5.0
"""Price of a preferred term of weight 100 that is not met, towards pods or towards nodes, in units of network cost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """Weights of the objective's terms, in units of network cost."""

    network: float = 1.0
    """per edge and unit of mean cost"""
    failover: float = 0.05
    """share of the all-endpoints cost in the cost of an edge whose callee's Service keeps calls near"""
    survive_node: float = 5.0
    """per workload of two or more replicas that dies with one node"""
    survive_zone: float = 1.0
    """per workload of two or more replicas that dies with one zone"""
    soft_affinity: float = SOFT_RULE
    """per broken preferred term of weight 100"""
    soft_spread: float = 5.0
    """per pod beyond maxSkew of a ScheduleAnyway constraint"""
    load: float = 5.0
    """per unit by which the mean square of an endpoint's load exceeds 1"""
    lost_calls: float | None = None
    """per caller, as a share of the edge, that finds no endpoint on its node under internalTrafficPolicy Local; None:
    the highest cost between two locations. Calls that are dropped would otherwise be the cheapest of all."""

    def of_spread(self, rule: Spread) -> float:
        """Price of a pod beyond maxSkew of a constraint that is not hard."""
        return self.soft_spread if rule.price is None else rule.price


@dataclass(frozen=True, slots=True)
class Link:
    """A link between locations."""

    between: Sequence[tuple[int, int]]
    """pairs of rows of `location_cost`, the lower one first: traffic between their nodes uses it, either way"""
    free: float
    """bit/s left of it, before the edges of this problem take any"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The nodes of a plan."""

    free: Ints
    """int64[N, R], what is not requested; a pod slot per node is a resource like others"""
    location: Ints
    """int64[N], row of `location_cost`"""
    location_cost: Floats
    """float64[L, L], cost from location to location; the diagonal is the cost between two nodes of one location"""
    zone: Ints
    """int64[N], what fails together: the node's label topology.kubernetes.io/zone as a number; a number of its own for
    a node without the label"""
    service_zone: Ints | None = None
    """int64[L], where Services keep calls: locations with one name of their zone, in whatever regions, have one number;
    -1 without a zone; None: every location is a zone"""
    reserve: Ints | None = None
    """int64[N, R], what only pods that name the node may take; None: nothing"""
    bandwidth: Floats | None = None
    """float64[N], bit/s left of each node's budget, before the edges of this problem take any; None: unlimited"""
    links: Sequence[Link] = ()
    """links that several pairs of nodes share"""

    @property
    def size(self) -> int:
        """Number of nodes N."""
        return len(self.location)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """An end of edges: replicas that survive together and are called by one Service."""

    name: str
    routing: Routing = Routing.ALL
    placed: Mapping[int, int] = field(default_factory=dict)
    """replicas that have a node, by node; they stay"""
    leaving: Mapping[int, int] = field(default_factory=dict)
    """others, by node, that go once those to be placed are there: their calls, and those to them, count for what they
    take of bandwidth, and for limits"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSet:
    """Identical pods to be placed."""

    workload: int
    """index of its workload; a pod without edges has one as well"""
    replicas: int
    """how many are to be placed"""
    request: Ints
    """int64[R]"""
    mask: Bools | None = None
    """bool[N], nodes it may use whatever else is planned; pod sets may share the array; None: all"""
    cost: Floats | None = None
    """float64[N], what plugins charge per pod, weighted; None: nothing"""
    names_nodes: bool = False
    """whether `Nodes.reserve` is open to it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A workload that calls another."""

    caller: int
    callee: int
    max_cost: float = np.inf
    """highest cost between a caller and an endpoint that it reaches (maxNetworkCost)"""
    bandwidth: float = 0.0
    """bit/s of each caller, split over the endpoints that it reaches (minBandwidth)"""


Rule = AntiAffinity | Affinity | Spread


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One question to the planner. Checks shapes and indices when it is made.

    Raises:
        ProblemError: a shape or an index does not fit, or a workload calls itself.
    """

    nodes: Nodes
    workloads: Sequence[Workload]
    pod_sets: Sequence[PodSet]
    edges: Sequence[Edge] = ()
    rules: Sequence[Rule] = ()
    prices: Prices = field(default_factory=Prices)
    sharing: Sharing | None = None
    """what pods on one node do to each other; None: nothing"""

    def __post_init__(self) -> None:
        """Check."""
        nodes, size = self.nodes, self.nodes.size
        locations = len(nodes.location_cost)
        _check("Nodes", "free", nodes.free, (size, nodes.free.shape[1] if nodes.free.ndim == 2 else 0))
        _check("Nodes", "zone", nodes.zone, (size,))
        _check("Nodes", "location_cost", nodes.location_cost, (locations, locations))
        if nodes.service_zone is not None:
            _check("Nodes", "service_zone", nodes.service_zone, (locations,))
        if size and not 0 <= nodes.location.min() <= nodes.location.max() < locations:
            raise ProblemError(f"Nodes.location names {int(nodes.location.max())}, location_cost has {locations} rows")
        if not (np.isfinite(nodes.location_cost).all() and (nodes.location_cost >= 0).all()):
            raise ProblemError("Nodes.location_cost holds a negative or infinite cost or NaN; costs are >= 0")
        finite: set[int] = set()
        for name, pod_set in enumerate(self.pod_sets):
            owner = f"PodSet {name}"
            _check(owner, "request", pod_set.request, (nodes.free.shape[1],))
            for title, value in (("mask", pod_set.mask), ("cost", pod_set.cost)):
                if value is not None:
                    _check(owner, title, value, (size,))
            if pod_set.cost is not None and id(pod_set.cost) not in finite:
                if not np.isfinite(pod_set.cost).all():
                    raise ProblemError(f"{owner}.cost holds NaN or an infinite charge; a mask rules nodes out")
                finite.add(id(pod_set.cost))
            if pod_set.replicas < 0 or (pod_set.request < 0).any():
                raise ProblemError(f"{owner} has a negative number of replicas or request; both are >= 0")
            if not 0 <= pod_set.workload < len(self.workloads):
                raise ProblemError(f"{owner}.workload is {pod_set.workload}, there are {len(self.workloads)}")
        for edge in self.edges:
            if not (0 <= edge.caller < len(self.workloads) and 0 <= edge.callee < len(self.workloads)):
                raise ProblemError(f"Edge {edge.caller} -> {edge.callee}: there are {len(self.workloads)} workloads")
            if edge.caller == edge.callee:
                raise ProblemError(f"Edge {edge.caller} -> {edge.callee}: a workload does not call itself")
            if not (edge.max_cost >= 0 and 0 <= edge.bandwidth < np.inf):
                raise ProblemError(f"Edge {edge.caller} -> {edge.callee}: max_cost or bandwidth is NaN or below 0")
        if self.sharing is not None:
            _check("Sharing", "kind", self.sharing.kind, (size,))
            for row in self.sharing.number:
                if not 0 <= row < len(self.pod_sets):
                    raise ProblemError(f"Sharing names pod set {row}, there are {len(self.pod_sets)}")
            if not np.isfinite(self.sharing.alone).all():
                raise ProblemError("Sharing.alone holds NaN or an infinite charge; a mask rules nodes out")
        for rule in self.rules:
            _check(type(rule).__name__, "domain", rule.domain, (size,))
            for row in (*rule.subjects, *rule.selects):
                if not 0 <= row < len(self.pod_sets):
                    raise ProblemError(f"{type(rule).__name__} names pod set {row}, there are {len(self.pod_sets)}")

    @property
    def pods(self) -> int:
        """How many pods are to be placed."""
        return sum(pod_set.replicas for pod_set in self.pod_sets)


def _check(owner: str, name: str, value: npt.NDArray[np.generic], shape: tuple[int, ...]) -> None:
    if value.shape != shape:
        raise ProblemError(f"{owner}.{name} has shape {value.shape}, expected {shape}")
