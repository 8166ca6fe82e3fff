"""The controller's cache of the cluster, fed by watch events: state, members, groups, costs. No I/O.

Every method takes one change and says in its return value who should be looked at again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cachetools import TTLCache

from berth.api.errors import InvalidObjectError
from berth.api.labels import BERTH_PREFIX
from berth.api.networktopology import API_VERSION as TOPOLOGY_API_VERSION
from berth.api.networktopology import KIND as TOPOLOGY_KIND
from berth.api.networktopology import NetworkTopology
from berth.kube.objects import CustomObject, Node, Pod
from berth.network.costs import NO_COSTS, NetworkCosts, choose_topology, read_costs
from berth.network.edges import BandwidthAllocations
from berth.network.groups import Group, GroupKey, read_group
from berth.network.members import GroupMembers
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.configuration import Profile
from berth.scheduling.volumes import assume_volumes, forget_volumes

AVOID_SECONDS = 300.0
"""How long pods of an owner avoid a node whose kubelet rejected one of them."""


@dataclass(frozen=True, slots=True)
class PodChange:
    """What a pod event meant."""

    freed: bool = False
    """room became free: waiting units may fit now"""
    waiting: bool = False
    """the pod waits for a node"""
    rejected: bool = False
    """the pod's kubelet refused it just now"""
    group: GroupKey | None = None
    """AppGroup of the pod"""
    assigned: bool = False
    """the pod got a node, or other labels on it: rules about other pods may be met now"""
    joined: bool = False
    """the pod is new among the members of its group"""


