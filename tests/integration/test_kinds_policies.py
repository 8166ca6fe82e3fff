"""What makes no sense in a spec: stored unchanged, told by the admission policies, refused by the strict overlay."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from berth.api import appgroup, networktopology
from berth.api.appgroup import AppGroup
from berth.api.checks import appgroup_problems, topology_problems
from berth.api.networktopology import NetworkTopology
from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api
from tests.support.kinds import app_group, network_topology, ref, weight_set, workload

PAIR = (workload("a", "b"), workload("b"))
STATISTICS = {"minBandwidth": "1M", "avgCost": 7}
CAPACITY = network_topology(weight_set(a={"b": {"networkCost": 1, "bandwidthCapacity": "10 Gbit", "isAllowed": True}}))
OLD_GROUP = app_group(*PAIR, name="old", numMembers=1)
OLD_TOPOLOGY = {**CAPACITY, "metadata": {"name": "old"}}
"""What was stored before a policy was there."""

TOLD = [
    pytest.param(
        app_group(*PAIR, topologySortingAlgorithm="Kahn"),
        ['"Kahn" is no algorithm', "KahnSort is used", "ReverseTarjan"],
        id="unknown-algorithm",
    ),
    pytest.param(app_group(*PAIR, numMembers=1), ["numMembers is 1 but the group has 2 workloads"], id="few-members"),
    pytest.param(
        app_group(workload("a"), workload("b"), workload("a")), ['selector "a"', "read as one"], id="same-selectors"
    ),
    pytest.param(app_group(workload("x" * 64)), ["more than 63 characters"], id="long-selector"),
    pytest.param(app_group(workload("a"), workload("b", "a", "b")), ['"b" depends on itself'], id="self-dependency"),
    pytest.param(
        app_group(workload("a", "b"), workload("b", "c")), ['"b" depends on "c"', "ignored"], id="unknown-dependency"
    ),
    *(
        pytest.param(
            app_group(workload("a", "b", minBandwidth=value), workload("b")),
            ['a minBandwidth of workload "a" is not a bandwidth', "such as 100M"],
            id=f"bandwidth-{value!r}",
        )
        for value in ("10 Mbit/s", "", "fast", "1e1.5", "10MB", "-5M", -1)
    ),
    pytest.param(CAPACITY, ['a bandwidthCapacity of "UserDefined" is not a bandwidth'], id="bad-capacity"),
]
SILENT = [
    pytest.param(app_group(workload("a", "b", minBandwidth="0" * 30 + "5"), workload("b")), id="long-bandwidth"),
    pytest.param(app_group(workload("a", *["b"] * 70), workload("b")), id="seventy-dependencies"),
    pytest.param({k: v for k, v in app_group().items() if k != "spec"}, id="no-spec"),
    pytest.param(app_group(), id="no-workloads"),
    pytest.param(network_topology(), id="no-weights"),
    pytest.param(
        network_topology(
            {
                "name": "UserDefined",
                "topologyList": [
                    {
                        "topologyKey": "topology.kubernetes.io/zone",
                        "originList": [
                            {"origin": "a", "originInterStatistics": STATISTICS, "originIntraStatistics": STATISTICS},
                            {"origin": "b", "costList": [{"destination": "a", "networkCost": 1, "isAllowed": False}]},
                        ],
                    }
                ],
            }
        ),
        id="statistics-and-isAllowed",
    ),
]


def write(api: Api, raw: dict[str, Any], query: str = "") -> tuple[int, str, dict[str, Any]]:
    """Create an object; status, warning and answer."""
    module = appgroup if raw["kind"] == "AppGroup" else networktopology
    path = f"/apis/{module.API_VERSION}/namespaces/default/{module.PLURAL}"
    status, headers, content = api.raw("POST", path + query, raw)
    return status, headers.get("warning", ""), json.loads(content)


def _installed(cluster: LocalCluster, overlay: str) -> LocalCluster:
    cluster.kubectl("apply", "--server-side", "-k", str(REPOSITORY / "deploy" / "policies" / overlay))
    api = cluster.api()

    def told() -> bool:
        answers = [write(api, raw, "?dryRun=All") for raw in (app_group(*PAIR, numMembers=1), CAPACITY)]
        return all(status == 422 or warning for status, warning, _ in answers)

    eventually(told, what="the policies in force")
    api.close()
    return cluster


@pytest.fixture(scope="module")
def warning(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A cluster with the policies."""
    return _installed(module_cluster(kwok=False), "warn")


