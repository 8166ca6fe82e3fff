"""``berth plan`` against a live cluster: it agrees with what the controller then does, and it only lists.

One cluster with the 24 nodes of the demo; the tests build on each other's pods, each in namespaces of its own. Forms,
options and bad input: tests/unit/berth/cli/plan/test_command.py.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from berth.api.labels import ANNOTATION_DECISION
from berth.cli.main import app
from hack.harness.cluster import DEMO_TOPOLOGY, REPOSITORY, Kubectl, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support import plans
from tests.support.chosen_constants import chosen_constants

EXAMPLES = REPOSITORY / "examples"
WAIT_SECONDS = 15.0
"""Long enough that everything that fits is planned before it is over, on a busy machine too."""
REQUESTS = {"app-a": 1, "app-b": 4, "app-c": 1}
"""By how much the requests of Online Boutique are multiplied in each namespace."""

Plan = Callable[..., dict[str, Any]]


def example(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLES / name).read_text()))


def application(namespace: str, *, times: int = 1, huge: str = "") -> list[dict[str, Any]]:
    """Online Boutique's AppGroup and a pod for each workload; the pod `huge` fits nowhere."""
    [group] = example("01-appgroup-online-boutique.yaml")
    objects = [group]
    for deployment in example("03-online-boutique-deployments.yaml"):
        template = copy.deepcopy(deployment["spec"]["template"])
        name = deployment["metadata"]["name"]
        template["metadata"]["name"] = name
        [container] = template["spec"]["containers"]
        requests = container["resources"]["requests"]
        requests["cpu"] = f"{int(requests['cpu'].removesuffix('m')) * times}m" if name != huge else "64"
        objects.append({"apiVersion": "v1", "kind": "Pod", **template})
    for item in objects:
        item["metadata"]["namespace"] = namespace
    return objects


def lone_pods(namespace: str) -> list[dict[str, Any]]:
    """Pods outside any AppGroup, with every sort of rule."""
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"set": "apart"}}}
    ]}}  # fmt: skip
    spread = [{
        "topologyKey": "topology.kubernetes.io/zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"set": "spread"}},
    }]  # fmt: skip
    pods = [plans.pod(f"zone-{n}", nodeSelector={"topology.kubernetes.io/zone": "us-east-b"}) for n in range(3)]
    for n in range(5):
        pods.append(plans.pod(f"apart-{n}", affinity=apart, cpu="100m"))
        pods[-1]["metadata"]["labels"] = {"set": "apart"}
    for n in range(6):
        pods.append(plans.pod(f"spread-{n}", topologySpreadConstraints=spread, cpu="1500m"))
        pods[-1]["metadata"]["labels"] = {"set": "spread"}
    pods.append(plans.pod("large", cpu="64"))
    pods.append(plans.pod("foreign", scheduler="default-scheduler"))
    for pod in pods:
        pod["metadata"]["namespace"] = namespace
    return pods


def bound_pods(namespace: str) -> list[dict[str, Any]]:
    """Pods that hold a good part of one zone from the beginning."""
    pods = [plans.pod(f"old-{n}", nodeName=f"eu-west-a-0{n + 1}", cpu="3") for n in range(5)]
    for pod in pods:
        pod["metadata"]["namespace"] = namespace
    return pods


OBJECTS = [
    *bound_pods("lone"),
    *application("app-a"),
    *application("app-b", times=4),
    *application("app-c", huge="redis-cart"),
    {**example("02-networktopology.yaml")[0], "metadata": {"name": "net", "namespace": "lone"}},
    *lone_pods("lone"),
]


