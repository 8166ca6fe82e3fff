"""The 16 pods as an AppGroup that Berth's planner places: WorkloadProfiles say slowdowns, SocketStatuses say sockets.

The workloads do not call each other and need not survive anything, so that the sockets alone matter.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from bench.interference.policies import NODES, ROOM, SOCKETS, Sockets
from berth.api.interference import InterferenceClass
from berth.api.labels import LABEL_APPGROUP, LABEL_WORKLOAD
from berth.api.spread import SpreadLevel
from berth.kube.objects import (
    Container,
    CustomObject,
    Node,
    NodeStatus,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    ResourceRequirements,
)
from berth.network.costs import NO_COSTS
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.interference.policy import InterferencePolicy
from berth.scheduling.interference.slowdown import SlowdownModel, Workload
from berth.scheduling.planner import Planner
from berth.scheduling.planning import finish

SCHEDULER = "berth-scheduler"
NAMESPACE = "default"
GROUP = "mix"


class Planned:
    """A policy: all pods of a mix in one joint plan on an empty cluster."""

    def __init__(self, model: SlowdownModel, benchmarks: Sequence[Workload]) -> None:
        """Take the slowdowns that profiles state, and who has one."""
        self._profiles = [_profile(model, each.name, each.interference_class) for each in benchmarks]

    def __call__(self, pods: Sequence[Workload], _drawn: random.Random) -> Sockets:
        """Return the pods on each socket as the plan leaves them.

        Raises:
            ValueError: some pod has no node or no socket.
        """
        policy = InterferencePolicy.LEAST_SLOWDOWN
        cache = Cache(clock=lambda: 0.0, state=ClusterState(policies={SCHEDULER: policy}))
        for number in range(NODES):
            allocatable: dict[str, str | int | float] = {"cpu": str(SOCKETS * ROOM), "memory": "64Gi", "pods": "110"}
            cache.update_node(Node(metadata=ObjectMeta(name=f"n{number}"), status=NodeStatus(allocatable=allocatable)))
            sockets = [{"socket": socket, "cpuCount": ROOM} for socket in range(SOCKETS)]
            cache.update_sockets(CustomObject.of({"metadata": {"name": f"n{number}"}, "status": {"sockets": sockets}}))
        for profile in self._profiles:
            cache.update_profile(profile)
        waiting = {f"u{number}": _pod(number, each) for number, each in enumerate(pods)}
        for pod in waiting.values():
            cache.update_pod(pod)
        group = cache.update_group(group_of(dict.fromkeys(each.name for each in pods)))
        planner = Planner(cache, Profile(interference=policy, spread=SpreadLevel.NONE))
        finish(planner.place_group(group, list(waiting.values()), NO_COSTS, partial=False))
        found: dict[tuple[str, int], list[Workload]] = {}
        for uid, workload in zip(waiting, pods, strict=True):
            seat = cache.state.sockets.seat(uid)
            if seat is None or seat.socket is None:
                raise ValueError(f"{workload.name} has no socket")
            found.setdefault((seat.node, seat.socket), []).append(workload)
        return list(found.values())


def _profile(model: SlowdownModel, name: str, letter: InterferenceClass) -> CustomObject:
    slowdowns = [
        {"beside": other.lower(), "slowdown": str(slowdown)} for other, slowdown in model.table.get(name, {}).items()
    ]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name.lower()}
    spec = {"targetRef": target, "interferenceClass": letter.value, "slowdowns": slowdowns}
    return CustomObject.of({"metadata": {"name": name.lower(), "namespace": NAMESPACE}, "spec": spec})


def _pod(number: int, workload: Workload) -> Pod:
    owner = OwnerReference(kind="Deployment", name=workload.name.lower(), uid=workload.name, controller=True)
    labels = {LABEL_APPGROUP: GROUP, LABEL_WORKLOAD: workload.name.lower()}
    requests = ResourceRequirements(requests={"cpu": "1", "memory": "1Gi"})
    return Pod(
        metadata=ObjectMeta(
            name=f"p{number}", namespace=NAMESPACE, uid=f"u{number}", labels=labels, owner_references=[owner]
        ),
        spec=PodSpec(scheduler_name=SCHEDULER, containers=[Container(name="main", resources=requests)]),
    )


def group_of(names: Iterable[str]) -> CustomObject:
    """Return an AppGroup of workloads that do not call each other."""
    workloads = [{"workload": {"kind": "Deployment", "name": name.lower(), "selector": name.lower()}} for name in names]
    meta = {"name": GROUP, "namespace": NAMESPACE, "uid": GROUP, "creationTimestamp": "2026-01-01T00:00:00Z"}
    return CustomObject.of({"metadata": meta, "spec": {"numMembers": len(workloads), "workloads": workloads}})
