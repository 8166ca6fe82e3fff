"""What every watch event changes in the cache, and which queue entries it makes worth another try."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec
import structlog

from berth.api.interference import stated_class
from berth.api.labels import ANNOTATION_SPREAD
from berth.kube import resources as kinds
from berth.kube.client import ApiClient
from berth.kube.decoding import ObjectDecoder
from berth.kube.events import Note
from berth.kube.objects import CustomObject, Namespace, Node, Pod, Service
from berth.kube.reflector import Handler, Reflector
from berth.kube.resources import Resource
from berth.network.groups import GroupKey, relaxed
from berth.scheduling.cache.bandwidth_annotations import annotated_bandwidth
from berth.scheduling.cache.cache import REJECTION_SECONDS, Cache
from berth.scheduling.cache.large_pods import BOUNDED_PODS
from berth.scheduling.cache.node_changes import node_settings
from berth.scheduling.cache.pod_record import PodRecord
from berth.scheduling.cache.volumes import StorageObject
from berth.scheduling.configuration import PlacementConfiguration
from berth.scheduling.gang.infrastructure import read_settings
from berth.scheduling.queue import SchedulingQueue
from berth.scheduling.queue_entry import EntryKey
from berth.scheduling.unschedulable import Change
from controllers.placement import events
from controllers.placement.group_metrics import GroupMetrics
from controllers.placement.metrics import NODE_REJECTIONS
from controllers.placement.pod_conditions import PodConditions
from controllers.placement.volume_binder import VolumeBinder

log = structlog.get_logger(__name__)

STORAGE: Final[tuple[Resource[Any], ...]] = (
    kinds.PERSISTENT_VOLUMES,
    kinds.PERSISTENT_VOLUME_CLAIMS,
    kinds.STORAGE_CLASSES,
    kinds.CSI_NODES,
    kinds.CSI_DRIVERS,
    kinds.CSI_STORAGE_CAPACITIES,
    kinds.VOLUME_ATTACHMENTS,
)
_OUT_OF: Final = "OutOf"
_REJECTIONS: Final = frozenset(
    f"{_OUT_OF}{resource}" for resource in ("cpu", "memory", "pods", "ephemeral-storage")
) | {"NodeAffinity", "NodePorts", "UnexpectedAdmissionError", "TopologyAffinityError"}
"""Reasons for which kubelets refuse pods, but for what is out of other resources."""


class _GroupStatus(msgspec.Struct, rename="camel"):
    topology_order: msgspec.Raw = msgspec.Raw()


_STATUS: Final = ObjectDecoder(_GroupStatus)


class EventHandlers:
    """One handler per kind, called with the object before and after."""

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        configuration: PlacementConfiguration,
        *,
        volumes: VolumeBinder,
        conditions: PodConditions,
        groups: GroupMetrics,
        record: Callable[[Note], None],
        deferring: Callable[[Callable[..., None], str], Callable[..., None]],
    ) -> None:
        """Prepare; `record` emits an Event, `deferring` keeps a handler from cache and queue while a plan is made."""
        self._cache = cache
        self._queue = queue
        self._configuration = configuration
        self._volumes = volumes
        self._conditions = conditions
        self._groups = groups
        self._record = record
        self._deferring = deferring

    def watches(self, client: ApiClient) -> dict[str, Reflector[Any]]:
        """Reflectors by plural name, not running yet.

        All of them are required: without the storage kinds, a pod with a claim would be placed where its volume
        cannot be reached.
        """
        handlers: list[tuple[Resource[Any], Handler[Any]]] = [
            (kinds.NODES, self.on_node),
            (kinds.NAMESPACES, self.on_namespace),
            (BOUNDED_PODS, self.on_pod),
            (kinds.SERVICES, self.on_service),
            (kinds.APP_GROUPS, self.on_group),
            (kinds.NETWORK_TOPOLOGIES, self.on_topology),
            *((resource, self.on_storage) for resource in STORAGE),
        ]
        watches: dict[str, Reflector[Any]] = {}
        for resource, handler in handlers:
            watch = watches[resource.plural] = Reflector(client, resource)
            watch.add_handler(self._deferring(handler, resource.plural))
            if resource in STORAGE:
                watch.add_batch_handler(self._deferring(self.after_storage, resource.plural))
        return watches

    def on_pod(self, old: Pod | None, new: Pod | None) -> None:
        """Ours that wait are queued; one that gives room back, or gets a node, may help others."""
        pod = new or old
        if pod is None:
            return
        cache, queue, uid = self._cache, self._queue, pod.metadata.uid
        node, group, took = cache.node_of(pod), cache.members.group_of(uid), cache.state.record(uid)
        waits = False
        if new is None:
            cache.delete_pod(pod)
        else:
            waits = cache.update_pod(new)
        ours = self._configuration.profile_for(pod.spec.scheduler_name) is not None
        joined = cache.members.group_of(uid)
        if ours and moved(old, new):
            for key in filter(None, (group, joined)):
                self._groups.pod_changed(key, pod.spec.scheduler_name)
        # A plan that is not made yet may have a node for it already.
        planned = new is not None and cache.assumed(uid) and queue.refresh(new)
        if planned and pod.metadata.deletion_timestamp is not None:
            cache.forget(pod)
            planned = cache.update_pod(pod)
        if waits and ours:
            queue.add(pod, EntryKey.of(pod, joined))
            if old is not None:
                self._conditions.changed(old, pod)
            if old is None or old.metadata.annotations != pod.metadata.annotations:
                for problem in annotated_bandwidth(pod.metadata.annotations)[1]:
                    self._record(events.bad_bandwidth(pod, problem))
            seated = pod.spec.scheduler_name in cache.state.policies
            if seated and (old is None or old.metadata.labels != pod.metadata.labels):
                unclear = stated_class(pod.metadata.labels, self._configuration.interference_class_label).problem
                if unclear is not None:
                    self._record(events.bad_class(pod, unclear))
        elif not planned:
            queue.delete(uid)
            self._conditions.forget(uid)
            if joined is not None and joined != group:
                self._activate_group(joined)
        if ours and node and new is not None and rejected_by_kubelet(new):
            cache.note_rejection(new)
            NODE_REJECTIONS.labels(rejection_label(new.status.reason)).inc()
            self._record(events.rejected_by_node(new, seconds=REJECTION_SECONDS))
        if node and cache.node_of(pod) != node:
            queue.move_all_to_active()
            self._volumes.pod_gone(uid)
        elif took is not None and takes_less(took, cache.state.record(uid)):
            queue.move_all_to_active()
        elif new is not None and assigned(old, new):
            queue.move_all_to_active(Change.PODS)

    def on_node(self, old: Node | None, new: Node | None) -> None:
        """A new or changed node may take pods that no other takes; the end of one may mend a spread or an affinity."""
        # One that comes may have pods already, as a kubelet registers anew, and may be the farthest of all.
        if old is None or new is None or old.metadata.labels != new.metadata.labels:
            self._groups.costs_changed()
        if new is None:
            if old is not None:
                self._cache.delete_node(old)
                self._volumes.node_gone(old.metadata.name)
            self._queue.move_all_to_active(Change.PODS)
            return
        self._cache.update_node(new)
        settings = old is None or node_settings(old) != node_settings(new)
        if settings:
            for problem in read_settings(new).problems:
                self._record(events.bad_annotation(new, problem))
        if settings or old is None or may_take_more(old, new):
            self._queue.move_all_to_active()

    def on_namespace(self, old: Namespace | None, new: Namespace | None) -> None:
        """Labels of namespaces decide which pods an affinity term means."""
        if new is not None:
            self._cache.update_namespace(new)
            if old is None or old.metadata.labels != new.metadata.labels:
                self._queue.move_all_to_active()
        elif old is not None:
            self._cache.delete_namespace(old)

    def on_service(self, old: Service | None, new: Service | None) -> None:
        """Services say which replica is called, and so which calls of their namespace's AppGroups are too far."""
        service = new or old
        if service is None:
            return
        changed = True
        if new is not None:
            changed = self._cache.update_service(new)
        else:
            self._cache.delete_service(service)
        if changed:
            namespace = service.metadata.namespace
            self._groups.namespace_changed(namespace)
            self._queue.move_all_to_active(Change.CALLS, namespace=namespace)

    def on_group(self, old: CustomObject | None, new: CustomObject | None) -> None:
        """An AppGroup's own pods are tried again, after their backoff if the edit demands no less than before."""
        if new is not None:
            if old is None or old.spec != new.spec or _order(old) != _order(new) or _spread(old) != _spread(new):
                before = self._cache.groups.get(GroupKey(new.metadata.namespace, new.metadata.name))
                group = self._cache.update_group(new)
                self._groups.group_changed(group.key)
                self._activate_group(group.key, skip_backoff=before is None or relaxed(before, group))
        elif old is not None:
            key = GroupKey(old.metadata.namespace, old.metadata.name)
            self._cache.delete_group(key)
            self._groups.group_changed(key)
            self._activate_group(key)

    def on_topology(self, old: CustomObject | None, new: CustomObject | None) -> None:
        """Other network costs may meet a maxNetworkCost, of the applications that they serve."""
        topology = new or old
        if topology is None:
            return
        changed = True
        if new is not None:
            problem, changed = self._cache.update_topology(new)
            if problem is not None:
                namespace, name = new.metadata.namespace, new.metadata.name
                # Whoever edits one of his own all day must not fill a disk: its condition tells him.
                say = log.warning if self._serves_all(namespace, name) else log.debug
                say("network topology ignored", topology=f"{namespace}/{name}", problem=problem)
        elif old is not None:
            self._cache.delete_topology(old)
        namespace = topology.metadata.namespace
        if changed and self._serves_all(namespace, topology.metadata.name):
            self._groups.costs_changed()
            self._queue.move_all_to_active()
        elif changed:
            self._groups.namespace_changed(namespace)
            self._queue.move_all_to_active(namespace=namespace)

    def _serves_all(self, namespace: str, name: str) -> bool:
        """Whether a NetworkTopology may serve applications of other namespaces than its own."""
        return any(
            namespace == profile.system_namespace
            if profile.network_topology is None
            else (namespace, name) == (profile.network_topology.namespace, profile.network_topology.name)
            for profile in self._configuration.profiles
        )

    def on_storage(self, old: StorageObject | None, new: StorageObject | None) -> None:
        """Objects of all storage kinds; which entries they help is asked once per batch."""
        item = new or old
        if item is None:
            return
        if new is not None:
            self._cache.update_storage(new)
        else:
            self._cache.delete_storage(item)
        self._volumes.storage_changed(item)

    def after_storage(self) -> None:
        """Storage objects may help pods with volumes."""
        self._queue.move_all_to_active(Change.VOLUMES)

    def _activate_group(self, key: GroupKey, *, skip_backoff: bool = True) -> None:
        for profile in self._configuration.profiles:
            self._queue.activate(EntryKey.of_group(key, profile.scheduler_name), skip_backoff=skip_backoff)


