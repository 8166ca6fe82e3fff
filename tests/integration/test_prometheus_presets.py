"""Presets on a real Prometheus that scrapes pages in each meter's format: its answers are those that were recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from controllers.networktopology.sources import prometheus_http
from controllers.networktopology.sources.prometheus_answer import PrometheusError, Series, decode_answer
from controllers.networktopology.sources.prometheus_presets import Preset, own_query, preset_query
from controllers.networktopology.sources.prometheus_server import PrometheusServer
from hack.harness.cluster import eventually
from tests.support.prometheus_process import Page, running_prometheus

DATA = Path(__file__).resolve().parents[1] / "data" / "prometheus"
LABELS = {
    "netperf": {},
    "kube-state-metrics": {"namespace": "kube-system", "pod": "kube-state-metrics-0"},
    "kubenurse": {"namespace": "kubenurse", "pod": "kubenurse-74gd4"},
    "goldpinger": {"namespace": "monitoring", "pod": "goldpinger-5xk2p"},
    "cilium": {"namespace": "kube-system", "pod": "cilium-7vq4d"},
    "liqo": {"namespace": "liqo-tenant-rome", "pod": "gw-rome-6c9"},
    "submariner": {"namespace": "submariner-operator", "pod": "submariner-gateway-hc2vm"},
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a Prometheus that scrapes all pages."""
    pages = {
        name: Page((DATA / f"{name}.prom").read_text(), labels, honor_labels=name == "kube-state-metrics")
        for name, labels in LABELS.items()
    }
    with running_prometheus(tmp_path_factory.mktemp("prometheus"), pages) as address:
        yield address


def asked(server: PrometheusServer) -> list[Series]:
    """What it answers now; nothing while it starts."""
    try:
        return asyncio.run(prometheus_http.ask(server))
    except PrometheusError as error:
        if any(reason in str(error) for reason in ("ClientConnectorError", "status 503", "no series")):
            return []
        raise


def figures(vector: list[Series]) -> dict[tuple[str, str], float]:
    """Figure by pair."""
    return {(item.metric.origin, item.metric.destination): float(item.value[1]) for item in vector if item.value}


@pytest.mark.parametrize("preset", get_args(Preset))
def test_a_preset_gives_what_was_recorded(url: str, preset: Preset) -> None:
    recorded = json.loads((DATA / f"{preset}.json").read_text())
    expected = figures(decode_answer(200, json.dumps(recorded["answer"]).encode()))
    server = PrometheusServer(url, preset_query(preset, "p90"))
    # Pages are scraped one after the other: the first figures are not all of them.
    eventually(
        lambda: figures(asked(server)), accept=lambda found: found == pytest.approx(expected), what=f"of {preset}"
    )


@pytest.mark.parametrize(
    ("promql", "says"),
    [
        pytest.param("max by (", "status 400, bad_data: ", id="no PromQL"),
        pytest.param("1", "'scalar' and not an instant vector", id="a scalar"),
        pytest.param("up[1m]", "'matrix' and not an instant vector", id="a matrix"),
        pytest.param("up * on () up", "status 422, execution: ", id="it cannot be worked out"),
    ],
)
def test_what_is_wrong_with_a_query_is_told(url: str, promql: str, says: str) -> None:
    eventually(lambda: asked(PrometheusServer(url, own_query("up", "seconds", "node"))), accept=bool, what="targets")
    with pytest.raises(PrometheusError) as caught:
        asyncio.run(prometheus_http.ask(PrometheusServer(url, own_query(promql, "seconds", "node"))))
    assert says in str(caught.value)
