"""What the scheduling cycle has to tell about pods and AppGroups: reason, text, and whether it is a warning.

The placement controller makes Events of them, ``berth plan`` prints them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from berth.api.text import cost_text, counted, listed, share_text
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.scheduling.annotations import write_rejections
from berth.scheduling.decision import Failure
from berth.scheduling.group_summary import GroupSummary

MAX_NAMES = 3
"""Workloads that are named in one text."""

ABSENT = "NetworkTopologyAbsent"
"""Reason of :func:`topology_absent`."""
CUT_SHORT = "PlanningCutShort"
"""Reason of :func:`planning_cut_short`."""


@dataclass(frozen=True, slots=True)
class Message:
    """One thing to tell."""

    reason: str
    """one word for programs, the reason of the Event"""
    text: str
    """a sentence for people"""
    warning: bool = False
    """whether somebody should act"""
    rejections: str = ""
    """why no node takes the pod, as the annotation ``berth.dev/rejections``"""
    lasting: str = ""
    """the text for places that need one which stays true while details of the other change; empty: the same"""


def failed_scheduling(failure: Failure) -> Message:
    """No node takes the pod for now."""
    return Message("FailedScheduling", failure.message, warning=True, rejections=write_rejections(failure))


def waiting_for_members(group: Group, *, present: int, missing: tuple[str, ...], seconds: float | None) -> Message:
    """The AppGroup is not complete yet; `seconds` None means that it waits as long as it takes."""
    what = f"; workloads without a pod: {listed(missing, limit=5)}" if missing else ""
    limit = "until they appear" if seconds is None else f"up to {seconds:.0f} s"
    return Message(
        "WaitingForMembers",
        f"AppGroup {group.key.name} has {present} of {group.members} pods{what}; waiting {limit}",
        lasting=f"AppGroup {group.key.name} is not complete; waiting {limit}; its Events say what is missing",
    )


def group_missing(namespace: str, name: str, *, seconds: float) -> Message:
    """The pod names an AppGroup that does not exist."""
    text = (
        f"AppGroup {name} does not exist in namespace {namespace}; after {seconds:.0f} s the "
        "pod is scheduled on its own; create the AppGroup or remove the label appgroup.diktyo.x-k8s.io"
    )
    return Message("AppGroupMissing", text, warning=True)


def group_unusable(group: Group) -> Message:
    """The pod's AppGroup cannot be read."""
    text = f"AppGroup {group.key.name} cannot be used; the pod is scheduled on its own: {group.problem}"
    return Message("AppGroupUnusable", text, warning=True)


def topology_absent(missing: str) -> Message:
    """The NetworkTopology that the configuration names is not there."""
    return Message(ABSENT, f"{missing}; create it or correct the configuration", warning=True)


def network_data_missing(costs: NetworkCosts, *, weights: bool, unserved: Sequence[str]) -> Message:
    """The first plan of an AppGroup is made without data that may have been applied with it.

    Args:
        costs: what it is made with.
        weights: whether computed weights are missing, or a NetworkTopology.
        unserved: workloads, by selector, whose calls no Service routes.
    """
    missing = []
    if weights and not costs.available:
        missing.append(costs.missing)
    elif weights:
        used = listed(costs.weight_sets)
        missing.append(
            f"no weights computed of NetworkTopology {costs.source} as it is, its conditions say why; {used} is used"
        )
    if unserved:
        missing.append(f"no Service selects pods of {listed(unserved, limit=5)}; calls go to all of their replicas")
    text = ". ".join(f"{part[:1].upper()}{part[1:]}" for part in missing)
    return Message("NetworkDataMissing", f"No longer waiting for network data. {text}")


def workload_unknown(group: Group, workload: str) -> Message:
    """The pod's workload label names no workload of its AppGroup."""
    text = (
        f"label appgroup.diktyo.x-k8s.io.workload={workload!r} is not a workload of AppGroup {group.key.name}; its "
        f"dependencies are ignored; use one of: {listed(group.selectors)}"
    )
    return Message("WorkloadUnknown", text, warning=True)


def group_placed(*, pods: int, nodes: int, summary: GroupSummary) -> Message:
    """The waiting pods of an AppGroup were planned together; the summary is of all its placed pods."""
    parts = [f"Placed {counted(pods, 'pod')} on {counted(nodes, 'node')}"]
    if summary.edges:
        parts.append(
            f"mean edge cost {cost_text(summary.mean_edge_cost)} over {counted(len(summary.edges), 'edge')}, "
            f"{share_text(summary.cross_zone_share)} of the calls leave their zone"
        )
    left = summary.survival
    if left.replicated:
        parts.append(
            f"{left.survive_node} of {left.replicated} replicated workloads survive a node"
            f"{_but(left.lost_with_node, left.survive_node)}, "
            f"{left.survive_zone} of {left.replicated} a zone{_but(left.lost_with_zone, left.survive_zone)}"
        )
    return Message("Placed", "; ".join(parts))


def _but(workloads: Sequence[str], others: int) -> str:
    """Those that do not survive by name, unless that is all of many."""
    named = workloads and (others or len(workloads) <= MAX_NAMES)
    return f" (not {listed(workloads, limit=MAX_NAMES)})" if named else ""


def planning_cut_short(*, seconds: float) -> Message:
    """The time budget of a plan was over."""
    text = (
        f"Planning stopped after {seconds:g} s with the best plan so far; raise gang.planningSeconds in the placement "
        "configuration if the group should be planned longer"
    )
    return Message(CUT_SHORT, text, warning=True)


def group_not_placed(failure: Failure) -> Message:
    """The AppGroup does not fit as a whole."""
    text = f"Pod {failure.pod.metadata.name} has no node: {failure.message.removesuffix('.')}"
    return Message("NotPlaced", text, warning=True)
