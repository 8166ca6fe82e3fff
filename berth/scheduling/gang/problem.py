"""What the gang engine is asked: infrastructure, application and the weights of the objective, all as arrays.

Shapes use N nodes, R resources, L locations, P physical links, J components, E edges, A edges to placed peers. Units
are the caller's, but must agree: requests with capacities, edge bandwidths with node and link bandwidths. Use integral
values (milli-cores, bytes) where the kubelet compares exactly: sums of integers below 2**53 carry no rounding error.

The model is the one of Filaferro and Nicosia (PHARE, 2021) extended by locations with a network cost, placed peers
(pods that are placed already) and separation of components.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from berth.scheduling.gang.links import LinkModel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]


OBJECTIVE_TERMS = ("network", "price", "bandwidth")
"""Terms of the objective that the engine computes itself."""


class ProblemError(ValueError):
    """A problem that contradicts itself: names the object, the field and what would be right."""


def _shaped(owner: str, name: str, value: npt.ArrayLike, shape: tuple[int, ...], fortran: bool = False) -> Floats:
    """Return `value` as float64 broadcast to `shape`, or say which field of which object is wrong."""
    array = np.asarray(value, dtype=np.float64)
    if array.ndim == 0:
        return np.full(shape, array, order="F" if fortran else "C")
    if array.shape != shape:
        try:
            array = np.broadcast_to(array, shape)
        except ValueError as error:
            raise ProblemError(f"{owner}.{name} has shape {array.shape}, expected {shape}") from error
    return np.array(array, order="F") if fortran else np.ascontiguousarray(array)


@dataclass(frozen=True, slots=True)
class NodeMasks:
    """Per-component node masks whose rows are shared: identical pods point to the same row."""

    masks: Bools
    """bool[C, N], one row per class of components."""
    group: Ints
    """int32[J], the row of each component."""

    def row(self, component: int) -> Bools:
        """Return the mask bool[N] of one component."""
        mask: Bools = self.masks[self.group[component]]
        return mask

    @classmethod
    def per_component(cls, rows: npt.ArrayLike) -> NodeMasks:
        """Build from one row per component, bool[J, N]; equal neighbours are not merged."""
        masks = np.asarray(rows, dtype=np.bool_)
        return cls(masks=masks, group=np.arange(masks.shape[0], dtype=np.int32))


@dataclass(frozen=True, slots=True)
class NodeCosts:
    """Per-component costs of nodes whose rows are shared like those of `NodeMasks`: what a score plugin charges."""

    values: Floats
    """float64[C, N], cost units >= 0, lower is better; weighted already, one row per class of components."""
    group: Ints
    """int32[J], the row of each component."""


@dataclass(frozen=True)
class Infrastructure:
    """The nodes (or Liqo virtual nodes standing for clusters) an application may be placed on.

    Build it with `Infrastructure.of`, which fills in defaults and checks shapes. Amounts that change while the
    cluster lives (`free`, `bandwidth_free`, free link bandwidth) are copied into an `InfrastructureState`; the
    values here are the starting point.
    """

    names: tuple[str, ...]
    """Node names, in the order of every node axis."""
    resources: tuple[str, ...]
    """Resource names, in the order of every resource axis; the first one is the computing resource (CPU)."""
    capacity: Floats
    """float64[N, R], what the node can give in total."""
    free: Floats
    """float64[N, R], what is not requested by anything placed; negative when a node is over-committed."""
    price: Floats
    """float64[N, R], price per unit of each resource; 0 when nobody charges."""
    bandwidth_capacity: Floats
    """float64[N], network budget of the node; infinite when unknown or unlimited."""
    bandwidth_free: Floats
    """float64[N], network budget that is left."""
    bandwidth_price: Floats
    """float64[N], price per unit of bandwidth that leaves the node."""
    threshold: Floats
    """float64[N], share (0, 1] of capacity, bandwidth included, open to components that do not name the node."""
    max_unit: Floats
    """float64[N, R], largest single component an opaque node takes; infinite for ordinary nodes."""
    location: Ints
    """int32[N], index into `location_cost`: the zone (or any other place) of the node."""
    location_cost: Floats
    """float64[L, L], network cost from one location to another; the diagonal is the cost between two nodes of one
    location (1 in Diktyo). Two components on one node cost 0 whatever stands here."""
    zone: npt.NDArray[np.int64]
    """int64[L], zone of each location as Services compare them: by name, whatever the region; -1 without one."""
    score_cost: Floats
    """float64[L, L], `location_cost` as the score of NetworkOverhead reads it: the same, unless stated."""
    links: LinkModel | None = None
    """Physical links shared by several pairs of nodes; None when each node's own budget is the only limit."""

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        resources: Sequence[str],
        capacity: npt.ArrayLike,
        *,
        free: npt.ArrayLike | None = None,
        price: npt.ArrayLike = 0.0,
        bandwidth_capacity: npt.ArrayLike = np.inf,
        bandwidth_free: npt.ArrayLike | None = None,
        bandwidth_price: npt.ArrayLike = 0.0,
        threshold: npt.ArrayLike = 1.0,
        max_unit: npt.ArrayLike = np.inf,
        location: npt.ArrayLike = 0,
        location_cost: npt.ArrayLike = ((1.0,),),
        zone: npt.ArrayLike = -1,
        score_cost: Floats | None = None,
        links: LinkModel | None = None,
    ) -> Infrastructure:
        """Build an infrastructure; every argument broadcasts to its shape, `free` defaults to the capacity.

        Raises:
            ProblemError: a shape does not fit, a threshold lies outside (0, 1], or a location has no cost row.
        """
        n, r = len(names), len(resources)
        owner = "Infrastructure"
        total = _shaped(owner, "capacity", capacity, (n, r), fortran=True)
        bandwidth = _shaped(owner, "bandwidth_capacity", bandwidth_capacity, (n,))
        limit = _shaped(owner, "threshold", threshold, (n,))
        if n and not (np.all(limit > 0) and np.all(limit <= 1)):
            raise ProblemError(f"{owner}.threshold must lie in (0, 1]; node {names[int(np.argmin(limit))]!r} does not")
        costs = np.ascontiguousarray(np.asarray(location_cost, dtype=np.float64))
        if costs.ndim != 2 or costs.shape[0] != costs.shape[1] or np.isnan(costs).any() or (costs < 0).any():
            raise ProblemError(f"{owner}.location_cost must be a square matrix of costs >= 0, got shape {costs.shape}")
        place = np.ascontiguousarray(np.broadcast_to(np.asarray(location, dtype=np.int32), (n,)))
        if n and (place.min() < 0 or place.max() >= costs.shape[0]):
            raise ProblemError(f"{owner}.location names {int(place.max())}, location_cost has {costs.shape[0]} rows")
        return cls(
            names=tuple(names),
            resources=tuple(resources),
            capacity=total,
            free=total.copy(order="F") if free is None else _shaped(owner, "free", free, (n, r), fortran=True),
            price=_shaped(owner, "price", price, (n, r), fortran=True),
            bandwidth_capacity=bandwidth,
            bandwidth_free=bandwidth
            if bandwidth_free is None
            else _shaped(owner, "bandwidth_free", bandwidth_free, (n,)),
            bandwidth_price=_shaped(owner, "bandwidth_price", bandwidth_price, (n,)),
            threshold=limit,
            max_unit=_shaped(owner, "max_unit", max_unit, (n, r), fortran=True),
            location=place,
            location_cost=costs,
            zone=np.broadcast_to(np.asarray(zone, dtype=np.int64), (len(costs),)),
            score_cost=costs if score_cost is None else score_cost,
            links=links,
        )

    @property
    def size(self) -> int:
        """Number of nodes N."""
        return len(self.names)


