"""What is decided upon, and what can come of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from berth.api.latencypolicy import MAX_NODES, Exploration, LatencyPolicySpec, NodeState, NodeStatus
from berth.scheduling.latency.knowledge import is_rejected


class Pod(NamedTuple):
    """A pod of the workload."""

    name: str
    """its name"""
    node: str
    """where it is"""
    ready: bool = True
    """whether it serves"""
    held: bool = False
    """whether it is to stay, whatever its users have"""

    @property
    def movable(self) -> bool:
        """Whether it may go for another: it serves, as its status says, which may say so of one that has no node."""
        return self.ready and bool(self.node) and not self.held


class View(NamedTuple):
    """The workload and the nodes as they are."""

    pods: tuple[Pod, ...]
    """pods that are there and not about to go"""
    replicas: int
    """how many there should be"""
    nodes: tuple[str, ...]
    """all nodes that exist"""
    candidates: tuple[str, ...]
    """those that would take one more pod now, best first where latency does not decide; none without users"""
    active: bool = True
    """whether users were heard of lately"""
    settles: timedelta = timedelta()
    """how long a new pod has to be ready before the one that it replaces goes"""
    asked: int = 0
    """how many the workload asks for now, with those of moves: what there are fewer comes yet, wherever it may"""
    refused: str = ""
    """why the workload gets no further pods, as by a ResourceQuota; empty: it gets them"""


class Reason(StrEnum):
    """Why a pod moves."""

    BEYOND_HARD_LIMIT = "BeyondHardLimit"
    BEYOND_SOFT_LIMIT = "BeyondSoftLimit"
    NEARER = "Nearer"
    EXPLORING = "Exploring"
    MORE_USERS = "MoreUsers"


LIMIT_REASONS = frozenset({Reason.BEYOND_HARD_LIMIT, Reason.BEYOND_SOFT_LIMIT})
"""Reasons that end when the pod is within its limits after all."""


class Probe(NamedTuple):
    """Have the agents of nodes measure their round trips to the users."""

    nodes: tuple[str, ...]
    """their names"""


class Steer(NamedTuple):
    """Have the router send the next request of a user through a node."""

    node: str
    """its name"""


class Create(NamedTuple):
    """Create one more pod."""

    node: str
    """where"""
    instead_of: str
    """pod that goes when it is ready"""
    reason: Reason
    """why, for programs"""
    message: str
    """why, for people"""


class Evict(NamedTuple):
    """Evict a pod, through the eviction API; again as long as it is there."""

    pod: str
    """its name"""
    message: str
    """why, for people"""


Action = Probe | Steer | Create | Evict


class Wish(NamedTuple):
    """A move that should be made."""

    pod: Pod
    """pod that should go"""
    node: str
    """where another should be instead"""
    reason: Reason
    """why, for programs"""
    message: str
    """why, for people"""
    urgent: bool
    """whether it waits for no cool-down: a limit is broken, or nodes are being explored"""
    before: int | None = None
    """median in microseconds of those who are to gain by it; None: that of the pod's node"""
    expected: int | None = None
    """what they should have then; None: that of the other node"""
    users: int | None = None
    """how many they are; None: all users count as one"""


class Situation(NamedTuple):
    """What an objective goes by."""

    spec: LatencyPolicySpec
    """what is wanted"""
    nodes: Mapping[str, NodeStatus]
    """what is known, by node"""
    view: View
    """what is there"""
    now: datetime
    """the time"""
    awaiting: bool
    """whether nodes may become known in a moment: agents have been asked to measure, or routers are awaited"""

    def known(self, node: str) -> NodeStatus:
        """Return what is known of a node."""
        return self.nodes.get(node) or NodeStatus(node=node)

    def free(self) -> list[NodeStatus]:
        """Return nodes that a pod may go to, those without a pod of the workload; not those remembered as bad."""
        occupied = {pod.node for pod in self.view.pods}
        names = (name for name in self.view.candidates if name not in occupied)
        return [self.known(name) for name in names if not is_rejected(self.nodes.get(name), self.now)]

    def unmeasured(self, free: Sequence[NodeStatus]) -> list[NodeStatus]:
        """Return nodes of `free` that nobody has measured; none of those that a full status has no place for.

        They were measured and are farther, or there are too many to have pods go to each.
        """
        full = len(self.nodes) >= MAX_NODES
        return [
            there for there in free if there.state is NodeState.UNKNOWN and not (full and there.node not in self.nodes)
        ]

    def may(self, exploration: Exploration) -> bool:
        """Return whether nodes may become known that way."""
        return exploration in self.spec.exploration

    def movable(self) -> list[tuple[Pod, NodeStatus]]:
        """Return pods that may go and whose node is known, farthest first."""
        pods = [(pod, self.known(pod.node)) for pod in self.view.pods if pod.movable]
        measured = [(pod, known) for pod, known in pods if known.state is not NodeState.UNKNOWN]
        return sorted(measured, key=lambda each: (-far(each[1]), each[0].name))


def far(known: NodeStatus) -> int:
    """Return the median round trip of a node that is known, in microseconds."""
    return known.p50_microseconds or 0


def told(known: NodeStatus) -> str:
    """Return a node and its round trip for people."""
    return f"{known.node} at {far(known) / 1000:.1f} ms"
