"""VolumeBinding: every claim of a pod must have, or be able to get, a volume that the node reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.cache.volume_matching import DelayedClaims, sort_claims
from berth.scheduling.cache.volume_pool import NodeMasks, selector_terms
from berth.scheduling.cache.volumes import claim_keys, claims_of
from berth.scheduling.framework.plugin import FilterPlugin, RejectedNodes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.kube.objects import PersistentVolumeClaim, Pod
    from berth.scheduling.cache.columns import Mask
    from berth.scheduling.framework.cycle_state import CycleState
    from berth.scheduling.framework.plugin import Afterwards

REASON_AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
REASON_NO_VOLUME = "node(s) didn't find available persistent volumes to bind"
REASON_NO_SPACE = "node(s) did not have enough free storage"
REASON_GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
MOST_DELAYED = 512
"""Claims of one pod that are matched with volumes at the most, for what matching costs: drivers that attach nothing, as
of local volumes and NFS, state no limit."""
MOST_SELECTING = 4096
"""Labels, expressions and values in the selectors of these claims at the most, together."""
UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class VolumeBinding(FilterPlugin):
    """Rejects nodes that cannot reach the pod's volumes, and pods whose claims have to be bound first.

    Claims of classes with WaitForFirstConsumer are matched with available volumes or provisioned
    for the node (see cache/volume_matching.py); ``volume_plan`` there says what to write for the node that
    is chosen in the end.
    """

    name = "VolumeBinding"

    def concerned(self, after: Afterwards) -> bool:
        """Any label, for pods with claims: volumes and storage classes go by whichever they like."""
        return bool(after.change.labels and claim_keys(after.pod.pod))

    def pre_filter(self, cycle: CycleState) -> str | None:
        """A claim that is missing, lost, being deleted, not the pod's own, or unbound and Immediate."""
        info, state = cycle.pod, cycle.cluster
        pod = info.pod
        if not pod.spec.volumes:
            return None
        for volume, name in claims_of(pod):
            claim = state.volumes.claims.get(f"{info.template.namespace}/{name}")
            trouble = _trouble(pod, claim, name, ephemeral=volume.persistent_volume_claim is None)
            if trouble is not None:
                return trouble
        claims = sort_claims(pod, state)
        if len(claims.delayed) > MOST_DELAYED:
            return (
                f"pod has {len(claims.delayed)} persistentvolumeclaims that wait for it, more than {MOST_DELAYED}; use "
                "fewer, or a storage class that binds at once"
            )
        selecting = {claim.metadata.name: selector_terms(claim) for _, claim in claims.delayed}
        if (terms := sum(selecting.values())) > MOST_SELECTING:
            name = max(selecting, key=selecting.__getitem__)
            return (
                f"persistentvolumeclaims that wait for the pod have {terms} labels, expressions and values in "
                f'spec.selector, more than {MOST_SELECTING} together; use fewer: "{name}" has {selecting[name]}'
            )
        return UNBOUND_IMMEDIATE if claims.immediate else None

    def filter(self, cycle: CycleState) -> Sequence[RejectedNodes]:
        """Nodes that bound volumes do not reach, and nodes where unbound claims cannot be served."""
        info, state = cycle.pod, cycle.cluster
        if not info.pod.spec.volumes:
            return ()
        claims = sort_claims(info.pod, state)
        found = []
        if claims.bound:
            unreached: Mask = np.zeros(state.size, dtype=np.bool_)
            gone, nodes = False, NodeMasks(state)
            for claim in claims.bound:
                volume = state.volumes.volumes.get(claim.spec.volume_name)
                if volume is None:
                    gone = True
                else:
                    unreached |= ~nodes.of(volume)
            found.append(RejectedNodes(REASON_AFFINITY, unreached))
            if gone:
                found.append(RejectedNodes(REASON_GONE, state.alive & ~unreached))
        if claims.delayed:
            no_volume, no_space = DelayedClaims(claims.delayed, state).failures()
            found += [RejectedNodes(REASON_NO_VOLUME, no_volume), RejectedNodes(REASON_NO_SPACE, no_space)]
        return found


def _trouble(pod: Pod, claim: PersistentVolumeClaim | None, name: str, *, ephemeral: bool) -> str | None:
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if ephemeral and not any(
        owner.controller and owner.uid == pod.metadata.uid for owner in claim.metadata.owner_references
    ):
        return f"PVC {pod.metadata.namespace}/{name} was not created for pod {pod.key} (pod is not owner)"
    return None
