"""Deployments as kube-controller-manager rolls them out, in counts of pods: who comes and who goes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from bench.replicas.cluster import deletion_cost


@dataclass(slots=True, eq=False)
class Pod:
    """A pod of a Deployment."""

    revision: str
    uid: str
    created: float
    """seconds"""
    manifest: dict[str, Any]
    node: str = ""
    """empty while it waits"""
    ready: float | None = None
    """since when, in seconds; None until then"""


@dataclass(slots=True)
class Deployment:
    """One Deployment, with the pods that it has and how many of each revision it wants."""

    name: str
    replicas: int
    surge: int
    """pods above `replicas` at the most"""
    unavailable: int
    """pods below `replicas` that are ready, at the most; not 0 with a surge of 0"""
    revision: str
    """the one that it is to have"""
    wanted: dict[str, int] = field(default_factory=dict)
    """pods by revision that its ReplicaSets want, the oldest first"""
    pods: list[Pod] = field(default_factory=list)

    def begin(self, revision: str) -> None:
        """Give it another template, or an earlier one again."""
        self.revision = revision

    def scale(self, replicas: int) -> None:
        """Give it so many replicas; in the middle of a rollout, its revisions in proportion."""
        total = sum(self.wanted.values())
        allowed = replicas + (self.surge if len([n for n in self.wanted.values() if n]) > 1 else 0)
        self.replicas = replicas
        largest = max(self.wanted, key=lambda name: self.wanted[name])
        more = 0
        for name, count in self.wanted.items():
            if name != largest:
                self.wanted[name] = round(count * allowed / total)
                more += self.wanted[name]
        self.wanted[largest] = max(0, allowed - more)

    def step(self) -> bool:
        """Change what is wanted by one step of a rolling update; returns whether anything changed."""
        new, total = self.wanted.setdefault(self.revision, 0), sum(self.wanted.values())
        if new > self.replicas:
            self.wanted[self.revision] = self.replicas
            return True
        up = min(self.replicas + self.surge - total, self.replicas - new)
        if new < self.replicas and up > 0:
            self.wanted[self.revision] += up
            return True
        return self._let_go()

    def _let_go(self) -> bool:
        """Take old pods off, those first that are not ready; never more than may be unavailable."""
        ready = Counter(pod.revision for pod in self.pods if pod.ready is not None)
        least = self.replicas - self.unavailable
        new = self.wanted[self.revision]
        down = sum(self.wanted.values()) - least - max(0, new - ready[self.revision])
        changed = False
        for name in self.wanted:
            idle = min(max(0, self.wanted[name] - ready[name]), down)
            if name != self.revision and idle > 0:
                self.wanted[name] -= idle
                down -= idle
                changed = True
        spare = ready.total() - least
        for name in self.wanted:
            less = min(self.wanted[name], spare, down)
            if name != self.revision and less > 0:
                self.wanted[name] -= less
                spare, down = spare - less, down - less
                changed = True
        return changed

    def missing(self) -> list[str]:
        """Revisions of which a pod is to be created, each as often as that."""
        have = Counter(pod.revision for pod in self.pods)
        return [name for name, count in self.wanted.items() for _ in range(count - have[name])]

    def surplus(self) -> list[Pod]:
        """Pods that its ReplicaSets delete now, as they choose them.

        Those without a node go first, then those that are not ready, those with the least pod-deletion-cost, those that
        share their node with most others of the Deployment, the youngest, the ones with the lowest UID.
        """
        found: list[Pod] = []
        on = Counter(pod.node for pod in self.pods)
        for name in {pod.revision: 0 for pod in self.pods}:
            own = [pod for pod in self.pods if pod.revision == name]
            own.sort(
                key=lambda pod: (
                    bool(pod.node),
                    pod.ready is not None,
                    deletion_cost(pod.manifest),
                    -on[pod.node],
                    -pod.created,
                    pod.uid,
                )
            )
            found += own[: max(0, len(own) - self.wanted.get(name, 0))]
        return found

    @property
    def settled(self) -> bool:
        """Whether nothing but its own revision is left, all of it ready."""
        own: Sequence[Pod] = [pod for pod in self.pods if pod.revision == self.revision and pod.ready is not None]
        return len(own) == len(self.pods) == self.replicas