def rejected_by_kubelet(pod: Pod) -> bool:
    """Whether a kubelet refused to run the pod: another scheduler or a race had taken the room."""
    reason = pod.status.reason
    return pod.status.phase == "Failed" and (reason.startswith(_OUT_OF) or reason in _REJECTIONS)


def rejection_label(reason: str) -> str:
    """Return the reason of a rejection for the metric: whoever may write the pod's status may write any."""
    return reason if reason in _REJECTIONS else "OutOfOther"


def moved(old: Pod | None, new: Pod | None) -> bool:
    """Whether a pod came, went, got a node or other labels, is being deleted or has ended."""
    if old is None or new is None:
        return True
    return (
        old.spec.node_name != new.spec.node_name
        or old.metadata.labels != new.metadata.labels
        or old.metadata.deletion_timestamp != new.metadata.deletion_timestamp
        or old.finished != new.finished
    )


def takes_less(before: PodRecord, now: PodRecord | None) -> bool:
    """Whether a pod that stays on its node gave back some of what it took there: it was resized in place."""
    if now is None or now.template is before.template:
        return False
    amounts = dict(now.template.requests)
    return any(amounts.get(name, 0) < amount for name, amount in before.template.requests)


def assigned(old: Pod | None, new: Pod) -> bool:
    """Whether the pod got a node, or other labels on it: rules about other pods may be met now."""
    if not new.spec.node_name or new.finished:
        return False
    return old is None or not old.spec.node_name or old.metadata.labels != new.metadata.labels


def may_take_more(old: Node, new: Node) -> bool:
    """Whether anything changed that can make a node take a pod which it did not take before."""
    return (
        old.metadata.labels != new.metadata.labels
        or old.spec.taints != new.spec.taints
        or old.spec.unschedulable != new.spec.unschedulable
        or old.status.allocatable != new.status.allocatable
        or old.status.declared_features != new.status.declared_features
    )


def _spread(group: CustomObject) -> str | None:
    return group.metadata.annotations.get(ANNOTATION_SPREAD)


def _order(group: CustomObject) -> msgspec.Raw:
    """status.topologyOrder as JSON; nothing where there is none."""
    try:
        return _STATUS.decode(group.status).topology_order
    except ValueError:
        return msgspec.Raw()
