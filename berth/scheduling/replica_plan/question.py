"""The waiting pods of an AppGroup as a problem in counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.api.labels import RESOURCE_BANDWIDTH
from berth.api.spread import SpreadLevel
from berth.network.costs import Place
from berth.network.edges import effective_limit
from berth.network.groups import Group, GroupEdge
from berth.network.routing import zone_numbers
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.configuration import SYSTEM_DEFAULT_CONSTRAINTS, DefaultConstraint, ObjectiveWeights
from berth.scheduling.framework.cycle_state import names_nodes
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.exact import WIDEST
from berth.scheduling.gang.problem import Weights
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.plugins.node_bandwidth import requested_bandwidth
from berth.scheduling.replica_plan.absent import calls_through_absent
from berth.scheduling.replica_plan.attach_room import attach_room
from berth.scheduling.replica_plan.places import failure_zones, placed_replicas
from berth.scheduling.replica_plan.pod_sets import Alike, alike
from berth.scheduling.replica_plan.prices import kept_endpoints, lasting_spread_price, objective_prices
from berth.scheduling.replica_plan.rollout import Whose, away_from, replaced_pods, to_come, with_those_to_come
from berth.scheduling.replica_plan.rules import RuleReader, TooManyRulesError
from berth.scheduling.replica_plan.same_nodes import SameNodes
from berth.scheduling.replica_plan.socket_harm import sharing_of
from berth.scheduling.replica_plan.volume_cuts import VolumeCut, cut_room
from berth.scheduling.replica_plan.volume_room import volume_room
from berth.scheduling.replicas.problem import Edge, Link, Nodes, PodSet, Problem, Workload

MOST_AHEAD = 200
"""Pods up to which those that a rolling update brings later are planned as well.

More take their time and gain nothing, as each wave is large enough to be spread by itself."""
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Question:
    """A problem with what its parts stand for."""

    problem: Problem
    """the problem; its nodes are the cluster's node slots"""
    pod_sets: Sequence[Alike]
    """the waiting pods, in the order of the problem's pod sets"""
    judged: bool
    """whether the filters must see every pod: what pods request of links is shared in a way that the problem rounds"""
    carried: bool
    """whether calls take from budgets of nodes or links"""


def pose(
    group: Group,
    candidates: Sequence[Candidate],
    cache: Cache,
    current: Callable[[], InfrastructureState],
    places: Sequence[Place],
    weights: Weights | ObjectiveWeights,
    *,
    enforce_limits: bool,
    spread: SpreadLevel = SpreadLevel.SOFT,
    defaults: Sequence[DefaultConstraint] = SYSTEM_DEFAULT_CONSTRAINTS,
    interference: float = 0.0,
    turns: SameNodes | None = None,
    cuts: Collection[VolumeCut] = (),
    ahead: bool = True,
) -> Generator[None, None, Question | None]:
    """Translate waiting pods, in turns; None where a problem in counts cannot say what holds for them.

    That is: links that all traffic of a node uses, priced bandwidth between nodes, or more rules than one plan is made
    with.

    Args:
        group: their AppGroup.
        candidates: the pods, filtered without the rules between pods.
        cache: the cluster, placed members and Services.
        current: asks for amounts and costs as of now.
        places: what its locations stand for.
        weights: of network costs and prices.
        enforce_limits: False when no network costs are known: maxNetworkCost cannot be judged then.
        spread: which failure the profile wants survived.
        defaults: the profile's topology spread constraints of pods that state none.
        interference: what harm that counts 1 costs; 0 where the profile chooses no nodes by it.
        turns: when others have theirs, and time.
        cuts: what earlier plans have shown about volumes.
        ahead: plan also the pods that a rolling update brings later.

    Raises:
        NodesChangedError: while others had their turn.
    """
    turns = turns or SameNodes(cache.state)
    pod_sets = yield from alike(candidates, cache.state, current(), price=weights.price, turns=turns)
    infrastructure = current()
    placed = placed_replicas(group, cache.state)
    number = {name: row for row, name in enumerate(dict.fromkeys([*(pods.workload for pods in pod_sets), *placed]))}
    edges = [edge for edge in group.edges if edge.dependent in number and edge.dependency in number]
    waiting = [pods.workload for pods in pod_sets]
    edges += calls_through_absent(group, waiting, dict.fromkeys([*placed, *waiting]))
    carried = _bandwidth_counts(edges, infrastructure)
    if carried and not _expressible(infrastructure):
        return None
    limited = enforce_limits and any(edge.max_cost < np.inf for edge in edges)
    pods_to_place = [candidate.info.pod for candidate in candidates]
    gone = replaced_pods(group, pods_to_place, cache)
    leaving: Mapping[str, Mapping[int, int]] = {}
    more = to_come(group, gone, pods_to_place, cache) if gone and ahead else Counter[Whose]()
    if more and len(candidates) + more.total() <= MOST_AHEAD:
        pod_sets = with_those_to_come(pod_sets, more)
    if gone:
        there, placed = placed, placed_replicas(group, cache.state, without=gone)
        if carried or limited:
            # Budgets are charged with what is really there, and so are limits kept.
            leaving = {name: Counter(counts) - Counter(placed.get(name, {})) for name, counts in there.items()}
    lasting = lasting_spread_price(group, weights.network, infrastructure.infrastructure.location_cost)
    try:
        rules = yield from RuleReader(pod_sets, placed, cache.state, defaults, gone, lasting).read(turns)
    except TooManyRulesError:
        return None
    infrastructure = current()
    sharing, charged = sharing_of(pod_sets, cache.state, interference)
    volumes = volume_room(charged, cache.state).beside(attach_room(charged, cache.state))
    volumes = volumes.beside(cut_room(cuts, charged, cache.state))
    costs = infrastructure.infrastructure.location_cost
    charges = _charges(charged)
    if gone:
        replicas = Counter[str]()
        for pods in pod_sets:
            replicas[pods.workload] += pods.replicas
        replicas.update({name: sum(counts.values()) for name, counts in placed.items()})
        away = away_from(gone, replicas, cache.state, infrastructure.infrastructure, weights.network)
        charges = [_plus(cost, away.get(pods.workload)) for pods, cost in zip(charged, charges, strict=True)]
    routing = {name: cache.services.routing(group.key, name).routing for name in number}
    problem = Problem(
        nodes=_nodes(
            cache.state,
            infrastructure,
            places,
            volumes.free,
            _bandwidth(group, pod_sets, cache, infrastructure) if carried else None,
            _links(group, cache, infrastructure, places) if carried else (),
        ),
        workloads=[
            Workload(name=name, routing=routing[name], placed=placed.get(name, {}), leaving=leaving.get(name, {}))
            for name in number
        ],
        pod_sets=[
            PodSet(
                workload=number[pods.workload],
                replicas=pods.replicas,
                request=np.append(pods.request, taken),
                mask=pods.mask,
                cost=cost,
                names_nodes=names_nodes(pods.template),
            )
            for pods, taken, cost in zip(charged, volumes.requests, charges, strict=True)
        ],
        edges=[
            Edge(
                caller=number[edge.dependent],
                callee=number[edge.dependency],
                max_cost=effective_limit(edge) if enforce_limits else np.inf,
                bandwidth=float(edge.bandwidth) if carried else 0.0,
            )
            for edge in edges
        ],
        rules=rules,
        prices=objective_prices(
            group,
            weights.network,
            costs,
            spread,
            pod_sets,
            rules,
            kept_endpoints(routing, pod_sets, placed),
            0.0 if sharing is None else sharing.highest,
        ),
        sharing=sharing,
    )
    requested = any(requested_bandwidth(pods.template) for pods in pod_sets)
    return Question(problem, charged, judged=requested, carried=carried)


