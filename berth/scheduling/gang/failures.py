"""Why pods of a joint plan have no node: the gang engine's answer with the filters' own rejections put back.

The engine sees the filters only as one mask, and the pods not at all that it had no time for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from berth.kube.objects import Pod
from berth.network.groups import Group
from berth.scheduling.decision import Failure
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.framework.rejection import Rejection, merged
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.outcome import Cause, Unplaced
from berth.scheduling.gang.placement_state import FILTERS


def joint_failures(group: Group, unplaced: Sequence[Unplaced], candidates: Sequence[Candidate]) -> list[Failure]:
    """Failures of the components that the engine left out, those that no node takes before those that wait for them.

    Args:
        group: their AppGroup.
        unplaced: the engine's answer; components are indices into the candidates.
        candidates: the pods.
    """
    found: dict[int, Failure] = {}
    for item in sorted(unplaced, key=lambda item: item.cause is Cause.WAITS_FOR):
        candidate = candidates[item.component]
        found[item.component] = Failure(
            candidate.info.pod,
            group=group.key,
            nodes=candidate.result.nodes,
            rejections=_with_filters(item.rejections, candidate.result),
            waits_for=found[item.other] if item.other is not None else None,
            problem="no joint placement was found" if item.cause is Cause.NO_JOINT_PLACEMENT else "",
        )
    return list(found.values())


def rejected(pod: Pod, group: Group | None, result: FilterResult) -> Failure:
    """No node takes the pod, as the filters say."""
    return Failure(
        pod,
        group=group.key if group is not None else None,
        nodes=result.nodes,
        rejections=tuple(result.rejections),
        blocker=result.blocker or "",
    )


def unplanned(pod: Pod, group: Group | None) -> Failure:
    """The pod was not looked at for lack of time."""
    return Failure(pod, group=group.key if group is not None else None, unplanned=True)


def all_fail(group: Group, pods: Iterable[Pod], failures: Sequence[Failure]) -> tuple[Failure, ...]:
    """Add the pods that would fit but wait for the others."""
    named = {failure.pod.metadata.uid for failure in failures}
    waiting = (Failure(pod, group=group.key, waits_for=failures[0]) for pod in pods if pod.metadata.uid not in named)
    return (*failures, *waiting)


def _with_filters(rejections: Iterable[Rejection], result: FilterResult) -> tuple[Rejection, ...]:
    """The rejections with those of the filters in place of their mask."""
    return merged(own for item in rejections for own in (result.rejections if item.plugin == FILTERS else (item,)))
