"""What one node says to pods that look for a place: each filter that rejects them there, and how many find room.

The filters are those of the scheduler. Members of an AppGroup are judged as pods that come later are: by themselves,
towards the members that have a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from berth.kube.objects import Pod
from berth.network.groups import Group
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.volumes import claim_keys, disk_uses
from berth.scheduling.configuration import Profile
from berth.scheduling.framework.cycle_state import CycleState
from berth.scheduling.framework.framework import Framework
from berth.scheduling.framework.plugin import FilterPlugin
from berth.scheduling.gang.infrastructure import InfrastructureView
from berth.scheduling.plugins import PLUGINS
from berth.scheduling.plugins.network_overhead import NetworkOverhead
from berth.scheduling.single import cycle_of


@dataclass(frozen=True, slots=True)
class Fit:
    """How many pods a node would take."""

    pods: int
    """how many were asked about"""
    admitted: int
    """how many of them find room there, one after another"""
    reasons: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """pods by (plugin, reason) that keeps them out, the commonest first; a pod counts for each of its reasons"""
    edges: int = 0
    """dependency edges of the first that is admitted, to pods that have a node"""
    edge_cost: float = 0.0
    """what these would cost there"""


class NodeFit:
    """Judges one node for the pods of a profile."""

    def __init__(self, cache: Cache, profile: Profile, node: str) -> None:
        """Prepare.

        Args:
            cache: the node, the pods on it, and as much of the rest as the rules of the pods look at.
            profile: weights and limits of the pods' scheduler.
            node: name of the node.

        Raises:
            KeyError: the cache does not know the node.
        """
        self._cache = cache
        self._profile = profile
        self._node = node
        self._slot = cache.state.node_index[node]
        self._view = InfrastructureView(cache.state, profile)
        self._filters = [
            plugin for plugin in Framework(item.of(profile) for item in PLUGINS).plugins
            if isinstance(plugin, FilterPlugin)
        ]  # fmt: skip

    def bandwidth_free(self, namespace: str) -> float:
        """bit/s that the node has left beside requests and placed edges, infinite where nothing limits them."""
        costs = self._cache.costs_for(namespace, self._profile)
        return float(self._view.current(costs, self._cache.bandwidth()).bandwidth_free[self._slot])

    def rejections(self, pod: Pod) -> tuple[tuple[str, str], ...]:
        """(plugin, reason) of every rule that keeps a waiting pod from the node, none when it would be admitted."""
        return self._rejections(self._cycle(pod))

    def _cycle(self, pod: Pod) -> CycleState:
        costs = self._cache.costs_for(pod.metadata.namespace, self._profile)
        infrastructure = self._view.current(costs, self._cache.bandwidth())
        return cycle_of(pod, self._group(pod), self._cache, infrastructure, limits_known=costs.available)

    def _rejections(self, cycle: CycleState) -> tuple[tuple[str, str], ...]:
        found: list[tuple[str, str]] = []
        for plugin in self._filters:
            blocker = plugin.pre_filter(cycle)
            if blocker is not None:
                found.append((plugin.name, blocker))
            else:
                found += ((plugin.name, reason) for reason, nodes in plugin.filter(cycle) if nodes[self._slot])
        return tuple(found)

    def fit(self, pods: Iterable[Pod]) -> Fit:
        """Let waiting pods come one after another, each beside those that were admitted before; nothing remains."""
        admitted: list[Pod] = []
        reasons: Counter[tuple[str, str]] = Counter()
        known: dict[object, tuple[tuple[str, str], ...]] = {}
        count = edges = 0
        edge_cost = 0.0
        try:
            for pod in pods:
                count += 1
                template = self._cache.state.info(pod).template
                # One answer for all that are alike, but for their volumes: of thousands that wait few are looked at.
                key: object = pod.key if pod.spec.volumes and (claim_keys(pod) or disk_uses(pod)) else template.key
                rejected = known.get(key)
                if rejected is None:
                    cycle = self._cycle(pod)
                    rejected = self._rejections(cycle)
                    if not rejected:
                        if not admitted and (network := NetworkOverhead().cost(cycle)) is not None:
                            edges, edge_cost = len(cycle.edges), float(network[self._slot])
                        self._cache.assume(pod, self._node)
                        admitted.append(pod)
                        continue
                    known[key] = rejected
                reasons.update(rejected)
        finally:
            for pod in admitted:
                self._cache.forget(pod)
        return Fit(count, len(admitted), dict(reasons.most_common()), edges, edge_cost)

    def _group(self, pod: Pod) -> Group | None:
        key = self._cache.members.group_of(pod.metadata.uid)
        group = self._cache.groups.get(key) if key is not None else None
        return group if group is not None and not group.problem else None
