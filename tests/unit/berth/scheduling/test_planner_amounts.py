"""Whether a node has room is a question of whole numbers, also where a float would round: alone and in a joint plan."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.scheduling.configuration import Link, Profile
from tests.support.placement import Lab, chain, group_object, lone, member, where, zoned

FLOATS_END = 2**53
"""The first whole number after which a float64 leaves one out."""
TERABYTE = 2 * 10**12
HALF, SEVEN_TENTHS = Profile(usage_threshold=0.5), Profile(usage_threshold=0.7)
LIMITED = {"berth.dev/max-unit-memory": str(FLOATS_END)}

PODS = [
    pytest.param({"memory": FLOATS_END + 1}, {}, Profile(), (FLOATS_END + 1,), id="all-of-a-node"),
    pytest.param({"memory": FLOATS_END + 1}, {}, Profile(), (FLOATS_END, 1), id="all-of-a-node-by-two"),
    pytest.param({"memory": 2**60 + 1}, {}, Profile(), (2**60, 1), id="all-of-an-absurd-node"),
    pytest.param({"memory": TERABYTE}, {}, Profile(), (TERABYTE - 7, 7), id="all-of-a-large-node"),
    pytest.param({"memory": 2 * FLOATS_END + 2}, {}, HALF, (FLOATS_END + 1,), id="threshold-of-an-absurd-node"),
    pytest.param({"memory": 2 * FLOATS_END + 2}, {}, HALF, (FLOATS_END, 1), id="threshold-of-an-absurd-node-by-two"),
    pytest.param({"memory": 10}, {}, SEVEN_TENTHS, (7,), id="threshold-that-no-float-is"),
    pytest.param({"memory": 10}, {}, SEVEN_TENTHS, (3, 4), id="threshold-that-no-float-is-by-two"),
    pytest.param({"memory": 10**13}, {}, SEVEN_TENTHS, (3, 7 * 10**12 - 3), id="threshold-of-a-large-node"),
    pytest.param({"memory": 2**60}, LIMITED, Profile(), (FLOATS_END,), id="largest-unit"),
]


def placed(lab: Lab, amounts: tuple[int, ...]) -> int:
    """How many pods that request so much memory are placed, several of them by a joint plan."""
    if len(amounts) == 1:
        return len(where(lab.place_alone(lone("p", memory=str(amounts[0])))))
    shop = lab.group(group_object("shop", *chain(*"ab")))
    pods = [member(name, name, memory=str(amount)) for name, amount in zip("ab", amounts, strict=True)]
    return len(where(lab.place(shop, *pods)))


@pytest.mark.parametrize("more", [0, 1], ids=["just-fits", "one-too-many"])
@pytest.mark.parametrize(("node", "annotations", "profile", "amounts"), PODS)
def test_memory(
    node: dict[str, int], annotations: dict[str, str], profile: Profile, amounts: tuple[int, ...], more: int
) -> None:
    only = zoned("n1", memory=str(node["memory"]))
    only.metadata.annotations = annotations
    lab = Lab([only], profile)
    wanted = (*amounts[:-1], amounts[-1] + more)
    assert placed(lab, wanted) == (0 if more else len(amounts))


@settings(max_examples=60, deadline=None)
@given(
    room=st.one_of(
        st.integers(1, 100), st.integers(TERABYTE, TERABYTE + 9), st.integers(FLOATS_END - 4, FLOATS_END + 9),
        st.integers(2**55, 2**60),
    ),
    threshold=st.sampled_from([1.0, 0.9, 0.7, 0.3, 0.1, 0.55, 1 / 3]),
    split=st.floats(0.01, 0.99),
    more=st.integers(-1, 1),
)  # fmt: skip
def test_the_last_byte_that_a_threshold_leaves(room: int, threshold: float, split: float, more: int) -> None:
    digits = {1 / 3: (333333333, 10**9)}
    numerator, denominator = digits.get(threshold, (round(threshold * 100), 100))
    total = room * numerator // denominator + more
    first = min(max(1, int(total * split)), total - 1)
    if first < 1:
        return
    profile = Profile(usage_threshold=numerator / denominator)
    for amounts in ((total,), (first, total - first)):
        lab = Lab([zoned("n1", memory=str(room))], profile)
        assert placed(lab, amounts) == (len(amounts) if more <= 0 else 0)
        assert lab.over_committed() == []


@pytest.mark.parametrize("joint", [False, True], ids=["alone", "jointly"])
@pytest.mark.parametrize(
    ("capacity", "taken", "demand", "fits"),
    [
        pytest.param(FLOATS_END + 1, FLOATS_END, 1, True, id="absurd-budget-with-one-bit-left"),
        pytest.param(FLOATS_END + 1, FLOATS_END, 2, False, id="absurd-budget-with-too-little-left"),
        pytest.param(2**61, 2**61 - 5, 5, True, id="greatest-budget-with-five-bits-left"),
        pytest.param(2**61, 2**61 - 5, 6, False, id="greatest-budget-with-too-little-left"),
        pytest.param(3 * 10**12, 2 * 10**12 + 1, 10**12, False, id="large-budget-short-of-one-bit"),
    ],
)
def test_bandwidth_of_a_node(capacity: int, taken: int, demand: int, fits: bool, joint: bool) -> None:
    lab = Lab([zoned(name, cpu=1, network_aware_com__bandwidth=str(capacity)) for name in ("n1", "n2")])
    shop = lab.group(group_object("shop", *chain("a", "b", minBandwidth=str(demand))))
    lab.see(*(lone(f"on-{n}", on=n, cpu="1m", network_aware_com__bandwidth=str(taken)) for n in ("n1", "n2")))
    a, b = member("a1", "a", cpu="900m"), member("b1", "b", cpu="900m", on="" if joint else "n1")
    lab.see(b)
    outcome = lab.place(shop, a, b) if joint else lab.place_alone(a, shop)
    assert len(where(outcome)) == (1 + joint if fits else 0)


@pytest.mark.parametrize("joint", [False, True], ids=["alone", "jointly"])
@pytest.mark.parametrize(
    ("capacity", "demand", "fits"),
    [
        pytest.param("7", 7, True, id="all-of-it"),
        pytest.param("7", 8, False, id="a-bit-too-much"),
        pytest.param("6.9", 7, False, id="no-part-of-a-bit"),
        pytest.param("999999999999", 10**12, False, id="large-link"),
    ],
)
def test_bandwidth_of_a_link(capacity: str, demand: int, fits: bool, joint: bool) -> None:
    uplink = Profile(links=(Link(name="up", capacity=capacity, nodes=("n1",)),))
    lab = Lab([zoned("n1", cpu=1), zoned("n2", cpu=1)], uplink)
    shop = lab.group(group_object("shop", *chain("a", "b", minBandwidth=str(demand))))
    a, b = member("a1", "a", cpu="900m"), member("b1", "b", cpu="900m", on="" if joint else "n1")
    lab.see(b)
    outcome = lab.place(shop, a, b) if joint else lab.place_alone(a, shop)
    assert len(where(outcome)) == (1 + joint if fits else 0)


@pytest.mark.parametrize("other", [2**61 - 1, 2**61], ids=["less", "more"])
def test_scores_of_absurd_nodes_do_not_overflow(other: int) -> None:
    """The emptier node is better, however large both are."""
    lab = Lab([zoned("n1", memory=str(2**61)), zoned("n2", memory=str(other))])
    lab.see(lone("old", on="n1", memory=str(2**60)))
    outcome: Any = lab.place_alone(lone("p", memory="1Gi"))
    assert where(outcome) == {"p": "n2"}
