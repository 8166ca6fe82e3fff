"""Topology spread constraints of pods that state none: those of the profile, towards pods of the same owner.

kube-scheduler selects by the owner's selector, narrowed by those of Services. Berth does not watch owners: all pods of
a ReplicaSet have the labels of its template, and those of a StatefulSet too, but for a few of each pod's own.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from berth.kube.objects import Pod
from berth.scheduling.cache.selectors import EVERYTHING, NOTHING, Selector
from berth.scheduling.cache.terms import SpreadConstraint
from berth.scheduling.configuration import DefaultConstraint

OWN_LABELS = frozenset({"statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"})
"""Labels that no two pods of one StatefulSet share."""
_REVISION = "controller-revision-hash"
_OWNERS = ("ReplicaSet", "ReplicationController", "StatefulSet", "Deployment")
"""Kinds whose pods are spread; Deployments own pods only in `berth plan`."""

REMEMBERED_LABELS = 16
"""Labels that a pod may have for its selector to be remembered."""


def replicas_of(pod: Pod) -> Selector:
    """Select the pods of the pod's owner; nobody where none of these kinds owns it, or it has no labels."""
    owner = next((owner.kind for owner in pod.metadata.owner_references if owner.controller), "")
    if owner not in _OWNERS:
        return NOTHING
    left_out = {*OWN_LABELS, _REVISION} if owner == "StatefulSet" else OWN_LABELS
    labels = tuple(sorted(item for item in pod.metadata.labels.items() if item[0] not in left_out))
    # A tenant's pods may have thousands of labels, of which the next ones have others.
    return _remembered(labels) if len(labels) <= REMEMBERED_LABELS else _selector(labels)


def _selector(labels: tuple[tuple[str, str], ...]) -> Selector:
    return EVERYTHING.also(dict(labels)) if labels else NOTHING


_remembered = lru_cache(maxsize=1024)(_selector)


def default_constraints(pod: Pod, constraints: Iterable[DefaultConstraint]) -> tuple[SpreadConstraint, ...]:
    """What a profile's constraints mean for a pod that states none; nothing where no owner tells its replicas."""
    selector = replicas_of(pod)
    if selector.nothing:
        return ()
    return tuple(
        SpreadConstraint(
            max_skew=constraint.max_skew,
            topology_key=constraint.topology_key,
            selector=selector,
            min_domains=1,
            honour_affinity=True,
            honour_taints=False,
        )
        for constraint in constraints
    )
