"""What plugins are given about one pod: the cluster, its peers, and what they compute for each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar, cast

import numpy as np
import numpy.typing as npt

from berth.scheduling.units import LIMIT

if TYPE_CHECKING:
    from berth.network.arrival import Arrival
    from berth.network.limits import LimitedEdge
    from berth.scheduling.cache.pod_templates import PodInfo, PodTemplateInfo
    from berth.scheduling.cache.state import ClusterState
    from berth.scheduling.gang.state import InfrastructureState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PeerEdges:
    """Dependency edges between the pod and placed pods, in K bundles: those to a workload's pods on one node."""

    nodes: npt.NDArray[np.intp]
    """int[K], node slot of the placed pods"""
    outward: npt.NDArray[np.bool_]
    """bool[K], True when the pod depends on the placed ones, False when it is the other way round"""
    bandwidth: npt.NDArray[np.int64]
    """int64[K], bit/s of all edges of the bundle"""
    count: npt.NDArray[np.float64]
    """float64[K], number of edges of the bundle"""

    @classmethod
    def of(cls, edges: Sequence[tuple[int, bool, int, int]] = ()) -> PeerEdges:
        """Make it from (node slot, outward, bandwidth, count) rows."""
        return cls(
            np.array([edge[0] for edge in edges], dtype=np.intp),
            np.array([edge[1] for edge in edges], dtype=np.bool_),
            np.array([min(edge[2], LIMIT) for edge in edges], dtype=np.int64),
            np.array([edge[3] for edge in edges], dtype=np.float64),
        )

    def __len__(self) -> int:
        """Return the number of edges."""
        return int(self.count.sum())


NO_EDGES = PeerEdges.of()


@dataclass(slots=True, eq=False)
class CycleState:
    """One pod's way through the plugins."""

    pod: PodInfo
    """the pod with its compiled template"""
    cluster: ClusterState
    """nodes and the pods on them"""
    infrastructure: InfrastructureState | None = None
    """prices, budgets and network costs of the nodes; None where nobody asks for them"""
    edges: PeerEdges = NO_EDGES
    """edges to placed pods"""
    arrivals: Sequence[Arrival] = ()
    """calls with bandwidth, in place of the bandwidth of `edges`, where Services keep some of the pod's near"""
    limits: Sequence[LimitedEdge] = ()
    """those with maxNetworkCost; none while no network costs are known at all: it cannot be judged then"""
    recently_rejected: frozenset[str] = frozenset()
    """names of nodes whose kubelet recently rejected a pod of the same owner"""
    only: int | None = None
    """the one node slot that is asked about; None for all: filters that take long look at no other"""
    _computed: dict[str, object] = field(default_factory=dict)

    def once(self, key: str, compute: Callable[[], T]) -> T:
        """Compute something for this pod once, for all extension points of a plugin."""
        if key not in self._computed:
            self._computed[key] = compute()
        return cast("T", self._computed[key])

    @property
    def request(self) -> npt.NDArray[np.int64]:
        """int64[R], the pod's requests by resource column."""
        return self.once("request", lambda: self.cluster.request_vector(self.pod.template))

    @property
    def asked(self) -> npt.NDArray[np.bool_]:
        """bool[N], live nodes that are asked about."""
        if self.only is None:
            return self.cluster.alive
        asked = np.zeros(self.cluster.size, dtype=np.bool_)
        asked[self.only] = True
        return asked

    @property
    def names_nodes(self) -> bool:
        """Whether the pod's own selector singles out nodes."""
        return names_nodes(self.pod.template)


def names_nodes(template: PodTemplateInfo) -> bool:
    """Whether the template's own selector or required affinity singles out nodes: PHARE's selector exception."""
    return bool(template.node_selector) or template.required_affinity is not None
