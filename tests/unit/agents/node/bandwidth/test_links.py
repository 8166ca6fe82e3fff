"""Which interface leads to other nodes, its speed and its counters, from files as the kernel shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.node.bandwidth.links import Octets, default_interface, link_of, octets, speed

HEAD = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n"
V4 = "{name}\t{destination}\t010200C0\t{flags}\t0\t0\t{metric}\t{mask}\t0\t0\t0\n"
V6 = "{destination} {length} {zero} 00 {gateway} {metric} 00000001 00000000 {flags} {name:>8}\n"


def v4(
    name: str, *, destination: str = "00000000", mask: str = "00000000", flags: str = "0003", metric: int = 0
) -> str:
    return V4.format(name=name, destination=destination, mask=mask, flags=flags, metric=metric)


def v6(name: str, *, destination: str = "0" * 32, length: str = "00", flags: str = "00000003", metric: str) -> str:
    zero, gateway = "0" * 32, "fe80" + "0" * 27 + "1"
    return V6.format(
        name=name, destination=destination, length=length, zero=zero, gateway=gateway, metric=metric, flags=flags
    )


@pytest.mark.parametrize(
    ("routes", "routes6", "expected"),
    [
        pytest.param([v4("eth0")], [], "eth0", id="one"),
        pytest.param([v4("wlan0", metric=600), v4("eth0", metric=100)], [], "eth0", id="the least metric"),
        pytest.param([v4("eth1", destination="000200C0", mask="00FFFFFF"), v4("eth0")], [], "eth0", id="among others"),
        pytest.param([v4("tun0", mask="00000080"), v4("eth0")], [], "eth0", id="half of all addresses is no default"),
        pytest.param([v4("eth0", flags="0002")], [], None, id="down"),
        pytest.param([], [v6("eth1", metric="00000400")], "eth1", id="IPv6 alone"),
        pytest.param([v4("eth0")], [v6("eth1", metric="00000001")], "eth0", id="IPv4 first"),
        pytest.param([], [v6("lo", metric="ffffffff", flags="00200200")], None, id="the kernel's unreachable one"),
        pytest.param([], [v6("eth1", length="40", metric="00000400")], None, id="a network"),
        pytest.param(["nonsense\n"], ["nonsense\n"], None, id="nonsense"),
        pytest.param([v4("\udcff"), v4("eth0", metric=1)], [], "\udcff", id="a name that is no text"),
        pytest.param([v4("a\u2003b")], [], "a\u2003b", id="a name with a space of Unicode, which the kernel takes"),
    ],
)
def test_interface_of_the_default_route(
    tmp_path: Path, routes: list[str], routes6: list[str], expected: str | None
) -> None:
    (tmp_path / "route").write_text(HEAD + "".join(routes), errors="surrogateescape")
    (tmp_path / "ipv6_route").write_text("".join(routes6))
    assert default_interface(tmp_path) == expected


def test_without_routing_tables_there_is_none(tmp_path: Path) -> None:
    assert default_interface(tmp_path) is None


def interface(
    classes: Path, name: str, *, card: bool = False, bond: bool = False, speed: str = "", over: str = ""
) -> None:
    directory = classes / name
    directory.mkdir(parents=True)
    if card:
        (directory / "device").mkdir()
    if bond:
        (directory / "bonding").mkdir()
    if speed:
        (directory / "speed").write_text(f"{speed}\n")
    for lower in over.split():
        (directory / f"lower_{lower}").mkdir()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("eth0", "eth0", id="a card"),
        pytest.param("bond0", "bond0", id="a bond, whose speed is that of all of its cards"),
        pytest.param("eth0.7", "eth0", id="a VLAN"),
        pytest.param("br0", "eth1", id="a bridge: not its pods, the faster card"),
        pytest.param("br1", "bond0", id="a bridge over a VLAN over a bond"),
        pytest.param("veth1", None, id="one end of a pair"),
        pytest.param("gone", None, id="none"),
        pytest.param("loop0", None, id="over itself"),
    ],
)
def test_link_below(tmp_path: Path, name: str, expected: str | None) -> None:
    interface(tmp_path, "eth0", card=True, speed="1000")
    interface(tmp_path, "eth1", card=True, speed="25000")
    interface(tmp_path, "bond0", bond=True, speed="2000", over="eth0")
    interface(tmp_path, "eth0.7", over="eth0", speed="1000")
    interface(tmp_path, "bond0.8", over="bond0")
    interface(tmp_path, "veth1", speed="10000")
    interface(tmp_path, "veth2", speed="10000")
    interface(tmp_path, "br0", over="veth1 veth2 eth0 eth1", speed="25000")
    interface(tmp_path, "br1", over="bond0.8 veth1")
    interface(tmp_path, "loop0", over="loop0")
    assert link_of(name, tmp_path) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1000", 10**9, id="1G"),
        pytest.param("100000", 10**11, id="100G"),
        pytest.param("-1", None, id="virtio"),
        pytest.param("65535", None, id="unknown in 16 bits"),
        pytest.param("4294967295", None, id="unknown in 32 bits"),
        pytest.param("0", None, id="no carrier"),
        pytest.param("fast", None, id="no number"),
        pytest.param("", None, id="no such file"),
    ],
)
def test_speed(tmp_path: Path, text: str, expected: int | None) -> None:
    interface(tmp_path, "eth0", speed=text)
    assert speed("eth0", tmp_path) == expected


def test_octets(tmp_path: Path) -> None:
    interface(tmp_path, "eth0")
    assert octets("eth0", tmp_path) is None
    statistics = tmp_path / "eth0" / "statistics"
    statistics.mkdir()
    (statistics / "rx_bytes").write_text("12\n")
    (statistics / "tx_bytes").write_text("34\n")
    assert octets("eth0", tmp_path) == Octets(received=12, sent=34)


def test_this_machine_has_counters() -> None:
    """The kernel's real files have the form that the others are written in."""
    assert octets("lo") is not None
    assert link_of("lo") is None
    assert speed("lo") is None
