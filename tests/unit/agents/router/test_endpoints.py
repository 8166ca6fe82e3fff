"""Which pods may be asked: by readiness, ending, port and family."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agents.router.endpoints import backends, ports_asked
from berth.kube.endpoint_slices import EndpointSlice


def slices(*items: dict[str, Any]) -> list[EndpointSlice]:
    return [msgspec.convert({"addressType": "IPv4", "ports": [{"port": 80}], **item}, EndpointSlice) for item in items]


def endpoint(pod: str, address: str = "", node: str = "n", **conditions: bool | None) -> dict[str, Any]:
    return {
        "addresses": [address or f"10.0.0.{pod}"],
        "conditions": conditions,
        "nodeName": node,
        "targetRef": {"kind": "Pod", "name": pod},
    }


@pytest.mark.parametrize(
    ("endpoints", "pods"),
    [
        pytest.param([endpoint("1", ready=True)], ["1"], id="ready"),
        pytest.param([endpoint("1")], ["1"], id="nothing said is ready"),
        pytest.param([endpoint("1", ready=False)], [], id="not ready"),
        pytest.param(
            [endpoint("1", ready=True), endpoint("2", ready=False, serving=True)], ["1"], id="serving is not enough"
        ),
        pytest.param(
            [endpoint("1", ready=True), endpoint("2", ready=False, serving=True, terminating=True)],
            ["1"],
            id="one that ends is left alone while another is ready",
        ),
        pytest.param(
            [endpoint("1", ready=False), endpoint("2", ready=False, serving=True, terminating=True)],
            ["2"],
            id="one that ends and serves, where none is ready",
        ),
        pytest.param(
            [endpoint("2", ready=False, serving=False, terminating=True)], [], id="one that ends and serves not"
        ),
        pytest.param(
            [endpoint("2", ready=True, serving=True, terminating=True)], ["2"], id="published though not ready"
        ),
        pytest.param([{"addresses": [], "conditions": {"ready": True}}], [], id="without an address"),
    ],
)
def test_by_condition(endpoints: list[dict[str, Any]], pods: list[str]) -> None:
    assert [found.pod for found in backends(slices({"endpoints": endpoints}))] == pods


HTTP, METRICS = {"port": 80, "name": "http"}, {"port": 90, "name": "metrics"}


@pytest.mark.parametrize(
    ("stated", "ports", "numbers"),
    [
        pytest.param("metrics", [HTTP, METRICS], [90], id="by name"),
        pytest.param("90", [HTTP, METRICS], [90], id="by number"),
        pytest.param("c", None, [], id="no port yet"),
        pytest.param("", [HTTP], [80], id="the only one"),
        pytest.param("", [{"port": 80}], [80], id="the only one, without a name"),
        pytest.param("", [{"port": 53, "protocol": "UDP", "name": "dns"}, HTTP], [80], id="TCP alone"),
        pytest.param("", [{}], [], id="all ports of a Service without any"),
        pytest.param("", None, [], id="none"),
    ],
)
def test_by_port(stated: str, ports: list[dict[str, Any]] | None, numbers: list[int]) -> None:
    there = slices({"endpoints": [endpoint("1")], "ports": ports})
    asked = ports_asked(there, stated)
    assert asked is not None
    assert [backend.address.port for backend in backends(there, asked)] == numbers


@pytest.mark.parametrize("order", [[HTTP, METRICS], [METRICS, HTTP]])
def test_the_order_of_ports_says_nothing(order: list[dict[str, Any]]) -> None:
    """The API server's controller sorts them by a hash of name and number: users would be sent to either."""
    assert ports_asked(slices({"endpoints": [endpoint("1")], "ports": order}), "") is None


@pytest.mark.parametrize("stated", ["htpp", "8"])
def test_a_port_that_there_is_not_is_no_port(stated: str) -> None:
    assert ports_asked(slices({"endpoints": [endpoint("1")], "ports": [HTTP, METRICS]}), stated, {80}) is None


@pytest.mark.parametrize("name", ["http", ""])
def test_a_service_that_gets_another_port_is_asked_at_the_one_it_was(name: str) -> None:
    """A first port without a name has to get one for that; slices before and after may be there together."""
    before = {"endpoints": [endpoint("1")], "ports": [{"port": 80, "name": name}]}
    after = {"endpoints": [endpoint("2")], "ports": [METRICS, HTTP]}
    for there in (slices(after), slices(before, after)):
        asked = ports_asked(there, "", {80})
        assert asked is not None
        assert {backend.address.port for backend in backends(there, asked)} == {80}


def test_slices_add_up_and_a_pod_of_both_families_is_one() -> None:
    found = backends(
        slices(
            {"endpoints": [endpoint("1", "fd00::1")], "addressType": "IPv6"},
            {"endpoints": [endpoint("1"), endpoint("2", node="m")]},
            {"endpoints": [endpoint("3", "a.example")], "addressType": "FQDN"},
            {"endpoints": None},
        )
    )
    assert [(backend.pod, backend.node, backend.address.host) for backend in found] == [
        ("1", "n", "10.0.0.1"),
        ("2", "m", "10.0.0.2"),
    ]


def test_endpoints_that_are_no_pods_have_addresses() -> None:
    found = backends(slices({"endpoints": [{"addresses": ["192.0.2.1"]}, {"addresses": ["192.0.2.2"]}]}))
    assert [(backend.pod, backend.address.host) for backend in found] == [("", "192.0.2.1"), ("", "192.0.2.2")]
