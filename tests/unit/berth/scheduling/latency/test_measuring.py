"""When agents are asked to measure, and how long their answers are awaited."""

from __future__ import annotations

import pytest

from berth.api.latencypolicy import Exploration, LatencyPolicyStatus
from berth.scheduling.latency.knowledge import observe
from berth.scheduling.latency.measuring import ANSWERED_WITHIN, ASK_AGAIN, awaiting, probe, unreachable
from berth.scheduling.latency.situation import Pod, Probe, View
from tests.support.latency import NOW, PROBE, again, later, measured, policy

SPEC = policy(hard=40)
VIEW = View((Pod("p", "c"),), 1, ("a", "b", "c"), ("a", "b"))
ALL = Probe(("a", "b", "c"))
EMPTY = LatencyPolicyStatus()


def test_candidates_and_nodes_with_pods_are_asked_again_every_quarter_of_a_minute() -> None:
    status, asked = probe(EMPTY, SPEC, VIEW, NOW)
    assert asked == ALL
    assert probe(status, SPEC, VIEW, later(14)) == (status, None)
    assert probe(again(status), SPEC, VIEW, later(15))[1] == ALL


def test_no_agent_is_asked_for_a_pod_that_has_no_node_yet() -> None:
    view = VIEW._replace(pods=(Pod("new", "", ready=False), *VIEW.pods))
    assert probe(EMPTY, SPEC, view, NOW)[1] == ALL


@pytest.mark.parametrize(
    ("view", "fields"),
    [
        pytest.param(VIEW._replace(active=False), {}, id="no users"),
        pytest.param(VIEW._replace(pods=(), candidates=()), {}, id="no nodes"),
        pytest.param(VIEW._replace(pods=(Pod("p", "", ready=False),), candidates=()), {}, id="a pod without a node"),
        pytest.param(VIEW, {"exploration": [Exploration.MIGRATE]}, id="not allowed"),
    ],
)
def test_nobody_is_asked(view: View, fields: dict[str, object]) -> None:
    assert probe(EMPTY, policy(hard=40, **fields), view, NOW) == (EMPTY, None)


def test_users_that_do_not_answer_are_left_alone_for_a_while() -> None:
    status = unreachable(probe(EMPTY, SPEC, VIEW, NOW)[0], later(3))
    assert not awaiting(status, SPEC, VIEW, later(3))
    assert probe(status, SPEC, VIEW, later(60))[1] is None
    status, asked = probe(status, SPEC, VIEW, later(3) + ASK_AGAIN)
    assert asked == ALL
    assert awaiting(status, SPEC, VIEW, later(4) + ASK_AGAIN)


def test_answers_are_awaited_for_a_while_and_as_long_as_they_tell_something_new() -> None:
    assert not awaiting(EMPTY, SPEC, VIEW, NOW)
    status, _ = probe(EMPTY, SPEC, VIEW, NOW)
    assert awaiting(status, SPEC, VIEW, later(4))
    assert not awaiting(status, SPEC, VIEW, NOW + ANSWERED_WITHIN)
    status = observe(status, SPEC, [measured("a", 20, 2, PROBE)])
    assert awaiting(status, SPEC, VIEW, later(4))
    status = observe(status, SPEC, [measured("b", 20, 2, PROBE)])
    assert not awaiting(status, SPEC, VIEW, later(4))
