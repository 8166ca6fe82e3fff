"""Conflicts of host ports: as comparing all ports with all others finds them, without doing so."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.cache.pod_templates import ANY_ADDRESS, HostPort
from berth.scheduling.configuration import Profile
from berth.scheduling.host_ports import port_conflicts
from tests.support.placement import Lab, chain, group_object, member, zoned

PORTS = st.tuples(st.sampled_from([ANY_ADDRESS, "10.0.0.1", "::1"]), st.sampled_from(["TCP", "UDP"]), st.integers(1, 3))


def clash(one: HostPort, other: HostPort) -> bool:
    return one[1:] == other[1:] and (one[0] == other[0] or ANY_ADDRESS in (one[0], other[0]))


def used(pods: list[set[HostPort]]) -> dict[HostPort, list[int]]:
    users: defaultdict[HostPort, list[int]] = defaultdict(list)
    for number, ports in enumerate(pods):
        for port in sorted(ports):
            users[port].append(number)
    return users


@given(pods=st.lists(st.sets(PORTS, max_size=4), max_size=6))
def test_they_are_those_of_all_pairs_of_ports(pods: list[set[HostPort]]) -> None:
    found = {pair for those, others in port_conflicts(used(pods)) for pair in product(those, others)}
    expected = {
        (first, second)
        for first, second in product(range(len(pods)), repeat=2)
        if any(clash(one, other) for one, other in product(pods[first], pods[second]))
    }
    assert found == expected


@pytest.mark.parametrize(
    ("pods", "conflicts"),
    [
        pytest.param([set(), set()], [], id="without-ports"),
        pytest.param([{("", "TCP", n) for n in range(3000)}] * 3, [((0, 1, 2), (0, 1, 2))], id="all-the-same"),
        pytest.param(
            [{("", "TCP", 3000 * pod + n) for n in range(3000)} for pod in range(3)],
            [((0,), (0,)), ((1,), (1,)), ((2,), (2,))],
            id="all-different",
        ),
        pytest.param(
            [{(ANY_ADDRESS, "TCP", 80)}, {("10.0.0.1", "TCP", 80)}, {("10.0.0.2", "TCP", 80)}],
            [((0,), (0, 1, 2)), ((1,), (0, 1)), ((2,), (0, 2))],
            id="any-address-and-two-others",
        ),
    ],
)
def test_each_is_told_once(pods: list[set[HostPort]], conflicts: list[object]) -> None:
    assert sorted(port_conflicts(used(pods))) == conflicts


@pytest.mark.parametrize("strategy", ["replicas", "berth"])
def test_an_application_with_thousands_of_ports_is_placed(strategy: str) -> None:
    profile = Profile.model_validate({"gang": {"strategy": strategy}})
    lab = Lab([zoned(f"n{n}") for n in range(2)], profile=profile)
    group = lab.group(group_object("shop", *chain("a", "b")))
    ports = [range(3000), range(3000, 6000), range(1, 3001)]
    pods = [
        member(f"p{number}", "ab"[number % 2], host_ports=[1 + port for port in those])
        for number, those in enumerate(ports)
    ]
    nodes = {one.pod.metadata.name: one.node for one in lab.place(group, *pods).decisions}
    assert len(nodes) == 3
    assert nodes["p0"] != nodes["p2"]
