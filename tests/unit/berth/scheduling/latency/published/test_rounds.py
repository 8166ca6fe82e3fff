"""Rounds of the published rules with Berth's moves: what bounds them, and what a search remembers.

That they leave the nodes that the simulator's leave: tests/unit/bench/latency/test_published_rounds.py.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from berth.api.latencypolicy import (
    MAX_NODES,
    LatencyPolicyStatus,
    Move,
    NodeState,
    Objective,
    Outcome,
    PublishedRule,
    Search,
    VisitedNode,
)
from berth.scheduling.latency import knowledge
from berth.scheduling.latency.decision import Decision
from berth.scheduling.latency.published.rounds import ROUND_SECONDS, SEARCH_AGAIN, decide
from berth.scheduling.latency.situation import Create, Pod, View
from tests.support.latency import NOW, PROBE, ROUTER, again, later, measured, policy

FAR = {"a": 120.0, "b": 60.0, "c": 20.0}


def searched(rule: PublishedRule = PublishedRule.HARD, **visits: int) -> Search:
    visited = tuple(VisitedNode(node=node, visits=count) for node, count in visits.items())
    return Search(rule=rule, start_time=NOW, round_time=NOW, visited=visited)


def known(**far: float) -> LatencyPolicyStatus:
    status = knowledge.observe(LatencyPolicyStatus(), policy(hard=80), [measured(*each) for each in far.items()])
    return status.model_copy(update={"search": searched(a=1)})


def view(*places: str, candidates: tuple[str, ...] = ("a", "b", "c"), replicas: int = 0) -> View:
    pods = tuple(Pod(f"p{at}", place) for at, place in enumerate(places))
    return View(pods, replicas or len(pods), ("a", "b", "c"), candidates)


def one_round(status: LatencyPolicyStatus, there: View, at: float = ROUND_SECONDS, **spec: Any) -> Decision:
    return decide(again(status), policy(**{"hard": 80} | spec), there, later(at))


def goals(decision: Decision) -> list[str]:
    return [action.node for action in decision.actions if isinstance(action, Create)]


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        pytest.param({}, ["b"], id="beyond the limit, to the first of those visited least"),
        pytest.param({"at": ROUND_SECONDS - 1}, [], id="before the round"),
        pytest.param({"there": view("a", candidates=("c",))}, ["c"], id="one has room"),
        pytest.param({"there": view("a", candidates=())}, [], id="none has room, or nobody is there"),
        pytest.param({"there": view("a", "b", candidates=("a", "b"))}, [], id="all have a pod"),
        pytest.param({"there": view("a", "b", replicas=1)}, [], id="there is a pod too many already"),
        pytest.param({"dry_run": True}, [], id="dry run"),
        pytest.param({"max_per_hour": 0}, [], id="no move is allowed"),
        pytest.param({"hard": 130}, [], id="within the limit"),
        pytest.param({"hard": 119}, ["b"], id="beyond it by less than measurements may be wrong"),
        pytest.param({"min_samples": 15}, ["b"], id="measured often enough"),
    ],
)
def test_a_round(given: dict[str, Any], gone: list[str]) -> None:
    given = dict(given)
    assert goals(one_round(known(a=120), given.pop("there", view("a")), **given)) == gone


def test_what_is_not_known_by_meters_is_not_known() -> None:
    spec = policy(hard=80)
    for source in (PROBE, ROUTER):
        status = knowledge.observe(LatencyPolicyStatus(), spec, [measured("a", 120, source=source)])
        found = one_round(status.model_copy(update={"search": searched(a=1)}), view("a"))
        assert (goals(found), found.wish) == ([], None)


def test_what_a_round_would_do_is_told_between_rounds_and_the_next_one_is_waited_for() -> None:
    found = one_round(known(a=120), view("a"), at=3)
    assert found.wish is not None
    assert (found.wish.node, found.look_again) == ("b", later(ROUND_SECONDS))


def test_an_idle_round_is_over_and_the_next_is_awaited() -> None:
    found = one_round(known(a=20), view("a"))
    assert found.status.search is not None
    assert found.status.search.round_time == later(ROUND_SECONDS)
    assert found.look_again == later(2 * ROUND_SECONDS)


def test_one_round_moves_as_many_pods_as_may_move_at_once_each_to_another_node() -> None:
    status = knowledge.observe(known(a=120), policy(hard=80), [measured("b", 110)])
    nodes = ("a", "b", "c", "d")
    there = View((Pod("p0", "a"), Pod("p1", "b")), 2, nodes, nodes)
    assert goals(one_round(status, there, max_concurrent=2)) == ["c", "d"]
    assert goals(one_round(status, there)) == ["c"]


def test_a_round_is_held_once_the_move_before_has_ended() -> None:
    status = one_round(known(a=120), view("a")).status
    late = one_round(status, view("a", replicas=1), at=100)
    assert late.status.search is not None
    assert late.status.search.round_time == later(ROUND_SECONDS)


def test_a_node_that_lost_its_room_counts_as_left() -> None:
    limits = {"hard": 80, "soft": 30}
    status = knowledge.observe(LatencyPolicyStatus(), policy(**limits), [measured("a", 60)])
    search = searched(PublishedRule.HARD_AND_SOFT, a=1, b=1, c=1)
    status = status.model_copy(update={"search": search})
    assert goals(one_round(status, view("a"), **limits)) == ["b"]
    assert goals(one_round(status, view("a", candidates=("b",)), **limits)) == [], "one of three is less than half"


def test_a_minimum_is_not_sought_where_it_has_no_room() -> None:
    status = knowledge.observe(known(a=60), policy(hard=80), [measured("b", 20), measured("c", 90)])
    search = searched(PublishedRule.MINIMUM, a=1, b=1, c=1)
    found = one_round(
        status.model_copy(update={"search": search}), view("a", candidates=("c",)), objective=Objective.MINIMUM
    )
    assert (goals(found), found.wish) == ([], None)


@pytest.mark.parametrize(
    ("age", "moved", "gone"),
    [
        pytest.param(SEARCH_AGAIN - timedelta(minutes=1), None, False, id="within a day"),
        pytest.param(SEARCH_AGAIN, None, True, id="after a day"),
        pytest.param(SEARCH_AGAIN, timedelta(hours=1), False, id="within a day of its last move: it may go on still"),
        pytest.param(SEARCH_AGAIN, timedelta(0), True, id="a day after its last move"),
    ],
)
def test_the_search_for_the_minimum_begins_anew(age: timedelta, moved: timedelta | None, gone: bool) -> None:
    search = searched(PublishedRule.MINIMUM, a=2, b=1, c=1)
    went = [
        Move(
            pod="p",
            source_node="b",
            target_node="a",
            reason="Exploring",
            outcome=Outcome.CONFIRMED,
            start_time=NOW + each,
        )
        for each in (timedelta(0), moved)
        if each is not None
    ]
    status = LatencyPolicyStatus(search=search, moves=tuple(went))
    found = decide(status, policy(objective=Objective.MINIMUM), view("a"), NOW + age)
    assert found.status.search is not None
    assert (found.status.search.start_time > NOW) == gone
    assert (len(found.status.search.visited) == 1) == gone


def test_a_search_begins_anew_by_another_rule() -> None:
    found = one_round(known(a=20), view("a"), soft=30)
    assert found.status.search is not None
    assert found.status.search.rule is PublishedRule.HARD_AND_SOFT
    assert found.status.search.start_time == later(ROUND_SECONDS)


def test_a_pod_leaves_though_the_nodes_of_pods_were_visited_less_than_those_it_may_go_to() -> None:
    status = knowledge.observe(known(a=120), policy(hard=80), [measured("b", 110)])
    status = status.model_copy(update={"search": searched(a=2, b=1, c=3)})
    assert goals(one_round(status, view("a", "b"))) == ["c"]
    assert goals(one_round(status, view("b"))) == ["a"]


def test_a_search_ends_though_no_place_is_left_to_remember_that_a_node_with_a_pod_was_visited() -> None:
    others = [f"n{at}" for at in range(MAX_NODES)]
    status = knowledge.observe(LatencyPolicyStatus(), policy(), [measured("a", 20), measured("n0", 60)])
    search = searched(PublishedRule.MINIMUM, **dict.fromkeys(others, 1))
    there = View((Pod("p0", "a"),), 1, ("a", *others), ("a", *others))
    found = one_round(status.model_copy(update={"search": search}), there, objective=Objective.MINIMUM)
    assert (goals(found), found.wish) == ([], None)


def test_visits_that_somebody_wrote_are_counted_no_further_than_the_api_server_takes_them() -> None:
    most = 2**31 - 1
    status = known(a=120).model_copy(update={"search": searched(a=1, b=most, c=most)})
    found = one_round(status, view("a")).status.search
    assert found is not None
    assert {each.node: each.visits for each in found.visited} == {"a": 1, "b": most, "c": most}


class CountedName(str):
    """Name of a node that counts how often it is compared with another."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize(
    ("objective", "rule", "moves"),
    [
        pytest.param(Objective.CONSTRAINTS, PublishedRule.HARD, 8, id="all pods are beyond the limit"),
        pytest.param(Objective.MINIMUM, PublishedRule.MINIMUM, 1, id="the farthest pod explores"),
    ],
)
def test_a_round_compares_each_of_many_nodes_a_few_times(objective: Objective, rule: PublishedRule, moves: int) -> None:
    names = tuple(CountedName(f"n{at}") for at in range(1000))
    far = [measured(str(name), 120 + at) for at, name in enumerate(names[:8])]
    status = knowledge.observe(LatencyPolicyStatus(), policy(hard=80), far)
    status = status.model_copy(update={"search": searched(rule)})
    there = View(tuple(Pod(f"p{at}", name) for at, name in enumerate(names[:8])), 8, names, names)
    CountedName.compared = 0
    found = one_round(status, there, objective=objective, max_concurrent=8)
    assert len(goals(found)) == moves
    assert CountedName.compared < 50 * len(names)


def test_states_are_by_the_limits_alone() -> None:
    found = one_round(known(a=81), view("a"))
    assert [each.state for each in found.status.nodes] == [NodeState.INVALID]


def test_after_a_clock_was_set_back_rounds_go_on() -> None:
    ahead = searched(a=1).model_copy(update={"start_time": later(7200), "round_time": later(7200)})
    status = known(a=120).model_copy(update={"search": ahead})
    first = one_round(status, view("a"), at=0)
    assert goals(one_round(first.status, view("a"))) == ["b"]
