"""What is done for the pods of a policy: no more than allowed, never for ever, and the same after a restart."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.api.latencypolicy import MAX_MOVES, MAX_NODES, LatencyPolicySpec, LatencyPolicyStatus, Move, Outcome, Surge
from berth.scheduling.latency import moves
from berth.scheduling.latency.decision import decide
from berth.scheduling.latency.knowledge import observe
from berth.scheduling.latency.situation import Create, Evict, Pod, Reason, Steer, View
from tests.support.latency import METER, NOW, PROBE, World, again, later, measured, policy, status_of

S1: dict[str, float] = dict(zip("abcdefgh", (70, 100, 120, 150, 35, 36, 15, 21), strict=True))
LIMITS = {"hard": 40, "soft": 30}
MINIMUM = {"objective": "Minimum"}


def outcomes(world: World) -> list[Outcome]:
    return [move.outcome for move in world.status.moves]


@pytest.mark.parametrize(
    ("fields", "place", "end"),
    [
        pytest.param(LIMITS, "a", ["g"], id="to the nearest, beyond the hard limit"),
        pytest.param(LIMITS, "e", ["g"], id="beyond the soft limit"),
        pytest.param(LIMITS, "h", ["h"], id="within both it stays"),
        pytest.param({"hard": 40}, "f", ["f"], id="without a soft limit it stays as well"),
        pytest.param(MINIMUM, "h", ["g"], id="to the minimum"),
        pytest.param(MINIMUM, "g", ["g"], id="where it is already"),
        pytest.param({"hard": 10}, "a", ["g"], id="to the nearest where no node is valid"),
    ],
)
def test_users_that_can_be_probed_take_one_move_at_most(fields: dict[str, object], place: str, end: list[str]) -> None:
    world = World(policy(**fields), S1, told=S1, place=place)
    world.run(600)
    assert world.places == end
    assert len(world.created) == (place != end[0])
    assert world.most == 1 + (place != end[0])
    assert set(outcomes(world)) <= {Outcome.CONFIRMED}


def test_the_old_pod_goes_when_the_new_one_is_ready_and_not_before() -> None:
    world = World(policy(**LIMITS), S1, told=S1, place="a", start=5)
    world.step()
    assert [(pod.node, pod.ready) for pod in world.pods.values()] == [("a", True), ("g", False)]
    world.run(4)
    assert world.evicted == []
    world.step()
    assert world.evicted == ["p0"]
    (_, created), move = world.created[0], world.status.moves[0]
    assert (created.node, created.instead_of, created.reason) == ("g", "p0", Reason.BEYOND_HARD_LIMIT)
    assert (move.start_time, move.ready_time, move.before_microseconds, move.expected_microseconds) == (
        later(1),
        later(6),
        70_000,
        15_000,
    )


@pytest.mark.parametrize("fields", [LIMITS, MINIMUM, {**LIMITS, "max_per_hour": 1}], ids=["limits", "minimum", "one"])
@pytest.mark.parametrize("ran", [1, 4, 8], ids=["begun", "created", "moved"])
def test_a_clock_that_is_set_back_by_a_day_holds_nothing_up(fields: dict[str, object], ran: int) -> None:
    world = World(policy(**fields), dict(S1), told=dict(S1), place="a", now=86_400.0)
    world.run(ran)
    world.now -= 86_400.0
    world.ready_at = dict.fromkeys(world.ready_at, world.now + 1)
    world.far["g"] = world.told["g"] = 200
    world.run(4000)
    assert world.places == ["h"]
    assert max(world.probes[-2:]) > world.now - 60


def test_a_move_with_a_reason_of_another_version_is_carried_on() -> None:
    world = World(policy(**LIMITS), S1, told=S1, place="a")
    world.run(2)
    (move,) = world.status.moves
    world.status = moves.replace(world.status, move, reason="Whatever")
    world.run(10)
    assert world.places == ["g"]


def test_users_that_cannot_be_probed_are_explored_for_a_node_at_a_time_and_none_twice() -> None:
    world = World(policy(**LIMITS), S1, place="a")
    world.run(600)
    assert world.places == ["g"]
    visited = [create.node for _, create in world.created]
    assert visited == ["b", "c", "d", "e", "f", "g"]
    assert world.most == 2


def test_all_nodes_are_measured_through_the_router_before_a_pod_goes_to_the_minimum() -> None:
    world = World(policy(**MINIMUM), S1, place="a")
    world.run(600)
    assert world.places == ["g"]
    assert world.steered == list("bcdefgh")
    assert len(world.created) == 1


def test_pods_explore_all_nodes_for_the_minimum_where_nothing_else_may() -> None:
    world = World(policy(**MINIMUM, exploration=["Migrate"], max_per_hour=60), S1, place="a")
    world.run(3600)
    assert world.places == ["g"]
    assert len(world.created) <= len(S1)


def test_a_node_that_lies_is_remembered_as_bad() -> None:
    world = World(policy(**MINIMUM), {"a": 50, "b": 60, "c": 30}, told={"a": 50, "b": 10, "c": 30}, place="a")
    world.run(600)
    assert outcomes(world)[:2] == [Outcome.CANCELLED, Outcome.CONFIRMED]
    assert world.places == ["c"]
    visits = [time for time, create in world.created if create.node == "b"]
    assert len(visits) == 1
    world.run(4 * 3600, step=20)
    again_there = [time for time, create in world.created if create.node == "b"]
    gaps = [after - before for before, after in pairwise(again_there)]
    assert all(after >= 2 * before - 60 for before, after in pairwise(gaps))
    assert len(again_there) <= 5


def test_a_node_that_turns_out_far_once_it_serves_is_remembered_as_bad() -> None:
    world = World(policy(**MINIMUM), {"a": 50, "b": 10, "c": 40}, told={"a": 50, "b": 10, "c": 40}, place="a")
    world.run(6)
    assert world.places == ["b"]
    world.far["b"] = 60
    world.run(60)
    assert outcomes(world)[0] is Outcome.DISAPPOINTED
    world.run(600)
    assert world.places == ["c"]


def test_a_pod_that_never_gets_ready_is_given_up_and_its_node_left_alone() -> None:
    world = World(policy(**LIMITS), S1, told=S1, place="a", start=1e9)
    world.run(301)
    assert world.places == ["a", "h"]
    assert outcomes(world) == [Outcome.CANCELLED, Outcome.CREATING]
    assert world.evicted == ["p1"]


def test_a_move_that_no_longer_pays_is_given_up_before_anything_is_evicted() -> None:
    world = World(policy(**LIMITS), dict(S1), told=S1, place="a")
    world.step()
    world.far["a"] = 12
    world.run(10)
    assert outcomes(world) == [Outcome.CANCELLED]
    assert world.evicted == ["p1"]
    assert world.places == ["a"]


def on_trial() -> tuple[LatencyPolicyStatus, LatencyPolicySpec, View]:
    """A move to a node that nobody has measured, whose new pod has just got ready."""
    spec, nodes = policy(**LIMITS, exploration=["Migrate"]), ("a", "b")
    view = View((Pod("p", "a"),), 1, nodes, nodes)
    status = decide(status_of(spec, {"a": 70}), spec, view, later(1)).status
    view = view._replace(pods=(Pod("p", "a"), Pod("q", "b")))
    decision = decide(status, spec, view, later(6))
    assert decision.actions == (Steer("b"),)
    return decision.status, spec, view


@pytest.mark.parametrize(
    ("milliseconds", "evicted", "outcome"),
    [
        pytest.param(15, "p", Outcome.EVICTING, id="better"),
        pytest.param(60, "q", Outcome.CANCELLED, id="nearer, and beyond the hard limit as well"),
        pytest.param(80, "q", Outcome.CANCELLED, id="worse"),
    ],
)
def test_a_new_pod_on_a_node_nobody_had_measured_serves_a_request_first(
    milliseconds: int, evicted: str, outcome: Outcome
) -> None:
    status, spec, view = on_trial()
    status = observe(status, spec, [measured("b", milliseconds, 8, samples=1)])
    decision = decide(again(status), spec, view, later(9))
    assert [action.pod for action in decision.actions if isinstance(action, Evict)] == [evicted]
    assert decision.status.moves[0].outcome is outcome


def test_a_trial_without_requests_ends() -> None:
    status, spec, view = on_trial()
    decision = decide(status, spec, view, later(20))
    assert (decision.actions, decision.look_again) == ((Steer("b"),), later(21))
    assert [type(action) for action in decide(decision.status, spec, view, later(21)).actions] == [Evict]


def test_the_old_pod_stays_while_the_new_one_is_not_ready_any_more() -> None:
    status, spec, view = eviction_refused()
    view = view._replace(pods=(Pod("p", "a"), Pod("q", "g", ready=False)))
    assert not any(isinstance(each, Evict) for each in decide(status, spec, view, later(7)).actions)


def eviction_refused() -> tuple[LatencyPolicyStatus, LatencyPolicySpec, View]:
    """A move whose new pod is ready, and whose old one cannot be evicted."""
    spec = policy(**LIMITS)
    nodes = tuple(S1)
    view = View((Pod("p", "a"),), 1, nodes, nodes)
    status = decide(status_of(spec, S1), spec, view, later(1)).status
    view = view._replace(pods=(Pod("p", "a"), Pod("q", "g")))
    return decide(status, spec, view, later(6)).status, spec, view


def test_an_eviction_is_asked_for_until_the_pod_is_gone() -> None:
    status, spec, view = eviction_refused()
    for seconds in (7, 60, 300):
        decision = decide(status, spec, view, later(seconds))
        assert [action.pod for action in decision.actions if isinstance(action, Evict)] == ["p"]
    gone = decide(decision.status, spec, view._replace(pods=(Pod("q", "g"),)), later(301))
    assert [move.outcome for move in gone.status.moves] == [Outcome.MOVED]


def test_a_pod_that_may_not_be_evicted_keeps_its_place_and_the_new_one_goes_as_often_as_it_takes() -> None:
    status, spec, view = eviction_refused()
    status = status.model_copy(update={"surge": Surge(replicas=1, previous=1, wanted=2, seen=True)})
    for seconds in (306, 307):
        decision = decide(status, spec, view, later(seconds))
        status = decision.status
        assert [action.pod for action in decision.actions if isinstance(action, Evict)] == ["q"]
    assert status.moves[0].outcome is Outcome.CANCELLED


@pytest.mark.parametrize(
    "surge",
    [
        pytest.param(Surge(replicas=1, previous=2, wanted=1), id="the workload is told that there are to be fewer"),
        pytest.param(None, id="it has been told"),
    ],
)
def test_what_a_move_has_left_is_not_evicted_while_the_workload_deletes_one_itself(surge: Surge | None) -> None:
    status, spec, view = eviction_refused()
    status = decide(status, spec, view, later(306)).status.model_copy(update={"surge": surge})
    assert not any(isinstance(each, Evict) for each in decide(status, spec, view, later(307)).actions)


def test_pods_that_an_update_of_the_workload_has_made_are_not_touched() -> None:
    spec, nodes = policy(**LIMITS), tuple(S1)
    view = View((Pod("p", "g"), Pod("q", "h")), 1, nodes, nodes)
    assert not any(isinstance(each, Evict) for each in decide(status_of(spec, S1), spec, view, later(1)).actions)


def test_two_pods_move_at_once_where_two_may_and_to_different_nodes() -> None:
    spec, nodes = policy(**LIMITS, max_concurrent=2), tuple(S1)
    view = View((Pod("p", "a"), Pod("q", "b")), 2, nodes, nodes)
    first = decide(status_of(spec, S1), spec, view, later(1))
    second = decide(first.status, spec, view, later(2))
    third = decide(second.status, spec, view, later(3))
    created = [action for each in (first, second, third) for action in each.actions if isinstance(action, Create)]
    assert [(create.instead_of, create.node) for create in created] == [("q", "g"), ("p", "h")]


def test_dry_run_tells_the_move_and_makes_none() -> None:
    wet, dry = (World(policy(**LIMITS, dry_run=dry), S1, told=S1, place="a") for dry in (False, True))
    first, told = wet.step(), dry.step()
    assert dry.created == []
    assert told.status.moves == ()
    assert told.wish is not None
    assert (told.wish.node, told.wish.reason) == (wet.created[0][1].node, wet.created[0][1].reason)
    assert first.status.moves


def test_what_is_not_urgent_waits_for_the_cool_down_and_says_until_when() -> None:
    world = World(
        policy(**MINIMUM, cool_down_seconds=1000), {"a": 50, "b": 20, "c": 10}, told={"a": 50, "b": 20}, place="a"
    )
    world.told["c"] = 100
    world.run(20)
    assert world.places == ["b"]
    world.told["c"] = 10
    world.run(60)
    decision = world.decide()
    assert decision.wish is not None
    assert world.places == ["b"]
    evicted = world.status.moves[0].ready_time
    assert evicted is not None
    world.run(1000)
    assert world.places == ["c"]
    assert world.created[1][0] == (evicted + timedelta(seconds=1000) - NOW).total_seconds()


@pytest.mark.parametrize(
    ("told", "node", "reason"),
    [
        pytest.param({"a": 70, "b": 35}, "b", Reason.BEYOND_HARD_LIMIT, id="a broken limit does not wait"),
        pytest.param({"a": 38, "b": 15}, None, None, id="what is only nearer does"),
    ],
)
def test_the_minimum_keeps_to_limits_too(told: dict[str, float], node: str | None, reason: Reason | None) -> None:
    spec, view = policy(**MINIMUM, hard=40), View((Pod("p", "a"),), 1, ("a", "b"), ("a", "b"))
    cooling = Move(
        pod="o",
        source_node="b",
        target_node="a",
        reason="Nearer",
        outcome=Outcome.CONFIRMED,
        start_time=NOW,
        ready_time=NOW,
    )
    status = status_of(spec, told).model_copy(update={"moves": (cooling,)})
    created = [action for action in decide(status, spec, view, later(5)).actions if isinstance(action, Create)]
    assert [(action.node, action.reason) for action in created] == ([(node, reason)] if node else [])


def test_time_is_looked_at_when_it_alone_changes_something() -> None:
    world = World(policy(**LIMITS), S1, told=S1, place="g")
    decision = world.step()
    assert decision.look_again == later(16)


FAR = st.integers(1, 200)
WORLDS = st.fixed_dictionaries(
    {
        "far": st.lists(FAR, min_size=2, max_size=6),
        "told": st.none() | st.lists(FAR, min_size=6, max_size=6),
        "fields": st.sampled_from(
            [LIMITS, {"hard": 40}, {"soft": 30}, MINIMUM, {**MINIMUM, "exploration": ["Migrate"]}]
        ),
        "per_hour": st.integers(0, 6),
        "concurrent": st.integers(1, 2),
        "start": st.sampled_from([2.0, 7.0, 1e9]),
    }
)


def world_of(drawn: dict[str, object], **fields: object) -> World:
    far = dict(zip("abcdef", drawn["far"], strict=False))  # type: ignore[call-overload]
    told = dict(zip("abcdef", drawn["told"], strict=True)) if drawn["told"] else {}  # type: ignore[call-overload]
    limits = {"max_per_hour": drawn["per_hour"], "max_concurrent": drawn["concurrent"]}
    spec = policy(**{**drawn["fields"], **limits})  # type: ignore[dict-item]
    return World(spec, far, told={name: told[name] for name in far} if told else {}, start=drawn["start"], **fields)  # type: ignore[arg-type]


@settings(max_examples=20, deadline=None)
@given(WORLDS)
def test_never_more_moves_than_allowed_and_a_restart_at_every_step_changes_nothing(drawn: dict[str, object]) -> None:
    world, restarted = world_of(drawn), world_of(drawn, restarts=True)
    for _ in range(130):
        assert world.step(30.0)._replace(status=LatencyPolicyStatus()) == restarted.step(30.0)._replace(
            status=LatencyPolicyStatus()
        )
        assert len(world.pods) <= 1 + world.spec.moves.max_concurrent
        assert any(pod.ready for pod in world.pods.values())
    assert again(world.status) == world.status == restarted.status
    times = [time for time, _ in world.created]
    for at, time in enumerate(times):
        assert sum(each < time + 3600 for each in times[at:]) <= world.spec.moves.max_per_hour
    assert len(world.status.moves) <= MAX_MOVES


@settings(max_examples=20, deadline=None)
@given(WORLDS)
def test_where_nothing_changes_moves_end(drawn: dict[str, object]) -> None:
    """Agents may lie: each node can disappoint, and then for ten minutes, twenty, and so on."""
    world = world_of({**drawn, "per_hour": 60, "start": 2.0})
    world.run(3600, step=10.0)
    begun = len(world.created)
    if world.told and world.told != world.far:
        assert begun <= 5 * len(world.far)
    else:
        assert begun <= 2 * len(world.far)
        world.run(3600, step=10.0)
        assert len(world.created) == begun


def test_one_pod_with_minimum_is_on_the_nearest_when_agents_tell_the_truth() -> None:
    world = World(policy(**MINIMUM), {"a": 100, "b": 60, "c": 20}, told={"a": 100, "b": 60, "c": 20})
    world.observe([measured("c", 20, 0, METER), measured("b", 60, 0, PROBE)])
    world.run(30)
    assert world.places == ["c"]
    assert moves.open_moves(world.status) == ()


@pytest.mark.parametrize(
    ("fields", "near", "moves"),
    [
        pytest.param({"objective": "Minimum"}, 20, 1, id="the minimum"),
        pytest.param({"hard": 80}, 20, 1, id="limits, one node is within"),
        pytest.param({"hard": 80}, 99, 0, id="limits, no node is within"),
    ],
)
def test_of_more_nodes_than_a_status_keeps_the_nearest_is_found_and_none_explored(
    fields: dict[str, object], near: float, moves: int
) -> None:
    far = {f"n{number}": 100.0 for number in range(MAX_NODES + 40)} | {"last": near}
    world = World(policy(exploration=["ReverseProbe", "Migrate"], **fields), far, told=far)
    world.run(90)
    assert len(world.created) == moves
    assert world.places == (["last"] if moves else ["n0"])
