"""``kubectl berth explain`` on a real cluster with a real controller, before and after that controller's death.

What is said in which case: tests/unit/berth/cli/explain.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from berth.cli.main import kubectl_app
from hack.harness.cluster import DEMO_TOPOLOGY, REPOSITORY, Kubectl, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from hack.localcluster.tools import ensure
from tests.support import plans
from tests.support.placing import configuration, profile

SHOP = "shop"
EXAMPLES = ("01-appgroup-online-boutique", "02-networktopology", "03-online-boutique-deployments")
CONTROLLERS = ["appgroup", "networktopology", "placement"]


class Shop:
    """A cluster with Online Boutique and some odd pods, and the controllers that have placed it."""

    def __init__(self, cluster: LocalCluster, directory: Path) -> None:
        self.cluster = cluster
        self.kubectl = Kubectl(cluster, SHOP)
        self._directory = directory
        # One pod is to wait for the rest of its group until the last test.
        settings = configuration(directory, profile(waitSeconds=3600))
        self._arguments = ["--no-leader-elect", *settings]
        self.controller = self._start()

    def _start(self) -> ControllerProcess:
        return ControllerProcess.start(
            CONTROLLERS,
            kubeconfig=self.cluster.kubeconfig,
            directory=self._directory,
            arguments=self._arguments,
        ).wait_ready()

    def restart(self) -> None:
        """SIGKILL and a fresh process."""
        self.controller.kill()
        self.controller = self._start()

    def explain(self, *arguments: str) -> Result:
        command = ["explain", *arguments, "-n", SHOP, "--kubeconfig", str(self.cluster.kubeconfig)]
        return CliRunner().invoke(kubectl_app, command, env={"COLUMNS": "110"})

    def document(self, *arguments: str) -> dict[str, Any]:
        result = self.explain(*arguments, "-o", "json")
        assert result.exit_code == 0, result.output
        return dict(json.loads(result.stdout))

    def pod(self, app: str) -> str:
        """Name of the first pod of a Deployment."""
        return str(self.kubectl.get("pods", "-l", f"app={app}")["items"][0]["metadata"]["name"])


ODD = [
    plans.pod("big", cpu="40", nodeSelector={"topology.kubernetes.io/region": "eu-west"}),
    plans.pod("foreign", scheduler="default-scheduler"),
    # So large that Online Boutique goes elsewhere, whichever of both comes first.
    plans.pod("direct", nodeName="us-east-a-01", cpu="3"),
    plans.appgroup("pair", {"a": ["b"], "b": []}, maxNetworkCost=3),
    plans.pod("lonely", group="pair", workload="a", cpu="100m"),
]


@pytest.fixture(scope="module")
def shop(module_cluster: Callable[..., LocalCluster], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Everything placed that can be."""
    cluster = module_cluster()
    cluster.create_nodes(DEMO_TOPOLOGY)
    cluster.kubectl("create", "namespace", SHOP)
    api = cluster.api()
    eventually(partial(api.healthy, f"/api/v1/namespaces/{SHOP}/serviceaccounts/default"), what="service account")
    api.close()
    made = Shop(cluster, tmp_path_factory.mktemp("controllers"))
    try:
        for name in EXAMPLES:
            made.kubectl("apply", "-f", str(REPOSITORY / "examples" / f"{name}.yaml"))
        made.kubectl("create", "-f", "-", input=plans.text(*ODD))
        eventually(lambda: placed(made) >= 11, what="eleven pods placed")
        yield made
    finally:
        made.controller.stop(check=False)


def placed(shop: Shop) -> int:
    found = shop.kubectl.get("pods")["items"]
    return sum("berth.dev/decision" in pod["metadata"].get("annotations", {}) for pod in found)


def test_a_pod_is_explained_alike_by_a_controller_and_by_its_successor(shop: Shop) -> None:
    name = shop.pod("checkoutservice")
    before = eventually(
        lambda: shop.document("pod", name),
        accept=lambda d: any(e["reason"] == "Scheduled" for e in d["events"]),
        what="Event",
    )
    shop.restart()
    after = shop.document("pod", name)
    for field in ("state", "message", "decision", "rejected", "node", "podScheduled"):
        assert after[field] == before[field]
    decision = after["decision"]
    assert decision["plannedWith"] == 11
    assert len(decision["runnerUps"]) == 3
    assert decision["edges"] == 7
    assert after["network"]["topology"] == f"{SHOP}/net-topology"
    assert after["node"] == decision["node"] == shop.kubectl.get("pod", name)["spec"]["nodeName"]


