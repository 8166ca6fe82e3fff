"""The published rules by name, and which of them a policy asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from berth.api.latencypolicy import LatencyPolicySpec, Objective, PublishedRule, Search
from berth.api.text import counted
from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.published import hard, hard_soft, minimum, search
from berth.scheduling.latency.published.search import Rule, Visited


class Mode(NamedTuple):
    """A published rule."""

    leave: Rule
    """which nodes a round leaves"""
    destination: Callable[[Sequence[Visited]], str]
    """where a pod goes then"""


RULES: Final = {
    PublishedRule.MINIMUM: Mode(minimum.leave, minimum.destination),
    PublishedRule.HARD: Mode(hard.leave, search.destination),
    PublishedRule.HARD_AND_SOFT: Mode(hard_soft.leave, search.destination),
}
"""The published rules by name."""


def rule_of(spec: LatencyPolicySpec) -> PublishedRule:
    """Return the rule for what a policy wants: its objective, then which limits it has."""
    if spec.objective is Objective.MINIMUM:
        return PublishedRule.MINIMUM
    limits = Limits.of(spec)
    return PublishedRule.HARD_AND_SOFT if limits.soft < limits.hard else PublishedRule.HARD


def who_decides(search: Search, spec: LatencyPolicySpec) -> str:
    """Return which rule decides and why, and how far it is, for people."""
    visited, left = len(search.visited), sum(each.left for each in search.visited)
    limits = Limits.of(spec)
    why = {
        PublishedRule.MINIMUM: "for objective Minimum",
        PublishedRule.HARD: f"for a hard limit of {limits.hard / 1000:.0f} ms alone",
        PublishedRule.HARD_AND_SOFT: f"for a soft limit of {limits.soft / 1000:.0f} ms",
    }[search.rule]
    far = f"{counted(visited, 'node')} visited, {left} left"
    return f"the published rule {search.rule} decides, {why}; {far}"
