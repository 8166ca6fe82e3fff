"""The annotation berth.dev/decision and the sentence in the Event."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.costs import NO_COSTS
from berth.scheduling.decision import Alternative, Decision, Failure, Outcome, annotation, summary
from tests.support.placement import ZONE_COSTS, Lab, chain, group_object, lone, member, zoned

TERMS = {"network": 1.23456789, "price": 0.0333333333}
JOINT = Decision(
    pod=member("frontend-7d4b9c6f5d-x2x9z", "frontend"),
    node="worker-eu-west-1a-17",
    strategy="berth",
    cost=sum(TERMS.values()),
    terms=TERMS,
    runner_ups=tuple(Alternative(f"worker-eu-west-1b-{n}", 10.0 * n, TERMS) for n in range(1, 4)),
    feasible=980,
    nodes=1000,
    rejected={"node(s) had untolerated taint(s)": 12, "Insufficient cpu": 8},
    group=("shop", "online-boutique"),
    planned_with=10,
    edges=7,
    edge_cost=0.0,
)


def read(decision: Decision, costs: Any = ZONE_COSTS) -> dict[str, Any]:
    document = json.loads(annotation(decision, costs))
    assert isinstance(document, dict)
    return document


class TestAnnotation:
    def test_round_trip(self) -> None:
        document = read(replace(JOINT))
        assert document == {
            "v": 1,
            "node": "worker-eu-west-1a-17",
            "strategy": "berth",
            "cost": 1.2679,
            "terms": {"network": 1.23457, "price": 0.0333333},
            "appGroup": "online-boutique",
            "plannedWith": 10,
            "edges": 7,
            "edgeCost": 0.0,
            "runnerUps": [
                {"node": f"worker-eu-west-1b-{n}", "cost": 10.0 * n, "terms": {"network": 1.23457, "price": 0.0333333}}
                for n in (1, 2, 3)
            ],
            "feasible": 980,
            "nodes": 1000,
            "rejected": {"node(s) had untolerated taint(s)": 12, "Insufficient cpu": 8},
            "network": {"topology": "default/net", "weights": ["UserDefined"]},
        }

    def test_the_version_comes_first(self) -> None:
        assert annotation(JOINT, ZONE_COSTS).startswith('{"v":1,')

    def test_a_pod_outside_any_group(self) -> None:
        document = read(replace(JOINT, group=None, rejected={}))
        assert document.keys().isdisjoint({"appGroup", "plannedWith", "edges", "edgeCost", "rejected"})

    def test_age_of_the_data(self) -> None:
        network = read(JOINT, replace(ZONE_COSTS, data_time="2026-01-02T03:04:05Z"))["network"]
        assert network["dataTime"] == "2026-01-02T03:04:05Z"

    def test_missing_data_is_said(self) -> None:
        assert "no NetworkTopology" in read(JOINT, NO_COSTS)["network"]["missing"]

    def test_a_typical_one_is_below_two_kibibytes(self) -> None:
        lab = Lab([zoned(f"worker-eu-west-1{zone}-{n}", f"eu-west-1{zone}") for zone in "abc" for n in range(20)])
        lab.cache.update_node(zoned("tainted", taints=["dedicated=db:NoSchedule"]))
        shop = lab.group(group_object("shop", *chain(*"abcdefghij")))
        outcome = lab.place(shop, *(member(f"{w}-7d4b9c6f5d-x2x9z", w, cpu="200m") for w in "abcdefghij"))
        (alone,) = lab.place_alone(lone("single", cpu="100m")).decisions
        assert outcome.complete
        for decision in (*outcome.decisions, alone):
            assert len(annotation(decision, ZONE_COSTS).encode()) < 2048

    def test_many_reasons_are_cut_to_those_of_most_nodes(self) -> None:
        reasons = {f"node(s) had untolerated taint {{key{n}: value}}": n for n in range(1, 101)}
        kept = read(replace(JOINT, rejected=reasons))["rejected"]
        assert list(kept.values()) == list(range(100, 92, -1))
        assert len(annotation(replace(JOINT, rejected=reasons), ZONE_COSTS)) < 2048

    def test_more_than_three_runners_up_are_cut(self) -> None:
        many = tuple(Alternative(f"n{n}", float(n)) for n in range(9))
        assert [item["node"] for item in read(replace(JOINT, runner_ups=many))["runnerUps"]] == ["n0", "n1", "n2"]

    @given(st.floats(allow_nan=True, allow_infinity=True))
    def test_any_number_gives_valid_json(self, value: float) -> None:
        document = read(replace(JOINT, cost=value, terms={"network": value}))
        assert document["cost"] is None or document["cost"] == pytest.approx(value, rel=1e-5)


class TestSummary:
    @pytest.mark.parametrize(
        ("decision", "text"),
        [
            pytest.param(
                JOINT,
                "Assigned to node worker-eu-west-1a-17, planned together with 9 other pods of AppGroup "
                "online-boutique; network cost 0 over 7 dependency edges; 980 of 1000 nodes were feasible",
                id="joint",
            ),
            pytest.param(
                replace(JOINT, planned_with=1, edge_cost=2.5),
                "Assigned to node worker-eu-west-1a-17; network cost 2.5 over 7 dependency edges; "
                "980 of 1000 nodes were feasible",
                id="replica",
            ),
            pytest.param(
                replace(JOINT, group=None),
                "Assigned to node worker-eu-west-1a-17; 980 of 1000 nodes were feasible",
                id="outside-any-group",
            ),
        ],
    )
    def test_sentence(self, decision: Decision, text: str) -> None:
        assert summary(decision) == text


def test_an_outcome_is_complete_without_failures() -> None:
    assert Outcome().complete
    assert not Outcome(failures=(Failure(lone("p"), "no room"),)).complete
