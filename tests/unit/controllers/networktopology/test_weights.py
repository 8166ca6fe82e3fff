"""Computed sets in the API's shape, what the API server says we own, and when a write is needed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import LABEL_REGION, LABEL_SEGMENT, LABEL_ZONE
from berth.api.networktopology import WeightSet, iter_costs
from controllers.networktopology.compute import Costs
from controllers.networktopology.weights import (
    Ownership,
    needs_write,
    ownership,
    status_time,
    weight_set,
    weight_sets,
    without_computed,
)
from tests.support import topologies
from tests.support.topology_passes import owned

PAIRS = st.dictionaries(
    st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd")).filter(lambda pair: pair[0] != pair[1]),
    st.integers(0, 2**63 - 1),
)

STATED = topologies.weight_set("UserDefined", zones={"a>b": 5})
COMPUTED = topologies.weight_set("Dijkstra", zones={"a>b": 5})


def test_shape() -> None:
    costs = Costs({("west", "east"): 20}, {("Z2", "Z1"): 6, ("Z1", "Z3"): 7, ("Z1", "Z2"): 5})
    assert weight_set("Dijkstra", costs) == {
        "name": "Dijkstra",
        "topologyList": [
            {
                "topologyKey": "topology.kubernetes.io/region",
                "originList": [{"origin": "west", "costList": [{"destination": "east", "networkCost": 20}]}],
            },
            {
                "topologyKey": "topology.kubernetes.io/zone",
                "originList": [
                    {
                        "origin": "Z1",
                        "costList": [
                            {"destination": "Z2", "networkCost": 5},
                            {"destination": "Z3", "networkCost": 7},
                        ],
                    },
                    {"origin": "Z2", "costList": [{"destination": "Z1", "networkCost": 6}]},
                ],
            },
        ],
    }


@pytest.mark.parametrize(
    ("costs", "keys"),
    [
        pytest.param(Costs(), [], id="nothing"),
        pytest.param(Costs({("a", "b"): 1}, {}), [LABEL_REGION], id="regions only"),
        pytest.param(Costs({}, {("a", "b"): 1}), [LABEL_ZONE], id="zones only"),
        pytest.param(Costs({}, {}, {("a", "b"): 1}), [LABEL_SEGMENT], id="segments only"),
        pytest.param(Costs(cut_segments=frozenset({("a", "b")})), [LABEL_SEGMENT], id="segments that are cut"),
    ],
)
def test_a_level_without_costs_has_no_entry(costs: Costs, keys: list[str]) -> None:
    assert [level["topologyKey"] for level in weight_set("Dijkstra", costs)["topologyList"]] == keys


def test_segments_that_are_cut_have_no_link_and_no_cost() -> None:
    costs = Costs({}, {}, {("a", "c"): 2}, frozenset({("a", "b")}))
    assert weight_set("Dijkstra", costs)["topologyList"] == [
        {
            "topologyKey": LABEL_SEGMENT,
            "originList": [
                {
                    "origin": "a",
                    "costList": [{"destination": "b", "isAllowed": False}, {"destination": "c", "networkCost": 2}],
                }
            ],
        }
    ]


def test_sets_keep_their_order() -> None:
    names = [item["name"] for item in weight_sets({"Dijkstra": Costs(), "NetperfCosts": Costs()})]
    assert names == ["Dijkstra", "NetperfCosts"]


@given(regions=PAIRS, zones=PAIRS)
def test_the_model_reads_back_the_same_costs(
    regions: dict[tuple[str, str], int], zones: dict[tuple[str, str], int]
) -> None:
    model = WeightSet.model_validate(weight_set("Dijkstra", Costs(regions, zones)))
    for key, costs in ((LABEL_REGION, regions), (LABEL_ZONE, zones)):
        found = [(origin, destination, cost.network_cost) for origin, destination, cost in iter_costs(model, key)]
        assert found == [(*pair, costs[pair]) for pair in sorted(costs)]


@given(costs=PAIRS, order=st.randoms(use_true_random=False))
def test_the_same_costs_give_the_same_json(costs: dict[tuple[str, str], int], order: Any) -> None:
    shuffled = list(costs.items())
    order.shuffle(shuffled)
    assert str(weight_set("x", Costs({}, costs))) == str(weight_set("x", Costs({}, dict(shuffled))))


def applied(*names: str, **fields: Any) -> dict[str, Any]:
    """Entry of managedFields as the API server keeps it for an apply of these weight sets."""
    weights: dict[str, Any] = {
        f'k:{{"name":"{name}"}}': {".": {}, "f:name": {}, "f:topologyList": {}} for name in names
    }
    return {
        "manager": "berth-networktopology",
        "operation": "Apply",
        "time": "2026-01-31T12:00:00Z",
        "fieldsV1": {"f:spec": {"f:weights": weights}},
        **fields,
    }


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], Ownership(), id="nobody wrote"),
        pytest.param([applied("Dijkstra")], Ownership(frozenset({"Dijkstra"}), NOON), id="ours"),
        pytest.param(
            [applied("UserDefined", manager="kubectl"), applied("Dijkstra", "NetperfCosts")],
            Ownership(frozenset({"Dijkstra", "NetperfCosts"}), NOON),
            id="beside others",
        ),
        pytest.param(
            [applied("Dijkstra", time="0000-01-01T00:00:00Z")], Ownership(frozenset({"Dijkstra"})), id="of the year 0"
        ),
        pytest.param([applied("Dijkstra", manager="upstream-controller")], Ownership(), id="of another controller"),
        pytest.param([applied("Dijkstra", operation="Update")], Ownership(), id="an update, not an apply"),
        pytest.param([applied("Dijkstra", subresource="status")], Ownership(), id="of the status"),
        pytest.param([applied()], Ownership(), id="nothing left of it"),
        pytest.param([{**applied("x"), "fieldsV1": {}}], Ownership(), id="no fields"),
        pytest.param(
            [{**applied("x"), "fieldsV1": {"f:spec": {"f:weights": {'k:{"name":["x"]}': {}, "k:{": {}}}}}],
            Ownership(),
            id="stated by somebody, as the API server would not",
        ),
    ],
)
def test_ownership(entries: list[dict[str, Any]], expected: Ownership) -> None:
    assert ownership(entries) == expected


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        pytest.param([], None, id="none"),
        pytest.param([applied("x", subresource="status")], NOON, id="ours"),
        pytest.param([applied("x")], None, id="of the object"),
        pytest.param(
            [applied("x", subresource="status", manager="upstream-controller")], None, id="of another controller"
        ),
        pytest.param([applied("x", subresource="status", time="0000-01-01T00:00:00Z")], None, id="of the year 0"),
    ],
)
def test_when_the_status_was_written(entries: list[dict[str, Any]], expected: datetime | None) -> None:
    assert status_time(entries) == expected


USER = topologies.weight_set("UserDefined", zones={"a>b": 3})
OLD = topologies.weight_set("Dijkstra", zones={"a>b": 3})
NEW = topologies.weight_set("Dijkstra", zones={"a>b": 4})
DIRECT = topologies.weight_set("NetperfCosts", zones={"a>b": 3})


@pytest.mark.parametrize(
    ("live", "wanted", "owned", "expected"),
    [
        pytest.param([USER], [], set(), False, id="nothing wanted, nothing there"),
        pytest.param([USER], [OLD], set(), True, id="first time"),
        pytest.param([USER, OLD], [OLD], {"Dijkstra"}, False, id="as it is"),
        pytest.param([OLD, USER], [OLD], {"Dijkstra"}, False, id="place in the list is the people's"),
        pytest.param([USER, OLD], [NEW], {"Dijkstra"}, True, id="cost changed"),
        pytest.param([USER], [OLD], {"Dijkstra"}, True, id="somebody removed it"),
        pytest.param([USER, NEW], [OLD], set(), True, id="somebody changed it"),
        pytest.param([USER, OLD, DIRECT], [OLD], {"Dijkstra", "NetperfCosts"}, True, id="one set has to go"),
        pytest.param([USER, OLD], [], {"Dijkstra"}, True, id="all have to go"),
        pytest.param([USER, DIRECT], [], set(), False, id="a set of that name written by people stays"),
        pytest.param([USER], [], {"Dijkstra"}, False, id="owned and gone already"),
    ],
)
def test_needs_write(live: list[Any], wanted: list[Any], owned: set[str], expected: bool) -> None:
    assert needs_write(live, wanted, frozenset(owned)) is expected


@pytest.mark.parametrize(
    ("spec", "names", "expected"),
    [
        pytest.param(None, (), {"weights": [], "configmapName": ""}, id="no spec"),
        pytest.param({"weights": [STATED, COMPUTED]}, (), {"weights": [STATED, COMPUTED]}, id="nothing is ours"),
        pytest.param(
            {"weights": [STATED, COMPUTED], "configmapName": "net"},
            ("Dijkstra", "NetperfCosts"),
            {"weights": [STATED, {"name": "Dijkstra", "topologyList": []}], "configmapName": "net"},
            id="computed costs are left out, and the set stays",
        ),
    ],
)
def test_without_computed(spec: dict[str, Any] | None, names: tuple[str, ...], expected: dict[str, Any]) -> None:
    raw = {"metadata": {"name": "net", "managedFields": owned(*names)}, "spec": spec}
    assert without_computed(raw) == {**raw, "spec": expected}
