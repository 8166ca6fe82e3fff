"""deploy/rbac: each controller works with its own service account, and may do nothing beyond its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.harness.cluster import REPOSITORY, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.latency_stand import LatencyStand
from tests.support.placing import STAGE_LABEL, Stage, chain
from tests.support.socket_stand import SocketStand

MANIFESTS = REPOSITORY / "deploy" / "rbac"
NAMESPACE = "berth-system"
CONTROLLERS = ("appgroup", "latency", "networktopology", "placement", "socketstatus")

Start = Callable[[str], ControllerProcess]


@pytest.fixture(scope="module")
def secured(cluster: LocalCluster) -> LocalCluster:
    """The shared cluster with Berth's service accounts."""
    cluster.kubectl("apply", "--server-side", "-f", str(MANIFESTS))
    return cluster


@pytest.fixture
def stage(secured: LocalCluster) -> Iterator[Stage]:
    """A namespace and nodes of the test's own, which the other users of the cluster shall not meet."""
    stage = Stage(secured)
    yield stage
    stage.close()


@pytest.fixture
def start(secured: LocalCluster, tmp_path: Path) -> Iterator[Start]:
    """Start a controller with its own identity."""
    running: list[ControllerProcess] = []

    def begin(name: str) -> ControllerProcess:
        kubeconfig = secured.service_account_kubeconfig(NAMESPACE, f"berth-{name}", path=tmp_path / name)
        arguments = ["--lease-namespace", NAMESPACE]
        if name == "latency":
            arguments += ["--latency-listen", "127.0.0.1", "--latency-port", "0", "--latency-namespace", NAMESPACE]
        process = ControllerProcess.start([name], kubeconfig=kubeconfig, directory=tmp_path, arguments=arguments)
        running.append(process)
        return process.wait_leader().wait_ready()

    yield begin
    for process in running:
        process.stop(check=False)


def _refused(process: ControllerProcess) -> list[str]:
    """Samples of requests that the API server forbade.

    Events are left out: it forbids them in a namespace that is being deleted, as those of other tests may be.
    """
    status, text = process.get("/metrics")
    assert status == 200, text
    samples = [line for line in text.splitlines() if line.startswith("berth_api_requests_total")]
    return [line for line in samples if 'code="403"' in line and 'resource="events"' not in line]


