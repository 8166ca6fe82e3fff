"""CheckRiskNodeBandwidth: the KEP's formula, its example and its bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.cache.link_use import MAX_AGE, LinkUse
from berth.scheduling.configuration import Profile
from berth.scheduling.framework.reasons import RISKY_BANDWIDTH
from berth.scheduling.plugins.check_risk_node_bandwidth import node_risk
from tests.support.placement import Lab, chain, group_object, lone, member, where, zoned

MBIT = 1e6
GIGABIT = 1e9


def risk(mean: float, deviation: float, *, request: float = 0.1, margin: float = 1, sensitivity: float = 2) -> float:
    """On a link of 1 bit/s."""
    figures = (np.array([value]) for value in (mean, deviation, 1.0))
    return float(node_risk(*figures, request=request, margin=margin, sensitivity=sensitivity)[0])


@pytest.mark.parametrize(
    ("figures", "expected"),
    [
        pytest.param({"mean": 0.7, "deviation": 0.6}, 0.787, id="the-example"),
        pytest.param({"mean": 0.0, "deviation": 0.0}, 0.05, id="idle"),
        pytest.param({"mean": 0.5, "deviation": 0.04}, 0.4, id="root-of-the-deviation"),
        pytest.param({"mean": 5.0, "deviation": 9.0}, 1.0, id="both-are-cut"),
        pytest.param({"mean": 0.5, "deviation": 0.04, "margin": 2}, 0.5, id="margin"),
        pytest.param({"mean": 0.5, "deviation": 0.04, "margin": 0}, 0.3, id="no-margin"),
        pytest.param({"mean": 0.5, "deviation": 0.04, "sensitivity": 1}, 0.32, id="sensitivity"),
        pytest.param({"mean": 0.5, "deviation": 0.04, "sensitivity": 0}, 0.3, id="no-sensitivity"),
        pytest.param({"mean": -1.0, "deviation": 0.0, "request": -5.0}, 0.0, id="below-zero"),
    ],
)
def test_the_formula(figures: dict[str, float], expected: float) -> None:
    assert risk(**figures) == pytest.approx(expected, abs=5e-4)


FIGURE = st.floats(-2, 3)


@given(FIGURE, FIGURE, st.floats(0, 2), st.floats(0, 3), st.floats(0, 9))
def test_a_risk_is_from_0_to_1_and_grows_with_use(
    mean: float, deviation: float, request: float, margin: float, sensitivity: float
) -> None:
    known = {"margin": margin, "sensitivity": sensitivity}
    found = risk(mean, deviation, request=request, **known)
    assert 0 <= found <= 1
    assert found <= risk(mean + 0.1, deviation, request=request, **known)
    assert found <= risk(mean, deviation, request=request + 0.1, **known)


def lab(**settings: float) -> Lab:
    """Three nodes with links of 1 Gbit/s, of which n3 is busy as in the KEP's example."""
    nodes = [zoned(name, network_aware_com__bandwidth="1G") for name in ("n1", "n2", "n3")]
    made = Lab(nodes, Profile.model_validate({"checkRiskNodeBandwidth": settings}))
    for name, mean, deviation in (("n1", 200, 10), ("n2", 400, 90), ("n3", 700, 600)):
        use(made, name, LinkUse(mean * MBIT, deviation * MBIT, GIGABIT))
    return made


def use(made: Lab, node: str, figures: LinkUse, *, age: float = 0) -> None:
    assert made.cache.state.link_use is not None
    made.cache.state.link_use.update(node, figures, age=age)


def on(made: Lab, node: str, **arguments: Any) -> bool:
    """Whether a node takes a pod."""
    pod = lone("new", spec={"nodeSelector": {"kubernetes.io/hostname": node}}, **arguments)
    outcome = made.place_alone(pod)
    made.cache.forget(pod)
    if not outcome.complete:
        assert RISKY_BANDWIDTH in {item.reason for item in outcome.failures[0].rejections}
    return outcome.complete


WANTS = {"network_aware_com__bandwidth": "100M"}


def test_the_busy_one_of_three_nodes_is_left_out() -> None:
    assert [on(lab(), node, **WANTS) for node in ("n1", "n2", "n3")] == [True, True, False]


@pytest.mark.parametrize(
    ("settings", "takes"),
    [
        pytest.param({"riskThreshold": 0.79}, True, id="higher-threshold"),
        pytest.param({"safeVarianceMargin": 0.5}, True, id="lower-margin"),
        pytest.param({"safeVarianceSensitivity": 1}, True, id="lower-sensitivity"),
        pytest.param({"riskThreshold": 0.78}, False, id="just-above-the-threshold"),
    ],
)
def test_the_three_parameters(settings: dict[str, float], takes: bool) -> None:
    assert on(lab(**settings), "n3", **WANTS) is takes


def test_nodes_are_not_judged_without_fresh_figures_nor_for_pods_that_need_no_bandwidth() -> None:
    made = lab()
    assert on(made, "n3")
    use(made, "n3", LinkUse(GIGABIT, GIGABIT, GIGABIT), age=MAX_AGE)
    assert on(made, "n3", **WANTS)
    use(made, "n3", LinkUse(GIGABIT, GIGABIT, GIGABIT))
    assert not on(made, "n3", **WANTS)
    made.clock.advance(MAX_AGE)
    assert on(made, "n3", **WANTS)


def test_a_capacity_that_is_not_reported_is_what_the_node_advertises() -> None:
    made = lab()
    use(made, "n1", LinkUse(0.7 * GIGABIT, 0.6 * GIGABIT, None))
    assert not on(made, "n1", **WANTS)


def test_off_by_default() -> None:
    made = lab()
    unset = Lab(list(made.nodes), Profile())
    use(unset, "n3", LinkUse(GIGABIT, GIGABIT, GIGABIT))
    assert on(unset, "n3", **WANTS)


def test_calls_to_placed_pods_are_part_of_the_request() -> None:
    made = lab()
    shop = made.group(group_object("shop", *chain("a", "b", minBandwidth="100M")))
    made.see(member("b1", "b", on="n1"))
    (caller,) = [member("a1", "a", spec={"nodeSelector": {"kubernetes.io/hostname": "n3"}})]
    made.see(caller)
    assert where(made.place_alone(caller, shop)) == {}
