"""A policy by whose wish the published rules decide: what they get to know, and when a search begins anew."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latency_exchange import UserRoundTrips
from berth.api.latencypolicy import (
    LatencyPolicySpec,
    LatencyPolicyStatus,
    MeasurementSource,
    PublishedRule,
    Search,
    VisitedNode,
)
from berth.scheduling.latency.published.rounds import ROUND_SECONDS
from berth.scheduling.latency.situation import Create
from tests.support.latency import NOW, later
from tests.unit.controllers.latency.test_deciding import KEY, Room

SEARCH = Search(
    rule=PublishedRule.HARD, start_time=NOW, round_time=NOW, visited=(VisitedNode(node="c", visits=2, left=True),)
)


def room(*, generation: int = 1, search: Search | None = SEARCH, **spec: Any) -> Room:
    """One whose status is of the first generation of the spec."""
    made = Room(mode=spec.pop("mode", "Single"), status=LatencyPolicyStatus(search=search, observed_generation=1))
    fields = made.policy.spec.to_api() | {"decisions": "Published"} | spec
    metadata = made.policy.metadata.model_copy(update={"generation": generation})
    made.policy = made.policy.model_copy(
        update={"spec": LatencyPolicySpec.model_validate(fields), "metadata": metadata}
    )
    return made


async def test_what_meters_say_counts_and_nobody_else_is_asked() -> None:
    made = room()
    users = [UserRoundTrips("u", (90_000,), 0.0, "203.0.113.1")]
    made.observations.served(KEY, "a", users, NOW)
    made.observations.probed(KEY, "b", "203.0.113.1", (10_000,), NOW)
    made.observations.served(KEY, "c", users, NOW, source=MeasurementSource.ROUTER)
    found = await made.choose(ROUND_SECONDS)
    assert [each.node for each in found.status.nodes] == ["a"]
    [action] = found.actions
    assert isinstance(action, Create)
    assert action.node == "b", "visited least"


@pytest.mark.parametrize(
    ("given", "goes_on"),
    [
        pytest.param({}, True, id="the same spec"),
        pytest.param({"generation": 2}, False, id="the spec has changed"),
        pytest.param({"decisions": "Measured"}, None, id="others decide"),
        pytest.param({"mode": "PerUser"}, None, id="each user counts"),
    ],
)
async def test_a_search_goes_on_while_nobody_changes_the_policy(given: dict[str, Any], goes_on: bool | None) -> None:
    made = room(**given)
    made.hear(at=1)
    search = (await made.choose(at=1)).status.search
    if goes_on is None:
        assert search is None
        return
    assert search is not None
    assert (VisitedNode(node="c", visits=2, left=True) in search.visited) == goes_on
    assert (search.start_time == later(0)) == goes_on
