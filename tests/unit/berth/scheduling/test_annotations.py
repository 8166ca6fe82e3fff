"""The annotations berth.dev/decision and berth.dev/rejections: what is written, and what of older ones is read."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.network.costs import NO_COSTS
from berth.scheduling.annotations import (
    MAX_BYTES,
    UnreadableAnnotationError,
    fits,
    read_decision,
    read_rejections,
    write_decision,
    write_rejections,
)
from berth.scheduling.decision import Alternative, Decision, Failure
from berth.scheduling.framework.rejection import Rejection
from tests.support.decisions import JOINT
from tests.support.placement import ZONE_COSTS, Lab, chain, group_object, lone, member, zoned


def read(decision: Decision, costs: Any = ZONE_COSTS) -> dict[str, Any]:
    document = json.loads(write_decision(decision, costs))
    assert isinstance(document, dict)
    return document


class TestAnnotation:
    def test_round_trip(self) -> None:
        document = read(replace(JOINT))
        assert document == {
            "v": 2,
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
            "rejected": [
                {"plugin": "TaintToleration", "reason": "node(s) had untolerated taint(s)", "nodes": 12},
                {"plugin": "NodeResourcesFit", "reason": "Insufficient cpu", "nodes": 8},
            ],
            "network": {"topology": "default/net", "weights": ["UserDefined"]},
        }

    def test_the_version_comes_first(self) -> None:
        assert write_decision(JOINT, ZONE_COSTS).startswith('{"v":2,')

    def test_a_pod_outside_any_group(self) -> None:
        document = read(replace(JOINT, group=None, rejections=()))
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
            assert len(write_decision(decision, ZONE_COSTS).encode()) < 2048

    def test_many_reasons_are_cut_to_those_of_most_nodes(self) -> None:
        many = tuple(Rejection("T", f"node(s) had untolerated taint {{key{n}: value}}", n) for n in range(1, 101))
        kept = read(replace(JOINT, rejections=many))["rejected"]
        assert [row["nodes"] for row in kept] == list(range(100, 92, -1))
        assert len(write_decision(replace(JOINT, rejections=many), ZONE_COSTS)) < 2048

    def test_more_than_three_runners_up_are_cut(self) -> None:
        many = tuple(Alternative(f"n{n}", float(n)) for n in range(9))
        assert [item["node"] for item in read(replace(JOINT, runner_ups=many))["runnerUps"]] == ["n0", "n1", "n2"]

    @given(st.floats(allow_nan=True, allow_infinity=True))
    def test_any_number_gives_valid_json(self, value: float) -> None:
        document = read(replace(JOINT, value=value, terms={"network": value}))
        assert document["cost"] is None or document["cost"] == pytest.approx(value, rel=1e-5)

    def test_a_pod_placed_by_itself_has_a_score(self) -> None:
        document = read(replace(JOINT, strategy="alone"))
        assert "cost" not in document
        assert document["score"] == 1.2679
        assert all("score" in item and "cost" not in item for item in document["runnerUps"])


class TestReading:
    def test_what_was_written_is_read(self) -> None:
        text = write_decision(JOINT, ZONE_COSTS)
        assert read_decision(text) == json.loads(text)

    @pytest.mark.parametrize(
        ("strategy", "scale"), [pytest.param("alone", "score", id="alone"), pytest.param("berth", "cost", id="joint")]
    )
    def test_version_1_is_brought_up_to_date(self, strategy: str, scale: str) -> None:
        old = {
            "v": 1,
            "node": "n1",
            "strategy": strategy,
            "cost": 3.0,
            "terms": {},
            "runnerUps": [{"node": "n2", "cost": 2.0, "terms": {}}],
            "rejected": {"Insufficient cpu": 4},
        }
        document = read_decision(json.dumps(old))
        assert document[scale] == 3.0
        assert document["runnerUps"][0][scale] == 2.0
        assert document["rejected"] == [{"plugin": "", "reason": "Insufficient cpu", "nodes": 4}]

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            pytest.param("{", "is not a decision of Berth", id="cut"),
            pytest.param("[]", "is not a decision of Berth", id="list"),
            pytest.param(f'{{"v": {"[" * 5000}1{"]" * 5000}}}', "is not a decision of Berth", id="nested deeply"),
            pytest.param(
                '{"v": 1, "node": "n", "strategy": "berth", "rejected": null}', "is not a decision", id="null-map"
            ),
            pytest.param(
                '{"v": 1, "node": "n", "strategy": "berth", "runnerUps": [1]}', "is not a decision", id="number-1"
            ),
            pytest.param('{"v": 2, "node": "n", "cost": 1.0}', "strategy", id="no-strategy"),
            pytest.param('{"v": 2, "node": "n", "strategy": "berth"}', "a node without cost", id="no-cost"),
            pytest.param('{"v": 2, "node": "n", "strategy": "alone", "cost": 1}', "without score", id="other-scale"),
            pytest.param(
                f'{{"v": 2, "node": "n", "strategy": "berth", "cost": 1, "edges": 1{"0" * 400}}}',
                "is not a decision of Berth",
                id="endless-count",
            ),
            pytest.param('{"v": 9}', "has version 9, this command reads 1 to 2", id="newer"),
            pytest.param("{}", "has version None", id="no-version"),
        ],
    )
    def test_anything_else_is_refused_with_a_remedy(self, text: str, said: str) -> None:
        with pytest.raises(UnreadableAnnotationError, match=said):
            read_decision(text)

    def test_of_two_scales_the_strategys_counts(self) -> None:
        node = {"node": "n", "cost": 1.0, "terms": {}}
        document = read_decision(
            json.dumps({"v": 2, "strategy": "berth", **node, "score": 9.0, "runnerUps": [{**node, "score": 8.0}]})
        )
        items = (document, *document["runnerUps"])
        assert [{"cost", "score"} & item.keys() for item in items] == [{"cost"}, {"cost"}]


class TestRejections:
    def test_round_trip(self) -> None:
        failure = Failure(lone("p"), nodes=9, rejections=JOINT.rejections)
        rows = read_rejections(write_rejections(failure))
        assert [(row["plugin"], row["nodes"]) for row in rows] == [("TaintToleration", 12), ("NodeResourcesFit", 8)]

    @pytest.mark.parametrize(
        "text",
        [
            *("", "{", "[]", "{}", "5", '{"v": 1, "rejected": [1]}', '{"v": 2, "rejected": null}', '{"v": 2}'),
            *('{"v": 2, "rejected": {"x": 1}}', '{"v": 2, "rejected": [1, 2]}', '{"v": 2, "rejected": [{}]}'),
        ],
        ids=repr,
    )
    def test_what_cannot_be_read_gives_no_rows(self, text: str) -> None:
        assert read_rejections(text) == []

    def test_what_is_nested_deeply_gives_no_rows(self) -> None:
        assert read_rejections(f'{{"x": {"[" * 5000}1{"]" * 5000}}}') == []


@pytest.mark.parametrize(
    ("annotations", "text", "fit"),
    [
        pytest.param({}, "{}", True, id="empty"),
        pytest.param({"k": "v" * (MAX_BYTES - len("berth.dev/decision") - 3)}, "{}", True, id="exactly-full"),
        pytest.param({"k": "v" * (MAX_BYTES - len("berth.dev/decision") - 2)}, "{}", False, id="a-byte-too-many"),
        pytest.param({"k": "ä" * (MAX_BYTES // 2)}, "{}", False, id="bytes-not-characters"),
        pytest.param({"berth.dev/decision": "v" * MAX_BYTES}, "{}", True, id="an-older-decision-is-replaced"),
    ],
)
def test_whether_a_decision_fits(annotations: dict[str, str], text: str, fit: bool) -> None:
    assert fits(text, annotations) is fit
