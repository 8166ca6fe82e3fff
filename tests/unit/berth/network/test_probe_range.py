"""Whom node agents may send packets to: nobody inside the cluster, and no address that means something special."""

from __future__ import annotations

from ipaddress import ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.probe_range import ProbeRange
from controllers.latency.settings import networks_of


@pytest.mark.parametrize(
    "asked",
    [pytest.param("10.77.0.5", id="as it is"), pytest.param("::ffff:10.77.0.5", id="as IPv6")],
)
def test_an_address_is_the_clusters_while_anything_has_it(asked: str) -> None:
    made = ProbeRange(())
    made.addresses((), ["10.77.0.5", "fd00:0::5", "None"])
    made.addresses((), ["10.77.0.5"])
    assert made.refusal("fd00::5") == "an address of the cluster"
    made.addresses(["10.77.0.5"], ["10.77.0.6"])
    assert made.refusal(asked) == "an address of the cluster"
    made.addresses(["10.77.0.5", "fd00:0::5", "None"], ())
    assert (made.refusal(asked), made.refusal("fd00::5")) == (None, None)
    assert made.refusal("10.77.0.6") == "an address of the cluster"


def test_an_ipv4_address_that_is_stated_as_ipv6_is_the_clusters_in_either_form() -> None:
    made = ProbeRange(())
    made.addresses((), ["::ffff:198.51.100.1"])
    assert {made.refusal(each) for each in ("198.51.100.1", "::ffff:c633:6401")} == {"an address of the cluster"}
    made.addresses(["::ffff:198.51.100.1"], ())
    assert made.refusal("198.51.100.1") is None


@pytest.fixture
def allowed() -> ProbeRange:
    made = ProbeRange(networks_of("10.96.0.0/12, fd01::/108"))
    networks = ["10.244.1.0/24", "192.168.7.11", "fd00:10:244::/64", "2002:cb00:7101::/64", "fd00:10:244:1::11"]
    made.node("n1", [*networks, "n1.example"])
    return made


@pytest.mark.parametrize(
    ("address", "why"),
    [
        pytest.param("203.0.113.7", None, id="a user"),
        pytest.param("2001:db8::7", None, id="a user with IPv6"),
        pytest.param("192.168.7.12", None, id="a user of the same network as a node"),
        pytest.param("10.0.0.7", None, id="a user of a private network"),
        pytest.param("10.244.1.9", "an address of the cluster", id="a pod"),
        pytest.param("fd00:10:244::9", "an address of the cluster", id="a pod with IPv6"),
        pytest.param("192.168.7.11", "an address of the cluster", id="a node"),
        pytest.param("::ffff:192.168.7.11", "an address of the cluster", id="a node, as IPv6"),
        pytest.param("fd00:10:244:1::11", "an address of the cluster", id="a node with IPv6"),
        pytest.param("fd00:10:244:1::11%eth0", "a special address", id="a node with IPv6, with its link"),
        pytest.param("10.96.0.1", "a network that is never probed", id="a Service"),
        pytest.param("fd01::1", "a network that is never probed", id="a Service with IPv6"),
        pytest.param("169.254.169.254", "a special address", id="metadata"),
        pytest.param("::ffff:169.254.169.254", "a special address", id="metadata, as IPv6"),
        pytest.param("fd00:ec2::254", "a special address", id="metadata of AWS with IPv6"),
        pytest.param("fd00:ec2::254%eth0", "a special address", id="metadata of AWS with IPv6, with its link"),
        pytest.param("fd00:ec2::23", "a special address", id="identities of AWS with IPv6"),
        pytest.param("168.63.129.16", "a special address", id="metadata of Azure"),
        pytest.param("fd20:ce::254", "a special address", id="metadata of Google Cloud with IPv6"),
        pytest.param("fd00:c1::a9fe:a9fe", "a special address", id="metadata of Oracle Cloud with IPv6"),
        pytest.param("192.0.0.192", "a special address", id="metadata of Oracle Cloud before"),
        pytest.param("fd00:42::42", "a special address", id="metadata of Scaleway with IPv6"),
        pytest.param("fd00:100::100:200", "a special address", id="metadata of Alibaba Cloud with IPv6"),
        pytest.param("fd00:a9fe:a9fe::1", "a special address", id="metadata of Linode with IPv6"),
        pytest.param("2002:a9fe:a9fe::1", "a special address", id="metadata, by 6to4"),
        pytest.param("64:ff9b::a9fe:a9fe", "a special address", id="metadata, by NAT64"),
        pytest.param("2002:af4:109::1", "an address of the cluster", id="a pod, by 6to4"),
        pytest.param("2002:cb00:7101::1", "an address of the cluster", id="a pod that has such an address"),
        pytest.param("2002:cb00:7107::1", None, id="a user, by 6to4"),
        pytest.param("fe80::1", "a special address", id="link-local"),
        pytest.param("fe80::1%eth0", "a special address", id="link-local, with its link"),
        pytest.param("127.0.0.1", "a special address", id="this machine"),
        pytest.param("::1", "a special address", id="this machine with IPv6"),
        pytest.param("224.0.0.1", "a special address", id="many"),
        pytest.param("255.255.255.255", "a special address", id="everybody"),
        pytest.param("0.0.0.0", "a special address", id="nobody"),
        pytest.param("240.0.0.1", "a special address", id="reserved"),
        pytest.param("", "no IP address", id="nothing"),
        pytest.param("metadata.google.internal", "no IP address", id="a name"),
    ],
)
def test_refusals(allowed: ProbeRange, address: str, why: str | None) -> None:
    assert allowed.refusal(address) == why


def test_what_was_a_node_may_be_a_user() -> None:
    made = ProbeRange([])
    made.node("n1", ["192.168.7.11"])
    assert made.refusal("192.168.7.11")
    made.node("n1", [])
    assert made.refusal("192.168.7.11") is None


NETWORKS = ["10.1.0.0/24", "10.1.0.0/16", "10.1.0.7", "10.2.0.0/24", "fd01::/64", "fd01::7", "fd00::/8", "nonsense"]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.lists(st.sampled_from(NETWORKS), max_size=4)), max_size=12))
def test_addresses_are_those_of_the_nodes_that_are_there(changes: list[tuple[str, list[str]]]) -> None:
    made, nodes = ProbeRange([]), dict[str, list[str]]()
    for name, networks in changes:
        made.node(name, networks)
        nodes[name] = networks
    there = [ip_network(text) for networks in nodes.values() for text in networks if text != "nonsense"]
    for text in ("10.1.0.7", "10.1.0.8", "10.1.9.9", "10.2.0.1", "10.3.0.1", "fd01::7", "fd01::8", "fd02::1"):
        inside = any(ip_address(text) in network for network in there)
        assert (made.refusal(text) is not None) is inside
