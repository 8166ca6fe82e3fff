"""What the gang engine answers: where every component goes, what that costs, and why something is left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

import numpy as np
import numpy.typing as npt

from berth.scheduling.framework.rejection import Rejection

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Objective value of an assignment, recomputed from scratch."""

    cost: float
    """Weighted sum of all terms over all placed components."""
    terms: Mapping[str, Floats]
    """float64[J] for each of `network`, `price`, `bandwidth`, weighted, and for the costs of each plugin. The network
    cost of an edge is halved between its two components (towards a placed peer it counts in full), each end pays its
    own node's bandwidth price."""


class Cause(Enum):
    """What keeps a component from getting a node."""

    NO_NODE_FITS = auto()
    """Every node rejects it, as `Unplaced.rejections` says; there are none when there are no nodes."""
    WAITS_FOR = auto()
    """Some node takes it, but none takes another component of the application: `Unplaced.other`."""
    NO_JOINT_PLACEMENT = auto()
    """Each component alone finds a node; no placement of all of them was found."""


@dataclass(frozen=True, slots=True)
class Unplaced:
    """Why one component has no node."""

    component: int
    """Index of the component."""
    cause: Cause
    """What keeps it from getting a node."""
    rejections: tuple[Rejection, ...] = ()
    """Nodes by the rule that rejects them; a node counts for the first of its rules."""
    other: int | None = None
    """Index of the component that it waits for."""


@dataclass(frozen=True, slots=True)
class RunnerUp:
    """A node that was second best for a component while all others stay where they are."""

    node: int
    """Index of the node."""
    cost: float
    """What the component would cost there, edges to the others included."""
    terms: Mapping[str, float]
    """The same by term."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Result of one planning call."""

    assignment: Ints
    """int32[J], node of each component or -1."""
    cost: float
    """`Evaluation.cost` of the placed components."""
    terms: Mapping[str, Floats]
    """`Evaluation.terms`."""
    strategy: str
    """Name of the strategy that made the plan."""
    unplaced: tuple[Unplaced, ...] = ()
    """One entry per component without a node, in component order."""
    runner_ups: Mapping[int, tuple[RunnerUp, ...]] = field(default_factory=dict)
    """Up to three alternatives per component, best first; filled on request only."""

    @property
    def complete(self) -> bool:
        """Whether every component has a node."""
        return not self.unplaced