@pytest.fixture(scope="module")
def denying(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A cluster with the strict overlay, and with objects that were stored before it."""
    cluster = module_cluster(kwok=False)
    api = cluster.api()
    for raw in (OLD_GROUP, OLD_TOPOLOGY):
        status, _, stored = write(api, raw)
        assert status == 201, stored
    api.close()
    return _installed(cluster, "deny")


@pytest.mark.parametrize(("raw", "words"), TOLD)
def test_stored_unchanged_with_a_warning(
    warning: LocalCluster, raw: dict[str, Any], words: list[str], request: pytest.FixtureRequest
) -> None:
    named = {**raw, "metadata": {"generateName": "told-"}}
    api = warning.api()
    status, said, stored = write(api, named)
    api.close()
    assert status == 201, stored
    assert stored["spec"] == raw["spec"]
    # The header quotes the text.
    assert [word for word in words if word not in said.replace("\\", "")] == [], said


@pytest.mark.parametrize("raw", SILENT)
def test_stored_unchanged_without_a_warning(warning: LocalCluster, raw: dict[str, Any]) -> None:
    api = warning.api()
    status, said, stored = write(api, {**raw, "metadata": {"generateName": "silent-"}})
    api.close()
    assert (status, said) == (201, ""), stored
    assert stored.get("spec") == raw.get("spec")


@pytest.mark.parametrize(("raw", "words"), TOLD)
def test_the_strict_overlay_refuses_it(denying: LocalCluster, raw: dict[str, Any], words: list[str]) -> None:
    api = denying.api()
    status, _, answer = write(api, raw, "?dryRun=All")
    api.close()
    assert status == 422
    assert [word for word in words if word not in answer["message"]] == [], answer["message"]


def test_what_was_stored_before_the_strict_overlay_lives_on_until_somebody_writes_its_mistake(
    denying: LocalCluster,
) -> None:
    """An object that was stored before could not be labelled, nor given its computed weights, nor deleted in the
    foreground: its finalizer is taken away by an update."""
    api = denying.api()
    sound = CAPACITY["spec"]["weights"][0] | {"name": "Dijkstra"}
    sound = json.loads(json.dumps(sound).replace("10 Gbit", "10G"))
    computed = [*CAPACITY["spec"]["weights"], sound]
    spoilt = [*CAPACITY["spec"]["weights"], *CAPACITY["spec"]["weights"]]
    spoilt[1] = spoilt[1] | {"name": "Other"}

    def patch(stored: dict[str, Any], change: dict[str, Any]) -> int:
        module = appgroup if stored["kind"] == "AppGroup" else networktopology
        path = f"/apis/{module.API_VERSION}/namespaces/default/{module.PLURAL}/old"
        return api.raw("PATCH", path, change, content_type="application/merge-patch+json")[0]

    changes: list[tuple[dict[str, Any], dict[str, Any], int]] = [
        (OLD_GROUP, {"metadata": {"labels": {"team": "a"}}}, 200),
        (OLD_GROUP, {"spec": {"topologySortingAlgorithm": "TarjanSort"}}, 422),
        (OLD_TOPOLOGY, {"metadata": {"labels": {"team": "a"}}}, 200),
        (OLD_TOPOLOGY, {"spec": {"weights": computed}}, 200),
        (OLD_TOPOLOGY, {"spec": {"weights": spoilt}}, 422),
    ]
    assert [patch(stored, change) for stored, change, _ in changes] == [wanted for *_, wanted in changes]
    api.close()
    denying.kubectl("delete", "ag,nt", "old", "--cascade=foreground", "--timeout=60s")


LARGE = [workload(f"w{n}", *(f"w{(n + k) % 1500}" for k in range(1, 6))) for n in range(1500)]


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        pytest.param(app_group(*LARGE), "", id="sound"),
        pytest.param(app_group(*LARGE, workload("w7", "other")), "", id="only comparing all with all would tell"),
        pytest.param(app_group(*LARGE, numMembers=1), "numMembers is 1", id="few-members"),
        pytest.param(app_group(*LARGE, workload("x", "x")), '"x" depends on itself', id="self-dependency"),
        pytest.param(app_group(*LARGE, workload("x", "w1", minBandwidth="fast")), "not a bandwidth", id="bandwidth"),
    ],
)
def test_a_large_group_is_held_to_what_can_be_told_in_one_look(
    denying: LocalCluster, raw: dict[str, Any], problem: str
) -> None:
    """A policy that compared all its selectors refused it for its size, after seconds of the API server's time."""
    api = denying.api()
    status, _, answer = write(api, raw, "?dryRun=All")
    api.close()
    assert status == (422 if problem else 201), answer
    assert problem in answer.get("message", "")


def test_statistics_in_the_status_of_an_appgroup_are_kept(warning: LocalCluster) -> None:
    api = warning.api()
    write(api, app_group(*PAIR, name="statistics"))
    entry = {"workload": ref("a"), "index": 1, "avgBandwidthRequirement": "1M", "maxCostRequirement": 9}
    status = {"topologyOrder": [entry], "appGroupStatistics": STATISTICS, "workloadStatistics": [STATISTICS]}
    path = f"/apis/{appgroup.API_VERSION}/namespaces/default/{appgroup.PLURAL}/statistics/status"
    stored = api.request("PATCH", path, {"status": status}, content_type="application/merge-patch+json")
    api.close()
    assert stored["status"] == status


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
        bandwidth = random.choice(["10M", "1Gi", 5, "0", "-1k", "fast"] if random.random() < 0.1 else ["10M", 7])
        entries.append(workload(own, *targets, minBandwidth=bandwidth))
    algorithm = "Quick" if random.random() < 0.05 else "TarjanSort"
    members = max(1, len(names) - (random.random() < 0.1))
    return app_group(*entries, numMembers=members, topologySortingAlgorithm=algorithm)


def test_python_and_the_policies_agree_on_every_rule(denying: LocalCluster) -> None:
    random, api = Random(20260131), denying.api()
    groups = [generated_group(random) for _ in range(150)]
    told = [(write(api, raw, "?dryRun=All")[0], appgroup_problems(AppGroup.parse(raw).spec)) for raw in groups]
    api.close()
    assert [pair for pair in told if (pair[0] == 422) != bool(pair[1])] == []
    assert 30 < sum(1 for status, _ in told if status == 422) < 120, "about half of the groups are meant to be sound"


BANDWIDTHS = [
    *("", "0", "-0", "+5", "5.", ".5", ".", "+", "M", "5 ", " 5", "5\n", "0x10", "1_000", "\u0663", "NaN", "Inf"),
    *("1n", "1u", "1m", "1k", "1K", "1Ki", "1ki", "1.5Gi", "1E", "1e", "1e3", "1E3", "1e+3", "1E+", "1e-3", "1e1.5"),
    *("-1", "--1", "+-5", "-.5", "-1e-400", "1e99", "1e-99", "1e100", "1e-100", "1e003", "1e00100", "1e3M"),
    *("9" * 30, "1" * 128, "1" * 129, "1e" + "0" * 126, "1e" + "0" * 130 + "1", -1, 0, 5, 2**62),
    # The API server's own isQuantity takes minutes for these.
    *("1e-100000000", "1e999999999999", "-1e-100000000"),
]


@pytest.mark.parametrize("value", BANDWIDTHS, ids=lambda value: repr(value)[:20])
def test_python_and_the_policies_agree_on_every_bandwidth_and_answer_at_once(
    denying: LocalCluster, value: str | int
) -> None:
    group = app_group(workload("a", "b", minBandwidth=value), workload("b"))
    topology = network_topology(weight_set(a={"b": {"networkCost": 1, "bandwidthCapacity": value}}))
    api = Api(denying.server, token=denying.token, ca_file=denying.ca_file, timeout=60)
    refused = [write(api, raw, "?dryRun=All")[0] == 422 for raw in (group, topology)]
    api.close()
    assert refused == [
        bool(appgroup_problems(AppGroup.parse(group).spec)),
        bool(topology_problems(NetworkTopology.parse(topology).spec)),
    ]
