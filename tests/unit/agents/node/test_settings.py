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
