"""What a round of pinning has found and done, for those who tell of it. No I/O."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.node.pinning.reconciler import Finding
from agents.node.pinning.wanted import PodWish


@dataclass(slots=True, kw_only=True)
class PodState:
    """What has become of a pod that is wanted."""

    wish: PodWish
    """the pod, and what is wanted"""
    cpus: frozenset[int] = frozenset()
    """CPUs that were asked for its containers"""
    effective_cpus: frozenset[int] = frozenset()
    """CPUs that its containers may use, of all together"""
    findings: dict[str, tuple[Finding, str]] = field(default_factory=dict)
    """by name of the container, what there is to say and why"""

    @property
    def pinned(self) -> bool:
        """Whether every container has what is wanted; a pod without containers has not."""
        return bool(self.findings) and all(found is Finding.IN_EFFECT for found, _ in self.findings.values())

    @property
    def settled(self) -> bool:
        """Whether nothing is to be done about it until something else is wanted or seen: it is pinned, or observed."""
        return self.pinned or all(found is Finding.OBSERVED for found, _ in self.findings.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What one round has found."""

    pods: tuple[PodState, ...] = ()
    """pods that are wanted"""
    problem: str = ""
    """the first that keeps something from being pinned or given back, as a full disk; empty: nothing does"""
    silence: str = ""
    """why the runtime did not answer; empty: it did"""
    foreign: str = ""
    """whose CPUs somebody else has set; empty: nobody's. No other container is pinned then"""
