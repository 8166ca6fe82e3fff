"""Why pods of a joint plan have no node, in the words of kube-scheduler's FailedScheduling Event.

The gang engine sees the filters only as one mask: their own rejections are put back here.
"""

from __future__ import annotations

from collections.abc import Sequence

from berth.network.groups import Group
from berth.scheduling.decision import Failure
from berth.scheduling.framework.rejection import Rejection, merged, sentence
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.outcome import Cause, Unplaced
from berth.scheduling.gang.placement_state import FILTERS
from berth.scheduling.plugins.pipeline import FilterResult


def joint_failures(
    group: Group, unplaced: Sequence[Unplaced], candidates: Sequence[Candidate], results: Sequence[FilterResult]
) -> list[Failure]:
    """Failures of the components that the engine left out, those that no node takes before those that wait for them.

    Args:
        group: their AppGroup.
        unplaced: the engine's answer; components are indices into the other two.
        candidates: the pods.
        results: what the filters said about each.
    """
    names = [candidate.info.pod.metadata.name for candidate in candidates]
    messages: dict[int, str] = {}
    failures: list[Failure] = []
    for item in sorted(unplaced, key=lambda item: item.cause is Cause.WAITS_FOR):
        result = results[item.component]
        rejections = _with_filters(item.rejections, result)
        if item.cause is Cause.NO_NODE_FITS:
            message = sentence(rejections, feasible=0, nodes=result.nodes)
        elif item.cause is Cause.WAITS_FOR and item.other is not None:
            other = f"{names[item.other]}: {messages[item.other]}"
            message = f"AppGroup {group.key.name} is placed all or nothing and waits for pod {other}"
        elif item.cause is Cause.CONTRADICTION and item.other is not None:
            message = f"must and may not share a node with pod {names[item.other]}"
        else:
            message = "no joint placement was found"
        messages[item.component] = message
        failures.append(_failure(group, candidates[item.component], message, rejections))
    return failures


def _with_filters(rejections: Sequence[Rejection], result: FilterResult) -> tuple[Rejection, ...]:
    """Return the rejections with those of the filters in place of their mask."""
    found: list[Rejection] = []
    for item in rejections:
        if item.plugin == FILTERS:
            found.extend(_of_filters(result))
        else:
            found.append(item)
    return merged(found)


def _of_filters(result: FilterResult) -> list[Rejection]:
    return [Rejection(FILTERS, reason, count) for reason, count in result.rejected.items()]


def _failure(group: Group, candidate: Candidate, message: str, rejections: Sequence[Rejection]) -> Failure:
    rejected: dict[str, int] = {}
    for item in rejections:
        rejected[item.reason] = rejected.get(item.reason, 0) + item.count
    return Failure(candidate.info.pod, message, rejected, group.key)
