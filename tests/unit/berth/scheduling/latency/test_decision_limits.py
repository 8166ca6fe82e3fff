"""Limits that somebody changes hold for nodes, too, that nobody measures again."""

from __future__ import annotations

import pytest

from berth.api.latencypolicy import NodeState
from berth.scheduling.latency.decision import decide
from berth.scheduling.latency.knowledge import by_name, observe
from berth.scheduling.latency.situation import Pod, Reason, View
from tests.support.latency import later, measured, policy, status_of

AN_HOUR = 3600.0


@pytest.mark.parametrize(
    ("before", "after", "here", "state", "reason"),
    [
        pytest.param({"hard": 80}, {"hard": 30}, 100, NodeState.INVALID, Reason.NEARER, id="lower: no node is valid"),
        pytest.param(
            {"hard": 30}, {"hard": 80}, 100, NodeState.SOFT_VALID, Reason.BEYOND_HARD_LIMIT, id="higher: one is valid"
        ),
        pytest.param({"hard": 80}, {"hard": 80, "soft": 30}, 70, NodeState.HARD_VALID, None, id="both are beyond it"),
        pytest.param(
            {"hard": 80}, {"hard": 80, "min_samples": 15}, 100, NodeState.UNKNOWN, None, id="too few have measured it"
        ),
    ],
)
def test_a_pod_goes_by_the_limits_as_they_are(
    before: dict[str, object], after: dict[str, object], here: float, state: NodeState, reason: Reason | None
) -> None:
    """A pod was on b an hour ago; users do not answer agents, and no pod explores."""
    spec = policy(exploration=[], **after)
    status = observe(status_of(spec, {}), policy(**before), [measured("b", 50, samples=14)])
    status = observe(status, spec, [measured("a", here, AN_HOUR)])
    view = View((Pod("p", "a"),), 1, ("a", "b"), ("b",))
    found = decide(status, spec, view, later(AN_HOUR + 1))
    assert by_name(found.status)["b"].state is state
    assert (found.wish.reason if found.wish is not None else None) == reason
