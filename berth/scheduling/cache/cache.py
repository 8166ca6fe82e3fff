"""The cache of the cluster that everything is planned on: fed by watch events, one at a time. No I/O.

Life of a pod in it, after kube-scheduler's cache::

    waiting --assume--> assumed --confirm--> bound
       ^                   |                   |
       +------forget-------+----delete_pod-----+--> gone

- A *waiting* pod occupies nothing; if it belongs to an AppGroup, it is a member that has no node.
- An *assumed* pod occupies the node it is about to be bound to, and the volumes and the bandwidth it takes there:
  what its AppGroup states at that moment is charged until it goes away.
  A late event that still shows it waiting changes nothing; the event that shows it bound confirms it, on whichever
  node that is.
- A *bound* pod occupies its node until it has finished or was deleted.

Assumptions do not expire: each binding ends with an outcome that is known (controllers/placement/binder.py), or with
the end of the pod. What is given back on a guess would be given twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from cachetools import TTLCache

from berth.api.labels import LABEL_ZONE, membership
from berth.kube.objects import CustomObject, Namespace, Node, Pod, Service
from berth.network.admitted import Admitted, stated
from berth.network.bandwidth_allocations import BandwidthAllocations
from berth.network.costs import NetworkCosts, Place
from berth.network.edges import Routes
from berth.network.groups import Group, GroupKey, read_group
from berth.network.members import GroupMembers
from berth.network.routing import Routing
from berth.scheduling.cache.link_use import LinkUseTable
from berth.scheduling.cache.services import ServiceTable
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.topologies import TopologyTable
from berth.scheduling.cache.volume_matching import volume_plan
from berth.scheduling.cache.volumes import StorageObject, claim_keys
from berth.scheduling.configuration import Profile

REJECTION_SECONDS = 300.0
"""How long pods of a controlling owner keep away from a node whose kubelet rejected one of them."""
REROUTE_SECONDS = 0.1
"""Seconds until more of many AppGroups are counted anew whose calls a Service, or a node in another zone, routes
otherwise: one plan asks for the bandwidth many times, and must not wait for thousands of them. Where none asks, the
controller goes on."""
RECOUNT_RETRY_SECONDS = 5.0
"""Seconds until that is tried again after an error that nobody foresaw."""
MAX_REJECTIONS = 10_000
"""Owners and nodes that are remembered so."""


@dataclass(slots=True)
class Cache:
    """Everything that planning reads. Not safe for concurrent use: one thread at a time."""

    clock: Callable[[], float]
    """monotonic time"""
    state: ClusterState = field(default_factory=ClusterState)
    """nodes, the pods on them, and their volumes"""
    members: GroupMembers = field(default_factory=GroupMembers)
    """pods of AppGroups"""
    services: ServiceTable = field(default_factory=ServiceTable)
    """Services, and how calls to workloads are routed"""
    groups: dict[GroupKey, Group] = field(default_factory=dict)
    """compiled AppGroups"""
    topologies: TopologyTable = field(default_factory=TopologyTable)
    """NetworkTopologies, and the costs that applications are placed with"""
    link_use: LinkUseTable = field(init=False)
    """what was measured on the nodes' links"""
    routes: Routes = field(init=False)
    """where calls go"""
    bandwidth_allocations: BandwidthAllocations = field(init=False)
    """bandwidth of placed edges"""
    recounts_held: bool = False
    """whether AppGroups whose calls alone are routed otherwise wait: who adds up what he takes must not count theirs"""
    _rejections: TTLCache[tuple[str, str], dict[str, float]] = field(init=False)
    """by namespace and uid of the controlling owner: nodes that rejected a pod, and until when it keeps away"""
    _reroute_after: float = -math.inf
    """when more of those groups are counted anew whose calls alone are routed otherwise"""
    _zones_version: int = -1
    """static_version of the state that bandwidth was worked out for"""

    def __post_init__(self) -> None:
        """Create what depends on other fields."""
        self.link_use = self.state.link_use = LinkUseTable(self.clock)
        self.routes = Routes(self._routing, self._zone, self._place)
        self.bandwidth_allocations = BandwidthAllocations(self.members, self.routes)
        self._rejections = TTLCache(MAX_REJECTIONS, ttl=REJECTION_SECONDS, timer=self.clock, getsizeof=len)

    # Pods

    def update_pod(self, pod: Pod) -> bool:
        """A pod was added or changed; returns whether it waits for a node."""
        if pod.finished:
            self.delete_pod(pod)
            self.members.finish(pod)
        elif pod.spec.node_name:
            self.confirm(pod)
        elif self.assumed(pod.metadata.uid):
            self._join(pod, node=self.node_of(pod), seen=True)
        else:
            self.state.delete_pod(pod.metadata.uid)  # it was bound before etcd was restored
            if pod.metadata.deletion_timestamp is None and not pod.spec.scheduling_gates:
                self._join(pod, node="")
                return True
            # A gated pod is not a member to plan with yet; one that is being deleted no longer is.
            self._leave(pod)
        return False

    def delete_pod(self, pod: Pod) -> None:
        """A pod has finished or was deleted."""
        self.state.delete_pod(pod.metadata.uid)
        self._make_room()
        self._leave(pod)

    def node_of(self, pod: Pod) -> str:
        """The node that a pod is bound to or assumed on, empty while it occupies none."""
        record = self.state.record(pod.metadata.uid)
        return record.node_name if record is not None else ""

    def assumed(self, uid: str) -> bool:
        """Whether a pod is assumed on a node, and not known to be bound."""
        record = self.state.record(uid)
        return record is not None and record.assumed

    def assume(self, pod: Pod, node: str) -> None:
        """Take what a waiting pod needs on a node: room, volumes, bandwidth, and a socket if its profile asks for one.

        Raises:
            ValueError: it occupies a node already.
        """
        self.state.assume(pod, node)
        policy = self.state.policies.get(pod.spec.scheduler_name)
        if policy is not None:
            self.state.socket_choice.choose(pod.metadata.uid, policy)
        if claim_keys(pod):
            plan = volume_plan(pod, self.state, node)
            if not plan.empty:
                self.state.volumes.assume(reserved=plan.reserve, selected=dict.fromkeys(plan.provision, node))
        place = membership(pod.metadata.labels)
        group = self.groups.get(GroupKey(pod.metadata.namespace, place.appgroup)) if place is not None else None
        self._move(pod, node, stated(group, place.workload if place is not None else ""))

    def confirm(self, pod: Pod) -> None:
        """A pod has a node, and occupies that one, whichever was assumed."""
        seen = self.node_of(pod) == pod.spec.node_name
        self.state.update_pod(pod)
        self._make_room()
        self._join(pod, node=pod.spec.node_name, seen=seen)

    def forget(self, pod: Pod) -> None:
        """Give back what was assumed for a pod; one that is bound after all stays where it is.

        What another pod on a node counts on as well stays assumed: they share the claim.
        """
        if self.state.forget(pod.metadata.uid):
            self._make_room()
            self._move(pod, "")
        unused = [key for key in claim_keys(pod) if not self.state.pods.claim_users(key)]
        if unused:
            self.state.volumes.forget(unused)

    @contextmanager
    def set_aside(self, pod: Pod) -> Iterator[None]:
        """Have an assumed pod be nowhere for a while, so that its node can be judged anew; its volumes stay assumed.

        Raises:
            ValueError: it is not assumed.
        """
        uid, node = pod.metadata.uid, self.node_of(pod)
        seats = self.state.sockets.copies(node)
        if not self.state.forget(uid):
            raise ValueError(f"pod {pod.key} is not assumed on any node: only a pod that is can be set aside")
        try:
            with self.members.set_aside(uid):
                self._mark(self._workload_of(pod))
                yield
        finally:
            self.state.assume(pod, node)
            self.state.sockets.put_back(seats)
            self._mark(self._workload_of(pod))

    def _make_room(self) -> None:
        """Choose sockets anew for pods that came last, where others stay that were to move for one that is gone."""
        sockets = self.state.sockets
        while sockets.left_open:
            node = sockets.left_open.pop()
            for uid in sockets.crowding(node):
                if uid in sockets.crowding(node):
                    self._choose_socket(uid)
            sockets.left_open.discard(node)

    def seat_left_out(self, node: str) -> None:
        """Choose sockets for bound pods that have none, where one has room: classes and sockets may come later."""
        for uid in self.state.sockets.left_out(node):
            record = self.state.record(uid)
            stays = record is not None and not (record.assumed or record.terminating)
            if stays and uid in self.state.sockets.left_out(node):
                self._choose_socket(uid)

    def _choose_socket(self, uid: str) -> None:
        """Choose the socket of a pod on a node anew."""
        record = self.state.record(uid)
        if record is not None and record.policy is not None:
            self.state.sockets.call_off(uid)
            self.state.socket_choice.choose(uid, record.policy)
            if not record.assumed:
                self.state.sockets.confirm(uid)

    def _zone(self, node: str) -> str | None:
        slot = self.state.node_index.get(node)
        return None if slot is None else self.state.node(slot).metadata.labels.get(LABEL_ZONE, "")

    def _place(self, node: str) -> Place:
        slot = self.state.node_index.get(node)
        return Place() if slot is None else self.state.place(slot)

    def _routing(self, group: GroupKey, workload: str) -> Routing:
        return self.services.routing(group, workload).routing

    def bandwidth(self) -> BandwidthAllocations:
        """Bandwidth of placed edges as of now."""
        if self._zones_version != self.state.static_version:
            self._zones_version = self.state.static_version
            self.bandwidth_allocations.mark_zones()
        now = self.clock()
        rerouted = now >= self._reroute_after and not self.recounts_held
        self.bandwidth_allocations.refresh(self.groups, rerouted=rerouted)
        if rerouted and self.bandwidth_allocations.behind:
            self._reroute_after = now + REROUTE_SECONDS
        return self.bandwidth_allocations

    def recount_at(self) -> float | None:
        """When to call :meth:`recount`, by the clock, where nobody asks for the bandwidth; None while it is right."""
        current = self._zones_version == self.state.static_version and not self.bandwidth_allocations.behind
        return None if current else self._reroute_after

    def recount(self) -> None:
        """Count more of those AppGroups anew whose calls a Service, or a node in another zone, routes otherwise.

        Raises:
            Exception: one of them cannot be counted; the others are due again a while later.
        """
        try:
            self.bandwidth()
        except Exception:
            self._reroute_after = self.clock() + RECOUNT_RETRY_SECONDS
            raise

    def _join(self, pod: Pod, *, node: str, seen: bool = False) -> None:
        """Note where a member of a group is, and the groups whose bandwidth that changes."""
        rerouted = self.services.join(pod)
        before = self._workload_of(pod)
        _, changed = self.members.update(pod, node=node, seen=seen)
        if changed or rerouted:
            self._mark(before)
            self._mark(self._workload_of(pod))

    def _move(self, pod: Pod, node: str, admitted: Admitted | None = None) -> None:
        self.members.move(pod.metadata.uid, node=node, admitted=admitted)
        self._mark(self._workload_of(pod))

    def _workload_of(self, pod: Pod) -> tuple[GroupKey, str] | None:
        """Group and workload that a pod is known as a member of."""
        key, member = self.members.group_of(pod.metadata.uid), self.members.member(pod.metadata.uid)
        return (key, member.workload) if key is not None and member is not None else None

    def _mark(self, workload: tuple[GroupKey, str] | None) -> None:
        """Note that calls from and to a workload change."""
        if workload is not None:
            self.bandwidth_allocations.mark_pod(*workload)

    def _leave(self, pod: Pod) -> None:
        group = self.groups.get(key) if (key := self.members.group_of(pod.metadata.uid)) is not None else None
        if group is not None and not group.problem:
            self.members.complete(group)  # notes that it has been, before it no longer is
        self._mark(self._workload_of(pod))
        self.members.delete(pod.metadata.uid)
        self.services.leave(pod.metadata.uid)

    # Kubelets that said no

    def note_rejection(self, pod: Pod) -> None:
        """The kubelet of its node refused to run a pod."""
        key = _controller(pod)
        if key is not None:
            now = self.clock()
            nodes = {node: until for node, until in self._rejections.get(key, {}).items() if until > now}
            nodes[pod.spec.node_name] = now + REJECTION_SECONDS
            if len(nodes) <= MAX_REJECTIONS:
                self._rejections[key] = nodes

    def recently_rejected(self, pod: Pod) -> frozenset[str]:
        """Nodes whose kubelet recently rejected a pod of the same controller, in the same namespace."""
        key = _controller(pod) if self._rejections else None
        if key is None:
            return frozenset()
        now = self.clock()
        return frozenset(node for node, until in self._rejections.get(key, {}).items() if until > now)

    # Nodes, namespaces, storage, Services

    def update_node(self, node: Node) -> None:
        """A node was added or changed; raises ValueError for a quantity that cannot be read."""
        self.state.update_node(node)

    def delete_node(self, node: Node) -> None:
        """A node was deleted."""
        self.state.delete_node(node.metadata.name)

    def update_namespace(self, namespace: Namespace) -> None:
        """A namespace was added or changed."""
        self.state.update_namespace(namespace)

    def delete_namespace(self, namespace: Namespace) -> None:
        """A namespace was deleted."""
        self.state.delete_namespace(namespace.metadata.name)

    def update_storage(self, item: StorageObject) -> None:
        """A storage object was added or changed; a write it shows is no longer an assumption."""
        self.state.volumes.update(item)

    def delete_storage(self, item: StorageObject) -> None:
        """A storage object was deleted."""
        self.state.volumes.delete(item)

    def update_service(self, service: Service) -> bool:
        """A Service was added or changed; returns whether that can change which replica is called."""
        changed = self.services.update(service)
        if changed:
            self.bandwidth_allocations.mark_namespace(service.metadata.namespace)
        return changed

    def delete_service(self, service: Service) -> None:
        """A Service was deleted."""
        self.services.delete(service)
        self.bandwidth_allocations.mark_namespace(service.metadata.namespace)

    # Sockets

    def update_sockets(self, obj: CustomObject) -> str | None:
        """A SocketStatus was added or changed; returns what is wrong with it, None when it can be used."""
        return self.state.sockets.update_node(obj)

    def delete_sockets(self, obj: CustomObject) -> None:
        """A SocketStatus was deleted."""
        self.state.sockets.delete_node(obj.metadata.name)

    def update_profile(self, obj: CustomObject) -> str | None:
        """A WorkloadProfile was added or changed; returns what is wrong with it, None when it can be used."""
        problem = self.state.update_profile(obj)
        self._make_room()
        return problem

    def delete_profile(self, obj: CustomObject) -> None:
        """A WorkloadProfile was deleted."""
        self.state.delete_profile(obj)
        self._make_room()

    # AppGroups and NetworkTopologies

    def update_group(self, obj: CustomObject) -> Group:
        """An AppGroup was added or changed; returns it compiled."""
        group = read_group(obj)
        known = self.groups.get(group.key)
        self.groups[group.key] = group
        if known is None or known.edges != group.edges:  # its status changes whenever a pod does
            self.bandwidth_allocations.mark(group.key)
        return group

    def delete_group(self, key: GroupKey) -> None:
        """An AppGroup was deleted."""
        self.groups.pop(key, None)
        self.bandwidth_allocations.mark(key)

    def update_topology(self, obj: CustomObject) -> tuple[str | None, bool]:
        """A NetworkTopology was added or changed; returns what is wrong with it, and whether costs in use changed."""
        return self.topologies.update(obj)

    def delete_topology(self, obj: CustomObject) -> None:
        """A NetworkTopology was deleted."""
        self.topologies.delete(obj)

    def costs_for(self, namespace: str, profile: Profile) -> NetworkCosts:
        """Network costs that an application of this namespace is placed with; the same object until they change."""
        return self.topologies.costs_for(namespace, profile)


def _controller(pod: Pod) -> tuple[str, str] | None:
    """Namespace and uid of the owner that controls a pod; there is one at the most."""
    uid = next((owner.uid for owner in pod.metadata.owner_references if owner.controller), None)
    return (pod.metadata.namespace, uid) if uid is not None else None
