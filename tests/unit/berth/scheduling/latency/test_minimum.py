"""The objective Minimum: what is measured first, and who moves then."""

from __future__ import annotations

import pytest

from berth.api.latencypolicy import Exploration, NodeState, NodeStatus
from berth.scheduling.latency.minimum import find
from berth.scheduling.latency.situation import Pod, Reason, Situation, Steer, View, Wish
from tests.support.latency import NOW, known, later, policy

SOFT = NodeState.SOFT_VALID
HERE = known("here", 70, SOFT)
OTHER = known("x", None)
MIGRATE = [Exploration.REVERSE_PROBE, Exploration.MIGRATE]


def node(name: str, milliseconds: float, samples: int = 15) -> NodeStatus:
    return known(name, milliseconds, SOFT, samples)


def situation(*nodes: NodeStatus, awaiting: bool = False, **fields: object) -> Situation:
    names = tuple(each.node for each in nodes)
    view = View((Pod("p", names[0]),), 1, names, names)
    known_nodes = {each.node: each for each in nodes if each.time or each.rejections}
    return Situation(policy(objective="Minimum", **fields), known_nodes, view, NOW, awaiting)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        pytest.param(situation(HERE, node("a", 15), node("b", 60)), "a", id="the nearest"),
        pytest.param(situation(node("here", 21), node("a", 15)), "a", id="proven by many samples"),
        pytest.param(
            situation(HERE, node("a", 15, 2), node("b", 60, 2)), "a", id="two samples do where others are far"
        ),
        pytest.param(situation(HERE, node("a", 15, 3), node("b", 15, 3)), "a", id="between equal ones of three"),
        pytest.param(situation(node("here", 100, 1), node("a", 15, 1)), "a", id="one sample each, far apart"),
    ],
)
def test_goes_to_the_nearest(given: Situation, target: str) -> None:
    found = find(given)
    assert isinstance(found, Wish)
    assert (found.node, found.reason, found.urgent) == (target, Reason.NEARER, False)


@pytest.mark.parametrize(
    ("given", "target"),
    [
        pytest.param(situation(HERE, node("a", 15), OTHER), "x", id="one that nobody knows"),
        pytest.param(
            situation(HERE, node("a", 15, 2), node("b", 15.5, 1)), "b", id="of two that may be it, the less known"
        ),
    ],
)
def test_measures_before_it_goes(given: Situation, target: str) -> None:
    assert find(given) == Steer(target)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(situation(node("here", 15), node("a", 14)), id="nearer by less than what pays"),
        pytest.param(situation(node("here", 18, 1), node("a", 15, 1)), id="nearer, but not proven"),
        pytest.param(
            situation(node("here", 15), node("a", 15, 1), node("b", 16, 1)), id="no more is measured for nothing"
        ),
        pytest.param(situation(HERE, OTHER, awaiting=True), id="agents are about to answer"),
        pytest.param(situation(HERE, OTHER, exploration=[Exploration.REVERSE_PROBE]), id="nothing may be explored"),
        pytest.param(situation(OTHER, node("a", 15)), id="nobody knows how far the pod is"),
        pytest.param(
            situation(HERE, node("a", 15).model_copy(update={"rejections": 1, "rejected_until": later(1)})),
            id="the nearest is remembered as bad",
        ),
        pytest.param(
            situation(node("here", 30), node("a", 15), min_improvement_percent=60), id="what pays is the policy's"
        ),
    ],
)
def test_stays(given: Situation) -> None:
    assert find(given) is None


def test_a_pod_explores_where_neither_probes_nor_the_router_can() -> None:
    found = find(situation(HERE, node("a", 15), OTHER, exploration=MIGRATE))
    assert isinstance(found, Wish)
    assert (found.node, found.reason, found.urgent) == ("x", Reason.EXPLORING, True)
