"""What changes while the cluster lives: free amounts, kept in place between plans.

One `InfrastructureState` lives as long as its set of nodes. `commit` and `release` cost time in the size of the
application, not of the infrastructure. Derived arrays (what the threshold leaves usable, nodes by location) are kept
up to date or cached until `version` or `structure_version` moves on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berth.scheduling.gang.problem import Application, Infrastructure

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

__all__ = ["InfrastructureState"]

_SELECTIVE = 0.1
"""Share of all nodes up to which a selector counts as naming particular nodes."""


class InfrastructureState:
    """Mutable free amounts of an `Infrastructure`. Not safe for use from several threads at once."""

    def __init__(self, infrastructure: Infrastructure) -> None:
        """Start from the free amounts that `infrastructure` states; its arrays are not shared for writing."""
        self.infrastructure = infrastructure
        self.free: Floats = np.array(infrastructure.free, order="F")
        """float64[N, R], free amounts."""
        self.bandwidth_free: Floats = infrastructure.bandwidth_free.copy()
        """float64[N], free bandwidth."""
        links = infrastructure.links
        self.link_free: Floats = np.zeros(0) if links is None else links.free.copy()
        """float64[P], free bandwidth of each physical link."""
        self.smallest: Floats = np.full(len(infrastructure.resources), np.inf)
        """float64[R], smallest positive request seen so far: less than that on a node is waste."""
        self.typical: Floats = np.zeros(len(infrastructure.resources))
        """float64[R], mean request of the components seen so far."""
        self._seen = 0
        self.named_score: Floats = np.zeros(infrastructure.size)
        """float64[N], how many committed components named the node, each spread over the nodes it named."""
        self.has_named = False
        """Whether any committed component had a selective selector."""
        self.selective = max(1.0, _SELECTIVE * infrastructure.size)
        """A selector that names more nodes than that claims none of them."""
        share = 1.0 - infrastructure.threshold
        self._reserve = np.asfortranarray(infrastructure.capacity * share[:, None])
        limited = np.where(np.isfinite(infrastructure.bandwidth_capacity), infrastructure.bandwidth_capacity, 0.0)
        self._bandwidth_reserve = limited * share
        self.has_thresholds = bool((share > 0).any())
        """Whether any node keeps something back."""
        self.has_max_unit = bool(np.isfinite(infrastructure.max_unit).any())
        """Whether any node limits its largest component."""
        self.has_distance = bool((infrastructure.location_cost > 0).any())
        """Whether network costs differ from 0 at all."""
        self.symmetric = bool((infrastructure.location_cost == infrastructure.location_cost.T).all())
        """Whether network costs are the same in both directions."""
        self.has_price = bool(infrastructure.price.any())
        """Whether anybody charges for resources."""
        sums = np.sort(infrastructure.price @ np.arange(1.0, len(infrastructure.resources) + 1.0))
        self.has_equal_prices = bool((sums[1:] == sums[:-1]).any())
        """Whether two nodes charge the same."""
        self.version = 0
        """Counts changes of free amounts."""

    @property
    def reserve(self) -> Floats:
        """float64[N, R], what the threshold keeps back from components that do not name the node."""
        return self._reserve

    @property
    def bandwidth_reserve(self) -> Floats:
        """float64[N], what the threshold keeps back from the node's bandwidth."""
        return self._bandwidth_reserve

    def copy(self) -> InfrastructureState:
        """Return an independent copy, for what-if questions."""
        twin = InfrastructureState(self.infrastructure)
        twin.free = self.free.copy(order="F")
        twin.bandwidth_free = self.bandwidth_free.copy()
        twin.link_free = self.link_free.copy()
        twin.smallest = self.smallest.copy()
        twin.typical, twin._seen = self.typical.copy(), self._seen
        twin.named_score, twin.has_named = self.named_score.copy(), self.has_named
        twin.version = self.version
        return twin

    def adopt(self, previous: InfrastructureState) -> None:
        """Keep what `previous` learned about components, as far as nodes and resources are the same in number."""
        if len(previous.smallest) == len(self.smallest):
            self.smallest = previous.smallest.copy()
            self.typical, self._seen = previous.typical.copy(), previous._seen
        if len(previous.named_score) == len(self.named_score):
            self.named_score, self.has_named = previous.named_score.copy(), previous.has_named

    def set_free(self, node: int, free: npt.ArrayLike, *, bandwidth_free: float | None = None) -> None:
        """Overwrite the free amounts of one node, e.g. after a pod of another scheduler came or went."""
        self.free[node] = free
        if bandwidth_free is not None:
            self.bandwidth_free[node] = bandwidth_free
        self.version += 1

    def commit(self, application: Application, assignment: npt.ArrayLike) -> None:
        """Take what `application` uses under `assignment` (int[J], -1 for not placed) from the free amounts."""
        self._apply(application, np.asarray(assignment, dtype=np.int64), -1.0)
        self.observe(application)

    def release(self, application: Application, assignment: npt.ArrayLike) -> None:
        """Give back what `commit` of the same application and assignment took."""
        self._apply(application, np.asarray(assignment, dtype=np.int64), 1.0)

    def observe(self, application: Application) -> None:
        """Learn what components look like; `commit` does it by itself."""
        positive = np.where(application.requests > 0, application.requests, np.inf)
        np.minimum(self.smallest, positive.min(axis=0, initial=np.inf), out=self.smallest)
        count = application.size
        if count:
            self._seen += count
            self.typical += (application.requests.sum(axis=0) - count * self.typical) / self._seen
        if application.named is not None:
            masks, sizes = application.named.masks, application.named.masks.sum(axis=1)
            uses = np.bincount(application.named.group, minlength=len(masks)) / np.maximum(sizes, 1)
            self.named_score += np.where(sizes <= self.selective, uses, 0.0) @ masks
            self.has_named = bool(self.named_score.any())

    def _apply(self, application: Application, assignment: Ints, sign: float) -> None:
        placed = assignment >= 0
        np.add.at(self.free, assignment[placed], sign * application.requests[placed])
        first, second, demand = _cut_edges(application, assignment)
        np.add.at(self.bandwidth_free, first, sign * demand)
        np.add.at(self.bandwidth_free, second, sign * demand)
        links = self.infrastructure.links
        if links is not None:
            for one, other, amount in zip(first.tolist(), second.tolist(), demand.tolist(), strict=True):
                for link in links.path(one, other, self.infrastructure.location):
                    self.link_free[link] += sign * amount
        self.version += 1


def _cut_edges(application: Application, assignment: Ints) -> tuple[Ints, Ints, Floats]:
    """Return node, node and demand of every edge and placed peer whose two ends are placed on different nodes."""
    placed_peers = application.placed_peers
    first = np.concatenate([assignment[application.edges[:, 0]], assignment[placed_peers.component]])
    second = np.concatenate([assignment[application.edges[:, 1]], placed_peers.node])
    demand = np.concatenate([application.bandwidth, placed_peers.bandwidth])
    cut = (first != second) & (first >= 0) & (second >= 0) & (demand > 0)
    return first[cut], second[cut], demand[cut]
