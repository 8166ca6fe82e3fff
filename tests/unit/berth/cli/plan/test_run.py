"""Whole plans, from manifests to the document: where pods go, why not, what is used, and what is left alone."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cli.plan.run import BadInputError, Options, configure, exit_code, plan
from berth.scheduling.simulation.manifests import Source
from tests.support import builders, plans

ZONES = [plans.node(f"{zone}{n}", zone=zone, region="r", cpu="4") for zone in "ab" for n in (1, 2)]
COSTS = plans.topology({("a", "b"): 10})
PAIR = plans.appgroup("shop", {"front": ["back"], "back": []})


def members(**arguments: Any) -> list[dict[str, Any]]:
    return [plans.pod("f", group="shop", workload="front", **arguments), plans.pod("b", group="shop", workload="back")]


def test_an_application_is_placed_close_together() -> None:
    document = plans.made(*ZONES, COSTS, PAIR, *members(cpu="2"))
    assert len(set(plans.where(document).values())) == 1
    [group] = document["appGroups"]
    assert (group["placed"], group["pods"], group["edges"], group["meanEdgeCost"]) == (2, 2, 1, 0)
    assert exit_code(document) == 0


def test_what_does_not_fit_on_one_node_goes_into_one_zone() -> None:
    pods = [
        plans.pod("f", group="shop", workload="front", cpu="3"),
        plans.pod("b", group="shop", workload="back", cpu="3"),
    ]
    document = plans.made(*ZONES, COSTS, PAIR, *pods)
    assert len({item["zone"] for item in document["pods"]}) == 1
    assert document["appGroups"][0]["meanEdgeCost"] == 1
    assert {item["decision"]["edgeCost"] for item in document["pods"]} == {1}


def test_bound_pods_use_room() -> None:
    used = plans.pod("old", nodeName="n1", cpu="3", scheduler="default-scheduler")
    document = plans.made(plans.node("n1"), plans.node("n2", cpu="2"), used, plans.pod("new", cpu="2"))
    assert plans.where(document) == {"new": "n2"}


@pytest.mark.parametrize(
    ("pod", "message"),
    [
        (plans.pod("p", cpu="9"), "0/1 nodes are available: 1 Insufficient cpu."),
        (
            plans.pod("p", nodeSelector={"disk": "ssd"}),
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.",
        ),
    ],
    ids=["too large", "selector"],
)
def test_a_pod_without_a_node_says_why(pod: dict[str, Any], message: str) -> None:
    document = plans.made(plans.node("n1"), pod)
    assert plans.why(document) == {"p": ("FailedScheduling", message)}
    assert exit_code(document) == 3


def test_a_gated_pod_is_not_planned() -> None:
    document = plans.made(plans.node("n1"), plans.pod("p", schedulingGates=[{"name": "wait"}]))
    assert plans.why(document) == {"p": ("SchedulingGated", "has scheduling gates: wait")}


def test_pods_of_other_schedulers_are_counted_and_left_alone() -> None:
    manifests = [plans.node("n1"), plans.pod("ours"), plans.pod("theirs", scheduler="default-scheduler")]
    document = plans.made(*manifests)
    assert plans.where(document) == {"ours": "n1"}
    assert document["ignored"] == [{"schedulerName": "default-scheduler", "pods": 1}]
    assert exit_code(document) == 0


def test_all_pods_plans_them_too() -> None:
    manifests = [plans.node("n1"), plans.pod("ours"), plans.pod("theirs", scheduler="default-scheduler")]
    document = plans.made(*manifests, all_pods=True)
    assert plans.where(document) == {"ours": "n1", "theirs": "n1"}
    assert document["ignored"] == []


def test_one_scheduler_by_name() -> None:
    manifests = [plans.node("n1"), plans.pod("ours"), plans.pod("theirs", scheduler="mine")]
    document = plans.made(*manifests, scheduler_name="mine")
    assert plans.where(document) == {"theirs": "n1"}
    assert document["ignored"] == [{"schedulerName": "berth-scheduler", "pods": 1}]


# Waiting

CONFIG = "profiles: [{gang: {waitSeconds: 45, afterWait: %s}}]"


def test_an_incomplete_group_is_placed_after_its_wait() -> None:
    document = plans.made(*ZONES, COSTS, PAIR, plans.pod("f", group="shop", workload="front"))
    [found] = document["pods"]
    assert found["waitSeconds"] == 30


@pytest.mark.parametrize(
    ("after", "placed", "missing"),
    [("PlaceWhatFits", {"f"}, {"b"}), ("KeepWaiting", set(), {"f", "b"})],
    ids=["what fits", "all or nothing"],
)
def test_a_group_that_does_not_fit_follows_its_profile(after: str, placed: set[str], missing: set[str]) -> None:
    pods = [plans.pod("f", group="shop", workload="front"), plans.pod("b", group="shop", workload="back", cpu="9")]
    document = plans.made(*ZONES, COSTS, PAIR, *pods, configuration=("c.yaml", CONFIG % after))
    assert set(plans.where(document)) == placed
    assert set(plans.why(document)) == missing
    assert all(item["waitSeconds"] == 45 for item in document["pods"])


def test_keep_waiting_names_what_is_missing() -> None:
    document = plans.made(
        *ZONES,
        PAIR,
        plans.pod("f", group="shop", workload="front"),
        configuration=("c.yaml", CONFIG % "KeepWaiting"),
    )
    reason, message = plans.why(document)["f"]
    assert reason == "WaitingForMembers"
    assert "AppGroup shop has 1 of 2 pods; workloads without a pod: back" in message


def test_a_missing_group_is_a_note_and_its_pods_are_placed_alone() -> None:
    document = plans.made(plans.node("n1"), plans.pod("f", group="gone", workload="front"))
    assert plans.where(document) == {"f": "n1"}
    assert document["pods"][0]["waitSeconds"] == 30
    assert any("AppGroup gone does not exist in namespace default" in note for note in document["notes"])
    assert document["appGroups"][0]["problem"] == "there is no AppGroup gone in default"


def test_an_absent_topology_of_the_configuration_is_a_note() -> None:
    named = ("c.yaml", "profiles: [{networkTopology: {namespace: infra, name: net}}]")
    document = plans.made(*ZONES, COSTS, PAIR, *members(cpu="2"), configuration=named)
    assert document["summary"]["notPlaced"] == 0
    [note] = document["notes"]
    assert "NetworkTopology infra/net, which the configuration names, does not exist or cannot be read" in note
    assert note.startswith("AppGroup default/shop: ")


def test_a_pod_that_needs_a_later_one_gets_its_turn() -> None:
    affinity = {
        "podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"role": "db"}}}
            ]
        }
    }
    near = plans.pod("a-near", affinity=affinity, priority=10)
    target = plans.pod("z-target")
    target["metadata"]["labels"] = {"role": "db"}
    document = plans.made(plans.node("n1"), plans.node("n2"), near, target)
    assert plans.where(document)["a-near"] == plans.where(document)["z-target"]


def test_priority_decides_who_gets_the_room() -> None:
    gold = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "gold"}, "value": 9}
    document = plans.made(
        plans.node("n1"), gold, plans.pod("a", cpu="3"), plans.pod("b", cpu="3", priorityClassName="gold")
    )
    assert plans.where(document) == {"b": "n1"}


def test_an_application_is_planned_around_its_members_that_are_placed() -> None:
    group = plans.appgroup("shop", {"front": ["back"], "back": ["db"], "db": []})
    manifests = [
        plans.pod("d", group="shop", workload="db", nodeName="b2", cpu="1"),
        plans.pod("f", group="shop", workload="front"),
        plans.pod("b", group="shop", workload="back"),
    ]
    document = plans.made(*ZONES, COSTS, group, *manifests)
    assert plans.where(document) == {"f": "b2", "b": "b2"}
    assert document["appGroups"][0]["edges"] == 2


# DaemonSets

TAINT = {"key": "special", "value": "x", "effect": "NoSchedule"}


def test_a_daemon_set_gets_a_pod_for_every_node_that_admits_it() -> None:
    nodes = [plans.node("n1"), plans.node("n2"), plans.node("n3", taints=[TAINT])]
    document = plans.made(*nodes, plans.workload("DaemonSet", "agent"))
    assert plans.where(document) == {"agent-n1": "n1", "agent-n2": "n2"}


def test_a_daemon_set_pod_that_finds_its_node_full_is_not_placed_elsewhere() -> None:
    full = plans.pod("old", nodeName="n1", cpu="4")
    document = plans.made(plans.node("n1"), plans.node("n2"), full, plans.workload("DaemonSet", "agent"))
    assert plans.where(document) == {"agent-n2": "n2"}
    assert set(plans.why(document)) == {"agent-n1"}


def test_a_daemon_set_that_runs_already_adds_nothing() -> None:
    live = {
        "Node": [builders.node("n1"), builders.node("n2")],
        "Pod": [builders.pod("agent-x", on="n1", labels={"app": "agent"})],
    }
    document = plans.made(plans.workload("DaemonSet", "agent"), live=live)
    assert plans.where(document) == {"agent-n2": "n2"}


# The document


def test_settings_of_nodes_that_cannot_be_read_are_noted() -> None:
    node = plans.node("n1")
    node["metadata"]["annotations"] = {"berth.dev/price-cpu": "cheap"}
    [note] = plans.made(node)["notes"]
    assert "annotation berth.dev/price-cpu='cheap' is ignored" in note


# Bad input


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"strategy": "magic"}, "strategy 'magic' is unknown; choose from"),
        ({"configuration": ("c.yaml", "profiles: [")}, "c.yaml:1: not valid YAML"),
        ({"configuration": ("c.yaml", "profiles: [{gangs: {}}]")}, "there is no such field; write 'gang'"),
    ],
    ids=["strategy", "configuration syntax", "configuration field"],
)
def test_wrong_options_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInputError) as caught:
        plans.made(plans.node("n1"), **options)
    assert said in str(caught.value)


def test_a_plan_needs_nodes() -> None:
    with pytest.raises(BadInputError, match="there are no nodes to plan on; add Node manifests"):
        plans.made(plans.pod("p"))


def test_problems_come_in_the_order_of_the_input() -> None:
    sources = [
        ("b.yaml", plans.text({**plans.pod("one"), "spec": {}}, {**plans.node("n"), "status": {}})),
        ("a.yaml", "x: [\n"),
    ]
    with pytest.raises(BadInputError) as caught:
        plan(sources)
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == ["b.yaml", "b.yaml", "a.yaml"]


def test_a_selector_that_the_scheduler_cannot_read_is_a_problem() -> None:
    term = {"topologyKey": "zone", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    with pytest.raises(BadInputError, match=r"m\.yaml:\d+: Pod default/p: .*\[0\]\.operator: 'Like' is none of In"):
        plans.made(plans.node("n"), plans.pod("p", affinity=affinity))


# What must hold for any input


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    nodes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    pods=st.lists(st.tuples(st.integers(1, 5), st.sampled_from(["", "front", "back"])), max_size=10),
    strategy=st.sampled_from(["berth", "phare"]),
)
def test_nothing_is_over_committed_and_every_pod_is_accounted_for(
    nodes: list[int], pods: list[tuple[int, str]], strategy: str
) -> None:
    manifests = [plans.node(f"n{n}", cpu=str(cpu), zone=f"z{n % 2}", region="r") for n, cpu in enumerate(nodes)]
    manifests += [
        plans.pod(f"p{n}", cpu=str(cpu), group="shop" if workload else "", workload=workload)
        for n, (cpu, workload) in enumerate(pods)
    ]
    document = plans.made(*manifests, PAIR, plans.topology({("z0", "z1"): 5}), strategy=strategy)
    assert {*plans.where(document), *plans.why(document)} == {f"p{n}" for n in range(len(pods))}
    assert all(free >= 0 for node in document["nodes"] for free in [node["resources"]["cpu"]["free"]])
    assert document == plans.made(*manifests, PAIR, plans.topology({("z0", "z1"): 5}), strategy=strategy)


def test_the_garbage_collector_rests_while_a_plan_is_made() -> None:
    seen: list[bool] = []
    made = plans.made(plans.node("n"), plans.pod("p"), progress=lambda *_report: seen.append(gc.isenabled()))
    assert plans.where(made) == {"p": "n"}
    assert not any(seen)
    assert gc.isenabled()


def chain(length: int) -> list[dict[str, Any]]:
    """An AppGroup each workload of which must be with the one before, more of them than a node takes."""
    names = [f"w{number}" for number in range(length)]
    documents = [plans.appgroup("shop", {name: names[place + 1 : place + 2] for place, name in enumerate(names)})]
    documents += [plans.node(f"n{number}") for number in range(20)]
    for before, name in zip(["", *names], names, strict=False):
        term = builders.pod_term("kubernetes.io/hostname", {"k": before})
        rules = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}} if before else {}
        pod = plans.pod(name, group="shop", workload=name, cpu="1m", affinity=rules)
        pod["metadata"]["labels"]["k"] = name
        documents.append(pod)
    return documents


@pytest.mark.parametrize(
    ("seconds", "notes"),
    [
        pytest.param(
            0.2,
            [
                (
                    "AppGroup default/shop: planning stopped after 0.2 s with the best plan so far; "
                    "give it more with --planning-seconds"
                )
            ],
            id="little time",
        ),
        pytest.param(1e6, [], id="time enough"),
    ],
)
def test_a_plan_that_takes_long_ends_and_says_so(seconds: float, notes: list[str]) -> None:
    document = plans.made(*chain(115), planning_seconds=seconds)
    assert document["notes"] == notes
    assert document["summary"]["placed"] > 0


@pytest.mark.parametrize(
    ("stated", "chosen", "counts"),
    [
        pytest.param(2, None, 10, id="a controller's is raised"),
        pytest.param(60, None, 60, id="a longer one counts"),
        pytest.param(60, 5, 5, id="asked for"),
    ],
)
def test_how_long_a_plan_may_take(stated: float, chosen: float | None, counts: float) -> None:
    text = yaml.safe_dump({"profiles": [{"gang": {"planningSeconds": stated}}, {"schedulerName": "b"}]})
    configuration = configure(Options(configuration=Source("c.yaml", text), planning_seconds=chosen))
    assert {profile.gang.planning_seconds for profile in configuration.profiles} == {counts}
