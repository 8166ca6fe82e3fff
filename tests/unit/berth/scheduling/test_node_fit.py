"""What one node says to waiting pods: each filter that rejects them, and how many find room one after another."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import CustomObject, Pod
from berth.scheduling import node_fit
from berth.scheduling.configuration import Profile
from berth.scheduling.node_fit import Fit, NodeFit
from berth.scheduling.single import cycle_of
from tests.support import builders, plans
from tests.support.placement import Lab, chain, group_object, lone, member, zoned


def lab(*pods: Pod, **node: Any) -> Lab:
    made = Lab([zoned("n1", "z1", **node), zoned("n2", "z2"), zoned("n3", "z3", "r2")])
    made.see(*pods)
    return made


def fit(made: Lab, *pods: Pod, node: str = "n1") -> Fit:
    made.see(*pods)
    return NodeFit(made.cache, Profile(), node).fit(pods)


@pytest.mark.parametrize(
    ("pod", "node", "reasons"),
    [
        pytest.param(lone("p", cpu="1"), {}, set(), id="room"),
        pytest.param(lone("p", cpu="9"), {}, {("NodeResourcesFit", "Insufficient cpu")}, id="too little cpu"),
        pytest.param(
            lone("p", cpu="9", spec={"nodeSelector": {"disk": "ssd"}}),
            {"taints": ["dedicated=x:NoSchedule"]},
            {
                ("NodeResourcesFit", "Insufficient cpu"),
                ("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"),
                ("TaintToleration", "node(s) had untolerated taint(s)"),
            },
            id="every filter, not the first alone",
        ),
        pytest.param(
            lone("p"), {"unschedulable": True}, {("NodeUnschedulable", "node(s) were unschedulable")}, id="cordoned"
        ),
        pytest.param(
            lone("p", spec={"schedulingGates": [{"name": "wait"}]}),
            {},
            {("SchedulingGates", "waits until its scheduling gates are removed: wait")},
            id="blocked whatever the node",
        ),
    ],
)
def test_each_filter_that_rejects_a_pod_is_named(pod: Pod, node: dict[str, Any], reasons: set[tuple[str, str]]) -> None:
    found = fit(lab(**node), pod)
    assert found.admitted == (0 if reasons else 1)
    assert {plugin for plugin, _ in found.reasons} == {plugin for plugin, _ in reasons}


def test_pods_come_one_after_another_until_the_node_is_full() -> None:
    made = lab(lone("there", on="n1", cpu="1"))
    found = fit(made, *(lone(f"p{n}", cpu="1") for n in range(5)))
    assert (found.pods, found.admitted) == (5, 3)
    assert found.reasons == {("NodeResourcesFit", "Insufficient cpu"): 2}


def test_rules_between_the_waiting_pods_count() -> None:
    anti = {
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                builders.pod_term("kubernetes.io/hostname", {"app": "web"})
            ]
        }
    }
    found = fit(lab(), *(lone(f"p{n}", labels={"app": "web"}, spec={"affinity": anti}) for n in range(3)))
    assert found.admitted == 1
    assert {plugin for plugin, _ in found.reasons} == {"InterPodAffinity"}


@pytest.mark.parametrize(("node", "admitted"), [("n1", 1), ("n3", 0)], ids=["near its partner", "beyond the limit"])
def test_members_are_judged_towards_their_placed_partners(node: str, admitted: int) -> None:
    made = lab(member("b1", "b", on="n2"))
    made.group(group_object("shop", *chain("a", "b", maxNetworkCost=5)))
    topology = plans.topology({("z1", "z2"): 5, ("z2", "z3"): 90})
    topology["metadata"]["namespace"] = "default"
    made.cache.update_topology(CustomObject.of(topology))
    found = fit(made, member("a1", "a"), node=node)
    assert found.admitted == admitted
    assert [plugin for plugin, _ in found.reasons] == ([] if admitted else ["NetworkOverhead"])
    assert (found.edges, found.edge_cost) == ((1, 5.0) if admitted else (0, 0.0))


def test_thousands_that_are_alike_are_judged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = lab()
    judge = NodeFit(made.cache, Profile(), "n1")
    pods = [lone(f"p{n}", cpu="2") for n in range(3000)]
    looked = 0

    def counted(*arguments: Any, **more: Any) -> Any:
        nonlocal looked
        looked += 1
        return cycle_of(*arguments, **more)

    monkeypatch.setattr(node_fit, "cycle_of", counted)
    assert judge.fit(pods).admitted == 2
    assert looked == 3


def test_a_node_that_is_not_known_is_an_error() -> None:
    with pytest.raises(KeyError, match="n9"):
        NodeFit(lab().cache, Profile(), "n9")


@given(st.lists(st.sampled_from(["500m", "1", "3"]), max_size=8))
def test_nothing_is_left_behind_and_nobody_is_lost(requests: list[str]) -> None:
    made = lab()
    pods = [lone(f"p{n}", cpu=cpu) for n, cpu in enumerate(requests)]
    found = fit(made, *pods)
    assert found.pods == len(pods)
    assert not made.cache.state.used.any()
    assert found.admitted + sum(found.reasons.values()) == len(pods)
