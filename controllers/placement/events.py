"""Everything the placement controller says in Events: reading this file tells what users will see."""

from __future__ import annotations

from berth.api.appgroup import API_VERSION, KIND
from berth.api.errors import FieldProblem
from berth.api.labels import ANNOTATION_REJECTIONS
from berth.kube.events import Note, Reference
from berth.kube.objects import Node, Pod
from berth.network.groups import Group
from berth.scheduling.decision import Decision, summary
from berth.scheduling.messages import Message

SCHEDULING = "Scheduling"
BINDING = "Binding"


def _pod(pod: Pod) -> Reference:
    return Reference.of(pod.metadata, kind="Pod")


def scheduled(decision: Decision) -> Note:
    """The pod has a node."""
    return Note(_pod(decision.pod), "Scheduled", summary(decision), BINDING)


def about_pod(pod: Pod, message: Message) -> Note:
    """What the scheduling cycle tells about a pod; :mod:`berth.scheduling.messages` lists all of it."""
    annotations = {ANNOTATION_REJECTIONS: message.rejections} if message.rejections else {}
    return Note(_pod(pod), message.reason, message.text, SCHEDULING, warning=message.warning, annotations=annotations)


def about_group(group: Group, message: Message) -> Note:
    """What the scheduling cycle tells about an AppGroup."""
    regarding = Reference(API_VERSION, KIND, group.key.namespace, group.key.name, group.uid)
    return Note(regarding, message.reason, message.text, SCHEDULING, warning=message.warning)


def bind_failed(decision: Decision, problem: str) -> Note:
    """The API server did not accept the binding."""
    message = f"Binding to node {decision.node} failed; the pod will be scheduled again: {problem}"
    return Note(_pod(decision.pod), "BindingFailed", message, BINDING, warning=True)


def volumes_failed(decision: Decision, problem: str) -> Note:
    """The pod's claims could not be bound for the chosen node."""
    message = f"Volumes could not be bound for node {decision.node}; the pod will be scheduled again: {problem}"
    return Note(_pod(decision.pod), "VolumesNotBound", message, BINDING, warning=True)


def node_changed(decision: Decision, problem: str) -> Note:
    """The node changed between plan and binding."""
    message = f"Node {decision.node} changed before the pod was bound; the pod will be scheduled again: {problem}"
    return Note(_pod(decision.pod), "NodeChanged", message, BINDING, warning=True)


def rejected_by_node(pod: Pod, *, seconds: float) -> Note:
    """The kubelet refused the pod."""
    why = (pod.status.message or "no message").removesuffix(".")
    message = (
        f"Node {pod.spec.node_name} rejected the pod ({pod.status.reason}): {why}; "
        f"pods of the same owner avoid this node for {seconds:.0f} s"
    )
    return Note(_pod(pod), "RejectedByNode", message, SCHEDULING, warning=True)


def bad_bandwidth(pod: Pod, problem: FieldProblem) -> Note:
    """A limit of the CNI bandwidth plugin in a pod's annotations cannot be read."""
    return Note(_pod(pod), "BadAnnotation", f"pod {pod.key}: {problem}", SCHEDULING, warning=True)


def bad_class(pod: Pod, problem: FieldProblem) -> Note:
    """A pod's labels state no interference class that can be read."""
    return Note(_pod(pod), "BadInterferenceClass", f"pod {pod.key}: {problem}", SCHEDULING, warning=True)


def bad_annotation(node: Node, problem: str) -> Note:
    """A setting in a node's annotations cannot be read."""
    return Note(Reference.of(node.metadata, kind="Node"), "BadAnnotation", problem, SCHEDULING, warning=True)
