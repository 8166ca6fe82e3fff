"""Why pods of a joint plan have no node, in the words of kube-scheduler's FailedScheduling Event.

The gang engine counts nodes by its own rules and sees the filters only as one mask: their reasons are put back here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from berth.network.groups import Group
from berth.scheduling.decision import Failure
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.outcome import Unplaced
from berth.scheduling.plugins.pipeline import FilterResult

_MASKED = "not allowed by the pod's rules"
_SHORT = "insufficient "


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
    stuck: list[Failure] = []
    waiting: list[Failure] = []
    for item in unplaced:
        pod, result = candidates[item.component].info.pod, results[item.component]
        if item.reason.startswith("0/"):
            rejected = _in_words(item, result)
            parts = ", ".join(sorted(f"{count} {reason}" for reason, count in rejected.items()))
            message = f"0/{result.nodes} nodes are available: {parts}."
            stuck.append(Failure(pod, message, rejected, group.key))
        else:
            waiting.append(Failure(pod, item.reason, item.rejected, group.key))
    if not stuck:
        return waiting
    first = stuck[0]
    for failure in waiting:
        message = (
            f"AppGroup {group.key[1]} is placed all or nothing and waits for pod "
            f"{first.pod.metadata.name}: {first.message}"
        )
        stuck.append(Failure(failure.pod, message, failure.rejected, group.key))
    return stuck


def _in_words(item: Unplaced, result: FilterResult) -> dict[str, int]:
    """Nodes per reason: the filters' reasons in place of their mask, and lack of room as kube-scheduler words it."""
    found: Counter[str] = Counter()
    for rule, count in item.rejected.items():
        if rule == _MASKED:
            found.update(result.rejected)
        elif rule.startswith(_SHORT):
            found[f"Insufficient {rule.removeprefix(_SHORT)}"] += count
        else:
            found[f"node(s) with {rule}"] += count
    return dict(found)
