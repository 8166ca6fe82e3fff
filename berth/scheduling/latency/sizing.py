"""How many pods there should be for the users of a policy, and which one goes where fewer would do."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from math import inf

from berth.api.latencypolicy import LatencyPolicySpec, LatencyPolicyStatus
from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.coverage import best_nodes, worth
from berth.scheduling.latency.knowledge import whole
from berth.scheduling.latency.situation import Pod, View
from berth.scheduling.latency.user_table import Costs


def replicas(costs: Costs, candidates: Sequence[int], spec: LatencyPolicySpec, now_there: int) -> int:
    """Return how many pods there should be: as few as serve as many users within the limit, and a free one.

    The free one is for users who come. Without `maxReplicas` the number is left to others.

    Args:
        costs: how far users are.
        candidates: columns of nodes that pods may be on.
        spec: what is wanted.
        now_there: how many there should be so far.
    """
    most, least = spec.users.max_replicas, spec.users.min_replicas
    if most is None:
        return now_there
    if not costs.users or not candidates:
        return min(least, most)
    limit = Limits.of(spec).hard
    fewest = worth(costs.microseconds, candidates, limit).beyond

    def beyond(count: int) -> int:
        nodes = best_nodes(costs.microseconds, candidates, count, limit)
        return worth(costs.microseconds, nodes, limit).beyond

    # Each further pod serves more, until all are served that can be: so twice as many are tried, and then halfway.
    few, needed = 0, 1
    while beyond(needed) > fewest:
        if needed == most:
            return most
        few, needed = needed, min(2 * needed, most)
    while needed - few > 1:
        middle = (few + needed) // 2
        few, needed = (few, middle) if beyond(middle) <= fewest else (middle, needed)
    return min(most, max(least, needed + 1))


def resized(
    status: LatencyPolicyStatus, spec: LatencyPolicySpec, needed: int, now_there: int, now: datetime
) -> tuple[LatencyPolicyStatus, int]:
    """Return how many pods there should be from now on, and the status that remembers since when fewer would do.

    More come at once. One goes when fewer have been enough for as long as a user counts: who comes back within that
    time finds the pod that was there.

    Args:
        status: what is remembered.
        spec: what is wanted.
        needed: what `replicas` says.
        now_there: how many there should be so far.
        now: the time.
    """
    if needed >= now_there:
        return status.model_copy(update={"fewer_time": None}), needed
    since = status.fewer_time or whole(now)
    status = status.model_copy(update={"fewer_time": since})
    return status, now_there - (now >= shrinks_at(since, spec))


def shrinks_at(since: datetime, spec: LatencyPolicySpec) -> datetime:
    """Return when a pod goes if fewer would do since then."""
    return since + timedelta(seconds=spec.users.expiry_seconds)


def dispensable(view: View, costs: Costs, spec: LatencyPolicySpec) -> Pod | None:
    """Return the pod that users miss least; None where none may go."""
    number, limit = {node: at for at, node in enumerate(view.nodes)}, Limits.of(spec).hard
    pods = sorted((pod for pod in view.pods if not pod.held), key=lambda pod: (pod.ready, pod.name))
    if len(view.pods) < 2 or not pods:
        return None
    if not pods[0].ready or not costs.users:
        return pods[0]

    def missed(pod: Pod) -> tuple[int, float]:
        rest = [number[other.node] for other in view.pods if other is not pod and other.node in number]
        return worth(costs.microseconds, rest, limit) if rest else (len(costs.users), inf)

    return min(pods, key=missed)