@dataclass(frozen=True, slots=True)
class PlacedPeers:
    """Edges from components to pods that are placed already (other members of the group, or another application)."""

    component: Ints
    """int32[A], the component at this end."""
    node: Ints
    """int32[A], the node of the placed pod."""
    bandwidth: Floats
    """float64[A], bandwidth demand of the edge, not yet taken from any budget."""
    max_cost: Floats
    """float64[A], hard limit on the location cost; infinite for none."""
    weight: Floats
    """float64[A], weight of the edge in the network term."""
    incoming: Bools
    """bool[A], True when the placed pod is the one that depends on the component (matters for asymmetric costs)."""

    @classmethod
    def of(
        cls,
        component: Sequence[int] | Ints = (),
        node: Sequence[int] | Ints = (),
        *,
        bandwidth: npt.ArrayLike = 0.0,
        max_cost: npt.ArrayLike = np.inf,
        weight: npt.ArrayLike = 1.0,
        incoming: npt.ArrayLike = False,
    ) -> PlacedPeers:
        """Build edges to placed peers; scalars broadcast over all of them.

        Raises:
            ProblemError: the sequences differ in length.
        """
        ends = np.asarray(component, dtype=np.int32)
        nodes = np.asarray(node, dtype=np.int32)
        if ends.shape != nodes.shape or ends.ndim != 1:
            raise ProblemError(f"PlacedPeers: {ends.shape} components but {nodes.shape} nodes, both must be int[A]")
        shape = ends.shape
        return cls(
            component=ends,
            node=nodes,
            bandwidth=_shaped("PlacedPeers", "bandwidth", bandwidth, shape),
            max_cost=_shaped("PlacedPeers", "max_cost", max_cost, shape),
            weight=_shaped("PlacedPeers", "weight", weight, shape),
            incoming=np.array(np.broadcast_to(np.asarray(incoming, dtype=np.bool_), shape)),
        )


