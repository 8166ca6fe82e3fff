"""Applications placed live: joint planning, waiting, degrading, and what people are told about it.

One cluster and one controller serve all tests; each has a namespace and nodes of its own (:class:`Stage`). Three
scheduler names stand for three ways to wait. Left out: rules for single pods (test_placement_rules.py), trouble (the
other test_placement files).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator

import pytest

from berth.api.labels import LABEL_APPGROUP, LABEL_WORKLOAD
from hack.harness.cluster import DEMO_TOPOLOGY, REPOSITORY, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.bindings import over_committed
from tests.support.placing import STAGE_LABEL, Stage, chain, configuration, profile

KEEPS = "berth-keeps"
"""Scheduler name of a profile that never places part of a group."""
BRIEF = "berth-brief"
"""Scheduler name of a profile that waits for a second."""


@pytest.fixture(scope="module")
def own_cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """A cluster whose nodes come and go with the tests."""
    return module_cluster()


@pytest.fixture(scope="module")
def controller(own_cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControllerProcess]:
    """The controller that places everything."""
    directory = tmp_path_factory.mktemp("controller")
    profiles = [
        profile(waitSeconds=600),
        profile(BRIEF, waitSeconds=1),
        profile(KEEPS, waitSeconds=1, afterWait="KeepWaiting"),
    ]
    arguments = ["--no-leader-elect", *configuration(directory, *profiles)]
    with ControllerProcess.start(
        ["placement"], kubeconfig=own_cluster.kubeconfig, directory=directory, arguments=arguments
    ) as process:
        yield process.wait_ready()


@pytest.fixture
def stage(own_cluster: LocalCluster, controller: ControllerProcess) -> Stage:
    """A namespace of the test's own; it adds nodes."""
    return Stage(own_cluster)


def test_online_boutique_is_placed_together(
    own_cluster: LocalCluster, stage: Stage, controller: ControllerProcess
) -> None:
    own_cluster.create_nodes(DEMO_TOPOLOGY)
    known = controller.metric("berth_cached_objects", resource="networktopologies")

    def apply(number: str) -> None:
        own_cluster.kubectl("-n", stage.name, "apply", "-f", str(REPOSITORY / "examples" / f"{number}.yaml"))

    apply("01-appgroup-online-boutique")
    apply("02-networktopology")
    # Two watches are not ordered: the costs must have arrived before the pods do.
    eventually(
        lambda: controller.metric("berth_cached_objects", resource="networktopologies") > known,
        what="the costs are known",
    )
    apply("03-online-boutique-deployments")
    eventually(lambda: len(stage.bound()) == 11, what="eleven pods bound")
    assert len(set(stage.bound().values())) == 1
    for name in stage.pods():
        decision = stage.decision(name)
        assert decision["edgeCost"] == 0
        assert decision["plannedWith"] == 11
        assert decision["network"]["topology"] == f"{stage.name}/net-topology"
        assert decision["node"] in stage.wait_event(name, "Scheduled", "planned together with 10 other pods")
    assert stage.wait_event("online-boutique", "Placed") == (
        "Placed 11 pods on 1 node; mean edge cost 0.00 over 15 edges, 0% of the calls leave their zone"
    )
    own_cluster.kubectl(
        "-n", stage.name, "wait", "--for=condition=Available", "--timeout=120s", "deployment", "--all", timeout=150
    )
    # New replicas see where their neighbours are: beside them they cost nothing, and one that leaves the node, so that
    # the frontend survives it, stays in the zone, at 1 for each of seven edges.
    own_cluster.kubectl("-n", stage.name, "scale", "deployment/frontend", "--replicas=4")
    eventually(lambda: len(stage.bound()) == 14, what="replicas bound")
    frontends = [name for name in stage.pods() if name.startswith("frontend-")]
    assert {stage.decision(name)["edgeCost"] for name in frontends} <= {0, 7}
    assert over_committed(own_cluster) == []


def test_a_group_too_large_for_a_node_stays_in_a_zone(stage: Stage) -> None:
    stage.nodes("a1", "a2", zone="z1")
    stage.nodes("b1", "b2", "b3", zone="z2")
    stage.costs()
    stage.apply(chain("one", "two", "three", "four", "five", "six"))
    for workload in ("one", "two", "three", "four", "five", "six"):
        stage.pod(workload, cpu="2", group="shop", workload=workload)
    nodes = stage.wait_bound()
    # Twelve cores are three nodes of four: only the second zone holds them all.
    assert set(nodes.values()) == {"b1", "b2", "b3"}
    # Edges between nodes cost what one zone costs, so no edge is dearer than 1.
    found = re.match(r"Placed 6 pods on 3 nodes; mean edge cost (\S+) over 5", stage.wait_event("shop", "Placed"))
    assert found is not None
    assert float(found[1]) < 1


