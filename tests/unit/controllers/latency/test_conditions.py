"""What people read of a policy: conditions and figures."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latencypolicy import LatencyPolicyStatus, Move, NodeState, Objective, Outcome
from berth.scheduling.latency.situation import Pod, Reason, View, Wish
from controllers.latency.conditions import Facts, conditions, figures
from tests.support.latency import NOW, known, later, policy

PODS = (Pod("web-1", "a"),)
WISH = Wish(PODS[0], "b", Reason.BEYOND_HARD_LIMIT, "b at 20.0 ms", urgent=True)


def move(outcome: Outcome, at: float = 0) -> Move:
    return Move(pod="web-1", source_node="a", target_node="b", reason="Nearer", outcome=outcome, start_time=later(at))


def facts(**fields: Any) -> Facts:
    spec = fields.pop("spec", policy(hard=80, soft=30))
    nodes = fields.pop("nodes", (known("a", 20, NodeState.SOFT_VALID),))
    moves = fields.pop("moves", ())
    view, users = View(PODS, 1, ("a", "b"), ("b",)), fields.pop("users", True)
    status = LatencyPolicyStatus(nodes=nodes, moves=moves)
    return Facts(spec, status, view, users, fields.pop("wish", None), fields.pop("refusals", {}), NOW)


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


def test_figures_are_those_of_the_pods_nodes() -> None:
    nodes = (known("a", 60, NodeState.HARD_VALID), known("b", 20, NodeState.SOFT_VALID), known("c", 500))
    moves = (move(Outcome.CONFIRMED, -4000), move(Outcome.CONFIRMED, -60))
    status = LatencyPolicyStatus(nodes=nodes, moves=moves)
    view = View((Pod("p", "a"), Pod("q", "b"), Pod("r", "")), 2, ("a", "b", "c"), ())
    assert figures(status, view, NOW) == {"state": "HardValid 1, SoftValid 1", "p50": "60.0 ms", "moves_last_hour": 1}
    one = view._replace(pods=(Pod("q", "b"),))
    assert figures(status, one, NOW) == {"state": "SoftValid", "p50": "20.0 ms", "moves_last_hour": 1}
    none = view._replace(pods=())
    assert figures(status, none, NOW) == {"state": None, "p50": None, "moves_last_hour": 1}
