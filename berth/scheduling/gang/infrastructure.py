"""The cluster as the gang engine sees it: arrays over the node slots of a ClusterState.

Node settings by annotation (Liqo virtual nodes stand for whole clusters, with the label
``liqo.io/type: virtual-node``):

* ``berth.dev/price-<resource>``: price per core, per GiB (memory and storage), per Gbit/s (``bandwidth``),
  per unit otherwise; a ``/`` in the resource's name is written ``_``;
* ``berth.dev/usage-threshold``: share (0, 1] of the node that pods not naming it may fill;
* ``berth.dev/max-unit-<resource>``: largest single pod an opaque node takes, a quantity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from berth.api.labels import BERTH_PREFIX, RESOURCE_BANDWIDTH
from berth.api.quantity import QuantityError, parse_quantity
from berth.kube.objects import Node
from berth.network.bandwidth_allocations import BandwidthAllocations
from berth.network.costs import UNKNOWN_COST, NetworkCosts, Place
from berth.network.routing import zone_numbers
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Scale
from berth.scheduling.gang.exact import UNLIMITED, WIDEST, ExactAmounts, share_of
from berth.scheduling.gang.link_budgets import links_of
from berth.scheduling.gang.links import LinkModel
from berth.scheduling.gang.problem import Infrastructure
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.units import resource_units

PRICE_PREFIX = f"{BERTH_PREFIX}price-"
MAX_UNIT_PREFIX = f"{BERTH_PREFIX}max-unit-"
THRESHOLD_ANNOTATION = f"{BERTH_PREFIX}usage-threshold"
BANDWIDTH_PRICE = "bandwidth"
HIGHEST_PRICE = 1e12
"""What higher prices count as: sums over pods and penalties stay numbers."""
GIBIBYTE = 2.0**30
GIGABIT = 1e9

Floats = npt.NDArray[np.float64]


def units_per_price(resource: str) -> float:
    """How many scheduler units (milli-cpu, bytes, counts) one priced unit (core, GiB, one) holds."""
    if resource == "cpu":
        return 1000.0
    if resource in ("memory", "ephemeral-storage") or resource.startswith("hugepages-"):
        return GIBIBYTE
    if resource == BANDWIDTH_PRICE:
        return GIGABIT
    return 1.0


def annotation_name(prefix: str, resource: str) -> str:
    """Annotation that holds a setting of a resource."""
    return prefix + resource.replace("/", "_")


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """What a node's annotations say, with what is wrong in them."""

    prices: dict[str, float] = field(default_factory=dict)
    """annotation name to price"""
    max_units: dict[str, str] = field(default_factory=dict)
    """annotation name to quantity"""
    threshold: float | None = None
    """usage threshold, None when the node states none"""
    problems: tuple[str, ...] = ()
    """one sentence per annotation that is ignored: names node, annotation and remedy"""


def read_settings(node: Node) -> NodeSettings:
    """Read the annotations of a node; a bad value is ignored and reported."""
    prices: dict[str, float] = {}
    max_units: dict[str, str] = {}
    threshold: float | None = None
    problems: list[str] = []

    def report(name: str, value: str, wanted: str) -> None:
        problems.append(f"node {node.metadata.name}: annotation {name}={value!r} is ignored; write {wanted}")

    for name, value in node.metadata.annotations.items():
        if name.startswith(PRICE_PREFIX):
            price = _number(value)
            if price is None or price < 0:
                report(name, value, "a number >= 0 such as 0.25")
            else:
                prices[name] = min(price, HIGHEST_PRICE)
        elif name == THRESHOLD_ANNOTATION:
            share = _number(value)
            if share is None or not 0 < share <= 1:
                report(name, value, "a share above 0 and up to 1 such as 0.75")
            else:
                threshold = share
        elif name.startswith(MAX_UNIT_PREFIX):
            try:
                if parse_quantity(value) < 0:
                    raise QuantityError(f"{value!r} is below 0")
                max_units[name] = value
            except QuantityError:
                report(name, value, "a quantity >= 0 such as 4 or 8Gi")
    return NodeSettings(prices, max_units, threshold, tuple(problems))


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


