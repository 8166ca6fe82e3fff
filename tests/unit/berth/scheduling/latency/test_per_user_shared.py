"""Each user counts, and pods share a node: the plan names it once, and one of them may go where users need it."""

from __future__ import annotations

import pytest

from berth.api.latencypolicy import LatencyPolicySpec, LatencyPolicyStatus
from berth.scheduling.latency.per_user import decide
from berth.scheduling.latency.situation import Create, Pod, View
from tests.support.latency import NODES, NOW, policy, users_of

SPEC = policy(hard=40, users={"mode": "PerUser"})
GROWS = policy(hard=40, users={"mode": "PerUser", "maxReplicas": 3})
EAST, WEST = [10.0, 90.0, 90.0, 90.0], [90.0, 90.0, 90.0, 12.0]


def view(*places: str, unready: tuple[str, ...] = ()) -> View:
    """Pods p0, p1, ... on these nodes; all are ready that have one and are not named."""
    pods = [Pod(f"p{at}", node, ready=bool(node) and f"p{at}" not in unready) for at, node in enumerate(places)]
    return View(tuple(pods), len(pods), NODES, NODES)


@pytest.mark.parametrize(
    ("spec", "there"),
    [
        pytest.param(SPEC, view("d", "d", ""), id="another waits for a node"),
        pytest.param(GROWS, view("d", "d"), id="more are to come"),
    ],
)
def test_a_plan_has_no_node_twice_where_two_pods_share_one(spec: LatencyPolicySpec, there: View) -> None:
    """The API server would refuse the status, and nothing would be done any more."""
    decision = decide(LatencyPolicyStatus(), spec, there, users_of([EAST, WEST]), NOW)
    assert sorted(decision.status.plan) == ["a", "d"]
    assert decision.wish is None, "who comes goes to the other node"


@pytest.mark.parametrize(
    ("there", "goes", "node"),
    [
        pytest.param(view("d", "d"), "p0", "a", id="both are on one"),
        pytest.param(view("d", "d", "b"), "p0", "a", id="a third is elsewhere"),
        pytest.param(view("d", "d", "a"), None, None, id="all users are served"),
        pytest.param(view("d", "d", unready=("p1",)), None, None, id="none that serves would stay"),
        pytest.param(view("d", "d", "d", unready=("p0",)), "p1", "a", id="one that serves stays"),
    ],
)
def test_one_of_two_pods_goes_from_a_node_to_users_whom_none_serves(
    there: View, goes: str | None, node: str | None
) -> None:
    decision = decide(LatencyPolicyStatus(), SPEC, there, users_of([EAST, WEST]), NOW)
    assert (decision.wish and decision.wish.pod.name, decision.wish and decision.wish.node) == (goes, node)
    created = [action.node for action in decision.actions if isinstance(action, Create)]
    assert created == ([node] if node else [])
