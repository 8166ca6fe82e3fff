"""What the API server refuses, and the words in which it does: field, problem, remedy."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from berth.api import rules
from berth.api.appgroup import API_VERSION, PLURAL, AppGroup
from berth.api.checks import appgroup_problems
from hack.harness.cluster import Kubectl
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api, ApiError
from tests.support.kinds import app_group, network_topology, ref, weight_set, workload

PAIR = (workload("a", "b"), workload("b"))
COST = "spec.weights[0].topologyList[0].originList[0].costList[0]"


def missing(field: str) -> dict[str, Any]:
    raw = app_group(*PAIR)
    del raw["spec"][field]
    return raw


REFUSED = [
    pytest.param(
        app_group(workload("a"), workload("b"), workload("a")),
        ["spec", "key a already exists", "two workloads have the same selector", "selector of its own"],
        id="duplicate-selectors",
    ),
    pytest.param(
        app_group(workload("a"), workload("b", "a", "b")),
        ["spec.workloads[1]", 'workload "b" depends on itself', "remove that dependency"],
        id="self-dependency",
    ),
    pytest.param(
        app_group(workload("a", "b"), workload("b", "c")),
        ["spec.workloads", 'workload "b" depends on "c"', "not a workload of this group", "add it to spec.workloads"],
        id="unknown-dependency",
    ),
    *(
        pytest.param(
            app_group(workload("a", "b", minBandwidth=value), workload("b")),
            [
                "spec.workloads[0].dependencies[0].minBandwidth",
                'the dependency on "b" is not a bandwidth',
                "such as 100M",
            ],
            id=f"bad-bandwidth-{value!r}",
        )
        for value in ("10 Mbit/s", "", "fast", "1e1.5", "10MB", "-5M", -1)
    ),
    pytest.param(
        app_group(workload("a", "b", minBandwidth="1" * 21), workload("b")),
        ["spec.workloads[0].dependencies[0].minBandwidth", "may not be more than 20"],
        id="bandwidth-too-long",
    ),
    pytest.param(
        app_group(workload("a", "b", minBandwidth=1.5), workload("b")),
        ["spec.workloads[0].dependencies[0].minBandwidth", "must be of type"],
        id="bandwidth-a-float",
    ),
    pytest.param(
        app_group(*PAIR, topologySortingAlgorithm="Kahn"),
        [
            "spec.topologySortingAlgorithm",
            'Unsupported value: "Kahn"',
            *("KahnSort", "AlternateKahn", "ReverseKahn", "TarjanSort", "AlternateTarjan", "ReverseTarjan"),
        ],
        id="unknown-algorithm",
    ),
    pytest.param(
        app_group(*PAIR, numMembers=1),
        ["spec.numMembers", "numMembers is 1 but the group has 2 workloads", "raise numMembers"],
        id="fewer-members-than-workloads",
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
        app_group(workload("x" * (rules.MAX_SELECTOR + 1))),
        ["spec.workloads[0].workload.selector", "may not be more than 63"],
        id="selector-longer-than-a-label",
    ),
    pytest.param(
        app_group(workload("a", "b", maxNetworkCost=10001), workload("b")),
        ["spec.workloads[0].dependencies[0].maxNetworkCost", "less than or equal to 10000"],
        id="cost-limit-too-high",
    ),
    pytest.param(
        app_group(workload("a", *["b"] * (rules.MAX_DEPENDENCIES + 1)), workload("b")),
        ["spec.workloads[0].dependencies", "must have at most 60 items"],
        id="too-many-dependencies",
    ),
    pytest.param(
        app_group(
            *({"workload": {"kind": "D", "name": f"{n}", "selector": f"{n}"}} for n in range(rules.MAX_WORKLOADS + 1))
        ),
        ["spec.workloads", "must have at most 10000 items"],
        id="too-many-workloads",
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
        network_topology(weight_set(a={"b": {"networkCost": 1, "bandwidthCapacity": "10 Gbit"}})),
        [f"{COST}.bandwidthCapacity", '"10 Gbit"', "should match"],
        id="bad-capacity",
    ),
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


def generated_group(random: Random) -> dict[str, Any]:
    """A small group, about half of them with something wrong."""
    names = random.sample("abcdefgh", k=random.randint(1, 5))
    if random.random() < 0.2:
        names.append(names[0])
    known = [*names, "z"] if random.random() < 0.2 else names
    entries = []
    for own in names:
        targets = [
            name for name in random.choices(known, k=random.randint(0, 3)) if name != own or random.random() < 0.2
        ]
        bandwidth = random.choice(["10M", "1Gi", 5, "0", "-1k"] if random.random() < 0.1 else ["10M", 7])
        entries.append(workload(own, *targets, minBandwidth=bandwidth))
    return app_group(*entries, numMembers=max(1, len(names) - (random.random() < 0.1)))


def refusal(api: Api, namespace: str, raw: dict[str, Any]) -> str:
    """What the API server says against *raw*; empty when it would take it."""
    try:
        api.request("POST", f"/apis/{API_VERSION}/namespaces/{namespace}/{PLURAL}?dryRun=All", raw)
    except ApiError as error:
        return str(error)
    return ""


def test_python_and_the_api_server_agree_on_every_rule(cluster: LocalCluster, namespace: str) -> None:
    random, api = Random(20260131), cluster.api()
    groups = [generated_group(random) for _ in range(150)]
    told = [(refusal(api, namespace, raw), appgroup_problems(AppGroup.parse(raw).spec)) for raw in groups]
    api.close()
    assert [pair for pair in told if bool(pair[0]) != bool(pair[1])] == []
    assert 30 < sum(1 for answer, _ in told if " 422 " in answer) < 120, (
        "about half of the groups are meant to be sound"
    )


def test_rules_guard_changes_too(kubectl: Kubectl) -> None:
    kubectl.apply(app_group(*PAIR))
    patch = json.dumps({"spec": {"numMembers": 1}})
    assert "numMembers is 1" in kubectl.refused("patch", "ag", "shop", "--type=merge", "-p", patch)
    assert kubectl.get("ag", "shop")["spec"]["numMembers"] == 2