def _bandwidth_counts(edges: Iterable[GroupEdge], infrastructure: InfrastructureState) -> bool:
    """Whether the bandwidth of some edge can rule anything out or costs anything."""
    model = infrastructure.infrastructure
    somewhere = infrastructure.exact.limited.any() or model.links is not None or model.bandwidth_price.any()
    return bool(somewhere) and any(edge.bandwidth for edge in edges)


def _expressible(infrastructure: InfrastructureState) -> bool:
    model = infrastructure.infrastructure
    return (model.links is None or not model.links.by_node) and not model.bandwidth_price.any()


def _nodes(
    state: ClusterState,
    infrastructure: InfrastructureState,
    places: Sequence[Place],
    volumes: Ints,
    bandwidth: Floats | None,
    links: Sequence[Link],
) -> Nodes:
    exact, model = infrastructure.exact, infrastructure.infrastructure
    reserve: Ints = state.allocatable - exact.open
    kept: Ints = np.hstack([reserve, np.zeros_like(volumes)])
    return Nodes(
        free=np.hstack([state.allocatable - state.used, volumes]),
        location=model.location.astype(np.int64),
        location_cost=model.location_cost,
        zone=failure_zones(state),
        service_zone=zone_numbers(places),
        reserve=kept if kept.any() else None,
        bandwidth=bandwidth,
        links=links,
    )


def _bandwidth(group: Group, pod_sets: Sequence[Alike], cache: Cache, infrastructure: InfrastructureState) -> Floats:
    """float64[N], bit/s of each node for the edges of the group, those between placed pods included.

    What the pods to place request themselves is kept back on every node that they may use, as if all came there.
    """
    exact, column = infrastructure.exact, cache.state.resources.get(RESOURCE_BANDWIDTH)
    left = (exact.bandwidth_free - exact.bandwidth_kept).astype(np.float64)
    for node, amount in cache.bandwidth().of(group.key).items():
        slot = cache.state.node_index.get(node)
        if slot is not None:
            left[slot] += amount
    if column is not None:
        for pods in pod_sets:
            left -= pods.replicas * int(pods.request[column]) * pods.mask
    return np.where(exact.limited, np.minimum(left, WIDEST), np.inf)


def _links(group: Group, cache: Cache, infrastructure: InfrastructureState, places: Sequence[Place]) -> list[Link]:
    """What each link has left for the edges of the group, those between placed pods included."""
    model, exact = infrastructure.infrastructure.links, infrastructure.exact
    if model is None:
        return []
    between: dict[int, list[tuple[int, int]]] = {}
    for pair, links in model.by_location.items():
        for link in links:
            between.setdefault(link, []).append((min(pair), max(pair)))
    left = list(exact.link_free)
    location = {place: number for number, place in enumerate(places)}
    for (here, there), amount in cache.bandwidth().places_of(group.key).items():
        for link in model.between(location[here], location[there]) if {here, there} <= location.keys() else ():
            left[link] += amount
    return [Link(pairs, float(min(left[link], WIDEST))) for link, pairs in between.items()]


def _charges(pod_sets: Sequence[Alike]) -> list[Floats | None]:
    """float64[N], what plugins charge for a pod of each set; those with the same costs share the array."""
    known: dict[tuple[int, ...], Floats | None] = {(): None}
    found: list[Floats | None] = []
    for pods in pod_sets:
        costs = tuple(map(id, pods.costs.values()))
        if costs not in known:
            known[costs] = np.sum([*pods.costs.values()], axis=0)
        found.append(known[costs])
    return found


def _plus(cost: Floats | None, more: Floats | None) -> Floats | None:
    """The sum of what is there."""
    return cost if more is None else more if cost is None else cost + more
