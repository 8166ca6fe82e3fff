"""What the conditions say: status, reason and message of Ordered and Placed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from berth.api.conditions import ConditionStatus
from controllers.appgroup.plan import SpecPlan
from controllers.appgroup.pods import PodFacts

REASON_ORDERED: Final = "Ordered"
"""The order follows the dependencies."""
REASON_CYCLES: Final = "CyclesCondensed"
"""The order follows the dependencies except inside cycles, whose workloads stand next to each other."""
REASON_PLACED: Final = "AllPodsBound"
"""Every workload has a pod on a node and no pod waits."""
REASON_NO_PODS: Final = "NoPods"
"""The group has no pods."""
REASON_WORKLOADS_MISSING: Final = "WorkloadsWithoutPods"
"""Some workloads have no pod at all."""
REASON_WAITING: Final = "PodsWaiting"
"""Some pods have no node yet."""

_SHOWN: Final = 5
"""Most problems, cycles or names that a message lists."""
_PATH_SHOWN: Final = 12
"""Most workloads of a cycle that a message lists."""


class Words(NamedTuple):
    """A condition without its times."""

    status: ConditionStatus
    """True, False or Unknown"""
    reason: str
    """one CamelCase word"""
    message: str
    """a sentence for people"""


def ordered_words(plan: SpecPlan) -> Words:
    """Return what the condition Ordered says."""
    if not plan.valid:
        return Words(ConditionStatus.FALSE, plan.reason, _listed(plan.problems, separator="; "))
    text = f"{_count(len(plan.order), 'workload')} ordered by {plan.algorithm}"
    if not plan.cycles:
        return Words(ConditionStatus.TRUE, REASON_ORDERED, text)
    return Words(
        ConditionStatus.TRUE,
        REASON_CYCLES,
        f"{text}; {describe_cycles(plan.cycles)}; workloads that depend on each other stand together in declaration "
        "order; remove a dependency of each cycle if their order matters",
    )


def describe_cycles(cycles: Sequence[Sequence[str]]) -> str:
    """Return the cycles in words, such as ``dependency cycle cart -> checkout -> cart``."""
    noun = "dependency cycle" if len(cycles) == 1 else f"{len(cycles)} dependency cycles:"
    return f"{noun} {_listed([_path(cycle) for cycle in cycles], separator=', ')}"


def placed_words(plan: SpecPlan, by_workload: Mapping[str, Sequence[PodFacts]]) -> Words:
    """Return what the condition Placed says.

    Args:
        plan: what the spec comes to.
        by_workload: the group's pods by the selector that their label names.
    """
    if not plan.valid:
        return Words(ConditionStatus.UNKNOWN, plan.reason, "the spec is not valid, see the condition Ordered")
    strangers = [pod.name for selector, pods in by_workload.items() if selector not in plan.workloads for pod in pods]
    members = [pod for selector in plan.workloads for pod in by_workload.get(selector, ()) if not pod.finished]
    waiting = [pod.name for pod in members if not pod.node and not pod.deleting]
    bound = sum(1 for pod in members if pod.node)
    settled = {pod.workload for pod in members if not pod.deleting}
    empty = [selector for selector in plan.workloads if selector not in settled]
    note = _strangers(strangers)
    if not members:
        return Words(ConditionStatus.FALSE, REASON_NO_PODS, f"no pod carries the labels of this group{note}")
    progress = f"{bound} of {plan.num_members} members on a node"
    if waiting:
        text = f"{progress}; {_count(len(waiting), 'pod')} without a node: {_listed(waiting, separator=', ')}"
        return Words(ConditionStatus.FALSE, REASON_WAITING, f"{text}{note}")
    if empty:
        text = f"{progress}; {_count(len(empty), 'workload')} without a pod: {_listed(empty, separator=', ')}"
        return Words(ConditionStatus.FALSE, REASON_WORKLOADS_MISSING, f"{text}{note}")
    return Words(ConditionStatus.TRUE, REASON_PLACED, f"{progress}; no pod waits{note}")


def _strangers(names: Sequence[str]) -> str:
    if not names:
        return ""
    return (
        f"; {_count(len(names), 'pod')} with a workload label that names no workload of this group: "
        f"{_listed(names, separator=', ')}; correct the label appgroup.diktyo.x-k8s.io.workload"
    )


def _path(cycle: Sequence[str]) -> str:
    shown = list(cycle)
    if len(shown) > _PATH_SHOWN + 1:
        left_out = len(shown) - 1 - _PATH_SHOWN
        shown = [*shown[:_PATH_SHOWN], f"({left_out} more)", shown[-1]]
    return " -> ".join(shown)


def _listed(items: Iterable[str], *, separator: str) -> str:
    items = list(items)
    shown = separator.join(items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown}{separator}and {len(items) - _SHOWN} more"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
