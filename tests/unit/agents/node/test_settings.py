"""Settings of the node agent that are refused."""

from __future__ import annotations

import pytest

from agents.node.settings import NodeSettings
from berth.runtime.settings import SettingsError, settings_from


@pytest.mark.parametrize("bandwidth", ["10G", "2500M", "1", "1e9", "100Gi"])
def test_a_bandwidth_is_a_quantity(bandwidth: str) -> None:
    assert settings_from(NodeSettings, "node", {"--node-bandwidth": bandwidth}).bandwidth == bandwidth


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        pytest.param("--node-bandwidth", "10GBit", id="no quantity"),
        pytest.param("--node-bandwidth", "0", id="nothing"),
        pytest.param("--node-bandwidth", "-1G", id="less"),
        pytest.param("--node-bandwidth", "500m", id="half a bit"),
        pytest.param("--node-bandwidth", "2E", id="more than a report can state"),
        pytest.param("--node-interface", "i" * 16, id="no name of an interface"),
    ],
)
def test_what_cannot_be_right_is_refused(flag: str, value: str) -> None:
    with pytest.raises(SettingsError, match=flag):
        settings_from(NodeSettings, "node", {flag: value})


@pytest.mark.parametrize(
    ("peers", "rate"),
    [
        pytest.param(10, 1.0, id="the least rate with the usual peers"),
        pytest.param(100, 8.5, id="most peers"),
        pytest.param(100, 20.0, id="most peers at the usual rate"),
    ],
)
def test_a_rate_at_which_a_round_ends(peers: int, rate: float) -> None:
    given = {"--node-peers": peers, "--node-rate": rate}
    assert settings_from(NodeSettings, "node", given).rate == rate


@pytest.mark.parametrize(
    ("peers", "rate", "says"),
    [
        pytest.param(100, 2.0, r"100 peers takes 253 s, more than 60; write 8\.5 or more", id="most peers"),
        pytest.param(11, 1.0, r"11 peers takes 61 s, more than 60; write 1\.1 or more", id="one peer more"),
    ],
)
def test_a_rate_at_which_no_round_ends_in_time_is_refused(peers: int, rate: float, says: str) -> None:
    with pytest.raises(SettingsError, match=rf"^--node-rate .*{says}, or have fewer --node-peers"):
        settings_from(NodeSettings, "node", {"--node-peers": peers, "--node-rate": rate})
