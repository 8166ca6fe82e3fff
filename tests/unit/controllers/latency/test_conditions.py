"""What people read of a policy: conditions and figures."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latencypolicy import (
    LatencyPolicyStatus,
    Move,
    NodeState,
    Objective,
    Outcome,
    PublishedRule,
    Search,
    Surge,
)
from berth.scheduling.latency.situation import Pod, Reason, View, Wish
from controllers.latency.conditions import EachUser, Facts, conditions, figures
from controllers.latency.workloads import Obstacle
from tests.support.latency import NOW, known, later, policy

PODS = (Pod("web-1", "a"),)
WISH = Wish(PODS[0], "b", Reason.BEYOND_HARD_LIMIT, "b at 20.0 ms", urgent=True)


def move(outcome: Outcome, at: float = 0) -> Move:
    return Move(pod="web-1", source_node="a", target_node="b", reason="Nearer", outcome=outcome, start_time=later(at))


def facts(**fields: Any) -> Facts:
    spec = fields.pop("spec", policy(hard=80, soft=30))
    nodes = fields.pop("nodes", (known("a", 20, NodeState.SOFT_VALID),))
    moves = fields.pop("moves", ())
    pods = fields.pop("pods", PODS)
    view = View(
        pods,
        fields.pop("replicas", 1),
        ("a", "b"),
        ("b",),
        asked=fields.pop("asked", 0),
        refused=fields.pop("refused", ""),
    )
    users = fields.pop("users", True)
    given = {name: fields.pop(name, None) for name in ("surge", "search")}
    status = LatencyPolicyStatus(nodes=nodes, moves=moves, **given)
    wish, refusals = fields.pop("wish", None), fields.pop("refusals", {})
    return Facts(spec, status, view, users, wish, refusals, NOW, fields.pop("each", None))


FAR = (known("a", 120, NodeState.INVALID),)


@pytest.mark.parametrize(
    ("given", "working", "limits", "moving"),
    [
        pytest.param(facts(nodes=()), "NotMeasured", "NotMeasured", "Idle", id="nothing known"),
        pytest.param(facts(users=False), "NoUsers", "Within", "Idle", id="nobody there"),
        pytest.param(facts(), "Measuring", "Within", "Idle", id="all is well"),
        pytest.param(facts(nodes=FAR), "Measuring", "BeyondHardLimit", "Idle", id="no better node"),
        pytest.param(facts(nodes=FAR, wish=WISH), "Measuring", "BeyondHardLimit", "Waiting", id="a move that waits"),
        pytest.param(
            facts(nodes=(known("a", 60, NodeState.HARD_VALID),)),
            "Measuring",
            "BeyondSoftLimit",
            "Idle",
            id="in between",
        ),
        pytest.param(
            facts(nodes=FAR, wish=WISH, spec=policy(hard=80, dry_run=True)),
            *("Measuring", "BeyondHardLimit", "DryRun"),
            id="dry run",
        ),
        pytest.param(
            facts(nodes=FAR, wish=WISH, spec=policy(hard=80, max_per_hour=0)),
            *("Measuring", "BeyondHardLimit", "TooManyMoves"),
            id="no moves allowed",
        ),
        pytest.param(
            facts(nodes=FAR, wish=WISH, spec=policy(hard=80, max_per_hour=1), moves=(move(Outcome.CONFIRMED, -60),)),
            *("Measuring", "BeyondHardLimit", "TooManyMoves"),
            id="as many moves as are allowed",
        ),
        pytest.param(
            facts(nodes=FAR, moves=(move(Outcome.CREATING),)),
            *("Measuring", "BeyondHardLimit", "Creating"),
            id="a new pod awaited",
        ),
        pytest.param(
            facts(nodes=FAR, moves=(move(Outcome.CREATING),), refused="exceeded quota: few"),
            *("Measuring", "BeyondHardLimit", "CreationRefused"),
            id="a new pod that may not be created",
        ),
        pytest.param(
            facts(nodes=FAR, refused="exceeded quota: few"),
            *("Measuring", "BeyondHardLimit", "Idle"),
            id="others may not be created: that is no business of the policy",
        ),
        pytest.param(
            facts(nodes=FAR, moves=(move(Outcome.EVICTING),)),
            *("Measuring", "BeyondHardLimit", "Evicting"),
            id="the old pod goes",
        ),
        pytest.param(
            facts(nodes=FAR, moves=(move(Outcome.EVICTING),), refusals={"web-1": "a budget"}),
            *("Measuring", "BeyondHardLimit", "EvictionRefused"),
            id="the old pod is kept",
        ),
        pytest.param(
            facts(wish=WISH, spec=policy(objective=Objective.MINIMUM)),
            *("Measuring", "NearerIsKnown", "Waiting"),
            id="within no limit, and nearer is known",
        ),
    ],
)
def test_reasons(given: Facts, working: str, limits: str, moving: str) -> None:
    assert [update.reason for update in conditions(given)] == [working, limits, moving]


IN_BETWEEN = known("a", 120, NodeState.INVALID), known("b", 60, NodeState.HARD_VALID)
BEYOND = WISH._replace(message="a at 120.0 ms is beyond the hard limit of 80 ms; c at 20.0 ms")


@pytest.mark.parametrize(
    ("nodes", "given", "text"),
    [
        pytest.param("a", facts(nodes=FAR), "a at 120.0 ms; no better node with room is known", id="no better node"),
        pytest.param("a", facts(nodes=FAR, wish=BEYOND), BEYOND.message, id="a move that waits"),
        pytest.param(
            "ab", facts(nodes=IN_BETWEEN, wish=BEYOND), f"b at 60.0 ms; {BEYOND.message}", id="of one of two pods"
        ),
        pytest.param("aa", facts(nodes=FAR, wish=BEYOND), BEYOND.message, id="of one of two pods on a node"),
        pytest.param(
            "aa", facts(nodes=FAR), "a at 120.0 ms; no better node with room is known", id="two pods on a node"
        ),
        pytest.param(
            "a",
            facts(nodes=FAR, wish=BEYOND, moves=(move(Outcome.CREATING),)),
            "a at 120.0 ms; a pod is moving",
            id="a move that goes on",
        ),
    ],
)
def test_each_node_is_named_once(nodes: str, given: Facts, text: str) -> None:
    pods = tuple(Pod(f"web-{at}", node) for at, node in enumerate(nodes))
    _, within, _ = conditions(given._replace(view=given.view._replace(pods=pods)))
    assert within.message == text


def test_figures_are_those_of_the_pods_nodes() -> None:
    nodes = (known("a", 60, NodeState.HARD_VALID), known("b", 20, NodeState.SOFT_VALID), known("c", 500))
    moves = (move(Outcome.CONFIRMED, -4000), move(Outcome.CONFIRMED, -60))
    there = facts(nodes=nodes, moves=moves)
    view = View((Pod("p", "a"), Pod("q", "b"), Pod("r", "")), 2, ("a", "b", "c"), ())
    assert figures(there._replace(view=view)) == {
        "state": "HardValid 1, SoftValid 1",
        "p50": "60.0 ms",
        "moves_last_hour": 1,
    }
    one = view._replace(pods=(Pod("q", "b"),))
    assert figures(there._replace(view=one)) == {"state": "SoftValid", "p50": "20.0 ms", "moves_last_hour": 1}
    none = view._replace(pods=())
    assert figures(there._replace(view=none)) == {"state": None, "p50": None, "moves_last_hour": 1}


LEAVING = Surge(replicas=2, previous=2, wanted=2, seen=True, leaving="web-1")
HELD = Obstacle("Autoscaled", "somebody else scales it")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param(
            facts(nodes=FAR, wish=WISH, moves=(move(Outcome.CONFIRMED, -50),)),
            "it waits for moves.coolDownSeconds, until 2026-01-31T12:00:10Z",
            id="the cool-down",
        ),
        pytest.param(
            facts(nodes=FAR, wish=WISH, pods=(*PODS, Pod("web-2", "", ready=False))),
            "it waits while there are 2 pods, or to come, where 1 should be",
            id="a pod too many, as of a rollout",
        ),
        pytest.param(
            facts(nodes=FAR, wish=WISH, asked=2),
            "it waits while there are 2 pods, or to come, where 1 should be",
            id="one is to come for a pod that was evicted",
        ),
        pytest.param(
            facts(nodes=FAR, wish=WISH, moves=(move(Outcome.CONFIRMED, -60),)), "it is about to begin", id="nothing"
        ),
    ],
)
def test_what_a_move_waits_for_is_said(given: Facts, text: str) -> None:
    _, _, moving = conditions(given)
    assert moving.reason == "Waiting"
    assert moving.message.endswith(f"; {text}")


EACH = policy(hard=80, soft=30, users={"mode": "PerUser"})
GROWS = policy(hard=80, soft=30, users={"mode": "PerUser", "max_replicas": 4})


def each(*milliseconds: float, held: Obstacle | None = None) -> EachUser:
    return EachUser(len(milliseconds), tuple(round(far * 1000) for far in milliseconds), held)


@pytest.mark.parametrize(
    ("given", "limits", "moving", "text"),
    [
        pytest.param(facts(each=each()), "NotMeasured", "Idle", "no user is measured", id="nobody is measured"),
        pytest.param(facts(each=each(10, 20, 30)), "Within", "Idle", "20.0 ms is the median of 3 users", id="all well"),
        pytest.param(facts(each=each(10, 31)), "Within", "Idle", "median", id="beyond by less than is noticed"),
        pytest.param(
            facts(each=each(10, 60)), "BeyondSoftLimit", "Idle", "1 beyond the soft limit of 30 ms", id="in between"
        ),
        pytest.param(
            facts(each=each(10, 60, 90)),
            *(
                "BeyondHardLimit",
                "Idle",
                "1 beyond the hard limit of 80 ms; no better",
            ),
            id="beyond the hard limit",
        ),
        pytest.param(
            facts(each=each(90), wish=WISH), "BeyondHardLimit", "Waiting", "b at 20.0 ms", id="a move that waits"
        ),
        pytest.param(
            facts(each=each(90, held=HELD), wish=WISH), "BeyondHardLimit", "Autoscaled", "90.0 ms", id="who else scales"
        ),
        pytest.param(facts(each=each(10), surge=LEAVING), "Within", "Leaving", "10.0 ms", id="a pod leaves"),
        pytest.param(
            facts(each=each(10), surge=LEAVING, refusals={"web-1": "a budget"}),
            *("Within", "EvictionRefused", "10.0 ms"),
            id="a pod that may not leave",
        ),
        pytest.param(
            facts(each=each(10), spec=GROWS, replicas=3, refused="exceeded quota: few"),
            *("Within", "CreationRefused", "10.0 ms"),
            id="more pods that may not be created",
        ),
        pytest.param(
            facts(each=each(10), spec=GROWS, refused="exceeded quota: few"),
            *("Within", "Idle", "10.0 ms"),
            id="all that there should be are there",
        ),
        pytest.param(
            facts(each=each(10), spec=EACH, replicas=3, refused="exceeded quota: few"),
            *("Within", "Idle", "10.0 ms"),
            id="their number is that of others",
        ),
    ],
)
def test_where_each_user_counts_users_are_within_limits_and_not_nodes(
    given: Facts, limits: str, moving: str, text: str
) -> None:
    _, within, move = conditions(given)
    assert (within.reason, move.reason) == (limits, moving)
    assert text in within.message


def test_figures_are_those_of_users_where_each_counts() -> None:
    assert figures(facts(each=each(10, 20, 60, 90))) == {
        "state": "Invalid 1, HardValid 1, SoftValid 2",
        "p50": "20.0 ms",
        "moves_last_hour": 0,
    }


def test_who_forbids_further_pods_is_said_in_the_api_servers_words() -> None:
    _, _, moving = conditions(facts(each=each(10), spec=GROWS, replicas=3, refused="exceeded quota: few"))
    assert (moving.status, moving.message) == (False, "1 of 3 pods are there; exceeded quota: few")


SEARCH = Search(rule=PublishedRule.HARD_AND_SOFT, start_time=NOW, round_time=later(5))


@pytest.mark.parametrize(
    ("given", "condition", "text"),
    [
        pytest.param({}, "Working", "the published rule HardAndSoft decides, for a soft limit of 30 ms", id="which"),
        pytest.param(
            {"nodes": (known("a", 60, NodeState.HARD_VALID),)},
            "WithinLimits",
            "the published rule leaves no node",
            id="stays",
        ),
        pytest.param(
            {"nodes": FAR, "wish": WISH, "moves": (move(Outcome.CONFIRMED),)},
            "Moving",
            "it waits for the next round, at 2026-01-31T12:00:36Z",
            id="waits, and for no cool-down",
        ),
    ],
)
def test_who_decides_is_told_where_the_published_rules_do(given: dict[str, Any], condition: str, text: str) -> None:
    found = {each.type: each.message for each in conditions(facts(search=SEARCH, **given))}
    assert text in found[condition]
