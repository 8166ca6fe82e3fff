"""Placing one pod by itself: filter every node, score those that are left, take the best.

Used for pods outside any AppGroup, for later replicas of a placed application, and for pods whose affinity
or spread rules depend on pods placed a moment before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from berth.scheduling.cache.pod_templates import PodInfo
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import MAX_RUNNER_UPS, Alternative
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.plugins.neighbours import Neighbour, NeighbourView, normalise, view_neighbours
from berth.scheduling.plugins.pipeline import FilterResult
from berth.scheduling.plugins.scores.pipeline import ScorePipeline

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

NETWORK_TERM = "network"
PRICE_TERM = "price"


@dataclass(frozen=True, slots=True)
class Choice:
    """The best node for one pod, or none."""

    slot: int
    """node slot, -1 when no node is feasible"""
    score: float
    """total score, higher is better"""
    terms: dict[str, float]
    """weighted score by term"""
    runner_ups: tuple[Alternative, ...]
    """next best nodes"""
    result: FilterResult
    """which nodes were rejected, network reasons included"""
    edges: int
    """placed neighbours"""
    edge_cost: float
    """network cost of the edges to them"""


class SinglePlanner:
    """Filter and score against the state as it is."""

    def __init__(
        self,
        state: ClusterState,
        profile: Profile,
        *,
        feasible: Callable[[PodInfo], FilterResult],
        scores: ScorePipeline,
    ) -> None:
        """Share the state and the rules with the caller; `feasible` runs the filters."""
        self._state = state
        self._profile = profile
        self._feasible = feasible
        self._scores = scores

    def choose(
        self,
        info: PodInfo,
        neighbours: Sequence[Neighbour],
        infrastructure: InfrastructureState,
        *,
        named: bool,
        enforce_limits: bool,
    ) -> Choice:
        """Pick a node; nothing is assumed.

        Args:
            info: the pod.
            neighbours: placed pods it has dependency edges with.
            infrastructure: the cluster with prices, thresholds and bandwidth, up to date.
            named: the pod's own selector names nodes: it may exceed their usage threshold.
            enforce_limits: whether maxNetworkCost can be judged.
        """
        state, model = self._state, infrastructure.infrastructure
        result, view = self.admit(info, neighbours, infrastructure, named=named, enforce_limits=enforce_limits)
        slots = np.flatnonzero(result.mask)
        if not slots.size:
            return Choice(-1, 0.0, {}, (), result, view.edges, 0.0)
        scored = self._scores.evaluate(info, state, result.mask)
        terms: dict[str, Floats] = {
            rule.name: rule.weight * scored.parts[rule.name]
            for rule in self._scores.scores
            if rule.name in scored.parts
        }
        weights = self._profile.weights
        if view.edges:
            terms[NETWORK_TERM] = weights.network_score * _spread(normalise(view.cost[slots]), slots, state.size)
        if weights.price and model.price.any():
            price = model.price[slots] @ state.request_vector(info.template).astype(np.float64)
            terms[PRICE_TERM] = weights.price * _spread(normalise(price), slots, state.size)
        total = np.zeros(state.size)
        for values in terms.values():
            total += values
        order = slots[np.lexsort((slots, -total[slots]))[: MAX_RUNNER_UPS + 1]]
        best = int(order[0])

        def by_term(slot: int) -> dict[str, float]:
            return {name: float(values[slot]) for name, values in terms.items() if values[slot]}

        runner_ups = tuple(
            Alternative(state.node_name(int(slot)), float(total[slot]), by_term(int(slot))) for slot in order[1:]
        )
        return Choice(best, float(total[best]), by_term(best), runner_ups, result, view.edges, float(view.cost[best]))

    def admit(
        self,
        info: PodInfo,
        neighbours: Sequence[Neighbour],
        infrastructure: InfrastructureState,
        *,
        named: bool,
        enforce_limits: bool,
    ) -> tuple[FilterResult, NeighbourView]:
        """Which nodes may take the pod under every rule, network limits and budgets included; arguments as above."""
        model = infrastructure.infrastructure
        result = self._feasible(info)
        view = view_neighbours(
            neighbours, location=model.location, location_cost=model.location_cost, enforce_limits=enforce_limits
        )
        if result.feasible:
            reject(result, "node(s) exceeded maxNetworkCost towards a placed dependency", view.violated)
            self._reject_by_budget(result, info, neighbours, infrastructure, named=named)
        return result, view

    def _reject_by_budget(
        self,
        result: FilterResult,
        info: PodInfo,
        neighbours: Sequence[Neighbour],
        infrastructure: InfrastructureState,
        *,
        named: bool,
    ) -> None:
        """Rules that only the gang engine's model knows: threshold, largest unit, bandwidth."""
        model, state = infrastructure.infrastructure, self._state
        request = state.request_vector(info.template).astype(np.float64)
        if np.isfinite(model.max_unit).any():
            reject(
                result, "node(s) took no pod as large as this one", np.asarray((request > model.max_unit).any(axis=1))
            )
        if infrastructure.has_thresholds and not named:
            over = np.asarray(((infrastructure.free - infrastructure.reserve < request) & (request > 0)).any(axis=1))
            reject(result, "node(s) were filled to their usage threshold", over)
        demand = sum(neighbour.bandwidth for neighbour in neighbours)
        if not demand or (model.links is None and not np.isfinite(model.bandwidth_capacity).any()):
            return
        reserve = np.zeros(state.size) if named else infrastructure.bandwidth_reserve
        left = infrastructure.bandwidth_free - reserve
        towards: dict[int, float] = {}
        for neighbour in neighbours:
            if neighbour.bandwidth:
                towards[neighbour.node] = towards.get(neighbour.node, 0.0) + neighbour.bandwidth
        need = np.full(state.size, demand)
        for node, amount in towards.items():
            need[node] -= amount
        # A node whose budget is overdrawn already still takes a pod that adds nothing to it.
        short = (need > left) & (need > 0)
        for node, amount in towards.items():
            if amount > left[node]:
                elsewhere = np.ones(state.size, dtype=np.bool_)
                elsewhere[node] = False
                short |= elsewhere
        if model.links is not None:
            for slot in np.flatnonzero(result.mask & ~short):
                load: dict[int, float] = {}
                for node, amount in towards.items():
                    for link in model.links.path(int(slot), node, model.location):
                        load[link] = load.get(link, 0.0) + amount
                short[slot] = any(amount > infrastructure.link_free[link] for link, amount in load.items())
        reject(result, "node(s) had too little bandwidth for the pod's dependencies", short)


def _spread(values: Floats, slots: npt.NDArray[np.intp], size: int) -> Floats:
    whole = np.zeros(size)
    whole[slots] = values
    return whole


def reject(result: FilterResult, reason: str, nodes: Bools) -> None:
    """Take nodes out of a result and count them."""
    count = int(np.count_nonzero(result.mask & nodes))
    if count:
        result.rejected[reason] = result.rejected.get(reason, 0) + count
        result.mask &= ~nodes