def berth(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture(scope="module")
def cluster(module_cluster: Callable[..., LocalCluster]) -> LocalCluster:
    """The cluster of this module."""
    started = module_cluster()
    started.create_nodes(DEMO_TOPOLOGY)
    return started


def create_namespaces(cluster: LocalCluster, *names: str) -> None:
    api = cluster.api()
    for name in names:
        cluster.kubectl("create", "namespace", name)
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        eventually(partial(api.healthy, account), what=f"service account of {name}")
    api.close()


def apply(cluster: LocalCluster, *objects: dict[str, Any]) -> None:
    """Create objects of several namespaces, in the given order."""
    cluster.kubectl("create", "-f", "-", input=plans.text(*objects))


def order_of(kubectl: Kubectl) -> Any:
    """status.topologyOrder of the application's AppGroup, None until there is one."""
    return kubectl.get("ag", "online-boutique").get("status", {}).get("topologyOrder")


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Profiles of both the controller and the plans."""
    path = tmp_path_factory.mktemp("config") / "placement.yaml"
    # A plan in counts of app-b takes about as long as a turn: on a busy machine others would come in between.
    gang = {"waitSeconds": WAIT_SECONDS, "planningSeconds": 60, "strategy": "berth"}
    profile = {"gang": gang, "networkTopology": {"namespace": "lone", "name": "net"}}
    path.write_text(yaml.safe_dump({"profiles": [profile]}))
    return path


@pytest.fixture(scope="module")
def prepared(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """All objects created, ordered and with computed weights; nothing placed."""
    create_namespaces(cluster, "lone", *REQUESTS)
    directory = tmp_path_factory.mktemp("others")
    with ControllerProcess.start(
        ["appgroup", "networktopology"],
        kubeconfig=cluster.kubeconfig,
        directory=directory,
        arguments=["--no-leader-elect"],
    ) as others:
        others.wait_ready()
        # AppGroups first, in the order of their names: that is their order of arrival.
        for kind in ("AppGroup", "NetworkTopology", "Pod"):
            apply(cluster, *(item for item in OBJECTS if item["kind"] == kind))
        for namespace in REQUESTS:
            eventually(partial(order_of, Kubectl(cluster, namespace)), what=f"order in {namespace}")
        topology = Kubectl(cluster, "lone")
        eventually(
            lambda: "Dijkstra" in {item["name"] for item in topology.get("nt", "net")["spec"]["weights"]},
            what="computed weights",
        )
        yield cluster


def test_the_plan_is_what_the_controller_then_does(
    prepared: LocalCluster, config: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    common = ["--config", str(config), "-o", "json"]
    live = berth("plan", "--from-cluster", "--kubeconfig", str(prepared.kubeconfig), *common)
    assert live.exit_code == 3, live.output
    planned = json.loads(live.stdout)
    # Five pods that keep apart by zone, four zones: which of them is left is decided by their uids.
    assert {f"{pod['namespace']}/{pod['name'].partition('-')[0]}" for pod in planned["notPlaced"]} == {
        "app-c/redis", "lone/large", "lone/apart",
    }  # fmt: skip
    assert len(planned["notPlaced"]) == 3
    waited = {pod["namespace"] for pod in planned["pods"] if pod.get("waitSeconds")}
    assert waited == {"app-c"}

    # The same from files alone: orders and weights are those that the controllers computed in the cluster.
    (tmp_path / "objects.yaml").write_text(plans.text(*OBJECTS))
    (tmp_path / "nodes.json").write_text(prepared.kubectl("get", "nodes", "-o", "json").stdout)
    files = json.loads(berth("plan", "-f", str(tmp_path), *common).stdout)
    # What comes after the lone pods depends on their uids, which files do not have.
    assert groups_of(files, "app-a", "app-b") == groups_of(planned, "app-a", "app-b")
    assert files["appGroups"][:2] == planned["appGroups"][:2]
    assert files["summary"]["notPlaced"] == 3

    directory = tmp_path_factory.mktemp("placement")
    arguments = ["--no-leader-elect", "--placement-config", str(config)]
    # Others come in between when a plan has had its turn, which on a busy machine is sooner.
    whole = chosen_constants(directory / "constants", **{"berth.scheduling.gang.budget.TURN_SECONDS": 60.0})
    with ControllerProcess.start(
        ["placement"], kubeconfig=prepared.kubeconfig, directory=directory, arguments=arguments, environment=whole
    ) as placement:
        placement.wait_ready()
        expected = {f"{pod['namespace']}/{pod['name']}": pod["decision"] for pod in planned["pods"]}
        placement.wait_until(
            lambda: len(decisions(prepared)), accept=lambda count: count >= len(expected), what="all bound"
        )
        waiting = {f"{pod['namespace']}/{pod['name']}" for pod in planned["notPlaced"]}
        placement.wait_until(
            lambda: unschedulable(prepared), accept=lambda found: found == waiting, what="the rest told"
        )
        found = decisions(prepared)
        assert {name: item["node"] for name, item in found.items()} == {n: i["node"] for n, i in expected.items()}
        # Not only the nodes: every term, runner-up and count.
        assert found == expected

        # A further application, planned from its files on top of the cluster, then created.
        create_namespaces(prepared, "app-d")
        late = application("app-d", times=2)
        (tmp_path / "late.yaml").write_text(plans.text(*late))
        answer = berth(
            "plan",
            "--from-cluster",
            "--kubeconfig",
            str(prepared.kubeconfig),
            "-f",
            str(tmp_path / "late.yaml"),
            *common,
        )
        ahead = {pod["name"]: pod["node"] for pod in json.loads(answer.stdout)["pods"]}
        assert len(ahead) == 11
        group = Kubectl(prepared, "app-d")
        apply(prepared, late[0])
        eventually(partial(order_of, group), what="order")
        apply(prepared, *late[1:])
        eventually(lambda: len(nodes_of(group)) == 11, what="eleven pods bound")
        assert nodes_of(group) == ahead


def groups_of(document: dict[str, Any], *namespaces: str) -> dict[str, str]:
    """Node by pod of some namespaces."""
    return {
        f"{pod['namespace']}/{pod['name']}": pod["node"] for pod in document["pods"] if pod["namespace"] in namespaces
    }


def pods(cluster: LocalCluster) -> list[dict[str, Any]]:
    api = cluster.api()
    try:
        return list(api.request("GET", "/api/v1/pods")["items"])
    finally:
        api.close()


def decisions(cluster: LocalCluster) -> dict[str, Any]:
    """The annotation of every pod that has one."""
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": json.loads(text)
        for pod in pods(cluster)
        if (text := pod["metadata"].get("annotations", {}).get(ANNOTATION_DECISION))
    }


def unschedulable(cluster: LocalCluster) -> set[str]:
    """Pods of Berth's with PodScheduled=False."""
    return {
        f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        for pod in pods(cluster)
        if pod["spec"]["schedulerName"] == "berth-scheduler"
        and any(c["type"] == "PodScheduled" and c["status"] == "False" for c in pod["status"].get("conditions", ()))
    }


def nodes_of(kubectl: Kubectl) -> dict[str, str]:
    return {
        pod["metadata"]["name"]: pod["spec"]["nodeName"]
        for pod in kubectl.get("pods")["items"]
        if pod["spec"].get("nodeName")
    }


READER = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: plan-reader}
rules:
  - {apiGroups: [""], resources: [nodes, pods, namespaces, services], verbs: [list]}
  - {apiGroups: [""], resources: [persistentvolumes, persistentvolumeclaims], verbs: [list]}
  - {apiGroups: [storage.k8s.io], resources: ["*"], verbs: [list]}
  - {apiGroups: [scheduling.k8s.io], resources: [priorityclasses], verbs: [list]}
  - {apiGroups: [appgroup.diktyo.x-k8s.io, networktopology.diktyo.x-k8s.io], resources: ["*"], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: plan-reader}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: plan-reader}
