"""The conditions Ordered and Placed: their status, reasons and messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from berth.api.appgroup import CONDITION_ORDERED, CONDITION_PLACED
from berth.api.conditions import ConditionStatus, ConditionUpdate
from berth.api.labels import LABEL_WORKLOAD
from berth.api.text import counted, listed
from controllers.appgroup.plan import SpecPlan
from controllers.appgroup.pods import PodFacts

_PROBLEMS_LISTED: Final = 5
"""Most problems or cycles that a message lists."""
_PATH_LISTED: Final = 12
"""Most workloads of a cycle that a message lists."""


def ordered(plan: SpecPlan) -> ConditionUpdate:
    """Return the condition Ordered."""
    if not plan.valid:
        problems = listed(plan.problems, limit=_PROBLEMS_LISTED, separator="; ")
        return ConditionUpdate(CONDITION_ORDERED, ConditionStatus.FALSE, plan.reason, problems)
    text = f"{counted(len(plan.order), 'workload')} ordered by {plan.algorithm}"
    reason = "Ordered"
    if plan.cycles:
        reason = "CyclesCondensed"
        text = (
            f"{text}; {describe_cycles(plan.cycles)}; workloads that depend on each other stand together in "
            "declaration order; remove a dependency of each cycle if their order matters"
        )
    if plan.remarks:
        reason = "SpecProblems"
        text = f"{text}; {listed(plan.remarks, limit=_PROBLEMS_LISTED, separator='; ')}"
    return ConditionUpdate(CONDITION_ORDERED, ConditionStatus.TRUE, reason, text)


def describe_cycles(cycles: Sequence[Sequence[str]]) -> str:
    """Return the cycles as text, such as ``dependency cycle cart -> checkout -> cart``."""
    noun = "dependency cycle" if len(cycles) == 1 else f"{len(cycles)} dependency cycles:"
    return f"{noun} {listed([_path(cycle) for cycle in cycles], limit=_PROBLEMS_LISTED)}"


def placed(plan: SpecPlan, by_workload: Mapping[str, Sequence[PodFacts]]) -> ConditionUpdate:
    """Return the condition Placed.

    Args:
        plan: what the spec comes to.
        by_workload: the group's pods by the selector that their label names.
    """
    status, reason, message = _placed(plan, by_workload)
    return ConditionUpdate(CONDITION_PLACED, status, reason, message)


def _placed(plan: SpecPlan, by_workload: Mapping[str, Sequence[PodFacts]]) -> tuple[ConditionStatus, str, str]:
    if not plan.valid:
        return ConditionStatus.UNKNOWN, plan.reason, "The spec is not valid; see the condition Ordered"
    strangers = [pod.name for selector, pods in by_workload.items() if selector not in plan.workloads for pod in pods]
    members = [pod for selector in plan.workloads for pod in by_workload.get(selector, ()) if not pod.finished]
    waiting = [pod.name for pod in members if not pod.node and not pod.deleting]
    settled = {pod.workload for pod in members if not pod.deleting}
    empty = [selector for selector in plan.workloads if selector not in settled]
    note = ""
    if strangers:
        note = (
            f"; {counted(len(strangers), 'pod')} with a workload label that names no workload of this group: "
            f"{listed(strangers)}; correct the label {LABEL_WORKLOAD}"
        )
    if not members:
        return ConditionStatus.FALSE, "NoPods", f"No pod carries the labels of this group{note}"
    progress = f"{sum(1 for pod in members if pod.node)} of {max(plan.num_members, len(members))} members on a node"
    if waiting:
        text = f"{progress}; {counted(len(waiting), 'pod')} without a node: {listed(waiting)}{note}"
        return ConditionStatus.FALSE, "PodsWaiting", text
    if empty:
        text = f"{progress}; {counted(len(empty), 'workload')} without a pod: {listed(empty)}{note}"
        return ConditionStatus.FALSE, "WorkloadsWithoutPods", text
    return ConditionStatus.TRUE, "AllPodsBound", f"{progress}; no pod waits{note}"


def _path(cycle: Sequence[str]) -> str:
    shown = list(cycle)
    if len(shown) > _PATH_LISTED + 1:
        left_out = len(shown) - 1 - _PATH_LISTED
        shown = [*shown[:_PATH_LISTED], f"({left_out} more)", shown[-1]]
    return " -> ".join(shown)
