"""What to do next for the pods of a policy whose users count as one.

A pod is created where it should be before the one that it replaces goes, and only as many at once, and in an hour, as
the policy allows. Everything that is remembered is in the status: whoever has it goes on from there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from berth.api.latencypolicy import LatencyPolicySpec, LatencyPolicyStatus, Move, NodeState, Objective, Outcome
from berth.scheduling.latency import constraints, knowledge, measuring, minimum, moves
from berth.scheduling.latency.classification import LEAST_MARGIN, RANK
from berth.scheduling.latency.set_back import as_of
from berth.scheduling.latency.situation import (
    LIMIT_REASONS,
    Action,
    Create,
    Evict,
    Pod,
    Reason,
    Situation,
    Steer,
    View,
    Wish,
    far,
)

_GIVEN_UP: Final = "the move that it was created for was given up"


class Decision(NamedTuple):
    """What follows from what is known."""

    status: LatencyPolicyStatus
    """what is to be remembered; written before the actions are carried out"""
    actions: tuple[Action, ...]
    """what is to be done"""
    wish: Wish | None
    """move that should be made, begun or not"""
    look_again: datetime | None
    """when time alone may change something; None: only news can"""


def decide(
    status: LatencyPolicyStatus,
    spec: LatencyPolicySpec,
    view: View,
    now: datetime,
    *,
    awaited: datetime | None = None,
    asks_at: datetime | None = None,
) -> Decision:
    """Return what to do next.

    Args:
        status: what is known and was done.
        spec: what is wanted.
        view: the workload and the nodes as they are.
        now: the time, in UTC.
        awaited: until when nodes may become known otherwise than by agents that are asked now; None: they do not.
        asks_at: when agents may be asked, whose turn others have; None: now.
    """
    status = knowledge.by_limits(knowledge.forget(as_of(status, now), now, view.nodes), spec)
    status = moves.judge(status, now)
    status, actions = carry_on(status, view, now)
    status, probe = measuring.probe(status, spec, view, now) if asks_at is None else (status, None)
    actions = [*actions, *([probe] if probe else [])]
    awaiting = measuring.awaiting(status, spec, view, now)
    nodes, free = knowledge.by_name(status), without_moves(view, status)
    found = _aim(Situation(spec, nodes, free, now, awaiting or awaited is not None))
    times = [measuring.due_at(status, now)] if view.active and measuring.answers(status, spec, now) else []
    times += [(status.probed_time or now) + measuring.ANSWERED_WITHIN] if awaiting else []
    times += [awaited] if awaited is not None else []
    times += [asks_at] if asks_at is not None and measuring.is_due(status, spec, view, now) else []
    times += moves.look_at(status, view.settles)
    times += [known.rejected_until for known in status.nodes if known.rejected_until is not None]
    if isinstance(found, Steer) and not moves.open_moves(status):
        actions.append(found)
    wish = found if isinstance(found, Wish) else None
    if wish is not None and has_room(status, view):
        status, created, later = begin(status, spec, wish, now)
        actions += created
        times += later
    later_times = [time for time in times if time > now]
    return Decision(status, tuple(actions), wish, min(later_times, default=None))


def has_room(status: LatencyPolicyStatus, view: View) -> bool:
    """Return whether one more pod may be created: there are none, and come none, but those of moves that go on.

    Another would be the one that is asked for from then on, on whatever node it is: no other would come for the move.
    The workload makes one for a pod that was evicted, until it is told that there are to be fewer.
    """
    nodes, going = {pod.node for pod in view.pods}, moves.open_moves(status)
    coming = sum(move.target_node not in nodes for move in going)
    return max(len(view.pods) + coming, view.asked) <= view.replicas + len(going)


def begin(
    status: LatencyPolicyStatus, spec: LatencyPolicySpec, wish: Wish, now: datetime
) -> tuple[LatencyPolicyStatus, list[Create], list[datetime]]:
    """Begin a move if that is allowed now; else return when it may be.

    Returns:
        the status, the pod to create, and times at which to look again.
    """
    may, cool = moves.may_begin(status, spec, now), moves.cool_at(status, spec)
    if may is None or spec.moves.dry_run:
        return status, [], []
    if not wish.urgent and cool is not None:
        may = max(may, cool)
    if may > now:
        return status, [], [may]
    nodes = knowledge.by_name(status)
    here, there = nodes.get(wish.pod.node), nodes.get(wish.node)
    move = Move(
        pod=wish.pod.name,
        source_node=wish.pod.node,
        target_node=wish.node,
        reason=wish.reason,
        outcome=Outcome.CREATING,
        start_time=knowledge.whole(now),
        before_microseconds=wish.before or (here.p50_microseconds if here else None),
        expected_microseconds=wish.expected or (there.p50_microseconds if there else None),
        users=wish.users,
    )
    return moves.begin(status, move), [Create(wish.node, wish.pod.name, wish.reason, wish.message)], []


def carry_on(
    status: LatencyPolicyStatus, view: View, now: datetime, *, proof: bool = True
) -> tuple[LatencyPolicyStatus, list[Action]]:
    """Carry open moves on: evict where the new pod is ready, give up what takes too long, has no node, or no use.

    Args:
        status: with the moves.
        view: what is there.
        now: the time.
        proof: whether the old pod stays where the new node turns out to be no better.
    """
    actions: list[Action] = []
    for move in moves.open_moves(status):
        new = moves.new_pod(move, view)
        if new is not None and move.new_pod is None:
            status = moves.replace(status, move, new_pod=new.name)
    left, going = view, moves.open_moves(status)  # `left` is without those that are evicted for the moves before
    for move in going:
        source = next((pod for pod in view.pods if pod.name == move.pod), None)
        target = moves.new_pod(move, view)
        name = target.name if target is not None else None
        found: list[Action] = []
        if source is None:
            outcome, ready = Outcome.MOVED if target is not None else Outcome.CANCELLED, move.ready_time
            ready, name = ready or knowledge.whole(now), name or move.new_pod
            status = moves.replace(status, move, outcome=outcome, ready_time=ready, new_pod=name)
        elif moves.overdue(move, view, now) or moves.in_vain(move, view, going):
            status, found = _give_up(status, move, left, now)
        elif target is None or moves.is_taken(move, view) or (move.outcome is Outcome.CREATING and not target.ready):
            # Somebody has taken it away, and another is awaited there, or has come; or it failed before it counted.
            status = moves.replace(status, move, outcome=Outcome.CREATING, ready_time=None, new_pod=name)
        elif target.ready:
            status, found = _with_both(status, move, source, target, left, now, proof=proof)
        actions += found
        left = without_evicted(left, found)
    if not moves.open_moves(status) and not actions:
        actions += _surplus(status, view)
    return status, actions


def without_evicted(view: View, actions: Sequence[Action]) -> View:
    """Return the view without pods that are evicted."""
    going = {action.pod for action in actions if isinstance(action, Evict)}
    return view._replace(pods=tuple(pod for pod in view.pods if pod.name not in going)) if going else view


def _with_both(
    status: LatencyPolicyStatus, move: Move, source: Pod, target: Pod, view: View, now: datetime, *, proof: bool
) -> tuple[LatencyPolicyStatus, list[Action]]:
    """Go on with both pods there: a node that nobody had measured is tried with a request before the old pod goes."""
    ready = move.ready_time or knowledge.whole(now)
    if move.outcome is Outcome.CREATING and now - ready < view.settles:
        return moves.replace(status, move, ready_time=ready), []
    if proof and moves.on_trial(move, knowledge.by_name(status).get(target.node), now):
        return moves.replace(status, move, outcome=Outcome.TRYING, ready_time=ready), [Steer(target.node)]
    if proof and move.outcome is not Outcome.EVICTING and not _pays(move, status):
        return _give_up(status, move, view, now)
    why = f"the pod on {target.node} that replaces it is ready"
    status = moves.replace(status, move, outcome=Outcome.EVICTING, ready_time=ready)
    return status, evict_one({source.name}, view, view.replicas if moves.is_held(ready + view.settles, now) else 0, why)


def _aim(situation: Situation) -> Wish | Steer | None:
    within = constraints.find(situation)
    if situation.spec.objective is Objective.CONSTRAINTS:
        return within
    # No pod explores for the sake of a limit where the minimum has all nodes measured anyway.
    if within is not None and situation.known(within.node).state is not NodeState.UNKNOWN:
        return within
    return minimum.find(situation)


def _pays(move: Move, status: LatencyPolicyStatus) -> bool:
    """What is known now still speaks for a move: for the sake of a limit, to a node of a better state.

    One for the sake of many users is part of a plan for all pods, of which two nodes say nothing.
    """
    if move.reason == Reason.MORE_USERS:
        return True
    nodes = knowledge.by_name(status)
    here, there = nodes.get(move.source_node), nodes.get(move.target_node)
    if here is None or here.state is NodeState.UNKNOWN:
        return True
    for_limit = move.reason in LIMIT_REASONS
    if for_limit and here.state is NodeState.SOFT_VALID:
        return False
    if there is None or there.state is NodeState.UNKNOWN:
        return True
    nearer = far(there) <= far(here) * (1 - LEAST_MARGIN)
    return nearer and (RANK[there.state] > RANK[here.state] or not for_limit)


def _give_up(
    status: LatencyPolicyStatus, move: Move, view: View, now: datetime
) -> tuple[LatencyPolicyStatus, list[Action]]:
    """Give a move up; a node where no pod got ready, or that is farther than it seemed, is remembered as bad.

    That no pod could be created is no fault of the node.
    """
    known = knowledge.by_name(status).get(move.target_node)
    never_ready = move.outcome is Outcome.CREATING and moves.overdue(move, view, now)
    refused = never_ready and move.new_pod is None and bool(view.refused)
    never_ready = never_ready and not refused
    lied = known is not None and moves.served_since(move, known) and moves.disappoints(move, known)
    refused = refused and len(view.pods) <= view.replicas  # else one was created, wherever it is
    status = moves.replace(status, move, outcome=Outcome.CANCELLED, refused=refused or None)
    if never_ready or lied:
        status = knowledge.reject(status, move.target_node, now)
    new = moves.new_pod(move, view)
    return status, evict_one({new.name} if new is not None else set(), view, view.replicas, _GIVEN_UP)


def without_moves(view: View, status: LatencyPolicyStatus) -> View:
    """Return the view without pods and nodes of open moves: those pods are held, and these nodes taken."""
    going = moves.open_moves(status)
    names, targets = {move.pod for move in going}, {move.target_node for move in going}
    pods = [pod._replace(held=pod.held or pod.name in names or pod.node in targets) for pod in view.pods]
    return view._replace(pods=(*pods, *(Pod("", node, ready=False) for node in targets)))


def _surplus(status: LatencyPolicyStatus, view: View) -> list[Action]:
    """Pods that moves have left which were given up, as long as there is one more than there should be.

    They are those of as many moves as there are pods too many: of one that was given up before, the pod may have
    stayed. Others, on the same node too, come from the workload, and are not touched. Nor are these once the workload
    has been told that there are to be fewer: it deletes one by itself then, and maybe the other.
    """
    surge = status.surge
    if surge is None or surge.wanted <= surge.replicas:
        return []
    last = status.moves[surge.replicas - surge.wanted :]
    left = {move.new_pod for move in last if move.outcome is Outcome.CANCELLED}
    return evict_one(left, view, view.replicas, _GIVEN_UP)


def evict_one(names: Collection[str | None], view: View, count: int, why: str) -> list[Action]:
    """Return the eviction of one of these pods; of none that serves where fewer than `count` others do."""
    spare = sum(pod.ready for pod in view.pods) > count
    found = [pod.name for pod in view.pods if pod.name in names and (spare or not pod.ready)]
    return [Evict(name, why) for name in found[:1]]
