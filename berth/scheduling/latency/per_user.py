"""What to do next for the pods of a policy in which each user counts.

Pods together serve all users, so one plan is made for them: the nodes from which most users are within the limit, and
then all as near as possible. It is carried out a pod at a time, and kept until another is better by enough. Users are
routed to the nearest pod that is there.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, NamedTuple

from berth.api.latencypolicy import MAX_PODS, LatencyPolicySpec, LatencyPolicyStatus
from berth.scheduling.latency import moves
from berth.scheduling.latency.association import associate, replicas
from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.coverage import Worth, best_nodes, worth
from berth.scheduling.latency.decision import begin, carry_on, has_room
from berth.scheduling.latency.set_back import as_of
from berth.scheduling.latency.situation import Action, Reason, View, Wish
from berth.scheduling.latency.user_table import Costs, UserTable

CLEARLY: Final = 0.1
"""Share of users that has to come within the limit before pods move for that."""


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
    table.expire(now, timedelta(seconds=spec.users.expiry_seconds))
    status, actions = carry_on(as_of(status, now), view, now)
    costs = table.costs(view.nodes)
    serving = {pod.node for pod in view.pods if pod.ready}
    associations = associate(status.associations, table, costs, view.nodes, serving, spec, now)
    awaited = table.awaited(now)
    columns = _columns(view)
    wanted = view.replicas
    if costs.users and awaited is None and not moves.open_moves(status):
        status = status.model_copy(update={"plan": _plan(status, spec, view, costs, now)})
        wanted = replicas(costs, columns, spec, view.replicas)
    status = status.model_copy(update={"associations": associations})
    wish = _step(status.plan, spec, view, costs) if costs.users and not moves.open_moves(status) else None
    times = [(move.ready_time or move.start_time) + moves.PATIENCE for move in moves.open_moves(status)]
    times += [awaited] if awaited else []
    if wish is not None and has_room(status, spec, view):
        status, created, later = begin(status, spec, wish, now)
        actions, times = [*actions, *created], [*times, *later]
    return Decision(status, tuple(actions), wish, wanted, min((time for time in times if time > now), default=None))


def _columns(view: View) -> list[int]:
    """Nodes that pods are on or may go to, by number."""
    names = {*view.candidates, *(pod.node for pod in view.pods)}
    return [at for at, node in enumerate(view.nodes) if node in names]


def _plan(
    status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, costs: Costs, now: datetime
) -> tuple[str, ...]:
    """Nodes that pods should be on; none where they are well enough where they are, or are more than a plan has."""
    limit, columns = Limits.of(spec).hard, _columns(view)
    number = {node: at for at, node in enumerate(view.nodes)}
    there = sorted(number[pod.node] for pod in view.pods if pod.node in number)
    going = [number[node] for node in status.plan if number.get(node) in columns]
    base = going if going and len(going) == len(view.pods) else there
    if not base or len(view.pods) > MAX_PODS:
        return ()
    best = best_nodes(costs.microseconds, columns, len(view.pods), limit)
    reached, found = worth(costs.microseconds, base, limit), worth(costs.microseconds, best, limit)
    cool = moves.cool_at(status, spec)
    may = cool is None or cool <= now or found.beyond < reached.beyond
    # What is still to be moved anyway may as well go where it is better, by however little.
    free = found < reached and len({*best} - {*there}) <= len({*base} - {*there})
    if free or (may and _pays(found, reached, len(costs.users), spec)):
        base = list(best)
    return tuple(view.nodes[at] for at in base) if set(base) != set(there) else ()


def _pays(found: Worth, reached: Worth, users: int, spec: LatencyPolicySpec) -> bool:
    """Clearly more users are within the limit, or all are nearer by what moves ask for.

    Few users more may be those whose measurements are about the limit, and would have pods go to and fro.
    """
    nearer = found.mean <= reached.mean * (1 - spec.moves.min_improvement_percent / 100)
    return nearer or reached.beyond - found.beyond >= max(1.0, CLEARLY * users)


def _step(plan: tuple[str, ...], spec: LatencyPolicySpec, view: View, costs: Costs) -> Wish | None:
    """The exchange of one pod that brings users most, of those that the plan asks for."""
    limit, number = Limits.of(spec).hard, {node: at for at, node in enumerate(view.nodes)}
    nodes = [pod.node for pod in view.pods]
    targets = [node for node in plan if node not in nodes and node in view.candidates]
    leaving = [pod for pod in view.pods if pod.ready and not pod.held and pod.node not in plan]
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
    return best[1] if best else None
