"""What is written of links, in which shape, and when."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import LABEL_REGION, LABEL_ZONE, WEIGHTS_ALLOCATED
from berth.network.link_budgets import PlacePair
from controllers.placement.link_usage import (
    MAX_PAIRS,
    SMALL_SECONDS,
    WRITE_SECONDS,
    read_usage,
    seconds_between,
    shown,
    weight_sets,
)
from tests.support.topologies import weight_set

ZONES, INSIDE = PlacePair(LABEL_ZONE, "z1", "z2"), PlacePair(LABEL_ZONE, "z1", "z1")
REGIONS = PlacePair(LABEL_REGION, "r1", "r2")
BUDGETS = {ZONES: 1000, INSIDE: 500, REGIONS: 10**9}
PAIRS = st.builds(
    PlacePair.of, st.sampled_from([LABEL_REGION, LABEL_ZONE]), st.sampled_from("abc"), st.sampled_from("abc")
)


def test_both_directions_of_each_link_in_order() -> None:
    def entry(capacity: int, allocated: int) -> dict[str, Any]:
        return {"bandwidthCapacity": str(capacity), "bandwidthAllocated": str(allocated)}

    assert weight_sets(BUDGETS, shown(BUDGETS, {ZONES: 7})) == [
        weight_set(
            WEIGHTS_ALLOCATED,
            regions={"r1>r2": entry(10**9, 0), "r2>r1": entry(10**9, 0)},
            zones={"z1>z1": entry(500, 0), "z1>z2": entry(1000, 7), "z2>z1": entry(1000, 7)},
        )
    ]
    assert weight_sets({}, {}) == []


@given(st.dictionaries(PAIRS, st.integers(1, 2**52)), st.data())
def test_what_was_written_is_read_back(budgets: dict[PlacePair, int], data: st.DataObject) -> None:
    usage = shown(budgets, {pair: data.draw(st.integers(0, 2**60)) for pair in budgets})
    written = [*weight_sets(budgets, usage), weight_set("UserDefined", zones={"a>b": 5})]
    assert read_usage(written, budgets) == usage


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"z1>z2": {"bandwidthCapacity": "1000", "bandwidthAllocated": "7"}}, id="one-direction"),
        pytest.param({"z1>z9": {"bandwidthCapacity": "1000", "bandwidthAllocated": "7"}}, id="another-link"),
        pytest.param({"z1>z2": {"bandwidthAllocated": "seven"}}, id="no-number"),
        pytest.param({"z1>z2": 5}, id="a-cost"),
    ],
)
def test_a_set_that_somebody_changed_says_nothing(changed: dict[str, Any]) -> None:
    assert read_usage([weight_set(WEIGHTS_ALLOCATED, zones=changed)], BUDGETS) is None


@pytest.mark.parametrize(
    ("before", "now", "seconds"),
    [
        pytest.param({ZONES: 500}, {ZONES: 500}, None, id="the-same"),
        pytest.param({ZONES: 500}, {ZONES: 505}, SMALL_SECONDS, id="small"),
        pytest.param({ZONES: 500}, {ZONES: 511}, WRITE_SECONDS, id="large"),
        pytest.param({ZONES: 0}, {ZONES: 1}, WRITE_SECONDS, id="first-call"),
        pytest.param({ZONES: 1}, {ZONES: 0}, WRITE_SECONDS, id="last-call"),
        pytest.param({ZONES: 5, REGIONS: 10**6}, {ZONES: 6, REGIONS: 10**9}, WRITE_SECONDS, id="one-of-several"),
        pytest.param({}, {ZONES: 0}, WRITE_SECONDS, id="a-link-more"),
    ],
)
def test_when_a_change_is_written(
    before: dict[PlacePair, int], now: dict[PlacePair, int], seconds: float | None
) -> None:
    assert seconds_between(BUDGETS, before, now) == seconds


def test_of_too_many_links_those_that_are_used_most() -> None:
    budgets = {PlacePair(LABEL_ZONE, "a", f"z{number:05}"): 10 for number in range(MAX_PAIRS + 5)}
    usage = {pair: number for number, pair in enumerate(budgets)}
    kept = shown(budgets, usage)
    assert len(kept) == MAX_PAIRS
    assert min(kept.values()) == 5
