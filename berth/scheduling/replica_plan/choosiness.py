"""Who of a plan is to take volumes first: one that would do with any takes what another needs, if it comes before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from berth.scheduling.cache.volume_matching import sort_claims
from berth.scheduling.cache.volume_pool import VolumePool, selector_terms
from berth.scheduling.cache.volumes import storage_request

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from berth.kube.objects import Pod
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.cache.volume_matching import Claim
    from berth.scheduling.cache.volume_pool import Want

_MANY = 2**31
"""More volumes than there are."""


class Choosiness(NamedTuple):
    """How few volumes will do for a pod on its node, the lower the fewer."""

    found: int
    """how many the claim can choose from that finds the fewest there"""
    terms: int
    """of the selectors of its claims, negated"""
    modes: int
    """access modes of its claims beside the usual one, negated"""
    size: int
    """bytes of its largest claim, negated"""
    claims: int
    """their number, negated"""


EASY = Choosiness(_MANY, 0, 0, 0, 0)
"""Of a pod without claims."""


class Choosing:
    """What pods of one plan can choose from, before any of them has taken a volume."""

    def __init__(self, pods: Iterable[Pod], state: ClusterState) -> None:
        """Look at the claims of these pods."""
        self._claims: dict[str, Sequence[Claim]] = {}
        for pod in pods:
            if pod.spec.volumes and (claims := sort_claims(pod, state).delayed):
                self._claims[pod.metadata.uid] = claims
        every = {key: claim for claims in self._claims.values() for key, claim in claims}
        self._pool = VolumePool.of(every, state) if every else None
        self._counts: dict[tuple[int, int], npt.NDArray[np.intp]] = {}

    def of(self, pod: Pod, slot: int) -> Choosiness:
        """How choosy a pod is on a node that is planned for it."""
        claims, pool = self._claims.get(pod.metadata.uid, ()), self._pool
        if not claims or pool is None:
            return EASY
        return Choosiness(
            min(self._found(pool.want(key, claim), slot) for key, claim in claims),
            -sum(selector_terms(claim) for _, claim in claims),
            -sum(len(claim.spec.access_modes) for _, claim in claims if claim.spec.access_modes != ["ReadWriteOnce"]),
            -max(storage_request(claim) for _, claim in claims),
            -len(claims),
        )

    def _found(self, want: Want, slot: int) -> int:
        """How many volumes a claim can choose from on a node; many where it has its own, or gets one made."""
        if want.shelf is None:
            return _MANY
        alike = id(want.admitted), want.first
        if alike not in self._counts:
            self._counts[alike] = want.shelf.rack.reach.count(want.admitted, want.first)
        return int(self._counts[alike][slot])
