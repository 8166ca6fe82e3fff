"""NodeResourcesBalancedAllocation, on values worked out by hand from kube-scheduler's formula."""

from __future__ import annotations

import math
from typing import Any

import pytest

from berth.scheduling.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.support.builders import container, node, pod
from tests.support.filtering import cluster, cycle_of, scores


@pytest.mark.parametrize(
    ("there", "new", "expected"),
    [
        # fractions after (0.5, 0.5), before (0, 0): both even, 50 + (50 + 100 - 100) / 2
        pytest.param({}, {"cpu": "2", "memory": "4Gi"}, 75, id="even-stays-even"),
        # after (0.5, 0): deviation 0.25, so 75; before 100: 50 + (50 + 75 - 100) / 2
        pytest.param({}, {"cpu": "2"}, 62, id="made-uneven"),
        # after (0.5, 0.5): 100; before (0.5, 0): 75: 50 + (50 + 100 - 75) / 2
        pytest.param({"cpu": "2"}, {"memory": "4Gi"}, 87, id="made-even"),
        # fractions are cut at 1: after (1, 0): 50
        pytest.param({}, {"cpu": "40"}, 50, id="over-full"),
    ],
)
def test_balance(there: dict[str, Any], new: dict[str, Any], expected: int) -> None:
    state = cluster([node("n", cpu="4", memory="8Gi")], [pod("there", on="n", containers=[container(**there)])])
    assert scores(NodeResourcesBalancedAllocation(), pod("new", containers=[container(**new)]), state) == {
        "n": expected
    }


def test_balance_over_three_resources_is_the_standard_deviation() -> None:
    state = cluster([node("n", cpu="4", memory="8Gi", ephemeral_storage="10Gi")])
    score = NodeResourcesBalancedAllocation(resources={"cpu": 1, "memory": 1, "ephemeral-storage": 1})
    new = pod("new", cpu="2", memory="4Gi")
    deviation = math.sqrt(((0.5 - 1 / 3) ** 2 * 2 + (1 / 3) ** 2) / 3)
    after = int((1 - deviation) * 100)
    assert scores(score, new, state) == {"n": 50 + (50 + after - 100) // 2}


def test_pods_without_requests_get_no_balance_score() -> None:
    state = cluster([node("n")])
    assert NodeResourcesBalancedAllocation().score(cycle_of(pod("new"), state), state.alive) is None
    assert scores(NodeResourcesBalancedAllocation(), pod("new"), state) == {"n": 0}
