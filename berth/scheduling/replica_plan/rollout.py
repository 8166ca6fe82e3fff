"""Pods that a rolling update replaces.

A surge pod stays, and the pods of other revisions of its Deployment go: it is placed as if they were gone already, but
for the room that they take. So each revision is spread by itself, and a rollout ends as a placement from scratch would.
Hard rules count them, as kube-scheduler's do.

A Deployment is known by the names of its ReplicaSets, which end in the label `pod-template-hash` of their pods, and by
the pods' own names, which begin with these, or with as much of them as there is room for. A StatefulSet has no surge:
what is replaced goes first.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from berth.api.labels import LABEL_WORKLOAD, membership
from berth.kube.objects import Pod
from berth.network.groups import Group
from berth.scheduling.cache.cache import Cache
from berth.scheduling.cache.pod_record import PodRecord
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.cache.volumes import claim_keys
from berth.scheduling.gang.problem import Infrastructure
from berth.scheduling.replica_plan.places import member_pods
from berth.scheduling.replica_plan.pod_sets import Alike
from berth.scheduling.single import workload_of

Floats = npt.NDArray[np.float64]
Whose = tuple[str, str]
"""workload and Deployment"""

TEMPLATE_HASH = "pod-template-hash"
"""Pod label: the revision of a Deployment."""
STAY = 0.01
"""Share of the network cost between the replicas of a workload and those that they replace that it costs all of them
together to be away from these."""
STAY_AT_MOST = 0.5
"""The most that it is, for the dearest way of all, others in proportion: half of what surviving a zone is worth."""
GENERATED = 58
"""Characters of a ReplicaSet's name and the dash behind it that a pod's name has room for: 5 of 63 are chance."""


def replaced_pods(group: Group, waiting: Iterable[Pod], cache: Cache) -> list[PodRecord]:
    """Find the placed pods of other revisions than those that wait, of the same Deployments.

    Args:
        group: the AppGroup.
        waiting: pods of it that are to be placed.
        cache: its placed pods.
    """
    prefixes: defaultdict[tuple[str, str], tuple[str, ...]] = defaultdict(tuple)
    for workload, deployment, revision in _others(group, waiting, cache.state):
        name = f"{deployment}-{revision}-"[:GENERATED]
        prefixes[workload, revision] += (f"{group.key.namespace}/{name}",)
    found: list[PodRecord] = []
    # Once for all Deployments: all of a large group may be restarted together.
    for member in cache.members.placed(group.key) if prefixes else ():
        record = cache.state.record(member.uid)
        # By the labels that it is counted with, which may have changed while it is being bound.
        counted = membership(record.template.labels) if record is not None else None
        if record is None or counted is None or counted.appgroup != group.key.name:
            continue
        if member.key.startswith(prefixes.get((counted.workload, record.template.labels.get(TEMPLATE_HASH, "")), ())):
            found.append(record)
    return found


def of_several_deployments(group: Group, waiting: Iterable[Pod], state: ClusterState) -> bool:
    """Whether pods of other Deployments may come soon, as where all are scaled or rolled out.

    Some of these pods are of a Deployment, and another workload has pods of one.
    """
    own = {workload for (workload, _), revision in map(_revision, waiting) if revision}
    others = (name for name, pods in member_pods(group, state) if pods.labels.get(TEMPLATE_HASH))
    return bool(own) and len(own.union(others)) > 1


def _others(group: Group, waiting: Iterable[Pod], state: ClusterState) -> Iterator[tuple[str, str, str]]:
    """Workload, Deployment and revision of what may be replaced: a workload may have several Deployments."""
    revisions: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for whose, revision in map(_revision, waiting):
        if revision:
            revisions[whose].add(revision)
    for (workload, deployment), own in revisions.items():
        placed = {pods.labels.get(TEMPLATE_HASH, "") for _, pods in member_pods(group, state, [workload])}
        for revision in placed - own - {""}:
            yield workload, deployment, revision


def to_come(group: Group, replaced: Iterable[PodRecord], waiting: Sequence[Pod], cache: Cache) -> Counter[Whose]:
    """How many pods rolling updates bring after those that wait, by Deployment: each pod replaces one that serves.

    An old pod goes once a new one is ready, so that new ones that are not yet replace some of those that are there.
    One that never was ready is there beside as many as there are to be: a rollout that is stuck has such.

    Args:
        group: the AppGroup.
        replaced: its pods that are to be replaced.
        waiting: pods of it that are to be placed.
        cache: its placed pods.
    """
    waits = Counter(whose for whose, revision in map(_revision, waiting) if revision)
    own = {(whose[0], revision) for whose, revision in map(_revision, waiting) if revision}
    old = Counter[Whose]()
    for each in replaced:
        if each.ready and not each.terminating:
            old.update(_owners(each, waits))
    for member in cache.members.placed(group.key) if old else ():
        record = cache.state.record(member.uid)
        if record is None or record.ready or record.terminating:
            continue
        if (member.workload, record.template.labels.get(TEMPLATE_HASH, "")) in own:
            waits.update(_owners(record, waits))
    return old - waits


def _owners(record: PodRecord, deployments: Iterable[Whose]) -> list[Whose]:
    """Of these the Deployment of a placed pod, as its name has it; several where names say no more."""
    labels, name = record.template.labels, record.key.partition("/")[2]
    workload, revision = labels.get(LABEL_WORKLOAD, ""), labels.get(TEMPLATE_HASH, "")
    return [
        whose
        for whose in deployments
        if whose[0] == workload and name.startswith(f"{whose[1]}-{revision}-"[:GENERATED])
    ]


def with_those_to_come(pod_sets: Sequence[Alike], more: Mapping[Whose, int]) -> list[Alike]:
    """Pod sets with the pods that are still to come, in the largest of each Deployment; not those with claims.

    Args:
        pod_sets: the waiting pods.
        more: pods that are to come, by Deployment.
    """
    of = [Counter(_revision(each.info.pod)[0] for each in pods.candidates) for pods in pod_sets]
    added = Counter[int]()
    for whose, count in more.items():
        largest = max(range(len(of)), key=lambda number: of[number][whose])
        if not any(claim_keys(each.info.pod) for each in pod_sets[largest].candidates):
            added[largest] += count
    return [replace(pods, to_come=added[number]) if added[number] else pods for number, pods in enumerate(pod_sets)]


def away_from(
    replaced: Iterable[PodRecord],
    replicas: Mapping[str, int],
    state: ClusterState,
    infrastructure: Infrastructure,
    network: float,
) -> dict[str, Floats]:
    """float64[N] by workload, what it costs a new pod to be elsewhere than those that are replaced.

    That is little, and nobody is told of it: it decides between plans that are as good. Without it the first pods of an
    application that is rolled out as a whole would go to the emptiest zone, where the others would have to follow.

    Args:
        replaced: those pods.
        replicas: pods by workload that are there then: an edge counts once, whatever the replicas, and so does this.
        state: the cluster.
        infrastructure: what is how far from what.
        network: weight of network costs.
    """
    location, location_cost = infrastructure.location, infrastructure.location_cost
    dearest = float(location_cost.max(initial=0.0))
    price = min(STAY * network, STAY_AT_MOST / dearest) if dearest else 0.0
    homes: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for record in replaced:
        slot = state.node_index.get(record.node_name)
        if slot is not None and not record.terminating:
            homes[record.template.labels.get(LABEL_WORKLOAD, "")][int(location[slot])] += 1
    found = dict[str, Floats]()
    for workload, counts in homes.items():
        there = np.array([*counts.values()], dtype=np.float64) / (counts.total() * max(1, replicas.get(workload, 0)))
        found[workload] = (price * (location_cost[:, [*counts]] @ there))[location]
    return found


def apart(pods: Sequence[Pod]) -> list[list[Pod]]:
    """Pods in parts to be planned one after the other: one revision of each Deployment, then the pods of all others.

    Where two wait, as when a Deployment is scaled in the middle of a rollout, one of them is going: planned together,
    the one that stays would count on it. That which came last goes first.
    """
    came: defaultdict[tuple[str, str], dict[str, tuple[int, str]]] = defaultdict(dict)
    revisions = [_revision(pod) for pod in pods]
    for pod, (deployment, revision) in zip(pods, revisions, strict=True):
        since = pod.spec.priority, pod.metadata.creation_timestamp
        came[deployment][revision] = max(since, came[deployment].get(revision, since))
    last = {deployment: max((at, one) for one, at in known.items())[1] for deployment, known in came.items()}
    parts: tuple[list[Pod], list[Pod]] = [], []
    for pod, (deployment, revision) in zip(pods, revisions, strict=True):
        parts[revision != last[deployment]].append(pod)
    return [part for part in parts if part]


def _revision(pod: Pod) -> tuple[Whose, str]:
    """Workload and Deployment of a pod, and its revision; empty for pods of others."""
    revision = pod.metadata.labels.get(TEMPLATE_HASH, "")
    deployment = _deployment(pod, revision) if revision else ""
    return (workload_of(pod), deployment), revision if deployment else ""


def _deployment(pod: Pod, revision: str) -> str:
    """The Deployment of a pod's ReplicaSet; empty for pods of others."""
    for owner in pod.metadata.owner_references:
        if owner.controller and owner.kind == "ReplicaSet" and owner.name.endswith(f"-{revision}"):
            return owner.name.removesuffix(f"-{revision}")
    return ""
