"""Which pods may be asked: by readiness, ending, port and family."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from agents.router.endpoints import backends
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


@pytest.mark.parametrize(
    ("wanted", "ports", "numbers"),
    [
        pytest.param("", [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}], [80], id="the first"),
        pytest.param("b", [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}], [81], id="by name"),
        pytest.param("81", [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}], [81], id="by number"),
        pytest.param("c", [{"port": 80, "name": "a"}], [], id="no such port"),
        pytest.param("", [{"port": 53, "protocol": "UDP"}, {"port": 80}], [80], id="TCP alone"),
        pytest.param("", [{}], [], id="all ports of a Service without any"),
        pytest.param("", None, [], id="none"),
    ],
)
def test_by_port(wanted: str, ports: list[dict[str, Any]] | None, numbers: list[int]) -> None:
    found = backends(slices({"endpoints": [endpoint("1")], "ports": ports}), wanted)
    assert [backend.address.port for backend in found] == numbers


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