def test_all_work_with_their_own_accounts(stage: Stage, start: Start) -> None:
    stage.nodes("a1", zone="z1")
    stage.nodes("b1", zone="z2")
    processes = [start(name) for name in CONTROLLERS]
    stage.costs()
    stage.apply(chain("web", "db"))
    stage.pod("web", group="shop", workload="web")
    stage.pod("db", group="shop", workload="db")
    stage.wait_bound("web", "db")
    stage.pod("large", cpu="64")
    assert eventually(lambda: stage.condition("large"), what="condition")["reason"] == "Unschedulable"
    stage.wait_event("large", "FailedScheduling")
    groups = f"/apis/appgroup.diktyo.x-k8s.io/v1alpha1/namespaces/{stage.name}/appgroups/shop"
    topologies = f"/apis/networktopology.diktyo.x-k8s.io/v1alpha1/namespaces/{stage.name}/networktopologies/net"
    status = eventually(
        lambda: stage.api.request("GET", groups).get("status", {}),
        accept=lambda status: status.get("runningWorkloads") == 2,
        what="status of the AppGroup",
    )
    assert {entry["workload"]["selector"]: entry["index"] for entry in status["topologyOrder"]} == {"web": 1, "db": 2}
    eventually(
        lambda: stage.api.request("GET", topologies).get("status", {}).get("conditions", []),
        what="status of the NetworkTopology",
    )
    eventually(
        lambda: [item["name"] for item in stage.api.request("GET", topologies)["spec"]["weights"]],
        accept=lambda names: "Dijkstra" in names,
        what="computed weights",
    )
    for process in processes:
        assert _refused(process) == []
        assert process.stop() == 0
    leases = stage.api.request("GET", f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases")["items"]
    assert {item["metadata"]["name"] for item in leases} >= {f"berth-{name}" for name in CONTROLLERS}


def test_placement_may_see_how_many_pods_are_to_come(secured: LocalCluster) -> None:
    assert _may(secured, "placement", "apps", "replicasets", "", "list")
    assert not _may(secured, "placement", "apps", "replicasets", "", "watch")


def test_placement_may_prepare_claims(stage: Stage, start: Start) -> None:
    stage.nodes("a1")
    storage_class = {
        "metadata": {"name": stage.name},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    stage.api.request("POST", "/apis/storage.k8s.io/v1/storageclasses", storage_class)
    terms = [{"matchExpressions": [{"key": STAGE_LABEL, "operator": "In", "values": [stage.name]}]}]
    volume = {
        "metadata": {"name": stage.name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": stage.name,
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    }
    stage.api.request("POST", "/api/v1/persistentvolumes", volume)
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": stage.name,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stage.api.request("POST", f"/api/v1/namespaces/{stage.name}/persistentvolumeclaims", claim)
    process = start("placement")
    stage.pod("db", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    stage.wait_bound("db")
    assert _refused(process) == []


def test_socketstatus_may_pair_pods_and_tidy(secured: LocalCluster, start: Start) -> None:
    node = SocketStand(Stage(secured))
    node.place(["one-d", "two-d"], ["three-d"])
    node.stage.delete_pod("three-d")
    process = start("socketstatus")
    node.wait_assigned(["one-d"], ["two-d"])
    node.wait_condition("True", "Paired")
    assert _refused(process) == []
    node.close()


def test_latency_may_move_a_pod_and_answer_meters_and_agents(secured: LocalCluster, start: Start) -> None:
    process = start("latency")
    with LatencyStand(secured, {"a": 120, "b": 20}, system=NAMESPACE) as stand:
        stand.deploy()
        stand.want(hardMaxLatency=80)
        stand.wait_settled("b")
        assert _refused(process) == []


def test_latency_writes_its_keys_and_applying_the_manifests_again_leaves_them(
    secured: LocalCluster, start: Start
) -> None:
    api, path = secured.api(), f"/api/v1/namespaces/{NAMESPACE}"

    def data() -> dict[str, dict[str, str]]:
        return {kind: api.request("GET", f"{path}/{kind}/berth-latency").get("data", {}) for kind in KEPT}

    before = data()["configmaps"].get("url")
    process = start("latency")
    written = eventually(
        data,
        # Those of a process that has ended may be there, and are replaced once this one listens.
        accept=lambda found: (
            all(set(found[kind]) == KEPT[kind] for kind in KEPT) and found["configmaps"]["url"] != before
        ),
        what="keys and address",
    )
    assert _refused(process) == []
    secured.kubectl("apply", "--server-side", "-f", str(MANIFESTS))
    assert data() == written
    api.close()


def test_latency_says_again_where_it_is_after_somebody_has_deleted_that(secured: LocalCluster, start: Start) -> None:
    api, path = secured.api(), f"/api/v1/namespaces/{NAMESPACE}/configmaps"

    def there() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = api.request("GET", path)["items"]
        return [each for each in found if each["metadata"]["name"] == "berth-latency" and "url" in each.get("data", {})]

    last = [each["data"]["url"] for each in there()]
    process = start("latency")
    [before] = eventually(
        there,
        accept=lambda found: [each["data"]["url"] for each in found] not in ([], last),
        what="where it is",
    )
    secured.kubectl("delete", "configmap", "berth-latency", "-n", NAMESPACE)
    [after] = eventually(there, timeout=120.0, what="where it is, again")
    assert (after["data"], after["metadata"]["uid"] != before["metadata"]["uid"]) == (before["data"], True)
    assert _refused(process) == []
    api.close()


KEPT = {"secrets": {"tls.crt", "tls.key", "users.key"}, "configmaps": {"url", "ca.crt", "instance"}}
"""What the latency controller writes into objects that the manifests have."""

FORBIDDEN = [
    ("", "pods", "", "create"),
    ("", "pods", "", "update"),
    ("", "pods", "", "patch"),
    ("", "pods", "", "delete"),
    ("", "pods", "exec", "create"),
    ("", "nodes", "", "update"),
    ("", "nodes", "", "patch"),
    ("", "nodes", "", "delete"),
    ("", "nodes", "status", "patch"),
    ("", "secrets", "", "get"),
    ("", "secrets", "", "list"),
    ("", "configmaps", "", "update"),
    ("", "serviceaccounts", "token", "create"),
    ("", "persistentvolumes", "", "delete"),
    ("", "persistentvolumeclaims", "", "delete"),
    ("apps", "deployments", "", "update"),
    ("appgroup.diktyo.x-k8s.io", "appgroups", "", "patch"),
    ("appgroup.diktyo.x-k8s.io", "appgroups", "", "delete"),
    ("networktopology.diktyo.x-k8s.io", "networktopologies", "", "delete"),
    ("networktopology.diktyo.x-k8s.io", "networktopologies", "", "create"),
    ("rbac.authorization.k8s.io", "clusterroles", "", "escalate"),
    ("rbac.authorization.k8s.io", "clusterrolebindings", "", "create"),
    ("apiextensions.k8s.io", "customresourcedefinitions", "", "patch"),
    ("berth.dev", "socketstatuses", "", "create"),
    ("berth.dev", "socketstatuses", "", "delete"),
    ("berth.dev", "workloadprofiles", "", "patch"),
    ("berth.dev", "latencypolicies", "", "patch"),
    ("apps", "deployments", "", "patch"),
    ("coordination.k8s.io", "leases", "", "update"),
    ("coordination.k8s.io", "leases", "", "delete"),
    ("", "users", "", "impersonate"),
]
"""Group, resource, subresource and verb that no controller may use in an ordinary namespace."""

ONLY = {
    ("", "pods", "binding", "create"): "placement",
    ("", "pods", "status", "patch"): "placement",
    ("", "pods", "eviction", "create"): "latency",
    ("apps", "deployments", "scale", "patch"): "latency",
    ("authentication.k8s.io", "tokenreviews", "", "create"): "latency",
    ("berth.dev", "latencypolicies", "status", "patch"): "latency",
    ("", "persistentvolumes", "", "patch"): "placement",
    ("", "persistentvolumeclaims", "", "patch"): "placement",
    ("", "configmaps", "", "list"): "networktopology",
    ("networktopology.diktyo.x-k8s.io", "networktopologies", "status", "patch"): "networktopology",
    ("appgroup.diktyo.x-k8s.io", "appgroups", "status", "patch"): "appgroup",
    ("berth.dev", "socketstatuses", "status", "patch"): "socketstatus",
}
"""What exactly one controller may do."""


def _may(cluster: LocalCluster, who: str, group: str, resource: str, subresource: str, verb: str, **where: str) -> bool:
    attributes = {"group": group, "resource": resource, "subresource": subresource, "verb": verb, **where}
    review = {
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:berth-{who}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"],
            "resourceAttributes": {"namespace": "default", **attributes},
        }
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    answer: dict[str, Any] = cluster.api().request("POST", path, review)
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize("name", CONTROLLERS)
def test_what_no_controller_may_do(secured: LocalCluster, name: str) -> None:
    assert [item for item in FORBIDDEN if _may(secured, name, *item)] == []


def test_placement_may_take_an_assignment_out_that_others_own_a_part_of(secured: LocalCluster) -> None:
    assert all(_may(secured, "placement", "berth.dev", "socketstatuses", "", verb) for verb in ("get", "patch"))


@pytest.mark.parametrize("name", CONTROLLERS)
@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
def test_no_controller_creates_secrets_or_configmaps(secured: LocalCluster, name: str, kind: str) -> None:
    assert not _may(secured, name, "", kind, "", "create", namespace=NAMESPACE)


@pytest.mark.parametrize("item", ONLY, ids=lambda item: f"{item[3]} {'/'.join(filter(None, item[1:3]))}")
def test_what_one_controller_alone_may_do(secured: LocalCluster, item: tuple[str, str, str, str]) -> None:
    assert [name for name in CONTROLLERS if _may(secured, name, *item)] == [ONLY[item]]


@pytest.mark.parametrize("name", CONTROLLERS)
def test_each_has_its_own_lease_alone(secured: LocalCluster, name: str) -> None:
    lease = ("coordination.k8s.io", "leases", "", "update")
    mine = [other for other in CONTROLLERS if _may(secured, name, *lease, namespace=NAMESPACE, name=f"berth-{other}")]
    assert mine == [name]


@pytest.mark.parametrize(
    "path",
    ["/api/v1/namespaces/default/secrets", "/api/v1/namespaces/kube-system/configmaps"],
    ids=["secrets", "configmaps"],
)
def test_the_api_server_refuses_in_fact(secured: LocalCluster, tmp_path: Path, path: str) -> None:
    kubeconfig = secured.service_account_kubeconfig(NAMESPACE, "berth-placement", path=tmp_path / "placement")
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    status, _, body = secured.api(token=token).raw("GET", path)
    assert status == 403
    assert b"berth-placement" in body


def test_a_pod_cannot_be_deleted_nor_a_node_written(secured: LocalCluster, stage: Stage, tmp_path: Path) -> None:
    stage.nodes("a1")
    stage.pod("mine", schedulerName="nobody")
    kubeconfig = secured.service_account_kubeconfig(NAMESPACE, "berth-placement", path=tmp_path / "placement")
    for command in (
        ["-n", stage.name, "delete", "pod", "mine"],
        ["-n", stage.name, "label", "pod", "mine", "a=b"],
        ["cordon", stage.node("a1")],
        ["label", "node", stage.node("a1"), "a=b"],
    ):
        answer = secured.kubectl(*command, kubeconfig=kubeconfig, check=False)
        assert answer.returncode != 0, command
        assert "forbidden" in answer.stderr.lower()
    assert "mine" in stage.pods()


def test_nothing_is_granted_by_wildcard() -> None:
    for path in MANIFESTS.glob("*.yaml"):
        for document in yaml.safe_load_all(path.read_text()):
            for rule in document.get("rules", []):
                assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]], path.name
