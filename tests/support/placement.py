"""What tests of placement share: a clock they turn themselves, AppGroups, costs, and a planner over a small cluster."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from berth.api.labels import (
    LABEL_APPGROUP,
    LABEL_REGION,
    LABEL_WORKLOAD,
    LABEL_ZONE,
)
from berth.kube.objects import CustomObject, Node, Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.scheduling.cache import ClusterState
from berth.scheduling.cache.cache import Cache
from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from berth.scheduling.planner import Planner
from berth.scheduling.planning import finish
from tests.support import builders, kinds


class Clock:
    """Monotonic time that stands still until it is advanced, or passes by a tick at every look."""

    def __init__(self, now: float = 1000.0, tick: float = 0.0) -> None:
        self.now = now
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


def group_object(
    name: str = "shop", *workloads: dict[str, Any], namespace: str = "default", order: Iterable[str] = (), **spec: Any
) -> CustomObject:
    """AppGroup as the watch delivers it; `order` are selectors of status.topologyOrder."""
    body = kinds.app_group(*workloads, name=name, **spec)
    body["metadata"] |= {
        "namespace": namespace,
        "uid": f"group-{namespace}-{name}",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "generation": 1,
    }
    body["status"] = {
        "topologyOrder": [
            {"workload": kinds.ref(selector), "index": index} for index, selector in enumerate(order, start=1)
        ]
    }
    return CustomObject.of(body)


def chain(*selectors: str, **demand: Any) -> list[dict[str, Any]]:
    """Workloads that each depend on the next one."""
    followers = [*selectors[1:], None]
    return [
        kinds.workload(one, *([other] if other else []), **demand)
        for one, other in zip(selectors, followers, strict=True)
    ]


def member(name: str, workload: str, *, group: str = "shop", **arguments: Any) -> Pod:
    """Pod of an AppGroup, for our scheduler; further arguments as :func:`builders.pod`."""
    labels = {LABEL_APPGROUP: group, LABEL_WORKLOAD: workload, **arguments.pop("labels", {})}
    spec = {"schedulerName": "berth-scheduler", **arguments.pop("spec", {})}
    return builders.pod(name, labels=labels, spec=spec, **arguments)


def lone(name: str, **arguments: Any) -> Pod:
    """Pod outside any AppGroup, for our scheduler."""
    spec = {"schedulerName": "berth-scheduler", **arguments.pop("spec", {})}
    return builders.pod(name, spec=spec, **arguments)


def zoned(name: str, zone: str = "z1", region: str = "r1", **arguments: Any) -> Node:
    """Node with zone and region labels; further arguments as :func:`builders.node`."""
    labels = {LABEL_ZONE: zone, LABEL_REGION: region, **arguments.pop("labels", {})}
    return builders.node(name, labels=labels, **arguments)


def both_ways(pairs: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """The same costs in either direction."""
    return pairs | {(b, a): cost for (a, b), cost in pairs.items()}


ZONE_COSTS = NetworkCosts(
    source="default/net",
    weight_sets=("UserDefined",),
    zones=both_ways({("z1", "z2"): 5.0, ("z3", "z4"): 10.0}),
    regions=both_ways({("r1", "r2"): 20.0}),
)
"""z1 and z2 in r1, z3 and z4 in r2: the figures of the conformance example."""


@dataclass
class Lab:
    """A cache of a cluster with one planner over it."""

    nodes: Iterable[Node]
    profile: Profile = field(default_factory=Profile)
    costs: NetworkCosts = ZONE_COSTS
    clock: Clock = field(default_factory=Clock)
    counts_annotations: bool = False

    def __post_init__(self) -> None:
        policies = {self.profile.scheduler_name: self.profile.interference}
        state = ClusterState(count_annotations=self.counts_annotations, policies=policies)
        self.cache = Cache(clock=self.clock, state=state)
        for node in self.nodes:
            self.cache.update_node(node)
        self.planner = Planner(self.cache, self.profile)

    def group(self, obj: CustomObject) -> Group:
        """Have an AppGroup known."""
        return self.cache.update_group(obj)

    def see(self, *pods: Pod) -> None:
        """Have pods known, bound or waiting."""
        for pod in pods:
            self.cache.update_pod(pod)

    def place(self, group: Group, *pods: Pod, partial: bool = False) -> Outcome:
        """Have pods known and plan them together."""
        self.see(*pods)
        return finish(self.planner.place_group(group, pods, self.costs, partial=partial))

    def place_alone(self, pod: Pod, group: Group | None = None) -> Outcome:
        """Have one pod known and plan it by itself."""
        self.see(pod)
        return self.planner.place_pod(pod, group, self.costs)

    def over_committed(self) -> list[str]:
        """Nodes and resources whose requests exceed what is allocatable, counted from the records of pods."""
        state = self.cache.state
        found = []
        for name, slot in state.node_index.items():
            need = sum(state.request_vector(record.template) for record in state.pods_on(name))
            for resource, column in state.resources.items():
                amount = 0 if isinstance(need, int) else need[column]
                if amount > state.allocatable[slot, column]:
                    found.append(f"{name}: {amount} {resource}")
        return found


def where(outcome: Outcome) -> dict[str, str]:
    """Node by pod name."""
    return {decision.pod.metadata.name: decision.node for decision in outcome.decisions}


def edges(outcome: Outcome) -> tuple[float, float]:
    """Dependency edges between the placed pods, where all of them were placed in this go, and what they cost."""
    decisions = outcome.decisions
    return sum(each.edges for each in decisions) / 2, sum(each.edge_cost for each in decisions) / 2