@dataclass(slots=True)
class Cache:
    """Everything that planning reads."""

    clock: Callable[[], float]
    """monotonic time"""
    state: ClusterState = field(default_factory=ClusterState)
    """nodes and the pods on them"""
    members: GroupMembers = field(default_factory=GroupMembers)
    """pods of AppGroups"""
    groups: dict[GroupKey, Group] = field(default_factory=dict)
    """compiled AppGroups"""
    topologies: dict[str, NetworkTopology] = field(default_factory=dict)
    """NetworkTopologies by ``namespace/name``"""
    bandwidth_allocations: BandwidthAllocations = field(init=False)
    """bandwidth of placed edges"""
    avoided: TTLCache[tuple[str, str], bool] = field(init=False)
    """(owner uid, node name) of pods that a kubelet rejected"""
    _costs: dict[tuple[str, tuple[str, ...]], NetworkCosts] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Create what depends on other fields."""
        self.bandwidth_allocations = BandwidthAllocations(self.members)
        self.avoided = TTLCache(maxsize=10_000, ttl=AVOID_SECONDS, timer=self.clock)

    def update_pod(self, pod: Pod) -> PodChange:
        """A pod was added or changed."""
        uid = pod.metadata.uid
        before = self.state.record(uid)
        if pod.finished:
            rejected = before is not None and rejected_by_kubelet(pod)
            if rejected:
                for owner in pod.metadata.owner_references:
                    self.avoided[owner.uid, pod.spec.node_name] = True
            change = self.delete_pod(pod)
            return PodChange(freed=change.freed, rejected=rejected, group=change.group)
        known_group = self.members.group_of(uid)
        if pod.spec.node_name:
            moved = before is None or before.node_name != pod.spec.node_name
            assigned = before is None or before.assumed or before.template.labels != pod.metadata.labels
            self.state.upsert_pod(pod)
            key = self._join(pod, known_group, node=pod.spec.node_name)
            return PodChange(
                freed=moved and before is not None, group=key, assigned=assigned, joined=key not in (None, known_group)
            )
        ready = pod.metadata.deletion_timestamp is None and not pod.spec.scheduling_gates
        if before is None and not ready:
            # A gated pod is no member to plan with yet, one that is being deleted is none any more.
            self.bandwidth_allocations.mark(self.members.remove(uid))
            return PodChange()
        # An event that still shows an assumed pod waiting is older than our binding.
        key = self._join(pod, known_group, node=before.node_name if before is not None else "")
        return PodChange(waiting=before is None, group=key, joined=key not in (None, known_group))

    def _join(self, pod: Pod, known_group: GroupKey | None, *, node: str) -> GroupKey | None:
        """Note where a member of a group is, and the groups whose bandwidth that changes."""
        key, changed = self.members.upsert(pod, node=node)
        if changed:
            self.bandwidth_allocations.mark(known_group)
            self.bandwidth_allocations.mark(key)
        return key

    def delete_pod(self, pod: Pod) -> PodChange:
        """A pod ended or was deleted."""
        uid = pod.metadata.uid
        freed = self.state.record(uid) is not None
        self.state.remove_pod(uid)
        key = self.members.remove(uid)
        self.bandwidth_allocations.mark(key)
        return PodChange(freed=freed, group=key)

    def update_node(self, node: Node) -> tuple[bool, bool]:
        """A node was added or changed; returns (may help waiting pods, its berth.dev annotations changed)."""
        slot = self.state.node_index.get(node.metadata.name)
        old = self.state.node(slot) if slot is not None else None
        self.state.upsert_node(node)
        if old is None:
            return True, True
        settings = _settings(old) != _settings(node)
        changed = (
            old.metadata.labels != node.metadata.labels
            or old.spec.taints != node.spec.taints
            or old.spec.unschedulable != node.spec.unschedulable
            or old.status.allocatable != node.status.allocatable
            or old.status.declared_features != node.status.declared_features
        )
        return changed or settings, settings

    def update_group(self, obj: CustomObject, previous: CustomObject | None) -> GroupKey | None:
        """An AppGroup was added or changed; returns its key unless nothing changed that placement reads."""
        if previous is not None and previous.spec == obj.spec and _order(previous) == _order(obj):
            return None
        group = read_group(obj)
        self.groups[group.key] = group
        self.bandwidth_allocations.mark(group.key)
        return group.key

    def delete_group(self, key: GroupKey) -> None:
        """An AppGroup was deleted."""
        self.groups.pop(key, None)
        self.bandwidth_allocations.mark(key)

    def update_topology(self, obj: CustomObject) -> tuple[str | None, bool]:
        """A NetworkTopology was added or changed.

        Returns what is wrong with it (None when it can be used), and whether costs that were in use changed or may
        be used from now on: its controller also writes bandwidth and times, which placement does not wait for.
        """
        name = f"{obj.metadata.namespace}/{obj.metadata.name}"
        known = name in self.topologies
        try:
            fresh = self.topologies[name] = NetworkTopology.parse(
                obj.document(api_version=TOPOLOGY_API_VERSION, kind=TOPOLOGY_KIND)
            )
        except InvalidObjectError as error:
            self.delete_topology(name)
            return str(error), known
        changed = not known
        for key, old in [(key, costs) for key, costs in self._costs.items() if key[0] == name]:
            costs = read_costs(fresh, weight_sets=key[1])
            if costs != old:
                self._costs[key] = costs
                changed = changed or (costs.zones, costs.regions) != (old.zones, old.regions)
        return None, changed

    def delete_topology(self, name: str) -> None:
        """A NetworkTopology was deleted."""
        self.topologies.pop(name, None)
        for key in [key for key in self._costs if key[0] == name]:
            del self._costs[key]

    def costs_for(self, namespace: str, profile: Profile) -> NetworkCosts:
        """Network costs that an application of this namespace is placed with; the same object until they change."""
        reference = profile.network_topology
        preferred = f"{reference.namespace}/{reference.name}" if reference is not None else None
        name = choose_topology(self.topologies, namespace=namespace, preferred=preferred)
        if name is None:
            return NO_COSTS
        key = (name, tuple(profile.weight_sets))
        if key not in self._costs:
            self._costs[key] = read_costs(self.topologies[name], weight_sets=profile.weight_sets)
        return self._costs[key]

    def assume(self, pod: Pod, node: str) -> None:
        """Take the room that a decision needs."""
        self.state.assume(pod, node)
        assume_volumes(pod, node, self.state)
        self.members.move(pod.metadata.uid, node=node)
        self.bandwidth_allocations.mark(self.members.group_of(pod.metadata.uid))

    def forget(self, pod: Pod) -> None:
        """Give the room of a decision back: it was not bound. A pod that is bound after all stays where it is."""
        if self.state.forget(pod.metadata.uid):
            self.members.move(pod.metadata.uid, node="")
            self.bandwidth_allocations.mark(self.members.group_of(pod.metadata.uid))
        forget_volumes(pod, self.state)

    def bandwidth(self) -> BandwidthAllocations:
        """Bandwidth of placed edges as of now."""
        self.bandwidth_allocations.refresh(self.groups)
        return self.bandwidth_allocations

    def recently_rejected(self, pod: Pod) -> frozenset[str]:
        """Nodes whose kubelet recently rejected a pod of the same owner."""
        if not self.avoided:
            return frozenset()
        owners = {owner.uid for owner in pod.metadata.owner_references}
        return frozenset(node for owner, node in self.avoided if owner in owners)


def rejected_by_kubelet(pod: Pod) -> bool:
    """Whether a kubelet refused to run the pod: another scheduler or a race had taken the room."""
    reason = pod.status.reason
    return pod.status.phase == "Failed" and (
        reason.startswith("OutOf")
        or reason in ("NodeAffinity", "NodePorts", "UnexpectedAdmissionError", "TopologyAffinityError")
    )


def _settings(node: Node) -> dict[str, str]:
    return {name: value for name, value in node.metadata.annotations.items() if name.startswith(BERTH_PREFIX)}


def _order(obj: CustomObject) -> object:
    return obj.status.get("topologyOrder")
