"""deploy/rbac: where the latency controller is is followed by agents, read and awaited by all, who do not write it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_INSTANCE, CONFIGMAP_URL
from berth.kube.client import ApiClient
from berth.kube.connection import load_connection
from berth.runtime.measuring.published import FollowedServer, PublishedServer
from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from tests.support.kube import running

NAMESPACE = "berth-system"
PATH = f"/api/v1/namespaces/{NAMESPACE}/configmaps"


@pytest.fixture(scope="module")
def secured(cluster: LocalCluster) -> Iterator[LocalCluster]:
    """The shared cluster with Berth's service accounts, which the API server knows."""
    cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "deploy" / "rbac"))
    attributes = {"verb": "watch", "resource": "configmaps", "namespace": NAMESPACE, "name": CONFIGMAP}
    review = {"spec": {"user": f"system:serviceaccount:{NAMESPACE}:berth-node", "resourceAttributes": attributes}}
    path, api = "/apis/authorization.k8s.io/v1/subjectaccessreviews", cluster.api()
    eventually(lambda: api.request("POST", path, review)["status"]["allowed"], what="rights of agents")
    api.close()
    yield cluster
    cluster.kubectl("-n", NAMESPACE, "patch", "configmap", CONFIGMAP, "--type=merge", '-p={"data":null}')


def publish(cluster: LocalCluster, port: int, instance: str) -> None:
    data = {CONFIGMAP_URL: f"https://192.0.2.1:{port}", CONFIGMAP_CA: "certificate", CONFIGMAP_INSTANCE: instance}
    cluster.kubectl(
        "-n", NAMESPACE, "patch", "configmap", CONFIGMAP, "--type=merge", f"-p={json.dumps({'data': data})}"
    )


async def test_an_agent_hears_of_another_controller(secured: LocalCluster, tmp_path: Path) -> None:
    publish(secured, 1, "a")
    kubeconfig = secured.service_account_kubeconfig(NAMESPACE, "berth-node", path=tmp_path / "node")
    async with ApiClient(await load_connection(kubeconfig=str(kubeconfig))) as client:
        server = FollowedServer(client, NAMESPACE, tmp_path / "token")
        async with running(server.run()):
            for port, instance in ((1, "a"), (2, "a"), (2, "b")):
                another = server.another()
                if (port, instance) != (1, "a"):
                    publish(secured, port, instance)
                    await another.wait()
                assert (await server.endpoint(again=False)).url == f"https://192.0.2.1:{port}"


async def test_a_meter_that_waits_hears_of_another_controller(secured: LocalCluster, tmp_path: Path) -> None:
    await asyncio.to_thread(publish, secured, 1, "a")
    kubeconfig = secured.service_account_kubeconfig(NAMESPACE, "default", path=tmp_path / "meter")
    async with ApiClient(await load_connection(kubeconfig=str(kubeconfig))) as client:
        server = PublishedServer(client, NAMESPACE, tmp_path / "token")
        await server.endpoint(again=False)
        for port, instance in ((2, "a"), (2, "b")):
            # Who waits so long is told by nothing else before the test's time is over.
            waiting = asyncio.create_task(server.another_within(6000.0))
            await asyncio.to_thread(publish, secured, port, instance)
            assert await waiting
            assert (await server.endpoint(again=True)).url == f"https://192.0.2.1:{port}"
        assert not await server.another_within(1.0)


@pytest.mark.parametrize(
    ("account", "path", "status"),
    [
        pytest.param("berth-node", f"{PATH}?fieldSelector=metadata.name%3D{CONFIGMAP}", 200, id="an agent by name"),
        pytest.param("berth-node", PATH, 403, id="an agent all of them"),
        pytest.param("default", f"{PATH}/{CONFIGMAP}", 200, id="others read it"),
        pytest.param("default", f"{PATH}?fieldSelector=metadata.name%3D{CONFIGMAP}", 403, id="others do not list it"),
        pytest.param("default", f"{PATH}?watch=1&timeoutSeconds=1", 403, id="others do not watch them all"),
    ],
)
def test_who_reads_it_and_how(secured: LocalCluster, account: str, path: str, status: int) -> None:
    request = {"spec": {"expirationSeconds": 3600}}
    admin = secured.api()
    token = admin.request("POST", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token", request)
    api = secured.api(token=token["status"]["token"])
    eventually(lambda: api.raw("GET", path)[0], accept=status.__eq__, what=f"status {status}")
    code, _, _ = api.raw("PATCH", f"{PATH}/{CONFIGMAP}", {"data": {}}, content_type="application/merge-patch+json")
    assert code == 403
    api.close()
    admin.close()