subjects: [{kind: ServiceAccount, name: reader, namespace: default}]
"""


def test_the_right_to_list_is_all_that_a_plan_needs(cluster: LocalCluster) -> None:
    cluster.kubectl("-n", "default", "create", "serviceaccount", "reader")
    kubeconfig = cluster.service_account_kubeconfig("default", "reader")
    refused = berth("plan", "--from-cluster", "--kubeconfig", str(kubeconfig))
    assert refused.exit_code == 2
    assert "ask for the right to get and list it" in refused.stderr
    cluster.kubectl("apply", "-f", "-", input=READER)
    answer = eventually(
        lambda: berth("plan", "--from-cluster", "--kubeconfig", str(kubeconfig), "-o", "json"),
        accept=lambda result: result.exit_code in (0, 3),
        what="rights in force",
    )
    assert json.loads(answer.stdout)["summary"]["nodes"] == 24


def test_a_thousand_nodes_and_twenty_applications(tmp_path: Path) -> None:
    nodes = [plans.node(f"n-{n:04d}", region=f"r{n % 2}", zone=f"r{n % 2}-z{n // 2 % 5}") for n in range(1000)]
    (tmp_path / "nodes.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": nodes}))
    (tmp_path / "apps.yaml").write_text(plans.text(*(o for n in range(20) for o in application(f"ns-{n:02d}"))))
    answer = berth("plan", "-f", str(tmp_path), "-o", "json")
    assert answer.exit_code == 0, answer.output
    document = json.loads(answer.stdout)
    assert document["summary"]["placed"] == 220
    assert max(group["meanEdgeCost"] for group in document["appGroups"]) <= 1
    assert all(amount["free"] >= 0 for node in document["nodes"] for amount in node["resources"].values())
