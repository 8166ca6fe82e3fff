"""UsageThreshold: what nodes keep back."""

from __future__ import annotations

import pytest

from berth.scheduling.configuration import Profile
from berth.scheduling.decision import Outcome
from tests.support.placement import Lab, lone, zoned


def reasons(outcome: Outcome) -> dict[str, int]:
    (failure,) = outcome.failures
    return {item.reason: item.count for item in failure.rejections}


@pytest.mark.parametrize(
    ("selector", "placed"),
    [
        pytest.param({}, False, id="kept-back"),
        pytest.param({"kubernetes.io/hostname": "n1"}, True, id="unless-the-pod-names-the-node"),
    ],
)
def test_share_of_the_node(selector: dict[str, str], placed: bool) -> None:
    lab = Lab([zoned("n1", cpu=4)], Profile(usage_threshold=0.5))
    outcome = lab.place_alone(lone("p", cpu="3", spec={"nodeSelector": selector}))
    assert outcome.complete is placed
    if not placed:
        assert reasons(outcome) == {"node(s) were filled to their usage threshold of cpu": 1}


def test_just_below() -> None:
    lab = Lab([zoned("n1", cpu=4)], Profile(usage_threshold=0.5))
    assert lab.place_alone(lone("p", cpu="2")).complete
    assert not lab.place_alone(lone("q", cpu="1m")).complete
