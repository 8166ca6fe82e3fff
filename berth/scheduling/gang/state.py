"""What changes while the cluster lives: free amounts, and what the heuristics have learned about applications.

One `InfrastructureState` lives as long as its set of nodes; its owner writes the free amounts before each plan.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from berth.scheduling.gang.exact import ExactAmounts
    from berth.scheduling.gang.problem import Application, Infrastructure

Floats = npt.NDArray[np.float64]

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
        self.exact: ExactAmounts
        """The same as whole numbers, for who must not round; only where it was made from a cluster."""
        self.named_score: Floats = np.zeros(infrastructure.size)
        """float64[N], how many placed components named the node, each spread over the nodes it named."""
        self.has_named = False
        """Whether any placed component had a selective selector."""
        self.selective = max(1.0, _SELECTIVE * infrastructure.size)
        """A selector that names more nodes than that claims none of them."""
        share = 1.0 - infrastructure.threshold
        self.reserve: Floats = np.asfortranarray(infrastructure.capacity * share[:, None])
        """float64[N, R], what the threshold keeps back from components that do not name the node."""
        limited = np.where(np.isfinite(infrastructure.bandwidth_capacity), infrastructure.bandwidth_capacity, 0.0)
        self.bandwidth_reserve: Floats = limited * share
        """float64[N], what the threshold keeps back from the node's bandwidth."""
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

    def snapshot(self) -> InfrastructureState:
        """The same with free amounts of its own, for a plan in turns: its owner goes on writing these."""
        taken = copy(self)
        for name in ("free", "bandwidth_free", "link_free", "reserve", "bandwidth_reserve"):
            setattr(taken, name, getattr(self, name).copy(order="K"))
        for name in ("smallest", "typical", "named_score"):
            setattr(taken, name, getattr(self, name).copy())
        return taken

    def adopt(self, previous: InfrastructureState) -> None:
        """Keep what `previous` learned about components, as far as nodes and resources are the same in number."""
        if len(previous.smallest) == len(self.smallest):
            self.smallest = previous.smallest.copy()
            self.typical, self._seen = previous.typical.copy(), previous._seen
        if len(previous.named_score) == len(self.named_score):
            self.named_score, self.has_named = previous.named_score.copy(), previous.has_named

    def observe(self, application: Application) -> None:
        """Learn what components look like from an application that was placed."""
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
