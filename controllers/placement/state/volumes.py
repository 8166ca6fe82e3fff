"""Persistent volumes, claims, storage classes and CSI nodes, and the claims a pod uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from berth.kube.objects import Pod, Volume


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Name of the claim behind a volume: named, or derived for a generic ephemeral volume."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def claims_of(pod: Pod) -> Iterator[tuple[Volume, str]]:
    """(volume, claim name) of the pod's volumes that stand on a claim."""
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is not None:
            yield volume, name


def claim_keys(pod: Pod) -> tuple[str, ...]:
    """Distinct ``namespace/name`` of the claims a pod uses."""
    if not pod.spec.volumes:
        return ()
    return tuple(sorted({f"{pod.metadata.namespace}/{name}" for _, name in claims_of(pod)}))


class VolumeTable:
    """Volumes and claims by name."""
