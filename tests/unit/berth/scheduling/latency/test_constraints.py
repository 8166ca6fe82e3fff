"""The objective Constraints: who moves where, and who stays."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latencypolicy import Exploration, NodeState, NodeStatus
from berth.scheduling.latency.constraints import find
from berth.scheduling.latency.situation import Pod, Reason, Situation, View
from tests.support.latency import NOW, known, later, policy

_, INVALID, HARD, SOFT = NodeState
FAR, NEAR, MIDDLE, OTHER = known("far", 70, INVALID), known("near", 15, SOFT), known("mid", 36, HARD), known("x", None)


def situation(*nodes: NodeStatus, at: str = "", awaiting: bool = False, **fields: object) -> Situation:
    """One pod on the first node, or on `at`; all nodes are candidates."""
    names = tuple(node.node for node in nodes)
    view = View((Pod("p", at or names[0]),), 1, names, names)
    known_nodes = {node.node: node for node in nodes if node.time or node.rejections}
    return Situation(policy(**{"hard": 40, "soft": 30, **fields}), known_nodes, view, NOW, awaiting)


def rejected(node: NodeStatus) -> NodeStatus:
    return node.model_copy(update={"rejections": 1, "rejected_until": later(60)})


@pytest.mark.parametrize(
    ("given", "node", "reason"),
    [
        pytest.param(situation(FAR, MIDDLE, NEAR), "near", Reason.BEYOND_HARD_LIMIT, id="the nearest that is valid"),
        pytest.param(situation(FAR, MIDDLE), "mid", Reason.BEYOND_HARD_LIMIT, id="hard-valid is better than invalid"),
        pytest.param(
            situation(MIDDLE, NEAR), "near", Reason.BEYOND_SOFT_LIMIT, id="soft-valid is better than hard-valid"
        ),
        pytest.param(situation(FAR, OTHER), "x", Reason.BEYOND_HARD_LIMIT, id="one that nobody measured, if no better"),
        pytest.param(situation(MIDDLE, FAR, OTHER), "x", Reason.BEYOND_SOFT_LIMIT, id="for the soft limit as well"),
        pytest.param(
            situation(FAR, OTHER, MIDDLE), "mid", Reason.BEYOND_HARD_LIMIT, id="one that is known comes first"
        ),
        pytest.param(
            situation(known("far", 100, INVALID), known("b", 70, INVALID)),
            "b",
            Reason.NEARER,
            id="nearer, if none is valid",
        ),
    ],
)
def test_moves(given: Situation, node: str, reason: Reason) -> None:
    wish = find(given)
    assert wish is not None
    assert (wish.pod.name, wish.node, wish.reason) == ("p", node, reason)
    assert wish.urgent == (reason is not Reason.NEARER)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(situation(NEAR, known("b", 5, SOFT)), id="within the limits: nothing nearer is looked for"),
        pytest.param(situation(MIDDLE, known("b", 35, HARD)), id="another of the same state"),
        pytest.param(situation(FAR, rejected(NEAR)), id="the only better one is remembered as bad"),
        pytest.param(situation(FAR, rejected(OTHER)), id="so is the only one nobody measured"),
        pytest.param(situation(FAR, OTHER, awaiting=True), id="agents are about to answer"),
        pytest.param(
            situation(known("far", 100, INVALID), known("b", 70, INVALID), OTHER, awaiting=True),
            id="nearer and invalid as well, while a better one may become known",
        ),
        pytest.param(situation(FAR, OTHER, exploration=[Exploration.REVERSE_PROBE]), id="pods do not explore"),
        pytest.param(situation(known("a", 41, INVALID), known("b", 40, HARD)), id="better by less than the margin"),
        pytest.param(situation(known("a", 100, INVALID), known("b", 90, INVALID)), id="not proven to be nearer"),
        pytest.param(situation(OTHER, NEAR), id="nobody knows how far the pod is"),
        pytest.param(situation(FAR), id="no other node"),
    ],
)
def test_stays(given: Situation) -> None:
    assert find(given) is None


def test_the_farthest_pod_goes_first_and_no_two_share_a_node() -> None:
    nodes = [known("a", 50, INVALID), known("b", 90, INVALID), NEAR, MIDDLE]
    names = tuple(node.node for node in nodes)
    pods = (Pod("p", "a"), Pod("q", "b"), Pod("r", "near"))
    view = View(pods, 3, names, names)
    spec = policy(hard=40, soft=30)
    wish = find(Situation(spec, {node.node: node for node in nodes}, view, NOW, False))
    assert wish is not None
    assert (wish.pod.name, wish.node) == ("q", "mid")


@pytest.mark.parametrize("fields", [{"ready": False}, {"held": True}])
def test_pods_that_are_held_or_not_ready_stay(fields: dict[str, Any]) -> None:
    given = situation(FAR, NEAR)
    view = given.view._replace(pods=(Pod("p", "far")._replace(**fields),))
    assert find(given._replace(view=view)) is None


def test_the_message_says_how_far_it_is_and_where_it_is_nearer() -> None:
    wish = find(situation(FAR, NEAR))
    assert wish is not None
    assert wish.message == "far at 70.0 ms is beyond the hard limit of 40 ms; near at 15.0 ms is nearer"
