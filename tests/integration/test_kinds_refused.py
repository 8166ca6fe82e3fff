"""What the API server refuses, and the words in which it does: field, problem, remedy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hack.harness.cluster import Kubectl
from tests.support.kinds import app_group, network_topology, ref, weight_set, workload

PAIR = (workload("a", "b"), workload("b"))
COST = "spec.weights[0].topologyList[0].originList[0].costList[0]"


def missing(field: str) -> dict[str, Any]:
    raw = app_group(*PAIR)
    del raw["spec"][field]
    return raw


REFUSED = [
    pytest.param(
        app_group(workload("a", "b", minBandwidth=1.5), workload("b")),
        ["spec.workloads[0].dependencies[0].minBandwidth", "must be of type"],
        id="bandwidth-a-float",
    ),
    pytest.param(app_group(numMembers=0), ["spec.numMembers", "greater than or equal to 1"], id="no-members"),
    pytest.param(app_group(*PAIR, numMembers="two"), ["spec.numMembers", "integer"], id="members-in-words"),
    pytest.param(missing("workloads"), ["spec.workloads", "Required value"], id="no-workloads-field"),
    pytest.param(missing("topologySortingAlgorithm"), ["spec.topologySortingAlgorithm", "Required"], id="no-algorithm"),
    pytest.param(
        app_group({"workload": {"kind": "Deployment", "name": "a"}}),
        ["spec.workloads[0].workload.selector", "Required value"],
        id="no-selector",
    ),
    pytest.param(
        app_group(workload("a", "b", maxNetworkCost=10001), workload("b")),
        ["spec.workloads[0].dependencies[0].maxNetworkCost", "less than or equal to 10000"],
        id="cost-limit-too-high",
    ),
    pytest.param(
        app_group({"workload": ref("a"), "needs": []}), ["unknown field", "spec.workloads[0].needs"], id="typo"
    ),
    pytest.param(
        network_topology(weight_set(a={"b": -1})),
        [f"{COST}.networkCost", "greater than or equal to 0"],
        id="negative-cost",
    ),
    pytest.param(network_topology(weight_set(a={"b": "5"})), [f"{COST}.networkCost", "integer"], id="cost-a-string"),
    pytest.param(
        network_topology(weight_set("UserDefined"), weight_set("UserDefined")),
        ["spec.weights[1]", "Duplicate value", "UserDefined"],
        id="two-weight-sets-of-one-name",
    ),
    pytest.param(network_topology(configmapName=None), ["spec.configmapName"], id="no-configmap-name"),
]


@pytest.mark.parametrize(("raw", "words"), REFUSED)
def test_refused_with_a_message_that_helps(raw: dict[str, Any], words: list[str], kubectl: Kubectl) -> None:
    answer = kubectl.refused("create", "-f", "-", input=json.dumps(raw))
    assert [word for word in words if word not in answer] == [], answer