def test_members_that_are_missing_are_waited_for(stage: Stage) -> None:
    stage.nodes("n1")
    stage.apply(chain("web", "cart", "db"))
    stage.pod("web", group="shop", workload="web")
    stage.pod("cart", group="shop", workload="cart")
    stage.wait_event("web", "WaitingForMembers", "AppGroup shop is not complete")
    note = stage.wait_event("shop", "WaitingForMembers")
    # The two pods may have been seen one after the other.
    assert re.fullmatch(r"AppGroup shop has [12] of 3 pods; workloads without a pod: .*db; waiting up to 600 s", note)
    stage.witness()
    assert not {"web", "cart"} & stage.bound().keys()
    stage.pod("db", group="shop", workload="db")
    stage.wait_bound("web", "cart", "db")
    assert stage.decision("db")["plannedWith"] == 3


def test_workloads_are_scaled_to_zero_and_back(stage: Stage) -> None:
    """One comes back at once, next to the others and over as many nodes; the whole application is planned anew."""
    stage.nodes("a1", "a2", zone="z1")
    stage.nodes("b1", "b2", zone="z2")
    stage.costs()
    stage.apply(chain("web", "cart", "db"))
    made: dict[str, list[str]] = {"web": [], "cart": [], "db": []}

    def scale(count: int, *workloads: str) -> None:
        for workload in workloads:
            for name in made[workload]:
                stage.delete_pod(name)
            made[workload] = [f"{workload}-{secrets.token_hex(3)}" for _ in range(count)]
            for name in made[workload]:
                stage.pod(name, group="shop", workload=workload)

    def homes() -> list[set[str]]:
        bound = stage.wait_bound()
        return [{bound[name] for name in names} for names in made.values()]

    def planned_with(workload: str) -> set[int]:
        return {stage.decision(name)["plannedWith"] for name in made[workload]}

    scale(2, "web", "cart", "db")
    zone = homes()[0]
    assert zone in ({"a1", "a2"}, {"b1", "b2"})
    assert homes() == [zone] * 3
    scale(0, "db")
    eventually(lambda: len(stage.pods()) == 4, what="one workload at zero")
    scale(2, "db")
    assert homes() == [zone] * 3
    assert max(planned_with("db")) <= 2
    scale(0, "web", "cart", "db")
    eventually(lambda: not stage.pods(), what="all at zero")
    scale(2, "web")
    stage.wait_event(made["web"][0], "WaitingForMembers")
    stage.witness()
    assert not set(made["web"]) & stage.bound().keys()
    scale(2, "cart", "db")
    stage.wait_bound(*made["web"])
    assert min(planned_with("web")) >= 5, "the last one may come right after"
    assert homes() in ([{"a1", "a2"}] * 3, [{"b1", "b2"}] * 3)


def test_after_the_wait_the_members_that_are_there_are_placed(stage: Stage) -> None:
    stage.nodes("n1")
    stage.apply(chain("web", "cart", "db"))
    stage.pod("web", group="shop", workload="web", schedulerName=BRIEF)
    stage.pod("cart", group="shop", workload="cart", schedulerName=BRIEF)
    assert set(stage.wait_bound("web", "cart").values()) == {"n1"}
    assert "waiting up to 1 s" in stage.wait_event("web", "WaitingForMembers")


def test_keep_waiting_never_places_a_part(stage: Stage) -> None:
    stage.nodes("n1")
    stage.apply(chain("web", "db"))
    stage.pod("web", group="shop", workload="web", schedulerName=KEEPS)
    stage.wait_event("web", "WaitingForMembers", "waiting until they appear")
    # Placed after its own group's wait is over, which began later than that of the others.
    stage.apply(chain("alone", "missing", name="late"))
    stage.pod("alone", group="late", workload="alone", schedulerName=BRIEF)
    stage.wait_bound("alone")
    stage.witness()
    assert "web" not in stage.bound()
    stage.pod("db", group="shop", workload="db", schedulerName=KEEPS)
    assert stage.wait_bound("web", "db")["web"] == "n1"


def test_a_missing_group_is_told_and_waited_for_a_while(stage: Stage) -> None:
    stage.nodes("n1")
    stage.pod("web", group="nowhere", workload="web", schedulerName=BRIEF)
    stage.wait_bound("web")
    assert stage.wait_event("web", "AppGroupMissing") == (
        f"AppGroup nowhere does not exist in namespace {stage.name}; after 1 s the pod is scheduled on its own; "
        "create the AppGroup or remove the label appgroup.diktyo.x-k8s.io"
    )
    assert stage.decision("web")["strategy"] == "alone"


