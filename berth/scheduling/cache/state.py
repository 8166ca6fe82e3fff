"""ClusterState: the nodes and the pods on them as arrays and indices, kept up to date one change at a time.

A pod is kept while it occupies a node, bound or assumed (see :mod:`berth.scheduling.cache.cache`). It may be bound to a
node that is not known (yet, or any more); it is charged when the node appears.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from berth.api.labels import LABEL_INTERFERENCE_CLASS
from berth.kube.owners import owner_of
from berth.network.costs import Place
from berth.scheduling.cache.csi_volumes import AttachedVolumes
from berth.scheduling.cache.nodes import NodeTable
from berth.scheduling.cache.places import NodePlaces
from berth.scheduling.cache.pod_record import PodRecord, stated_socket
from berth.scheduling.cache.pod_templates import PodInfo, PodTemplateCache, PodTemplateInfo
from berth.scheduling.cache.pods import PodIndex
from berth.scheduling.cache.selection import NodeSelection
from berth.scheduling.cache.socket_choice import SocketChoice
from berth.scheduling.cache.sockets import Seat, SocketTable
from berth.scheduling.cache.user_latency import UserLatencyTable
from berth.scheduling.cache.volume_pool import Stock
from berth.scheduling.cache.volumes import VolumeTable, claim_keys, disk_uses
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.residents import Resident

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from berth.kube.objects import CustomObject, Namespace, Node, Pod
    from berth.scheduling.cache.columns import Ids, Mask
    from berth.scheduling.cache.link_use import LinkUseTable
    from berth.scheduling.cache.nodes import Amount
    from berth.scheduling.cache.pod_templates import TermKind
    from berth.scheduling.cache.term_index import TermEntry


class ClusterState:
    """Nodes, the pods on them, and everything else that decides where a pod may go.

    Not safe for concurrent use: one thread at a time. Arrays are views over the node slots,
    valid until the next node event; slots where ``alive`` is False hold no node.
    """

    def __init__(
        self,
        *,
        count_annotations: bool = False,
        class_label: str = LABEL_INTERFERENCE_CLASS,
        policies: Mapping[str, InterferencePolicy] | None = None,
    ) -> None:
        """Begin with an empty cluster; `policies` as the attribute, other options as of :class:`PodTemplateCache`."""
        self.policies = {name: each for name, each in (policies or {}).items() if each is not InterferencePolicy.OFF}
        """By scheduler name: how sockets are chosen for its pods. The class of pods of any other counts for nothing."""
        self.nodes = NodeTable()
        """Slots, resources, labels and taints."""
        self.pods = PodIndex()
        """Groups, affinity terms, host ports and claims in use."""
        self.volumes = VolumeTable()
        """Volumes, claims, classes and CSI nodes."""
        self.attached = AttachedVolumes(self.nodes, self.pods, self.volumes)
        self.templates = PodTemplateCache(count_annotations=count_annotations, class_label=class_label)
        """Compiled pod templates."""
        self.sockets = SocketTable()
        """Sockets of nodes, and the pods with an interference class on them."""
        self.socket_choice = SocketChoice(self.sockets)
        """What such pods cost on nodes, and the socket for each."""
        self.selection = NodeSelection(self.nodes)
        """Which nodes a pod's selectors and tolerations admit, remembered per template."""
        self.user_latency = UserLatencyTable()
        """How far the users of workloads with a LatencyPolicy are from nodes."""
        self.link_use: LinkUseTable | None = None
        """What was measured on the nodes' links; None where nobody follows that."""
        self.static_version = 0
        """Grows when a node appears, goes, or changes in anything but its resources that plugins read."""
        self._volume_stock: Stock | None = None
        self._records: dict[str, PodRecord] = {}
        self._by_node: defaultdict[str, dict[str, PodRecord]] = defaultdict(dict)
        self._by_owner: defaultdict[str, dict[str, PodRecord]] = defaultdict(dict)
        self._namespaces: dict[str, dict[str, str]] = {}
        self._places = NodePlaces(self.nodes)

    # Arrays over node slots

    @property
    def size(self) -> int:
        """N: the number of node slots, free ones included."""
        return self.nodes.count

    @property
    def alive(self) -> Mask:
        """bool[N]: slots that hold a node."""
        return self.nodes.alive

    @property
    def allocatable(self) -> Amount:
        """int64[N, R] in scheduler units (milli-cpu, bytes, counts)."""
        return self.nodes.allocatable

    @property
    def volume_stock(self) -> Stock:
        """Volumes as claims look for them."""
        if self._volume_stock is None or not self._volume_stock.is_of(self):
            self._volume_stock = Stock(self)
        return self._volume_stock

    @property
    def used(self) -> Amount:
        """int64[N, R] requests of the pods on each node, in scheduler units."""
        return self.nodes.used

    @property
    def resources(self) -> Mapping[str, int]:
        """Column of every resource by name; cpu 0, memory 1, ephemeral-storage 2, pods 3."""
        return self.nodes.resources

    @property
    def node_index(self) -> Mapping[str, int]:
        """Slot of every live node by name."""
        return self.nodes.index

    @property
    def node_count(self) -> int:
        """Number of live nodes."""
        return len(self.nodes.index)

    @property
    def pod_count(self) -> int:
        """Number of pods that occupy a node, assumed ones included."""
        return len(self._records)

    def node(self, slot: int) -> Node:
        """The node in a slot; raises LookupError for a free slot."""
        node = self.nodes.nodes[slot]
        if node is None:
            raise LookupError(f"slot {slot} holds no node")
        return node

    def node_name(self, slot: int) -> str:
        """The name of the node in a slot; raises LookupError for a free slot."""
        return self.node(slot).metadata.name

    def domains(self, key: str) -> Ids:
        """int32[N]: number of the label's value on each node, -1 where the node lacks it."""
        return self.nodes.column(key).ids[: self.nodes.count]

    def place(self, slot: int) -> Place:
        """Where the node in a slot stands, as far as costs go by it."""
        return self._places.of(slot, self.static_version)

    @property
    def segments_count(self) -> bool:
        """Whether places of nodes have segments; not where there are too many."""
        return self._places.segments_count(self.static_version)

    # Nodes

    def update_node(self, node: Node) -> int:
        """Add or update a node and return its slot; raises ValueError for an unreadable quantity."""
        known, columns = node.metadata.name in self.nodes.index, dict(self.nodes.resources)
        slot, changed = self.nodes.update(node)
        if not known:
            if self.policies:
                self.sockets.touch(node.metadata.name)
            for record in self._by_node.get(node.metadata.name, {}).values():
                self._charge(record, slot, 1)
        if self.nodes.resources != columns:
            self._charge_anew(columns)
        elif changed:
            self._static_change()
        return slot

    def delete_node(self, name: str) -> None:
        """Remove a node; the pods on it stay known and are charged again if it comes back."""
        slot = self.nodes.index.get(name)
        if slot is None:
            return
        for record in self._by_node.get(name, {}).values():
            self._charge(record, slot, -1)
        columns = dict(self.nodes.resources)
        self.nodes.delete(name)
        if self.nodes.resources != columns:
            self._charge_anew(columns)
        self._static_change()

    # Pods

    def info(self, pod: Pod) -> PodInfo:
        """The pod with its compiled template."""
        return self.templates.info(pod)

    def update_pod(self, pod: Pod) -> None:
        """Charge a live pod to the node that a watch event shows it on: from now on it is bound."""
        uid = pod.metadata.uid
        old, seat = self._records.get(uid), self.sockets.seat(uid)
        if old is not None:
            if old.assumed and old.node_name == pod.spec.node_name:
                self.sockets.confirm(uid)
            if self._unchanged(old, pod):
                old.assumed, old.chosen, old.ready = False, None, pod.ready
                return
            self._release(old)
        self._place(uid, pod, pod.spec.node_name, assumed=False, seat=seat)

    def delete_pod(self, uid: str) -> None:
        """Release a pod that has finished or was deleted; unknown ones are ignored."""
        record = self._records.get(uid)
        if record is not None:
            self._release(record)

    def assume(self, pod: Pod, node_name: str) -> None:
        """Charge a pod to the node it is about to be bound to.

        Raises ValueError when the pod already occupies a node: binding it again would be a bug.
        """
        uid = pod.metadata.uid
        old = self._records.get(uid)
        if old is not None:
            state = "assumed" if old.assumed else "bound"
            raise ValueError(f"pod {pod.key} is already {state} on node {old.node_name}; forget it first")
        self._place(uid, pod, node_name, assumed=True)

    def forget(self, uid: str) -> bool:
        """Undo an assumption; False when the pod is not assumed (bound pods are left alone)."""
        record = self._records.get(uid)
        if record is None or not record.assumed:
            return False
        self._release(record)
        return True

    def record(self, uid: str) -> PodRecord | None:
        """What is known of a pod that occupies a node."""
        return self._records.get(uid)

    def pods_on(self, node_name: str) -> Iterator[PodRecord]:
        """The pods that occupy a node."""
        return iter(self._by_node.get(node_name, {}).values())

    def resident(self, template: PodTemplateInfo, owner: str) -> Resident | None:
        """What a pod is for others on its socket; None for one without class.

        Args:
            template: its compiled template.
            owner: the workload that it is of.
        """
        return self.sockets.resident(template.interference_class, owner, template.cpu)

    def request_vector(self, template: PodTemplateInfo) -> NDArray[np.int64]:
        """int64[R]: the pod's requests of what nodes have, by column, one unit of ``pods`` included."""
        vector = np.zeros(len(self.nodes.resources), dtype=np.int64)
        for column, amount in template.amounts(self.nodes.resources):
            vector[column] = amount
        vector[self.nodes.resources["pods"]] = 1
        return vector

    # WorkloadProfiles

    def update_profile(self, obj: CustomObject) -> str | None:
        """Add or update a WorkloadProfile; returns what is wrong with it, None when it can be used."""
        problem, workloads = self.sockets.profiles.update(obj)
        self._seat_anew(workloads)
        return problem

    def delete_profile(self, obj: CustomObject) -> None:
        """Forget a WorkloadProfile."""
        self._seat_anew(self.sockets.profiles.delete(obj))

    # Namespaces

    def update_namespace(self, namespace: Namespace) -> None:
        """Record a namespace's labels."""
        self._namespaces[namespace.metadata.name] = namespace.metadata.labels
        self.pods.forget_table()

    def delete_namespace(self, name: str) -> None:
        """Forget a namespace's labels."""
        self._namespaces.pop(name, None)
        self.pods.forget_table()

    def namespace_labels(self, name: str) -> Mapping[str, str] | None:
        """Labels of a namespace, None when it is not known."""
        return self._namespaces.get(name)

    def terms_about(self, kind: TermKind, namespace: str, labels: Iterable[tuple[str, str]]) -> Collection[TermEntry]:
        """Terms of placed pods that may select pods of a namespace with some of these labels, and few others."""
        return self.pods.terms_about(kind, namespace, self._namespaces.get(namespace, {}), labels)

    # Inside

    def _static_change(self) -> None:
        self.static_version += 1
        self.selection.clear()

    def _charge_anew(self, before: Mapping[str, int]) -> None:
        """Nodes have other resources than before: what pods request of them counts, or no longer does."""
        columns, index = self.nodes.resources, self.nodes.index
        records, kept, new = list(self._records.values()), before.items() <= columns.items(), columns.keys() - before
        if kept:
            # Nodes with devices of their own come by the hundred; most pods request none of them.
            records = [record for record in records if record.template.takes_any(new)]
        else:
            self.nodes.clear_charges()
        for record in records:
            slot, scoring = index.get(record.node_name), record.template.scoring_requests
            if kept and slot is not None:
                self.nodes.charge(slot, record.amounts, scoring, -1)
            record.amounts = record.template.charges(columns)
            if slot is not None:
                self.nodes.charge(slot, record.amounts, scoring, 1)
        self._static_change()

    def _unchanged(self, record: PodRecord, pod: Pod) -> bool:
        return (
            record.node_name == pod.spec.node_name
            and record.terminating == (pod.metadata.deletion_timestamp is not None)
            and record.template.key == self.templates.template(pod).key
        )

    def _place(self, uid: str, pod: Pod, node_name: str, *, assumed: bool, seat: Seat | None = None) -> None:
        template = self.templates.template(pod)
        slot, policy = self.nodes.index.get(node_name), self.policies.get(pod.spec.scheduler_name)
        record = PodRecord(
            uid=uid,
            key=pod.key,
            template=template,
            node_name=node_name,
            amounts=template.charges(self.nodes.resources),
            claims=claim_keys(pod),
            disks=disk_uses(pod) if pod.spec.volumes else (),
            policy=policy,
            owner=sys.intern(owner_of(pod)) if policy is not None else "",
            bound_with=stated_socket(pod) if policy is not None and not assumed else None,
            terminating=pod.metadata.deletion_timestamp is not None,
            ready=pod.ready,
            assumed=assumed,
            chosen=self.nodes.nodes[slot] if assumed and slot is not None else None,
        )
        self._records[uid] = record
        self._by_node[node_name][uid] = record
        if record.owner:
            self._by_owner[record.owner][uid] = record
        if policy is not None:
            self._seat(record, before=seat)
        if slot is not None:
            self._charge(record, slot, 1)

    def _seat(self, record: PodRecord, *, before: Seat | None) -> None:
        """Count a pod among those of its node's sockets if it has a class."""
        resident = self.resident(record.template, record.owner)
        if resident is not None:
            self.sockets.add(record.uid, record.node_name, resident, before=before, bound_with=record.bound_with)

    def _seat_anew(self, workloads: Collection[str]) -> None:
        """Pods of these workloads may have another class, or one at all."""
        for workload in workloads:
            for record in self._by_owner.get(workload, {}).values():
                resident = self.resident(record.template, record.owner)
                if resident is None:
                    self.sockets.remove(record.uid)
                elif not self.sockets.restate(record.uid, resident):
                    self._seat(record, before=None)

    def _release(self, record: PodRecord) -> None:
        del self._records[record.uid]
        _take_out(self._by_node, record.node_name, record.uid)
        if record.owner:
            _take_out(self._by_owner, record.owner, record.uid)
        self.sockets.remove(record.uid)
        slot = self.nodes.index.get(record.node_name)
        if slot is not None:
            self._charge(record, slot, -1)

    def _charge(self, record: PodRecord, slot: int, sign: int) -> None:
        self.nodes.charge(slot, record.amounts, record.template.scoring_requests, sign)
        self.pods.add(
            record.template, slot, sign, terminating=record.terminating, claims=record.claims, disks=record.disks
        )


def _take_out(index: dict[str, dict[str, PodRecord]], key: str, uid: str) -> None:
    there = index[key]
    del there[uid]
    if not there:
        del index[key]