def test_a_pod_without_a_node_is_explained_by_its_events(shop: Shop) -> None:
    document = eventually(
        lambda: shop.document("pod", "big"), accept=lambda d: bool(d["rejected"]), what="Event FailedScheduling"
    )
    assert document["state"] == "pending"
    assert {(row["plugin"], row["nodes"]) for row in document["rejected"]} == {
        ("NodeResourcesFit", 12),
        ("NodeAffinity", 12),
    }
    told = eventually(
        lambda: shop.document("pod", "big").get("podScheduled", {}),
        accept=lambda found: found.get("status") == "False",
        what="condition PodScheduled",
    )
    assert told["reason"] == "Unschedulable"


@pytest.mark.parametrize(
    ("name", "state", "said"),
    [
        ("foreign", "foreign", "belongs to scheduler default-scheduler, not to Berth"),
        ("direct", "unexplained", "bound to node us-east-a-01 without a decision of Berth"),
    ],
)
def test_pods_that_berth_did_not_place(shop: Shop, name: str, state: str, said: str) -> None:
    document = shop.document("pod", name)
    assert document["state"] == state
    assert said in document["message"]


def test_an_application_is_explained_from_the_live_objects(shop: Shop) -> None:
    document = eventually(
        lambda: shop.document("appgroup", "online-boutique"),
        accept=lambda d: d["ordered"] and "Dijkstra" in d["network"]["weights"],
        what="order and computed weights",
    )
    assert (document["members"], document["placed"], document["edges"]) == (11, 11, 15)
    assert document["order"][0] == "frontend"
    assert document["meanEdgeCost"] == 0
    assert document["missingWorkloads"] == []
    assert {row["state"] for row in document["pods"]} == {"placed"}
    limits = {(row["from"], row["to"]): row["maxNetworkCost"] for row in document["dependencies"]}
    assert limits["cartservice", "redis-cart"] == 5
    assert len(limits) == 15
    assert document["network"]["ageSeconds"] >= 0
    assert {item["type"] for item in document["conditions"]} >= {"Ordered", "Placed"}
    assert {item["type"] for item in document["network"]["conditions"]} >= {"WeightsComputed", "Complete"}
    assert shop.explain("ag", "online-boutique").exit_code == 0


def test_an_incomplete_application_names_what_is_missing(shop: Shop) -> None:
    document = shop.document("appgroup", "pair")
    assert document["missingWorkloads"] == ["b"]
    [row] = document["dependencies"]
    assert (row["from"], row["to"], row["called"], row["pairs"], row["maxNetworkCost"]) == ("a", "b", 0, 0, 3)


def test_a_node_is_explained_with_what_is_on_it_and_what_it_would_take(shop: Shop) -> None:
    name = shop.pod("frontend")
    node = shop.kubectl.get("pod", name)["spec"]["nodeName"]
    document = shop.document("node", node)
    row = next(row for row in document["pods"] if row["name"] == name)
    assert (row["appGroup"], row["selector"]) == ("online-boutique", "frontend")
    assert row["decision"]["node"] == node
    assert row["boundSeconds"] >= 0
    assert row["edges"] == 7
    waiting = {row["workload"]: row for row in document["waiting"]}
    assert waiting["Pod/big"]["fit"] == 0
    assert {"NodeResourcesFit"} <= {item["plugin"] for item in waiting["Pod/big"]["rejected"]}
    assert waiting["a"]["fit"] == 1
    assert document["resources"]["cpu"]["free"] < document["resources"]["cpu"]["allocatable"]


def test_a_node_names_those_that_others_put_there(shop: Shop) -> None:
    document = shop.document("node/us-east-a-01")
    assert document["others"]["pods"] == 1
    assert document["others"]["requests"]["cpu"] == 3
    page = shop.explain("no/us-east-a-01")
    assert page.exit_code == 0
    assert "Node us-east-a-01: 0 pods placed by Berth, 1 by others" in page.stdout