class InfrastructureView:
    """Keeps one InfrastructureState in step with a ClusterState."""

    def __init__(self, state: ClusterState, profile: Profile) -> None:
        """Prepare; arrays are built on first use."""
        self._state = state
        self._profile = profile
        self._costs: NetworkCosts | None = None
        self._built: tuple[int, int, int, int] | None = None
        self._charges = -1
        self._exact: ExactAmounts
        self._current: InfrastructureState | None = None
        self.problems: tuple[str, ...] = ()
        """What is wrong in the nodes' annotations, as of the last rebuild."""
        self._location_of: dict[Place, int] = {}
        self.places: tuple[Place, ...] = ()
        """The places (region, zone and segment) that `location` refers to."""

    @property
    def model(self) -> Infrastructure:
        """The arrays of the last :meth:`current`; raises LookupError before the first."""
        if self._current is None:
            raise LookupError("no infrastructure yet: call current() first")
        return self._current.infrastructure

    def current(self, costs: NetworkCosts, placement: BandwidthAllocations) -> InfrastructureState:
        """The cluster as of now.

        Args:
            costs: network costs between places.
            placement: refreshed bandwidth use of placed dependency edges.
        """
        state = self._state
        stamp = (state.static_version, state.nodes.allocatable_version, state.size, len(state.resources))
        current = previous = self._current
        if current is None or stamp != self._built:
            current = InfrastructureState(self._build(costs))
            self._built, self._costs = stamp, costs
        elif costs is not self._costs:
            # Namespaces with topologies of their own take turns: only distances and budgets of links differ.
            distance, score = self._distances(costs)
            links = self._links(costs)
            model = replace(current.infrastructure, location_cost=distance, score_cost=score, links=links)
            current = InfrastructureState(model)
            self._costs = costs
        changed = state.nodes.charged_since(self._charges) if previous is current else None
        if previous is not None and previous is not current:
            current.adopt(previous)
        self._current, exact = current, self._exact
        current.exact = exact
        if changed is None:
            np.subtract(state.allocatable, state.used, out=current.free, casting="unsafe")
        elif changed:
            current.free[changed] = state.allocatable[changed] - state.used[changed]
        self._charges = state.nodes.charges
        column, index = state.resources.get(RESOURCE_BANDWIDTH), state.node_index
        requested = state.used[:, column] if column is not None else None
        exact.take(requested, ((index[name], amount) for name, amount in placement.nodes.items() if name in index))
        current.bandwidth_free[:] = exact.bandwidth_left
        links = current.infrastructure.links
        # Without links nothing may stay of those that another namespace's topology states.
        exact.link_free = () if links is None else self._links_left(links, placement)
        current.link_free[:] = np.minimum(exact.link_free, WIDEST)
        if current.has_thresholds:
            np.subtract(state.allocatable, exact.open, out=current.reserve, casting="unsafe")
            current.bandwidth_reserve[:] = exact.bandwidth_kept
        return current

    def _links_left(self, links: LinkModel, placement: BandwidthAllocations) -> tuple[int, ...]:
        left = [int(capacity) for capacity in links.capacity.tolist()]
        if links.by_node:
            location = self.model.location
            for nodes, amount in placement.pairs.items():
                slots = [self._state.node_index[name] for name in nodes if name in self._state.node_index]
                for link in links.path(slots[0], slots[1], location) if len(slots) == len(nodes) else ():
                    left[link] -= amount
            return tuple(left)
        for (here, there), amount in placement.places.items():
            if here in self._location_of and there in self._location_of:
                for link in links.between(self._location_of[here], self._location_of[there]):
                    left[link] -= amount
        return tuple(left)

    def _links(self, costs: NetworkCosts) -> LinkModel | None:
        return links_of(self._profile, costs.budgets, self.places, self._state.node_index)

    def _build(self, costs: NetworkCosts) -> Infrastructure:
        state, profile = self._state, self._profile
        nodes = state.nodes.nodes[: state.size]
        resources = tuple(state.resources)
        size = len(nodes)
        capacity = state.allocatable.astype(np.float64)
        price = np.empty((size, len(resources)))
        prices = {name: min(amount, HIGHEST_PRICE) for name, amount in profile.prices.items()}
        for column, resource in enumerate(resources):
            price[:, column] = prices.get(resource, 0.0) / units_per_price(resource)
        bandwidth_price = np.full(size, prices.get(BANDWIDTH_PRICE, 0.0) / GIGABIT)
        threshold = np.full(size, profile.usage_threshold)
        max_unit = np.full((size, len(resources)), UNLIMITED, dtype=np.int64)
        bandwidth_column = state.resources.get(RESOURCE_BANDWIDTH)
        bandwidth = np.full(size, UNLIMITED, dtype=np.int64)
        places: dict[Place, int] = {}
        location = np.zeros(size, dtype=np.int32)
        problems: list[str] = []
        for slot, node in enumerate(nodes):
            if node is None:
                location[slot] = places.setdefault(Place(), len(places))
                continue
            location[slot] = places.setdefault(state.place(slot), len(places))
            if bandwidth_column is not None and RESOURCE_BANDWIDTH in node.status.allocatable:
                bandwidth[slot] = state.allocatable[slot, bandwidth_column]
            if not any(name.startswith(BERTH_PREFIX) for name in node.metadata.annotations):
                continue
            settings = read_settings(node)
            problems.extend(settings.problems)
            if settings.threshold is not None:
                threshold[slot] = settings.threshold
            bandwidth_annotation = annotation_name(PRICE_PREFIX, BANDWIDTH_PRICE)
            if bandwidth_annotation in settings.prices:
                bandwidth_price[slot] = settings.prices[bandwidth_annotation] / GIGABIT
            for column, resource in enumerate(resources):
                name = annotation_name(PRICE_PREFIX, resource)
                if name in settings.prices:
                    price[slot, column] = settings.prices[name] / units_per_price(resource)
                unit = settings.max_units.get(annotation_name(MAX_UNIT_PREFIX, resource))
                if unit is not None:
                    max_unit[slot, column] = resource_units(resource, unit)
        if not places:
            places[Place()] = 0
        self.places, self._location_of = tuple(places), places
        self.problems = tuple(problems)
        self._exact = ExactAmounts(
            open=share_of(state.allocatable, threshold),
            max_unit=max_unit,
            bandwidth=bandwidth,
            bandwidth_kept=np.where(bandwidth < UNLIMITED, bandwidth - share_of(bandwidth, threshold), 0),
        )
        distance, score = self._distances(costs)
        return Infrastructure.of(
            [node.metadata.name if node is not None else "" for node in nodes],
            resources,
            capacity,
            price=price,
            bandwidth_capacity=np.where(bandwidth < UNLIMITED, np.minimum(bandwidth, WIDEST), np.inf),
            bandwidth_price=bandwidth_price,
            threshold=threshold,
            max_unit=np.where(max_unit < UNLIMITED, max_unit, np.inf),
            location=location,
            location_cost=distance,
            zone=zone_numbers(self.places),
            score_cost=score,
            links=self._links(costs),
        )

    def _distances(self, costs: NetworkCosts) -> tuple[Floats, Floats]:
        """Costs between places, and as the score of NetworkOverhead reads them where the profile asks for it."""
        distance = costs.matrix(self.places)
        if self._profile.gang.alone is Scale.COST:
            return distance, distance
        return distance, costs.matrix(self.places, unknown=UNKNOWN_COST)
