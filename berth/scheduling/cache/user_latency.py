"""How far the users of workloads are from nodes, and where pods are on their way to, by LatencyPolicies' statuses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from berth.api.errors import InvalidObjectError
from berth.api.latencypolicy import API_VERSION, KIND, LatencyPolicy, LatencyPolicyStatus
from berth.kube.meta import object_key
from berth.kube.objects import CustomObject
from berth.kube.owners import owner_key
from berth.scheduling.latency.moves import open_moves

UNIT: Final = 100
"""Microseconds of round trip that cost 1, as for measured network costs."""


class UserLatency(NamedTuple):
    """What a status says of the nodes for one more pod of a workload."""

    costs: Mapping[str, float]
    """cost by node, of those that are measured"""
    targets: frozenset[str]
    """nodes that moves which go on have a new pod on, or await one"""
    plan: frozenset[str] = frozenset()
    """nodes that a pod would be right on by the plan for many users, once those of moves are there"""


class UserLatencyTable:
    """By workload, as `owner_of` names it; of two policies on one, the first by name counts."""

    def __init__(self) -> None:
        """Begin without any."""
        self._policies: dict[str, tuple[str, UserLatency]] = {}
        self._of_target: dict[str, list[str]] = {}
        self.unheard: set[str] = set()
        """waiting pods, by uid, since whose coming their policy was not read: they may be awaited on another node"""

    def __len__(self) -> int:
        """Return how many policies there are."""
        return len(self._policies)

    def of(self, workload: str) -> UserLatency | None:
        """Return what is known for a workload; None where no policy is about it."""
        key = self.first(workload)
        return self._policies[key][1] if key is not None else None

    def first(self, workload: str) -> str | None:
        """Return the key of the policy that counts for a workload; None where there is none."""
        keys = self._of_target.get(workload)
        return keys[0] if keys else None

    def update(self, obj: CustomObject) -> str | None:
        """A policy was added or changed; returns what is wrong with it, if it cannot be read."""
        self.forget(object_key(obj.metadata))
        try:
            policy = LatencyPolicy.parse(obj.document(api_version=API_VERSION, kind=KIND))
        except InvalidObjectError as error:
            return str(error)
        reference, key = policy.spec.target_ref, policy.key
        target = owner_key(policy.metadata.namespace, reference.kind, reference.name)
        self._policies[key] = target, _read(policy.status)
        self._of_target[target] = sorted([*self._of_target.get(target, ()), key])
        return None

    def forget(self, key: str) -> None:
        """A policy is gone."""
        found = self._policies.pop(key, None)
        if found is None:
            return
        left = [each for each in self._of_target.pop(found[0]) if each != key]
        if left:
            self._of_target[found[0]] = left


def _read(status: LatencyPolicyStatus) -> UserLatency:
    costs = {known.node: known.p50_microseconds / UNIT for known in status.nodes if known.p50_microseconds is not None}
    # Also where the new pod had come: somebody may take it away, and the next comes before the status says so.
    moving = frozenset(move.target_node for move in open_moves(status))
    return UserLatency(costs, moving, frozenset(status.plan))