def test_a_group_that_comes_late_is_used_at_once(stage: Stage) -> None:
    stage.nodes("n1")
    stage.pod("web", group="shop", workload="web")
    stage.pod("db", group="shop", workload="db")
    stage.wait_event("web", "AppGroupMissing", "after 600 s")
    stage.apply(chain("web", "db"))
    stage.wait_bound()
    assert stage.decision("web")["plannedWith"] == 2


def test_pods_of_another_namespace_are_no_members(own_cluster: LocalCluster, stage: Stage) -> None:
    stage.nodes("n1")
    other = Stage(own_cluster)
    other.nodes("n1")
    stage.apply(chain("web", "db"))
    other.apply(chain("web", "db"))
    stage.pod("web", group="shop", workload="web")
    other.pod("db", group="shop", workload="db")
    stage.wait_event("shop", "WaitingForMembers", "1 of 2 pods; workloads without a pod: db")
    other.wait_event("shop", "WaitingForMembers", "1 of 2 pods; workloads without a pod: web")
    stage.witness()
    assert "web" not in stage.bound()
    stage.pod("db", group="shop", workload="db")
    stage.wait_bound()
    other.witness()
    assert "db" not in other.bound()


def test_a_group_that_does_not_fit_is_told_and_placed_when_a_node_comes(stage: Stage) -> None:
    stage.nodes("n1")
    stage.costs()
    stage.apply(chain("web", "cart", "db"))
    for workload in ("web", "cart", "db"):
        stage.pod(workload, cpu="3", group="shop", workload=workload)
    notes = {name: stage.wait_event(name, "FailedScheduling") for name in ("web", "cart", "db")}
    told = [note for note in notes.values() if re.search(r"0/\d+ nodes are available: .*Insufficient cpu", note)]
    assert told, notes
    assert any("AppGroup shop is placed all or nothing and waits for pod" in note for note in notes.values()), notes
    condition = eventually(lambda: stage.condition("web"), what="condition of web")
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert condition["message"] == notes["web"]
    assert "has no node" in stage.wait_event("shop", "NotPlaced")
    stage.witness()
    assert not {"web", "cart", "db"} & stage.bound().keys()
    stage.nodes("n2", "n3")
    nodes = stage.wait_bound("web", "cart", "db")
    assert {nodes[name] for name in ("web", "cart", "db")} == {"n1", "n2", "n3"}
    assert eventually(lambda: stage.condition("web"), accept=lambda c: c["status"] == "True", what="True")


def test_max_network_cost_that_cannot_be_met_keeps_the_group_pending(stage: Stage) -> None:
    stage.nodes("a1", zone="z1", region="r1")
    stage.nodes("b1", zone="z2", region="r2")
    stage.costs(zones=30, regions=30)
    stage.apply(chain("web", "db", maxNetworkCost=10))
    stage.pod("web", cpu="3", group="shop", workload="web")
    stage.pod("db", cpu="3", group="shop", workload="db")
    notes = [stage.wait_event(name, "FailedScheduling") for name in ("web", "db")]
    assert any("maxNetworkCost" in note for note in notes), notes
    assert stage.bound() == {}
    # A dearer edge is what the owner may allow.
    stage.apply(chain("web", "db", maxNetworkCost=50))
    assert set(stage.wait_bound("web", "db").values()) == {"a1", "b1"}
    assert stage.decision("web")["edgeCost"] == 30


def test_without_network_topology_pods_are_placed_and_told_so(stage: Stage) -> None:
    # The stage has no NetworkTopology; those of other namespaces name none of its zones.
    stage.nodes("a1", zone="z1")
    stage.nodes("b1", zone="z2")
    stage.apply(chain("web", "db", maxNetworkCost=1))
    stage.pod("web", group="shop", workload="web")
    stage.pod("db", group="shop", workload="db")
    nodes = stage.wait_bound()
    assert nodes["web"] == nodes["db"]
    network = stage.decision("web")["network"]
    assert "missing" in network or not network["topology"].startswith(f"{stage.name}/")


def test_a_workload_that_the_group_does_not_know_is_told(stage: Stage) -> None:
    stage.nodes("n1")
    stage.apply(chain("web", "db"))
    stage.pod("web", group="shop", workload="web")
    stage.pod("db", group="shop", workload="db")
    stage.pod("cache", group="shop", workload="cache")
    stage.wait_bound()
    assert stage.wait_event("cache", "WorkloadUnknown").endswith("use one of: web, db")


def test_labels_name_the_group(stage: Stage) -> None:
    stage.nodes("n1")
    stage.apply(chain("web", "db"))
    stage.pod("web", labels={LABEL_APPGROUP: "shop", LABEL_WORKLOAD: "web"})
    stage.pod("db", labels={LABEL_APPGROUP: "shop", LABEL_WORKLOAD: "db"}, nodeSelector={STAGE_LABEL: stage.name})
    stage.wait_bound()
    assert stage.decision("db")["appGroup"] == "shop"
