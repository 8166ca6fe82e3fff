"""What was decided, and the sentences that are made of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from berth.network.groups import GroupKey
from berth.scheduling.annotations import (
    write_rejections,
)
from berth.scheduling.decision import Decision, Failure, Outcome, summary
from berth.scheduling.framework.rejection import Rejection
from tests.support.decisions import JOINT
from tests.support.placement import lone


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
                replace(JOINT, planned_with=2, edges=1),
                "Assigned to node worker-eu-west-1a-17, planned together with 1 other pod of AppGroup "
                "online-boutique; network cost 0 over 1 dependency edge; 980 of 1000 nodes were feasible",
                id="pair",
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
    assert not Outcome(failures=(Failure(lone("p"), problem="no room"),)).complete


class TestFailure:
    CPU = (Rejection("NodeResourcesFit", "Insufficient cpu", 2), Rejection("TaintToleration", "taint", 1))

    def stuck(self) -> Failure:
        return Failure(lone("big"), GroupKey("default", "shop"), nodes=3, rejections=self.CPU)

    @pytest.mark.parametrize(
        ("fields", "message"),
        [
            pytest.param(
                {"nodes": 3, "rejections": CPU},
                "0/3 nodes are available: 1 taint, 2 Insufficient cpu.",
                id="nodes",
            ),
            pytest.param({"nodes": 0}, "0/0 nodes are available.", id="no-nodes"),
            pytest.param(
                {"nodes": 3, "blocker": "spec.x is not implemented"},
                "0/3 nodes are available: spec.x is not implemented.",
                id="blocked",
            ),
            pytest.param(
                {"unplanned": True, "nodes": 3},
                "planning ran out of time (gang.planningSeconds) before this pod was looked at",
                id="no-time",
            ),
            pytest.param(
                {"error": True, "nodes": 3},
                "planning failed for a reason that nobody foresaw, and is tried again after a pause; the log of the "
                "placement controller has the details",
                id="error",
            ),
            pytest.param({"problem": "no joint placement was found"}, "no joint placement was found", id="other"),
        ],
    )
    def test_words_are_made_of_the_data(self, fields: dict[str, Any], message: str) -> None:
        assert Failure(lone("p"), **fields).message == message

    def test_who_waits_quotes_the_one_that_fits_nowhere(self) -> None:
        waiting = Failure(lone("p"), GroupKey("default", "shop"), waits_for=self.stuck())
        assert waiting.message == (
            "AppGroup shop is placed all or nothing and waits for pod big: "
            "0/3 nodes are available: 1 taint, 2 Insufficient cpu."
        )
        assert write_rejections(waiting) == ""
