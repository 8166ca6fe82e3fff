"""The router and the latency controller as processes: who leads is found, the key heard, and what is measured told.

Left out: what the controller makes of measurements (test_latency_controller.py), what the router makes of associations
(test_router.py).
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.harness.cluster import REPOSITORY, eventually
from hack.harness.processes import ControllerProcess
from hack.localcluster import LocalCluster
from tests.support.latency_stand import LatencyStand, token_of

ADMIN_TOKEN = "a-token-of-the-test"


@pytest.fixture
def stand(module_cluster: Any, tmp_path: Path) -> Iterator[LatencyStand]:
    """A policy with a pod whose meter says nothing, and the controller."""
    cluster: LocalCluster = module_cluster()
    arguments = ["--no-leader-elect", "--latency-listen", "127.0.0.1", "--latency-port", "0"]
    with (
        ControllerProcess.start(
            ["latency"], kubeconfig=cluster.kubeconfig, directory=tmp_path, arguments=arguments
        ) as controller,
        LatencyStand(cluster, {"a": 50, "b": 50}) as made,
    ):
        controller.wait_ready()
        made.meters = False
        may_read_where_the_controller_is(made)
        made.deploy()
        made.want(objective="Minimum", hardMaxLatency=80)
        yield made


def may_read_where_the_controller_is(stand: LatencyStand) -> None:
    """What deploy/rbac/latency.yaml gives every service account, in the namespace that this controller runs in."""
    made = set()
    for document in yaml.safe_load_all((REPOSITORY / "deploy" / "rbac" / "latency.yaml").read_text()):
        if document["metadata"]["name"] == "berth-latency-endpoint":
            document["metadata"]["namespace"] = "default"
            made.add(document["kind"])
            path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/default/{document['kind'].lower()}s"
            stand.api.request("POST", path, document)
    assert made == {"Role", "RoleBinding"}


def router_pod(stand: LatencyStand) -> dict[str, Any]:
    """The router's account, rights and pod on a node."""
    root, pod = f"namespaces/{stand.stage.name}", {}
    for document in yaml.safe_load_all((REPOSITORY / "examples" / "router" / "router.yaml").read_text()):
        if document["kind"] in ("ServiceAccount", "Role", "RoleBinding"):
            group = document["apiVersion"]
            place = f"/apis/{group}" if "/" in group else f"/api/{group}"
            stand.api.request("POST", f"{place}/{root}/{document['kind'].lower()}s", document)
    spec = {"nodeName": stand.stage.node("b"), "serviceAccountName": "berth-router"}
    body = {"metadata": {"name": "router"}, "spec": {**spec, "containers": [{"name": "r", "image": "berth"}]}}
    pod = stand.api.request("POST", f"/api/v1/{root}/pods", body)
    return dict(pod)


def test_a_router_hears_the_key_and_its_round_trips_count_for_its_node(stand: LatencyStand, tmp_path: Path) -> None:
    token, admin = tmp_path / "token", tmp_path / "admin"
    token.write_text(token_of(stand.api, router_pod(stand)))
    admin.write_text(ADMIN_TOKEN)
    kubeconfig = stand.cluster.service_account_kubeconfig(stand.stage.name, "berth-router", path=tmp_path / "kube")
    arguments = [
        "--router-service=web",
        "--router-policy=web",
        f"--router-namespace={stand.stage.name}",
        "--router-port=0",
        "--router-linger=0",
        "--router-controller-namespace=default",
        f"--router-token-file={token}",
        "--router-admin-port=0",
        f"--router-admin-token-file={admin}",
    ]
    with ControllerProcess.start(["router"], kubeconfig=kubeconfig, directory=tmp_path, arguments=arguments) as router:
        router.wait_ready()
        [routing] = router.records("routing")

        def known() -> dict[str, Any]:
            url = f"http://127.0.0.1:{routing['admin_port']}/v1/associations"
            request = urllib.request.Request(url, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
            with urllib.request.urlopen(request) as answer:
                found: dict[str, Any] = json.load(answer)
                return found

        eventually(known, accept=lambda found: found["keyKnown"], what="key of the policy")
        assert known()["policy"] == "web"
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"http://127.0.0.1:{routing['port']}/")

        def measured() -> list[tuple[str, str]]:
            return [(each.node, str(each.source)) for each in stand.status().nodes if each.source is not None]

        eventually(measured, accept=lambda found: (stand.stage.node("b"), "Router") in found, what="round trip")


def test_a_router_of_a_policy_that_is_not_there_is_told_nothing(stand: LatencyStand, tmp_path: Path) -> None:
    """Nor is one that names a policy of another namespace: a name is looked up in the namespace of the token."""
    token = tmp_path / "token"
    token.write_text(token_of(stand.api, router_pod(stand)))
    kubeconfig = stand.cluster.service_account_kubeconfig(stand.stage.name, "berth-router", path=tmp_path / "kube")
    arguments = ["--router-service=web", "--router-policy=other/web", "--router-port=0", "--router-linger=0"]
    arguments += ["--router-controller-namespace=default", f"--router-token-file={token}"]
    arguments += [f"--router-namespace={stand.stage.name}"]
    with ControllerProcess.start(["router"], kubeconfig=kubeconfig, directory=tmp_path, arguments=arguments) as router:
        eventually(
            lambda: router.metric("berth_round_trip_reports_total", outcome="answered"),
            accept=lambda count: count >= 1,
            what="answer",
        )
        assert router.metric("berth_round_trips_wanted") == 0
