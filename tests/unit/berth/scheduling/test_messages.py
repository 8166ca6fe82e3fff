"""What the scheduler tells: one style, with the remedy after a semicolon, and nothing longer than an Event's note."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from berth.network.groups import Group, GroupEdge, GroupKey
from berth.network.sites import Sites
from berth.scheduling import messages
from berth.scheduling.cache.services import WorkloadRouting
from berth.scheduling.decision import Failure
from berth.scheduling.framework.rejection import Rejection
from berth.scheduling.group_summary import GroupSummary, summarize
from berth.scheduling.messages import Message
from tests.support.edges import COSTS, PLACES
from tests.support.placement import member

SHOP = Group(key=GroupKey("default", "shop"), members=3, selectors=("a", "b", "c"))
FAILURE = Failure(member("a1", "a"), nodes=3, rejections=(Rejection("NodeResourcesFit", "Insufficient cpu", 3),))
NOTE = 1024


def summary(**placed: dict[str, int]) -> GroupSummary:
    shop = replace(SHOP, edges=(GroupEdge("a", "b", 0, math.inf),))
    return summarize(shop, placed, Sites.of(PLACES, COSTS), lambda _: WorkloadRouting())


@pytest.mark.parametrize(
    ("message", "reason", "warning", "text"),
    [
        pytest.param(
            messages.topology_absent("NetworkTopology net/topo does not exist"),
            "NetworkTopologyAbsent",
            True,
            "NetworkTopology net/topo does not exist; create it or correct the configuration",
            id="topology-absent",
        ),
        pytest.param(
            messages.group_placed(pods=4, nodes=2, summary=summary(a={"a1": 1, "b1": 1}, b={"a1": 1, "b1": 1})),
            "Placed",
            False,
            "Placed 4 pods on 2 nodes; mean edge cost 3.00 over 1 edge, 50% of the calls leave their zone; "
            "2 of 2 replicated workloads survive a node, 2 of 2 a zone",
            id="placed",
        ),
        pytest.param(
            messages.group_placed(pods=5, nodes=1, summary=summary(a={"a1": 2}, b={"a1": 1, "a2": 1}, c={"a1": 1})),
            "Placed",
            False,
            "Placed 5 pods on 1 node; mean edge cost 0.50 over 1 edge, 0% of the calls leave their zone; "
            "1 of 2 replicated workloads survive a node (not a), 0 of 2 a zone (not a, b)",
            id="placed-where-one-failure-ends-it",
        ),
        pytest.param(
            messages.group_placed(pods=8, nodes=2, summary=summary(**{name: {"a1": 1, "a2": 1} for name in "cdef"})),
            "Placed",
            False,
            "Placed 8 pods on 2 nodes; 4 of 4 replicated workloads survive a node, 0 of 4 a zone",
            id="placed-where-none-of-many-survives",
        ),
        pytest.param(
            messages.group_placed(pods=2, nodes=2, summary=summary(c={"a1": 1}, a={"a1": 1})),
            "Placed",
            False,
            "Placed 2 pods on 2 nodes",
            id="placed-without-edges-and-replicas",
        ),
        pytest.param(
            messages.group_not_placed(FAILURE),
            "NotPlaced",
            True,
            "Pod a1 has no node: 0/3 nodes are available: 3 Insufficient cpu",
            id="not-placed",
        ),
        pytest.param(
            messages.group_unusable(replace(SHOP, problem="spec.workloads: missing; add the field")),
            "AppGroupUnusable",
            True,
            "AppGroup shop cannot be used; the pod is scheduled on its own: spec.workloads: missing; add the field",
            id="unusable",
        ),
        pytest.param(
            messages.planning_cut_short(seconds=2),
            "PlanningCutShort",
            True,
            "Planning stopped after 2 s with the best plan so far; raise gang.planningSeconds in the placement "
            "configuration if the group should be planned longer",
            id="cut-short",
        ),
    ],
)
def test_reason_text_and_weight(message: Message, reason: str, warning: bool, text: str) -> None:
    assert (message.reason, message.warning, message.text) == (reason, warning, text)
    assert not message.text.endswith(".")


def test_lists_are_cut_and_say_so() -> None:
    many = tuple(f"workload-{number}" for number in range(1000))
    big = replace(SHOP, members=1000, selectors=many)
    waiting = messages.waiting_for_members(big, present=0, missing=many, seconds=30)
    unknown = messages.workload_unknown(big, "x")
    assert "workload-4 and 995 more" in waiting.text
    assert "workload-9 and 990 more" in unknown.text
    assert max(len(waiting.text), len(unknown.text)) < NOTE


def test_a_failure_brings_its_rejections_as_data() -> None:
    message = messages.failed_scheduling(FAILURE)
    assert message.text == "0/3 nodes are available: 3 Insufficient cpu."  # kube-scheduler's sentence, period included
    assert '"plugin":"NodeResourcesFit"' in message.rejections
