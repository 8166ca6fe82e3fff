"""What the filters' unit tests share."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from berth.kube.objects import Namespace, Node, Pod
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import FilterResult, Framework, ScoreResult
from berth.scheduling.framework.plugin import Bools, FilterPlugin, Plugin, ScorePlugin
from berth.scheduling.plugins import PLUGINS
from tests.support.builders import node


def cluster(nodes: Iterable[Node], pods: Iterable[Pod] = (), namespaces: Iterable[Namespace] = ()) -> ClusterState:
    """A state of these nodes, pods and namespaces."""
    cache = Cache(clock=lambda: 0.0)
    for namespace in namespaces:
        cache.update_namespace(namespace)
    for item in nodes:
        cache.update_node(item)
    for pod in pods:
        cache.update_pod(pod)
    return cache.state


def cycle_of(pod: Pod, state: ClusterState) -> CycleState:
    """What plugins are given about a pod without dependencies, in a cluster without prices and budgets."""
    return CycleState(state.info(pod), state)


def framework(*plugins: Plugin) -> Framework:
    """These plugins, or all of them as they are by default."""
    return Framework(plugins or [plugin.of(Profile()) for plugin in PLUGINS])


def filtered(pod: Pod, state: ClusterState, *, skip: Collection[str] = ()) -> FilterResult:
    """What all filters say about a pod."""
    return framework().filter(cycle_of(pod, state), skip=skip)


def scored(pod: Pod, state: ClusterState, feasible: Bools, *plugins: Plugin) -> ScoreResult:
    """What these scores, or all of them, say about a pod."""
    return framework(*plugins).score(cycle_of(pod, state), feasible)


def rejected(rule: FilterPlugin, pod: Pod, state: ClusterState) -> dict[str, list[str]]:
    """Reasons per node that the filter rejects."""
    found: dict[str, list[str]] = {}
    for reason, nodes in rule.filter(cycle_of(pod, state)):
        for slot in np.flatnonzero(nodes & state.alive):
            found.setdefault(state.node_name(int(slot)), []).append(reason)
    return found


def passing(rule: FilterPlugin, pod: Pod, state: ClusterState) -> set[str]:
    """Nodes that the filter alone admits."""
    return {state.node_name(int(slot)) for slot in np.flatnonzero(rule.mask(cycle_of(pod, state)))}


def scores(score: ScorePlugin, new: Pod, state: ClusterState, *, without: tuple[str, ...] = ()) -> dict[str, float]:
    """Normalised score per feasible node, all nodes being feasible but those in ``without``."""
    feasible = state.alive.copy()
    for name in without:
        feasible[state.node_index[name]] = False
    values = score.normalized(cycle_of(new, state), feasible)
    if values is None:
        return {state.node_name(int(slot)): 0.0 for slot in np.flatnonzero(feasible)}
    assert not values[~feasible].any()
    return {state.node_name(int(slot)): float(values[slot]) for slot in np.flatnonzero(feasible)}


def zoned(*names: str) -> list[Node]:
    """Nodes like a0, a1, b0, each in the zone of its first letter."""
    return [node(name, labels={"zone": name[0]}) for name in names]