def test_a_stated_pod_is_judged_wherever_it_is(shop: Shop) -> None:
    [row] = shop.document("node", "us-east-a-02", "--pod", f"{SHOP}/direct")["waiting"]
    assert (row["workload"], row["fit"], row["pods"]) == ("Pod/direct", 1, 1)
    assert "WOULD IT TAKE shop/direct?" in shop.explain("node", "us-east-a-02", "--pod", "direct").stdout
    there = shop.explain("node", "us-east-a-01", "--pod", "direct")
    assert there.exit_code == 2
    assert "pod shop/direct is on node us-east-a-01 already" in there.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("node", "nowhere"), "there is no Node 'nowhere'; `kubectl get nodes` lists them"),
        (("node", "us-east-a-01", "--pod", "nobody"), "there is no Pod 'nobody' in namespace 'shop'"),
        (("pod", "nobody"), "there is no Pod 'nobody' in namespace 'shop'; `kubectl get pods -A` lists them"),
        (("appgroup", "nothing"), "there is no AppGroup 'nothing' in namespace 'shop'; `kubectl get appgroups -A`"),
        (("pod", "../secrets"), "'../secrets' is no name of a Pod; `kubectl get pods` lists names"),
    ],
    ids=["node", "pod for a node", "pod", "appgroup", "a name that is a path"],
)
def test_what_does_not_exist_gives_2(shop: Shop, arguments: tuple[str, ...], said: str) -> None:
    result = shop.explain(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert said in result.stderr


def test_whoever_may_only_look_at_the_namespace_is_told_what_can_be(shop: Shop, tmp_path: Path) -> None:
    for arguments in (
        ("role", "owner", "--verb=get,list", "--resource=pods,services,events.events.k8s.io"),
        ("role", "kinds", "--verb=get,list", "--resource=appgroups.appgroup.diktyo.x-k8s.io"),
        ("rolebinding", "owner", "--role=owner", "--user=owner"),
        ("rolebinding", "kinds", "--role=kinds", "--user=owner"),
    ):
        shop.kubectl("create", *arguments)
    kubeconfig = yaml.safe_load(shop.cluster.kubeconfig.read_text())
    kubeconfig["users"][0]["user"]["as"] = "owner"
    path = tmp_path / "owner"
    path.write_text(yaml.safe_dump(kubeconfig))
    command = ["explain", "ag/online-boutique", "-n", SHOP, "-o", "json", "--kubeconfig", str(path)]

    def explained() -> tuple[dict[str, Any], str]:
        result = CliRunner().invoke(kubectl_app, command)
        return (json.loads(result.stdout) if result.exit_code == 0 else {}), result.stderr

    # The API server learns of rights by a watch.
    document, _ = eventually(
        explained,
        accept=lambda found: [row["resource"] for row in found[0].get("unread", [])] == ["nodes", "networktopologies"],
        what="rights in force",
    )
    assert (document["placed"], len(document["pods"])) == (11, 11)
    assert "meanEdgeCost" not in document


def test_kubectl_finds_the_plugin(shop: Shop) -> None:
    kubectl = ensure(["kubectl"], report=lambda _text: None)["kubectl"]
    plugin = Path(sys.executable).parent
    answer = subprocess.run(
        [str(kubectl), "berth", "explain", "pod", shop.pod("frontend"), "-n", SHOP],
        env={**os.environ, "PATH": f"{plugin}:{os.environ['PATH']}", "KUBECONFIG": str(shop.cluster.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert answer.returncode == 0, answer.stderr
    assert "CHOSEN NODE AND RUNNERS-UP" in answer.stdout


def test_a_cluster_without_the_kinds_says_so(fresh_cluster: Callable[..., LocalCluster]) -> None:
    bare = fresh_cluster(crds=False, kwok=False)
    command = ["explain", "appgroup", "x", "-n", "default", "--kubeconfig", str(bare.kubeconfig)]
    result = CliRunner().invoke(kubectl_app, command)
    assert result.exit_code == 2
    assert "the cluster has no appgroups; install Berth's kinds" in result.stderr
    # A plan needs none of them: a cluster without the kinds has no such objects.
    planned = CliRunner().invoke(kubectl_app, ["plan", "--from-cluster", "--kubeconfig", str(bare.kubeconfig)])
    assert planned.exit_code == 2
    assert "there are no nodes to plan on" in planned.stderr