_NO_PAIRS: Ints = np.zeros((0, 2), dtype=np.int32)


def _pairs(name: str, value: npt.ArrayLike | None, count: int) -> Ints:
    """Return int32[X, 2] with indices below `count` and different ends."""
    if value is None:
        return _NO_PAIRS
    pairs = np.asarray(value, dtype=np.int32)
    if pairs.size == 0:
        return _NO_PAIRS
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ProblemError(f"Application.{name} has shape {pairs.shape}, expected (X, 2)")
    if pairs.min() < 0 or pairs.max() >= count:
        raise ProblemError(f"Application.{name} names component {int(pairs.max())}, there are {count}")
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise ProblemError(f"Application.{name} connects a component with itself; remove that pair")
    return pairs


@dataclass(frozen=True)
class Application:
    """A group of components that is placed as a whole. Build it with `Application.of`."""

    names: tuple[str, ...]
    """Component names; the last tie-break of every order."""
    requests: Floats
    """float64[J, R], what each component requests."""
    edges: Ints
    """int32[E, 2], dependent and dependency; several edges between two components add up."""
    bandwidth: Floats
    """float64[E], bandwidth demand of each edge when its ends are on different nodes."""
    max_cost: Floats
    """float64[E], hard limit on the location cost of the edge; infinite for none."""
    weight: Floats
    """float64[E], weight of the edge in the network term."""
    allowed: NodeMasks | None = None
    """Nodes each component may use (taints, affinity, ports, ...); None allows every node to every component."""
    placed_peers: PlacedPeers = field(default_factory=PlacedPeers.of)
    """Edges to pods that are placed already."""
    separate: Ints = field(default_factory=_NO_PAIRS.copy)
    """int32[S, 2], pairs that may not share a node (host ports, hostname anti-affinity)."""
    named: NodeMasks | None = None
    """Nodes that a component's selector names: there it may exceed the node's threshold. None: nowhere."""
    has_selector: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """bool[J], components with a selector go first in PHARE's order."""
    node_costs: Mapping[str, NodeCosts] = field(default_factory=dict)
    """Costs that plugins charge for a node, whatever else is placed, by the name of their term."""

    @classmethod
    def of(
        cls,
        requests: npt.ArrayLike,
        *,
        names: Sequence[str] | None = None,
        edges: npt.ArrayLike | None = None,
        bandwidth: npt.ArrayLike = 0.0,
        max_cost: npt.ArrayLike = np.inf,
        weight: npt.ArrayLike = 1.0,
        allowed: NodeMasks | None = None,
        placed_peers: PlacedPeers | None = None,
        separate: npt.ArrayLike | None = None,
        named: NodeMasks | None = None,
        has_selector: npt.ArrayLike = False,
        node_costs: Mapping[str, NodeCosts] | None = None,
    ) -> Application:
        """Build an application; scalars broadcast over edges and components.

        Raises:
            ProblemError: a shape or an index does not fit, an amount or a cost is negative.
        """
        demand = np.ascontiguousarray(np.asarray(requests, dtype=np.float64))
        if demand.ndim != 2:
            raise ProblemError(f"Application.requests has shape {demand.shape}, expected (J, R)")
        count = demand.shape[0]
        if demand.size and not demand.min() >= 0:
            raise ProblemError("Application.requests holds a negative amount or NaN; amounts are >= 0")
        pairs = _pairs("edges", edges, count)
        traffic = _shaped("Application", "bandwidth", bandwidth, (pairs.shape[0],))
        if traffic.size and not traffic.min() >= 0:
            raise ProblemError("Application.bandwidth holds a negative amount or NaN; amounts are >= 0")
        labels = tuple(names) if names is not None else tuple(f"component-{index}" for index in range(count))
        if len(labels) != count:
            raise ProblemError(f"Application.names has {len(labels)} entries for {count} components")
        for title, masks in (("allowed", allowed), ("named", named)):
            if masks is not None and masks.group.shape != (count,):
                raise ProblemError(f"Application.{title}.group has shape {masks.group.shape}, expected ({count},)")
        for title, costs in (node_costs or {}).items():
            if title in OBJECTIVE_TERMS:
                raise ProblemError(f"Application.node_costs: {title} is a term that the engine computes; rename yours")
            if costs.group.shape != (count,):
                raise ProblemError(
                    f"Application.node_costs[{title!r}].group has shape {costs.group.shape}, expected ({count},)"
                )
            if costs.values.size and not (costs.values.min() >= 0 and costs.values.max() < np.inf):
                raise ProblemError(f"Application.node_costs[{title!r}] holds a negative or infinite cost or NaN")
        fixed = placed_peers if placed_peers is not None else PlacedPeers.of()
        if fixed.component.size and not 0 <= fixed.component.min() <= fixed.component.max() < count:
            raise ProblemError(
                f"Application.placed_peers names component {int(fixed.component.max())}, there are {count}"
            )
        return cls(
            names=labels,
            requests=demand,
            edges=pairs,
            bandwidth=traffic,
            max_cost=_shaped("Application", "max_cost", max_cost, (pairs.shape[0],)),
            weight=_shaped("Application", "weight", weight, (pairs.shape[0],)),
            allowed=allowed,
            placed_peers=fixed,
            separate=_pairs("separate", separate, count),
            named=named,
            has_selector=np.array(np.broadcast_to(np.asarray(has_selector, dtype=np.bool_), (count,))),
            node_costs=dict(node_costs or {}),
        )

    @property
    def size(self) -> int:
        """Number of components J."""
        return int(self.requests.shape[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Weights of the objective and of the heuristics that only steer the search.

    Objective terms (`network`, `price`, `bandwidth`) are what `Plan.cost` counts. The others break ties or look
    ahead to later applications; they never appear in `Plan.cost`. The defaults serve both a live cluster without
    prices (network term rules, best fit breaks ties) and a priced one (prices rule).
    """

    network: float = 1.0
    """Per unit of edge weight times location cost."""
    price: float = 1.0
    """Per unit of money for resources."""
    bandwidth: float = 1.0
    """Per unit of money for bandwidth between nodes."""
    waste: float = 0.5
    """Heuristic: share of its price charged for what is left on a node when no known component fits the rest."""
    balance: float = 0.5
    """Heuristic: charge for using the scarcer resource of a node faster than the others."""
    opportunity_cost: float = 0.5
    """Heuristic: share charged of what a cheap node saves a typical component against the marginal node, the dearest
    that the next `lookahead` applications fill."""
    lookahead: float = 12.0
    """How many applications like the present one are to come, as far as the opportunity cost looks."""
    scarcity: float = 0.1
    """Heuristic, only while selectors name particular nodes: charge per component for the share of a node's room that
    it takes, so that small rooms stay open for those who cannot go elsewhere."""
    avoid_named: float = 1.0
    """Heuristic: charge per component on a node that a selector of another component names in particular."""
    fit: float = 1e-4
    """Heuristic: charge per component for the share of the node that stays free (positive packs, negative spreads)."""
