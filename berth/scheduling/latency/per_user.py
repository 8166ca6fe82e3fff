"""What to do next for the pods of a policy in which each user counts.

Pods together serve all users, so one plan is made for them: the nodes from which most users are within the limit, and
then all as near as possible. It is carried out a pod at a time, and kept until another is better by enough. Users are
routed to the nearest pod that is there. Where the number of pods follows the users, more come where the plan has a
node without one, and one goes that users miss least.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

import numpy as np

from berth.api.latencypolicy import MAX_PODS, Association, LatencyPolicySpec, LatencyPolicyStatus
from berth.scheduling.latency import gains, knowledge, moves, sizing
from berth.scheduling.latency.association import associate
from berth.scheduling.latency.classification import Limits, margin
from berth.scheduling.latency.coverage import Worth, best_nodes, extended, worth
from berth.scheduling.latency.decision import begin, carry_on, evict_one, has_room, without_evicted
from berth.scheduling.latency.set_back import as_of
from berth.scheduling.latency.situation import Action, Evict, Reason, View, Wish
from berth.scheduling.latency.user_table import ENOUGH, Costs, UserTable

CLEARLY: Final = 0.1
"""Share of users that has to come within the limit before pods move for that: one at least, from clearly beyond it."""
_SECOND: Final = timedelta(seconds=1)


class Decision(NamedTuple):
    """What follows from what is known."""

    status: LatencyPolicyStatus
    """what is to be remembered; written before the actions are carried out"""
    actions: tuple[Action, ...]
    """what is to be done"""
    wish: Wish | None
    """move that should be made, begun or not"""
    replicas: int
    """how many pods there should be"""
    leaving: str | None
    """pod that goes before there is one less, if fewer are wanted"""
    served: tuple[int, ...]
    """round trip of each user to the pod that serves him, in microseconds, of those who are measured"""
    look_again: datetime | None
    """when time alone may change something; None: only news can"""


def decide(
    status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, table: UserTable, now: datetime
) -> Decision:
    """Return what to do next.

    Args:
        status: what is known and was done.
        spec: what is wanted.
        view: the workload and the nodes as they are.
        table: the users.
        now: the time, in UTC.
    """
    expiry = timedelta(seconds=spec.users.expiry_seconds)
    table.expire(now, expiry)
    status = knowledge.by_limits(knowledge.forget(as_of(status, now), now, view.nodes), spec)
    status = gains.judge(status, table, now)
    status, actions = carry_on(status, view, now)
    view = view._replace(candidates=_not_rejected(status, view, now))
    costs = table.costs(view.nodes)
    awaited = table.awaited(now, _measuring(view), _users(status, view, expiry, now))
    decides = awaited is None and not moves.open_moves(status)
    # Nobody goes any more where the number is left to others from now on.
    follows = spec.users.max_replicas is not None
    leaving = status.surge.leaving if status.surge is not None and follows else None
    wanted = max(0, view.replicas - (leaving is not None))
    if decides:
        status, wanted = _size(status, spec, view, table, costs, now)
    if wanted < view.replicas and leaving is not None:
        # A ReplicaSet would delete another, so it goes before there is one less.
        actions += evict_one({leaving}, without_evicted(view, actions), wanted, "fewer pods serve as many users")
    elif wanted < view.replicas and (pod := sizing.dispensable(view, costs, spec)) is not None:
        leaving = pod.name
    associations = associate(status.associations, table, costs, view.nodes, _serving(view, actions), spec, now)
    status = gains.figures(status.model_copy(update={"associations": associations}), spec, table, view)
    wish = None
    if decides and costs.users and wanted >= view.replicas:
        plan = _plan(status, spec, view, costs, max(wanted, len(view.pods)), now)
        status = status.model_copy(update={"plan": plan})
        # While pods are to come, one that moves would take the place of one of these.
        wish = _step(plan, spec, view, costs) if len(view.pods) >= wanted else None
    times = moves.look_at(status, view.settles)
    times += [awaited] if awaited else []
    times += [min(each.last_seen_time for each in associations) + expiry + _SECOND] if associations else []
    times += [sizing.shrinks_at(status.fewer_time, spec)] if status.fewer_time else []
    times += [known.rejected_until for known in status.nodes if known.rejected_until is not None]
    if wish is not None and has_room(status, view):
        status, created, later = begin(status, spec, wish, now)
        actions, times = [*actions, *created], [*times, *later]
    look_again = min((time for time in times if time > now), default=None)
    served = _served(associations, costs, view)
    return Decision(status, tuple(actions), wish, wanted, leaving, served, look_again)


def _not_rejected(status: LatencyPolicyStatus, view: View, now: datetime) -> tuple[str, ...]:
    nodes = knowledge.by_name(status)
    return tuple(node for node in view.candidates if not knowledge.is_rejected(nodes.get(node), now))


def _measuring(view: View) -> tuple[str, ...]:
    """Nodes that agents measure from."""
    return (*view.candidates, *(pod.node for pod in view.pods if pod.node in view.nodes))


def _users(status: LatencyPolicyStatus, view: View, expiry: timedelta, now: datetime) -> dict[str, str]:
    """Users who were heard of lately, and the node of the pod that serves them; empty where none is there."""
    there = {pod.node for pod in view.pods}.intersection(view.nodes)
    return {
        each.user: each.node if each.node in there else ""
        for each in status.associations
        if now - each.last_seen_time <= expiry
    }


def _serving(view: View, actions: list[Action]) -> set[str]:
    """Nodes with a ready pod: users leave a pod before it goes, if there is another."""
    going = {action.pod for action in actions if isinstance(action, Evict)}
    ready = [pod for pod in view.pods if pod.ready]
    return {pod.node for pod in ready if pod.name not in going} or {pod.node for pod in ready}


def _served(associations: tuple[Association, ...], costs: Costs, view: View) -> tuple[int, ...]:
    rows = {user: row for row, user in enumerate(costs.users)}
    number = {node: at for at, node in enumerate(view.nodes)}
    there = ((rows.get(each.user), number.get(each.node)) for each in associations)
    return tuple(int(costs.microseconds[row, at]) for row, at in there if row is not None and at is not None)


def _size(
    status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, table: UserTable, costs: Costs, now: datetime
) -> tuple[LatencyPolicyStatus, int]:
    """How many pods there should be; as many as now where it is not known, and none where somebody wants none."""
    unknown = len(table) > 0 and not costs.users
    if spec.users.max_replicas is None or unknown or not view.replicas:
        return status.model_copy(update={"fewer_time": None}), view.replicas
    needed = sizing.replicas(costs, _columns(view), spec, view.replicas)
    return sizing.resized(status, spec, needed, view.replicas, now)


def _columns(view: View) -> list[int]:
    """Nodes that pods are on or may go to, by number."""
    names = {*view.candidates, *(pod.node for pod in view.pods)}
    return [at for at, node in enumerate(view.nodes) if node in names]


def _plan(
    status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, costs: Costs, count: int, now: datetime
) -> tuple[str, ...]:
    """Nodes that so many pods should be on; none where they are well enough where they are, or are too many."""
    limit, columns = Limits.of(spec).hard, _columns(view)
    number = {node: at for at, node in enumerate(view.nodes)}
    there = sorted(number[pod.node] for pod in view.pods if pod.node in number)
    going = [number[node] for node in status.plan if number.get(node) in columns]
    if not view.pods or count > MAX_PODS:
        return ()
    base = going if len(going) == count else [*extended(costs.microseconds, there, columns, count, limit)]
    best = best_nodes(costs.microseconds, columns, count, limit)
    if not base or not best:
        return ()
    reached, found = worth(costs.microseconds, base, limit), worth(costs.microseconds, best, limit)
    # Who is about the limit counts as within it where he is: now beyond it and now not, he would move pods for ever.
    gained = worth(costs.microseconds, base, limit * (1 + margin(ENOUGH))).beyond - found.beyond
    cool = moves.cool_at(status, spec)
    may = cool is None or cool <= now or gained > 0
    # What is still to be moved anyway may as well go where it is better, by however little.
    free = found < reached and len({*best} - {*there}) <= len({*base} - {*there})
    if free or (may and (_is_nearer(found, reached, spec) or gained >= max(1.0, CLEARLY * len(costs.users)))):
        base = list(best)
    # Two pods may be on one node, which is one of the plan all the same: the API server takes none twice.
    return tuple(view.nodes[at] for at in dict.fromkeys(base)) if set(base) != set(there) else ()


def _is_nearer(found: Worth, reached: Worth, spec: LatencyPolicySpec) -> bool:
    """All are nearer by what moves ask for."""
    return found.mean <= reached.mean * (1 - spec.moves.min_improvement_percent / 100)


def _step(plan: tuple[str, ...], spec: LatencyPolicySpec, view: View, costs: Costs) -> Wish | None:
    """The exchange of one pod that brings users most, of those that the plan asks for."""
    limit, number = Limits.of(spec).hard, {node: at for at, node in enumerate(view.nodes)}
    nodes, serving = [pod.node for pod in view.pods], [pod.node for pod in view.pods if pod.ready]
    targets = [node for node in plan if node not in nodes and node in view.candidates]
    # A node of the plan needs one pod. While one waits for a node, that takes what the plan has without one.
    spare = {node for node in serving if serving.count(node) > 1} if all(nodes) else set[str]()
    leaving = [pod for pod in view.pods if pod.movable and (pod.node not in plan or pod.node in spare)]
    best: tuple[Worth, Wish] | None = None
    for pod in leaving:
        rest = [number[other.node] for other in view.pods if other is not pod and other.node in number]
        for node in targets:
            reached = worth(costs.microseconds, [*rest, number[node]], limit)
            if best is None or reached < best[0]:
                message = (
                    f"{reached.mean / 1000:.1f} ms on average, {reached.beyond} of {len(costs.users)} beyond the limit"
                )
                best = reached, Wish(pod, node, Reason.MORE_USERS, message, urgent=True)
    if best is None:
        return None
    return _with_figures(best[1], view, costs)


def _with_figures(wish: Wish, view: View, costs: Costs) -> Wish:
    """The wish with what those have whom the new pod would be nearest, and what they should have then: medians."""
    number = {node: at for at, node in enumerate(view.nodes)}
    now = [number[pod.node] for pod in view.pods if pod.node in number]
    rest = [number[pod.node] for pod in view.pods if pod is not wish.pod and pod.node in number]
    there = costs.microseconds[:, number[wish.node]]
    served = there < costs.microseconds[:, rest].min(axis=1, initial=np.inf)
    if not served.any() or not now:
        return wish
    before = np.median(costs.microseconds[:, now].min(axis=1)[served])
    expected = int(np.median(there[served]))
    return wish._replace(before=int(before), expected=expected, users=int(served.sum()))
