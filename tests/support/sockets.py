"""SocketStatuses, WorkloadProfiles and pods with a class, in a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from berth.api.labels import ANNOTATION_SOCKET, LABEL_INTERFERENCE_CLASS
from berth.kube.objects import CustomObject, OwnerReference, Pod
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.interference.policy import InterferencePolicy
from tests.support import builders


def asking(policy: InterferencePolicy = InterferencePolicy.LEAST_SLOWDOWN, **options: Any) -> ClusterState:
    """State of an empty cluster; pods of berth-scheduler, and no others, get sockets by `policy`."""
    return ClusterState(policies={"berth-scheduler": policy}, **options)


def status(
    node: str,
    *,
    cpus: Sequence[int] = (8, 8),
    assigned: Mapping[str, int] | None = None,
    true: Sequence[str] = (),
    unpinned: str = "",
    caches: Sequence[int] = (),
    cores: Sequence[int | None] = (),
) -> CustomObject:
    """SocketStatus of a node.

    Args:
        node: its name.
        cpus: CPUs by socket.
        assigned: sockets by uid of the pod.
        true: conditions that are true.
        unpinned: why Pinned is not.
        caches: caches of each socket that pods are kept apart in.
        cores: cores of each socket.
    """
    sockets: list[dict[str, Any]] = [{"socket": number, "cpuCount": count} for number, count in enumerate(cpus)]
    for each, count in zip(sockets, caches, strict=False):
        each["pinnedCaches"] = count
    for each, known in zip(sockets, cores, strict=False):
        each["coreCount"] = known
    why = [{"type": "Pinned", "status": "False", "reason": unpinned}] if unpinned else []
    return CustomObject.of(
        {
            "metadata": {"name": node, "uid": f"sockets-{node}"},
            "spec": {"assignments": [{"uid": uid, "socket": socket} for uid, socket in (assigned or {}).items()]},
            "status": {
                "sockets": sockets,
                "conditions": [*why, *({"type": name, "status": "True"} for name in true)],
            },
        }
    )


def workload_profile(
    name: str, letter: str, *, kind: str = "Deployment", target: str = "", slowdowns: Mapping[str, str] | None = None
) -> CustomObject:
    """WorkloadProfile in the namespace default, about a workload of its own name unless `target` is another."""
    spec: dict[str, Any] = {
        "targetRef": {"apiVersion": "apps/v1", "kind": kind, "name": target or name},
        "interferenceClass": letter,
        "slowdowns": [{"beside": beside, "slowdown": text} for beside, text in (slowdowns or {}).items()],
    }
    return CustomObject.of({"metadata": {"name": name, "namespace": "default"}, "spec": spec})


def classed(name: str, letter: str, *, socket: str | None = None, **arguments: Any) -> Pod:
    """Pod with a class for our scheduler, of 1 CPU; `socket` is its annotation."""
    arguments = {"cpu": "1", **arguments}
    labels = {LABEL_INTERFERENCE_CLASS: letter, **arguments.pop("labels", {})}
    pod = builders.pod(name, labels=labels, spec={"schedulerName": "berth-scheduler"}, **arguments)
    if socket is not None:
        pod.metadata.annotations[ANNOTATION_SOCKET] = socket
    return pod


def owned(name: str, owner: str, *, kind: str = "Deployment", **arguments: Any) -> Pod:
    """Pod of a workload, without a class of its own."""
    pod = builders.pod(name, spec={"schedulerName": "berth-scheduler"}, **{"cpu": "1", **arguments})
    if kind == "Deployment":
        pod.metadata.labels["pod-template-hash"] = "7d4"
        kind, owner = "ReplicaSet", f"{owner}-7d4"
    pod.metadata.owner_references = [OwnerReference(kind=kind, name=owner, uid=f"owner-{owner}", controller=True)]
    return pod
