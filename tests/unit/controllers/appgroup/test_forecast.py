"""The status that a new AppGroup would get."""

from __future__ import annotations

import pytest

from controllers.appgroup.forecast import forecast
from hack.harness.boutique import ORDERS_11, boutique


@pytest.mark.parametrize("algorithm", sorted(ORDERS_11))
def test_the_order_is_the_controllers(algorithm: str) -> None:
    document = boutique(algorithm=algorithm)
    order = forecast(document, {}, {})["status"]["topologyOrder"]
    wanted = {selector: index for index, selector in enumerate(ORDERS_11[algorithm].split(), start=1)}
    assert {entry["workload"]["selector"]: entry["index"] for entry in order} == wanted


def test_other_fields_of_the_status_stay_and_the_object_is_not_changed() -> None:
    document = {**boutique(), "status": {"runningWorkloads": 3}}
    assert forecast(document, {}, {})["status"]["runningWorkloads"] == 3
    assert document["status"] == {"runningWorkloads": 3}


def test_a_spec_without_an_order_gives_none() -> None:
    document = {**boutique(), "spec": {"numMembers": 0}}
    assert forecast(document, {}, {})["status"] == {}
