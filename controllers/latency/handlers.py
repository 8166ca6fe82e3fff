"""What the latency controller reacts to. Every handler only says which LatencyPolicies are due."""

from __future__ import annotations

from typing import Final

import structlog

from berth.kube.meta import object_key
from berth.kube.objects import CustomObject, Pod
from berth.kube.owners import owner_of
from berth.runtime.workqueue import WorkQueue
from controllers.latency.candidates import Candidates
from controllers.latency.objects import AddressedService, Autoscaler, Deployment, NetworkNode, addresses_of
from controllers.latency.places import Places
from controllers.latency.policies import Policies
from controllers.latency.workloads import Workloads

log = structlog.get_logger(__name__)

CHANGE_DELAY: Final = 0.2
"""Seconds for which changes of a policy, its workload and its pods are gathered."""
TOLD_DELAY: Final = 0.5
"""Seconds for which messages of meters and agents are gathered."""
NODES_DELAY: Final = 5.0
"""Seconds for which nodes that come and go are gathered: each is followed by a look at all policies."""


class Handlers:
    """All handlers of the controller."""

    def __init__(
        self, queue: WorkQueue[str], *, policies: Policies, workloads: Workloads, candidates: Candidates, places: Places
    ) -> None:
        """Prepare.

        Args:
            queue: gets the keys of policies.
            policies: the policies.
            workloads: their Deployments and pods.
            candidates: which nodes have room.
            places: which nodes there are.
        """
        self._queue = queue
        self._policies = policies
        self._workloads = workloads
        self._candidates = candidates
        self._places = places

    def policy_changed(self, old: CustomObject | None, new: CustomObject | None) -> None:
        """A policy came, changed or went; another on the same workload may work again, or not."""
        metadata = (new or old or CustomObject()).metadata
        key = object_key(metadata)
        before = self._policies.target(key)
        if new is None:
            self._policies.remove(key)
        elif problem := self._policies.update(new):
            log.warning("latency policy ignored", object=key, problem=problem)
        self._queue.add(key, delay=CHANGE_DELAY)
        after = self._policies.target(key)
        if before != after:
            self._due(before)
            self._due(after)

    def deployment_changed(self, old: Deployment | None, new: Deployment | None) -> None:
        """A Deployment came, changed or went."""
        self._due(self._workloads.deployment_changed(old, new))

    def autoscaler_changed(self, old: Autoscaler | None, new: Autoscaler | None) -> None:
        """A HorizontalPodAutoscaler came, changed or went."""
        for target in self._workloads.autoscaler_changed(old, new):
            self._due(target)

    def pod_changed(self, old: Pod | None, new: Pod | None) -> None:
        """A pod came, changed or went: of any, room is given or taken; of a policy's workload, it is due."""
        self._candidates.pod_changed(old, new)
        self._workloads.pod_changed(old, new)
        self._places.addresses_changed(addresses_of(old), addresses_of(new))
        for pod in (old, new):
            if pod is not None:
                self._due(owner_of(pod))

    def service_changed(self, old: AddressedService | None, new: AddressedService | None) -> None:
        """A Service came, changed or went: nobody is probed at its addresses."""
        self._places.addresses_changed(
            old.addresses if old is not None else (), new.addresses if new is not None else ()
        )

    def node_changed(self, old: NetworkNode | None, new: NetworkNode | None) -> None:
        """A node came, changed or went."""
        self._candidates.node_changed(old, new)
        if self._places.node_changed(old, new):
            self._queue.add_known(delay=NODES_DELAY)

    def told(self, policy: str) -> None:
        """Somebody has told something of a policy's users."""
        self._queue.add(policy, delay=TOLD_DELAY)

    def _due(self, target: str) -> None:
        for key in self._policies.of(target) if target else ():
            self._queue.add(key, delay=CHANGE_DELAY)
