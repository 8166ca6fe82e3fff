"""What to do next for the pods of a policy by whose wish the published rules decide: rounds, half a minute apart.

Which nodes a round leaves, and for which, is as published. How a pod goes is not: it moves as any other, with another
there before it is evicted and no more moves than are allowed, and only to a node that has room and no pod of the
workload yet. What is remembered between rounds is in the status.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from typing import Final

from berth.api.latencypolicy import (
    MAX_NODES,
    LatencyPolicySpec,
    LatencyPolicyStatus,
    MeasurementSource,
    NodeState,
    NodeStatus,
    Outcome,
    PublishedRule,
    Search,
    VisitedNode,
)
from berth.scheduling.latency import knowledge, moves
from berth.scheduling.latency.classification import Limits
from berth.scheduling.latency.decision import Decision, begin, carry_on, has_room, without_moves
from berth.scheduling.latency.published.rules import RULES, rule_of
from berth.scheduling.latency.published.search import Visited
from berth.scheduling.latency.set_back import as_of
from berth.scheduling.latency.situation import Action, Reason, View, Wish, told

ROUND_SECONDS: Final = 31.0
"""Seconds between rounds: the published pause of 30, and a second of work."""
SEARCH_AGAIN: Final = timedelta(hours=24)
"""After how long without a move the search for the minimum begins anew: one that is bounded to few moves an hour takes
longer. By then what meters said of nodes is forgotten, too."""
_MOST_VISITS: Final = 2**31 - 1
"""As the API server takes them: with more, which only somebody else writes, no status could be written any more."""
_GONE: Final = frozenset({Outcome.MOVED, Outcome.CONFIRMED, Outcome.DISAPPOINTED})
"""Outcomes of moves whose old pod has gone."""


def decide(status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, now: datetime) -> Decision:
    """Return what to do next.

    Args:
        status: what is known and was done.
        spec: what is wanted.
        view: the workload and the nodes as they are.
        now: the time, in UTC.
    """
    status = _by_plain_limits(knowledge.forget(as_of(status, now), now, view.nodes), spec)
    status = moves.judge(status, now, remember=False)
    status, found = carry_on(status, view, now, proof=False)
    actions: list[Action] = list(found)
    search = _search(status, spec, view, now)
    status = status.model_copy(update={"search": search})
    due, times = round_at(search), moves.look_at(status, view.settles)
    # A round that cannot begin a move yet is held as soon as it can; without users none is.
    able = moves.may_begin(status, spec, now) is not None and has_room(status, view)
    held = due <= now and able and bool(view.candidates)
    wish: Wish | None = None
    for each in _wishes(status, search, spec, view, now):
        wish = wish or each
        if not held or not has_room(status, view):
            break
        status, created, later = begin(status, spec, each, now)
        times += later
        if not created:
            break
        actions += created
        search = _visited_once_more(search, each.node)
    if held:
        search = search.model_copy(update={"round_time": knowledge.whole(now)})
    times += [round_at(search)] if view.candidates else []
    status = status.model_copy(update={"search": search})
    return Decision(status, tuple(actions), wish, min((time for time in times if time > now), default=None))


def round_at(search: Search) -> datetime:
    """Return when the next round is due."""
    return search.round_time + timedelta(seconds=ROUND_SECONDS)


def _by_plain_limits(status: LatencyPolicyStatus, spec: LatencyPolicySpec) -> LatencyPolicyStatus:
    """The status with the states that nodes have by the limits alone: the published rules know no hysteresis."""
    limits = Limits.of(spec)

    def classified(known: NodeStatus) -> NodeStatus:
        far = known.p50_microseconds
        state = NodeState.UNKNOWN if far is None or known.samples < spec.min_samples else limits.state(far)
        return known.model_copy(update={"state": state})

    return status.model_copy(update={"nodes": tuple(classified(known) for known in status.nodes)})


def _search(status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, now: datetime) -> Search:
    """What is remembered, with what pods and moves tell by now."""
    search, rule, time = status.search, rule_of(spec), knowledge.whole(now)
    if search is None or search.rule is not rule or _is_over(search, status, now):
        search = Search(rule=rule, start_time=time, round_time=time)
    there = set(view.nodes)
    known = {each.node: each for each in search.visited if each.node in there}
    for node, pods in Counter(pod.node for pod in view.pods if pod.node in there).items():
        if node not in known or not known[node].visits:
            known[node] = VisitedNode(node=node, visits=pods)
    for move in status.moves:
        if move.outcome in _GONE and move.start_time >= search.start_time and move.source_node in known:
            known[move.source_node] = known[move.source_node].model_copy(update={"left": True})
    return search.model_copy(update={"visited": tuple(known.values())[:MAX_NODES]})


def _is_over(search: Search, status: LatencyPolicyStatus, now: datetime) -> bool:
    last = max((search.start_time, *(move.start_time for move in status.moves)))
    return search.rule is PublishedRule.MINIMUM and now - last >= SEARCH_AGAIN


def _visited_once_more(search: Search, node: str) -> Search:
    known = {each.node: each for each in search.visited}
    before = known.get(node, VisitedNode(node=node, visits=0))
    known[node] = before.model_copy(update={"visits": min(before.visits + 1, _MOST_VISITS)})
    return search.model_copy(update={"visited": tuple(known.values())[:MAX_NODES]})


def _wishes(
    status: LatencyPolicyStatus, search: Search, spec: LatencyPolicySpec, view: View, now: datetime
) -> Iterator[Wish]:
    """The moves that a round would make, one after another, each by what there is after the one before."""
    mode, known, free = RULES[search.rule], knowledge.by_name(status), _free(status, search, view, now)
    nodes = _nodes(status, search, view, free)
    left = mode.leave(nodes, Limits.of(spec))
    staying = [pod for pod in without_moves(view, status).pods if pod.movable]
    for pod in (pod for name in left for pod in staying if pod.node == name):
        # A second pod on a node would be no gain, and nobody could tell which of both is the new one.
        empty = [node for node in nodes if node.node in free and not node.pods]
        if not empty:
            return
        goal = mode.destination(empty)
        at = next(at for at, node in enumerate(nodes) if node.node == goal)
        here = known[pod.node]
        reason, why = _reason(search.rule, here, nodes[at], nodes)
        yield Wish(pod, goal, reason, f"{told(here)} {why}", urgent=True)
        nodes[at] = nodes[at].reached()


def _free(status: LatencyPolicyStatus, search: Search, view: View, now: datetime) -> dict[str, None]:
    """Nodes that a pod could go to, in order; a full status has no place for further ones."""
    known, visited = knowledge.by_name(status), {each.node for each in search.visited}
    return dict.fromkeys(
        name
        for name in view.candidates
        if not knowledge.is_rejected(known.get(name), now) and (name in visited or len(visited) < MAX_NODES)
    )


def _nodes(status: LatencyPolicyStatus, search: Search, view: View, free: Collection[str]) -> list[Visited]:
    """Nodes with pods, soon or now, those that a pod could go to, and those that were visited.

    One of these that takes no pod now counts as left: a search would never end on it.
    """
    known, visited, there = knowledge.by_name(status), {each.node: each for each in search.visited}, set(view.nodes)
    pods = Counter(pod.node for pod in without_moves(view, status).pods if pod.node)

    def node(name: str) -> Visited:
        past, said = visited.get(name, VisitedNode(node=name, visits=0)), known.get(name)
        if not pods[name] and name not in free:
            return Visited(name, visits=max(past.visits, 1), dropped=True)
        by_meter = said is not None and said.source is MeasurementSource.METER and said.state is not NodeState.UNKNOWN
        far = said.p50_microseconds if said is not None and by_meter else None
        # A full status has no place for a node that a pod came to by itself: visited it is all the same.
        return Visited(name, far, pods[name], max(past.visits, min(pods[name], 1)), past.left)

    return [node(name) for name in dict.fromkeys((*free, *pods, *visited)) if name in there]


def _reason(rule: PublishedRule, here: NodeStatus, goal: Visited, nodes: list[Visited]) -> tuple[Reason, str]:
    least = f"{goal.node} was visited least"
    if rule is PublishedRule.MINIMUM:
        if any(not node.visits for node in nodes):
            return Reason.EXPLORING, f"is left until all nodes were visited; {least}"
        return Reason.NEARER, f"is not the nearest of all nodes, which {goal.node} is"
    if here.state is NodeState.INVALID:
        return Reason.BEYOND_HARD_LIMIT, f"is beyond the hard limit; {least}"
    return Reason.BEYOND_SOFT_LIMIT, f"is beyond the soft limit, and half of all nodes may be valid without it; {least}"
