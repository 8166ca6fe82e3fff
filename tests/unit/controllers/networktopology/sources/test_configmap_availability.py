"""What SourceAvailable says about a ConfigMap: reason, what is wrong by name, what to do."""

from __future__ import annotations

from typing import cast

import pytest

from berth.api.conditions import ConditionUpdate
from berth.kube.client import ApiClient
from berth.runtime.component import ComponentContext
from controllers.networktopology.sources.base import ConfigMapData, Published, Reading, SourceState, Surroundings
from controllers.networktopology.sources.configmap import ConfigMaps, key_prefix, parse
from tests.support.topologies import measured, places, topology

NAMED = "shop/netperf"
KEY_PREFIX = key_prefix("p90")
NAME = f"ConfigMap {NAMED}"
KEY = f"{KEY_PREFIX}n1.destination.n2"
INSTEAD = "until then costs come from UserDefined"


def configmaps() -> ConfigMaps:
    """The source, of which nothing here needs the API server."""
    return ConfigMaps(Surroundings(cast(ComponentContext, None), cast(ApiClient, None), print))


def availability(reading: Reading) -> ConditionUpdate:
    return configmaps().availability(reading, INSTEAD)


@pytest.mark.parametrize(("name", "named"), [("netperf", True), ("", False)])
def test_named_by(name: str, named: bool) -> None:
    assert ConfigMaps.named_by(topology(configmap=name)) == named


@pytest.mark.parametrize(
    ("existing", "state"),
    [
        pytest.param({NAMED: {KEY: "5"}, "shop/other": {}}, SourceState.READ, id="measurements"),
        pytest.param({NAMED: {}, "shop/other": {KEY: "5"}}, SourceState.EMPTY, id="none in it"),
        pytest.param({"other/netperf": {KEY: "5"}}, SourceState.MISSING, id="another namespace"),
        pytest.param({}, SourceState.MISSING, id="no ConfigMap"),
    ],
)
def test_the_one_that_the_spec_names_is_read(existing: ConfigMapData, state: SourceState) -> None:
    reading = ConfigMaps.reading(topology(configmap="netperf"), places(n1="r/A", n2="r/B"), Published(existing))
    assert (reading.state, reading.name) == (state, NAME)


@pytest.mark.parametrize(
    ("reading", "holds", "reason", "says"),
    [
        pytest.param(
            Reading(SourceState.MISSING, NAME),
            False,
            "ConfigMapNotFound",
            [f"{NAME} does not exist; create it", "correct spec.configmapName", INSTEAD],
            id="missing",
        ),
        pytest.param(
            Reading(SourceState.EMPTY, NAME),
            False,
            "NoUsableMeasurements",
            [NAME, "netperf.p90.latency.milliseconds.origin.<node>.destination.<node>", INSTEAD],
            id="empty",
        ),
        pytest.param(
            Reading(SourceState.FAILED, NAME, detail="configmaps is forbidden; allow it"),
            False,
            "ConfigMapUnreadable",
            [NAME, "forbidden; allow it", "stay as they are"],
            id="not allowed",
        ),
        pytest.param(measured(n1_n2=3), True, "MeasurementsRead", [f"{NAME}: 1 measurement"], id="read"),
    ],
)
def test_states(reading: Reading, holds: bool, reason: str, says: list[str]) -> None:
    found = availability(reading)
    assert (found.type, found.status, found.reason) == ("SourceAvailable", holds, reason)
    for part in says:
        assert part in found.message
    assert not found.message.endswith(".")


@pytest.mark.parametrize("good", [True, False], ids=["beside good ones", "alone"])
def test_unusable_entries_are_named_with_what_to_do(good: bool) -> None:
    data = {f"{KEY_PREFIX}n1.destination.n2": "fast", f"{KEY_PREFIX}gone.destination.n1": "4"}
    if good:
        data[f"{KEY_PREFIX}n2.destination.n1"] = "4"
    found = availability(parse(data, name=NAME, nodes={"n1", "n2"}))
    assert found.reason == ("SomeMeasurementsUnusable" if good else "NoUsableMeasurements")
    assert found.status == good
    assert f"{KEY_PREFIX}n1.destination.n2 is 'fast'" in found.message
    assert 'not a number of milliseconds such as "0.85"' in found.message
    assert f"remove the key or correct the name): {KEY_PREFIX}gone.destination.n1" in found.message


def test_thousands_of_bad_values_stay_readable() -> None:
    data = {f"{KEY_PREFIX}n{number:04}.destination.n1": "?" for number in range(5000)}
    found = availability(parse(data, name=NAME, nodes=set()))
    assert "n0009.destination.n1 is '?' and 4990 more" in found.message
    assert "n0010" not in found.message
