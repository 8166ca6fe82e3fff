"""How many pods there should be for users, since when fewer would do, and which one goes then."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.latencypolicy import LatencyPolicyStatus
from berth.scheduling.latency.coverage import best_nodes, worth
from berth.scheduling.latency.situation import Pod, View
from berth.scheduling.latency.sizing import dispensable, replicas, resized
from berth.scheduling.latency.user_table import Costs
from tests.support.latency import NOW, later, policy

SPEC = policy(hard=40, users={"mode": "PerUser", "maxReplicas": 3})


def costs_of(rows: list[list[float]]) -> Costs:
    far = np.array(rows, dtype=np.float64).reshape(-1, 3) * 1000
    return Costs(tuple(f"u{at}" for at in range(len(rows))), far)


@pytest.mark.parametrize(
    ("rows", "least", "most", "count"),
    [
        pytest.param([[10, 90, 90], [90, 10, 90]], 1, None, 7, id="left to others"),
        pytest.param([[10, 90, 90], [20, 90, 90]], 1, 3, 2, id="one serves all, and a free one"),
        pytest.param([[10, 90, 90], [90, 10, 90]], 1, 3, 3, id="two serve all, and a free one"),
        pytest.param([[10, 90, 90], [90, 10, 90]], 1, 2, 2, id="no more than the most"),
        pytest.param([[10, 90, 90]], 3, 3, 3, id="no fewer than the least"),
        pytest.param([[90, 90, 90]], 1, 3, 2, id="more do not help whom none can serve"),
        pytest.param([], 2, 3, 2, id="without users the least"),
    ],
)
def test_how_many_pods(rows: list[list[float]], least: int, most: int | None, count: int) -> None:
    spec = policy(hard=40, users={"minReplicas": least, "maxReplicas": most})
    assert replicas(costs_of(rows), [0, 1, 2], spec, 7) == count


@given(st.lists(st.lists(st.integers(5, 120), min_size=3, max_size=3), min_size=1, max_size=6), st.integers(1, 4))
def test_no_fewer_pods_would_serve_as_many_users(rows: list[list[int]], most: int) -> None:
    costs, spec = costs_of([[float(far) for far in row] for row in rows]), policy(hard=40, users={"maxReplicas": most})
    found = replicas(costs, [0, 1, 2], spec, 1)

    def beyond(count: int) -> int:
        return worth(costs.microseconds, best_nodes(costs.microseconds, [0, 1, 2], count, 40_000), 40_000).beyond

    assert 1 <= found <= most
    serving = max(1, found - 1) if beyond(max(1, found - 1)) <= beyond(found) else found
    assert beyond(serving) == min(beyond(count) for count in range(1, most + 1))
    assert serving == 1 or beyond(serving - 1) > beyond(serving)


@pytest.mark.parametrize(
    ("since", "needed", "at", "wanted", "remembered"),
    [
        pytest.param(None, 2, 0, 2, None, id="as many as there are"),
        pytest.param(None, 3, 0, 3, None, id="more come at once"),
        pytest.param(None, 1, 0, 2, 0, id="fewer would do from now on"),
        pytest.param(0, 1, 299, 2, 0, id="not for long enough"),
        pytest.param(0, 1, 300, 1, 0, id="for as long as a user counts"),
        pytest.param(0, 2, 400, 2, None, id="users have come back"),
    ],
)
def test_more_come_at_once_and_one_goes_after_a_while(
    since: float | None, needed: int, at: float, wanted: int, remembered: float | None
) -> None:
    status = LatencyPolicyStatus(fewer_time=None if since is None else later(since))
    status, found = resized(status, SPEC, needed, 2, later(at))
    assert found == wanted
    assert status.fewer_time == (None if remembered is None else later(remembered))


def test_one_goes_at_a_time() -> None:
    _, found = resized(LatencyPolicyStatus(fewer_time=NOW), SPEC, 1, 5, later(300))
    assert found == 4


@pytest.mark.parametrize(
    ("pods", "rows", "name"),
    [
        pytest.param([Pod("p", "a"), Pod("q", "b")], [[10, 90, 90]], "q", id="who serves nobody"),
        pytest.param([Pod("p", "a"), Pod("q", "b")], [[10, 90, 90], [90, 10, 90], [90, 12, 90]], "p", id="or fewest"),
        pytest.param([Pod("p", "a"), Pod("q", "a")], [[10, 90, 90]], "p", id="of two on a node either"),
        pytest.param([Pod("p", "a"), Pod("q", "b", ready=False)], [[90, 10, 90]], "q", id="who serves not yet"),
        pytest.param([Pod("p", "a"), Pod("q", "gone")], [[90, 10, 90]], "q", id="whose node is gone"),
        pytest.param([Pod("p", "a"), Pod("q", "b")], [], "p", id="without users any"),
        pytest.param([Pod("p", "a", held=True), Pod("q", "b")], [[90, 10, 90]], "q", id="none that is held"),
        pytest.param([Pod("p", "a")], [[10, 90, 90]], None, id="never the last"),
    ],
)
def test_which_pod_goes(pods: list[Pod], rows: list[list[float]], name: str | None) -> None:
    view = View(tuple(pods), len(pods), ("a", "b", "c"), ("a", "b", "c"))
    found = dispensable(view, costs_of(rows), SPEC)
    assert (found.name if found is not None else None) == name
