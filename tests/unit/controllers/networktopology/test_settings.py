"""Settings of the networktopology controller that are refused, and what sources are told of the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.runtime.settings import SettingsError, settings_from
from controllers.networktopology.settings import NetworkTopologySettings
from controllers.networktopology.sources.base import SourceSettings
from controllers.networktopology.sources.prometheus_presets import LatencyQuery, preset_query
from controllers.networktopology.sources.prometheus_server import PrometheusServer

URL = "https://prometheus.monitoring:9090"


def settings(**given: Any) -> NetworkTopologySettings:
    flags = {f"--{name.replace('_', '-')}": value for name, value in given.items()}
    return settings_from(NetworkTopologySettings, "networktopology", flags)


def test_without_a_server_none_is_asked() -> None:
    assert settings(latency_percentile="p99").of_sources() == SourceSettings("p99", None)


def test_a_preset_is_asked_for_the_percentile() -> None:
    found = settings(prometheus_url=URL, latency_percentile="p50").of_sources()
    assert found.prometheus == PrometheusServer(URL, preset_query("netperf", "p50"))


def test_a_query_of_ones_own_comes_before_a_preset() -> None:
    found = settings(
        prometheus_url=URL,
        prometheus_preset="cilium",
        prometheus_query="rtt_ms",
        prometheus_query_unit="milliseconds",
        prometheus_query_level="zone",
        prometheus_token_file="/token",
        prometheus_ca_file="/ca.crt",
        prometheus_timeout="3",
    ).of_sources()
    query = LatencyQuery("query", "rtt_ms", "milliseconds", "zone")
    assert found.prometheus == PrometheusServer(URL, query, Path("/token"), Path("/ca.crt"), 3.0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        pytest.param({"prometheus_url": "prometheus:9090"}, "--prometheus-url.*write a URL", id="no scheme"),
        pytest.param({"prometheus_url": "file:///etc/passwd"}, "--prometheus-url.*write a URL", id="a file"),
        pytest.param({"prometheus_url": f"{URL}?query=up"}, "--prometheus-url.*write a URL", id="with a query"),
        pytest.param(
            {"prometheus_url": "https://me:secret@prometheus"}, "credentials belong in a file", id="with a password"
        ),
        pytest.param(
            {"prometheus_url": "http://prometheus:9090", "prometheus_token_file": "/token"},
            "--prometheus-token-file.*over https only",
            id="a token for everybody to read",
        ),
        pytest.param({"prometheus_token_file": "/token"}, "--prometheus-token-file", id="a token for nobody"),
        pytest.param({"prometheus_preset": "ping"}, "--prometheus-preset", id="no such meter"),
        pytest.param({"prometheus_query_unit": "hours"}, "--prometheus-query-unit", id="no such unit"),
        pytest.param({"prometheus_timeout": "61"}, "--prometheus-timeout", id="longer than it takes to be asked"),
    ],
)
def test_what_cannot_be_right_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(SettingsError, match=says):
        settings(**given)
