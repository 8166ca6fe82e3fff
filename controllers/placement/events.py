"""Everything the placement controller says in Events: reading this file tells what users will see."""

from __future__ import annotations

from berth.api.appgroup import API_VERSION, KIND
from berth.kube.events import Note, Reference
from berth.kube.objects import Node, Pod
from controllers.placement.network.groups import Group
from controllers.placement.planning.decision import Decision, Failure, summary

SCHEDULING = "Scheduling"
BINDING = "Binding"


def _pod(pod: Pod) -> Reference:
    return Reference.of(pod.metadata, kind="Pod")


def scheduled(decision: Decision) -> Note:
    """The pod has a node."""
    return Note(_pod(decision.pod), "Scheduled", summary(decision), BINDING)


def failed(failure: Failure) -> Note:
    """No node takes the pod for now."""
    return Note(_pod(failure.pod), "FailedScheduling", failure.message, SCHEDULING, warning=True)


def waiting_for_members(
    pod: Pod, group: Group, *, present: int, missing: tuple[str, ...], seconds: float | None
) -> Note:
    """The pod's AppGroup is not complete yet; `seconds` None means that it waits as long as it takes."""
    what = f"; workloads without a pod: {', '.join(missing[:5])}" if missing else ""
    limit = "until they are there" if seconds is None else f"up to {seconds:.0f} s"
    message = f"AppGroup {group.key[1]} has {present} of {group.members} pods{what}; waits {limit}"
    return Note(_pod(pod), "WaitingForMembers", message, SCHEDULING)


def group_missing(pod: Pod, name: str, *, seconds: float) -> Note:
    """The pod names an AppGroup that does not exist."""
    message = (
        f"AppGroup {name} does not exist in namespace {pod.metadata.namespace}; after {seconds:.0f} s the "
        "pod is placed by itself. Create the AppGroup or remove the label appgroup.diktyo.x-k8s.io"
    )
    return Note(_pod(pod), "AppGroupMissing", message, SCHEDULING, warning=True)


def group_unusable(pod: Pod, group: Group) -> Note:
    """The pod's AppGroup cannot be read."""
    message = f"AppGroup {group.key[1]} cannot be used, the pod is placed by itself: {group.problem}"
    return Note(_pod(pod), "AppGroupUnusable", message, SCHEDULING, warning=True)


def workload_unknown(pod: Pod, group: Group, workload: str) -> Note:
    """The pod's workload label names no workload of its AppGroup."""
    message = (
        f"label appgroup.diktyo.x-k8s.io.workload={workload!r} is no workload of AppGroup {group.key[1]}; its "
        f"dependencies are not considered. Use one of: {', '.join(group.selectors[:10])}"
    )
    return Note(_pod(pod), "WorkloadUnknown", message, SCHEDULING, warning=True)


def bind_failed(decision: Decision, problem: str) -> Note:
    """The API server did not accept the binding."""
    message = f"Binding to node {decision.node} failed, the pod is planned again: {problem}"
    return Note(_pod(decision.pod), "BindingFailed", message, BINDING, warning=True)


def volumes_failed(decision: Decision, problem: str) -> Note:
    """The pod's claims could not be bound for the chosen node."""
    message = f"Volumes for node {decision.node} are not there, the pod is planned again: {problem}"
    return Note(_pod(decision.pod), "VolumesNotBound", message, BINDING, warning=True)


def node_changed(decision: Decision, problem: str) -> Note:
    """The node changed between plan and binding."""
    message = f"Node {decision.node} changed before the pod was bound, it is planned again: {problem}"
    return Note(_pod(decision.pod), "NodeChanged", message, BINDING, warning=True)


def rejected_by_node(pod: Pod, *, seconds: float) -> Note:
    """The kubelet refused the pod."""
    message = (
        f"Node {pod.spec.node_name} rejected the pod ({pod.status.reason}): {pod.status.message or 'no message'}. "
        f"Pods of the same owner avoid this node for {seconds:.0f} s"
    )
    return Note(_pod(pod), "RejectedByNode", message, SCHEDULING, warning=True)


def group_placed(group: Group, *, pods: int, nodes: int, edges: int, cost: float) -> Note:
    """The waiting pods of an AppGroup were planned together; edges and cost are those of all its placed pods."""
    regarding = Reference(API_VERSION, KIND, group.key[0], group.key[1], group.uid)
    mean = cost / edges if edges else 0.0
    message = f"Placed {pods} pods on {nodes} nodes; mean network cost {mean:.3g} over {edges} dependency edges"
    return Note(regarding, "Placed", message, SCHEDULING)


def group_not_placed(group: Group, failure: Failure) -> Note:
    """The AppGroup does not fit as a whole."""
    regarding = Reference(API_VERSION, KIND, group.key[0], group.key[1], group.uid)
    message = f"Pod {failure.pod.metadata.name} has no node: {failure.message}"
    return Note(regarding, "NotPlaced", message, SCHEDULING, warning=True)


def bad_annotation(node: Node, problem: str) -> Note:
    """A setting in a node's annotations cannot be read."""
    return Note(Reference.of(node.metadata, kind="Node"), "BadAnnotation", problem, SCHEDULING, warning=True)
