"""Whatever a status says, as one that an older version, another controller or a person has written: what is decided
by it can be written again, and no more moves begin than are allowed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.latencypolicy import (
    MAX_MOVES,
    Association,
    LatencyPolicySpec,
    LatencyPolicyStatus,
    MeasurementSource,
    Move,
    NodeState,
    NodeStatus,
    Objective,
    Outcome,
    PublishedRule,
    Search,
    Surge,
    VisitedNode,
)
from berth.scheduling.latency import decision, moves, per_user
from berth.scheduling.latency.published import rounds
from berth.scheduling.latency.situation import Action, Create, Evict, Pod, Reason, View
from berth.scheduling.latency.user_table import UserTable
from berth.scheduling.latency.window import Measurement
from tests.support.latency import NOW, again, later, policy

NODES = ("a", "b", "c", "d", "e")
PODS = ("p1", "p2", "p3", "p4", "p5")

T = TypeVar("T")

times = st.sampled_from([-90_000, -4000, -3600, -3599, -400, -301, -300, -299, -61, -60, -16, -5, 0, 5, 7200]).map(
    later
)
microseconds = st.sampled_from([1, 10_000, 29_999, 30_000, 80_000, 88_001, 150_000, 60_000_000])
nodes = st.sampled_from([*NODES, "gone"])
counts = st.integers(0, 6)


def maybe(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | values


def made(kind: Callable[..., T], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[T]:
    """Objects with fields by chance. (`builds` would make up those whose names in JSON differ, too.)"""
    return st.fixed_dictionaries(fields).map(lambda found: kind(**found))


known = made(
    NodeStatus,
    node=nodes,
    state=st.sampled_from(NodeState),
    source=maybe(st.sampled_from(MeasurementSource)),
    p50_microseconds=maybe(microseconds),
    p90_microseconds=maybe(microseconds),
    samples=st.integers(0, 15),
    time=maybe(times),
    rejections=st.integers(0, 2**31 - 1),
    rejected_until=maybe(times),
)
move = made(
    Move,
    pod=st.sampled_from([*PODS, "gone"]),
    source_node=nodes,
    target_node=nodes,
    new_pod=maybe(st.sampled_from([*PODS, "gone"])),
    reason=st.sampled_from([*Reason, "Another"]),
    outcome=st.sampled_from(Outcome),
    start_time=times,
    ready_time=maybe(times),
    before_microseconds=maybe(microseconds),
    expected_microseconds=maybe(microseconds),
    users=maybe(counts),
    after_microseconds=maybe(microseconds),
    refused=maybe(st.booleans()),
)
statuses = made(
    LatencyPolicyStatus,
    nodes=st.lists(known, max_size=6, unique_by=lambda each: each.node).map(tuple),
    probed_time=maybe(times),
    unreachable_time=maybe(times),
    moves=st.lists(move, max_size=5).map(tuple) | st.lists(move, min_size=MAX_MOVES, max_size=MAX_MOVES).map(tuple),
    plan=st.lists(nodes, max_size=5, unique=True).map(tuple),
    associations=st.lists(
        made(Association, user=st.sampled_from(["u1", "u2", "u3", "w"]), node=nodes, last_seen_time=times),
        max_size=4,
        unique_by=lambda each: each.user,
    ).map(tuple),
    surge=maybe(
        made(
            Surge,
            replicas=counts,
            previous=counts,
            wanted=counts,
            seen=st.booleans(),
            leaving=maybe(st.sampled_from([*PODS, "gone"])),
        )
    ),
    search=maybe(
        made(
            Search,
            rule=st.sampled_from(PublishedRule),
            start_time=times,
            round_time=times,
            visited=st.lists(
                made(VisitedNode, node=nodes, visits=st.integers(0, 3), left=st.booleans()),
                max_size=6,
                unique_by=lambda each: each.node,
            ).map(tuple),
        )
    ),
    fewer_time=maybe(times),
)
views = made(
    View,
    pods=st.lists(
        made(Pod, name=st.sampled_from(PODS), node=st.sampled_from([*NODES, ""]), ready=st.booleans()),
        max_size=4,
        unique_by=lambda each: each.name,
    ).map(tuple),
    replicas=st.integers(0, 4),
    nodes=st.just(NODES),
    candidates=st.lists(st.sampled_from(NODES), unique=True).map(tuple),
    active=st.booleans(),
    settles=st.sampled_from([0, 10, 86_400]).map(lambda seconds: timedelta(seconds=seconds)),
    refused=st.sampled_from(["", "exceeded quota"]),
)


@st.composite
def specs(draw: st.DrawFn, mode: str) -> LatencyPolicySpec:
    grows = draw(maybe(st.integers(1, 5))) if mode == "PerUser" else None
    return policy(
        hard=80,
        soft=draw(maybe(st.just(30))),
        objective=draw(st.sampled_from(Objective)),
        users={"mode": mode, "max_replicas": grows},
        max_per_hour=draw(st.sampled_from([0, 1, 3, 64])),
        max_concurrent=draw(st.sampled_from([1, 2])),
        cool_down_seconds=draw(st.sampled_from([0, 60])),
        dry_run=draw(st.booleans()),
        min_samples=draw(st.sampled_from([1, 3])),
    )


def check(
    before: LatencyPolicyStatus,
    after: LatencyPolicyStatus,
    actions: tuple[Action, ...],
    spec: LatencyPolicySpec,
    view: View,
    *,
    at_once: int = 1,
) -> None:
    assert again(after) == after.model_copy(update={"conditions": ()})
    created = [action for action in actions if isinstance(action, Create)]
    evicted = [action.pod for action in actions if isinstance(action, Evict)]
    going = moves.open_moves(after)
    assert len(created) <= at_once
    assert {action.node for action in created} <= {each.target_node for each in going}
    assert len(evicted) == len(set(evicted))
    assert {*evicted} <= {pod.name for pod in view.pods}
    if not created:
        return
    assert not spec.moves.dry_run
    assert len(going) <= spec.moves.max_concurrent
    assert len(view.pods) < view.replicas + spec.moves.max_concurrent
    lately = [each for each in moves.counted(after) if each.start_time > NOW - moves.HOUR]
    assert len(lately) <= spec.moves.max_per_hour


@settings(max_examples=100, derandomize=True, deadline=None)
@given(status=statuses, spec=specs("Single"), view=views, awaited=maybe(times))
def test_users_as_one(
    status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View, awaited: datetime | None
) -> None:
    first = decision.decide(status, spec, view, NOW, awaited=awaited)
    check(status, first.status, first.actions, spec, view)
    second = decision.decide(again(first.status), spec, view, NOW, awaited=awaited)
    check(first.status, second.status, second.actions, spec, view)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(status=statuses, spec=specs("Single"), view=views)
def test_rounds(status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View) -> None:
    first = rounds.decide(status, spec, view, NOW)
    check(status, first.status, first.actions, spec, view, at_once=spec.moves.max_concurrent)
    second = rounds.decide(again(first.status), spec, view, NOW)
    check(first.status, second.status, second.actions, spec, view, at_once=spec.moves.max_concurrent)


@settings(max_examples=100, derandomize=True, deadline=None)
@given(data=st.data(), status=statuses, spec=specs("PerUser"), view=views)
def test_each_user(data: st.DataObject, status: LatencyPolicyStatus, spec: LatencyPolicySpec, view: View) -> None:
    table = UserTable()
    for user in data.draw(st.lists(st.sampled_from(["u1", "u2", "u3", "w"]), unique=True)):
        table.see(user, data.draw(st.sampled_from(["x", "y"])), data.draw(times))
        for node in data.draw(st.lists(st.sampled_from(NODES), unique=True)):
            value, source = data.draw(microseconds), data.draw(st.sampled_from(MeasurementSource))
            table.observe(user, [Measurement(node, source, value, value, data.draw(st.integers(1, 15)), NOW)])
    first = per_user.decide(status, spec, view, table, NOW)
    check(status, first.status, first.actions, spec, view)
    assert first.replicas >= 0
    second = per_user.decide(again(first.status), spec, view, table, NOW)
    check(first.status, second.status, second.actions, spec, view)
