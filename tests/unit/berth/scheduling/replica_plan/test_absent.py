"""Workloads all of whose callers and dependencies have no replica."""

from __future__ import annotations

import time

import pytest

from berth.network.groups import read_group
from berth.scheduling.replica_plan.absent import calls_through_absent
from tests.support import kinds
from tests.support.placement import Lab, chain, group_object, member, where, zoned

STAR = [kinds.workload("hub", "a", "b", "c"), *map(kinds.workload, "abc")]


@pytest.mark.parametrize(
    ("workloads", "asked", "present", "found"),
    [
        pytest.param(chain("a", "b", "c"), "c", "a", ["ca"], id="a caller of its caller"),
        pytest.param(chain("a", "b", "c"), "a", "c", ["ac"], id="a dependency of its dependency"),
        pytest.param(chain("a", "b", "c"), "c", "ab", [], id="its caller is there"),
        pytest.param(chain("a", "b", "c", "d"), "d", "a", ["da"], id="two that are absent"),
        pytest.param(chain("a", "b", "c", "d"), "d", "ba", ["db"], id="nobody looks beyond who is there"),
        pytest.param(STAR, "c", "ba", ["cb"], id="one called by the same, the first of those that are preferred"),
        pytest.param(STAR, "abc", "abc", ["ab", "ba", "ca"], id="not itself"),
        pytest.param([*chain("a", "b"), kinds.workload("c")], "c", "ab", [], id="without calls"),
        pytest.param(chain("a", "b", "c"), "cx", "", [], id="nobody is there, or known"),
    ],
)
def test_who_is_called_through_absent_workloads(
    workloads: list[dict[str, object]], asked: str, present: str, found: list[str]
) -> None:
    group = read_group(group_object("shop", *workloads))
    edges = calls_through_absent(group, asked, list(present))
    assert [edge.dependent + edge.dependency for edge in edges] == found


@pytest.mark.parametrize("number", [1, 2], ids=["alone", "jointly"])
@pytest.mark.parametrize("home", ["n1", "n2", "n3"])
@pytest.mark.parametrize("ends", [("a", "c"), ("c", "a")], ids=["below", "above"])
def test_pods_go_near_the_application_though_nobody_calls_them_yet(
    home: str, number: int, ends: tuple[str, str]
) -> None:
    placed, new = ends
    lab = Lab([zoned(f"n{n}", zone) for n, zone in enumerate(("z1", "z2", "z3", "z4"))])
    shop = lab.group(group_object("shop", *chain("a", "b", "c")))
    lab.see(*(member(f"{placed}{n}", placed, on=home) for n in range(2)))
    pods = [member(f"{new}{n}", new) for n in range(number)]
    outcome = lab.place(shop, *pods)
    assert home in where(outcome).values()


def test_a_large_star_without_its_hub_is_gone_through_once() -> None:
    """A look from each leaf at all others would take minutes."""
    leaves = [f"w{number}" for number in range(3000)]
    group = read_group(group_object("shop", kinds.workload("hub", *leaves), *map(kinds.workload, leaves)))
    began = time.process_time()
    assert len(calls_through_absent(group, leaves, leaves)) == len(leaves)
    assert time.process_time() - began < 1
