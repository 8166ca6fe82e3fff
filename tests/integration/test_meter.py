"""The meter and a real API server: it takes the sidecar's manifest, and its ConfigMap says where the controller is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.api.latency_exchange import CONFIGMAP, CONFIGMAP_CA, CONFIGMAP_URL, SERVER_NAME
from hack.localcluster import LocalCluster
from tests.support.latency_controller import certificate_for, instructions, latency_controller
from tests.support.probe import QUIET, berth

EXAMPLE = Path(__file__).parents[2] / "examples" / "meter" / "deployment.yaml"
PATHS = {"Deployment": "/apis/apps/v1/namespaces/default/deployments", "Service": "/api/v1/namespaces/default/services"}
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def cluster(module_cluster: Any) -> LocalCluster:
    found: LocalCluster = module_cluster()
    return found


def test_the_manifest_is_taken(cluster: LocalCluster) -> None:
    api = cluster.api()
    try:
        for document in yaml.safe_load_all(EXAMPLE.read_text()):
            stored = api.request("POST", f"{PATHS[document['kind']]}?fieldValidation=Strict", document)
            if document["kind"] == "Deployment":
                [meter] = stored["spec"]["template"]["spec"]["initContainers"]
                assert meter["restartPolicy"] == "Always"
                web = stored["spec"]["template"]["spec"]["containers"][0]
                assert web["lifecycle"]["preStop"]["sleep"] == {"seconds": 5}
    finally:
        api.close()


def publish(cluster: LocalCluster, url: str, certificate: Path, *, method: str, path: str) -> None:
    api = cluster.api()
    data = {CONFIGMAP_URL: url, CONFIGMAP_CA: (certificate / "server.crt").read_text()}
    try:
        api.request(method, path, {"metadata": {"name": CONFIGMAP}, "data": data})
    finally:
        api.close()


async def test_the_controller_that_leads_is_told_and_then_the_one_that_leads_next(
    cluster: LocalCluster, tmp_path: Path
) -> None:
    certificate = await asyncio.to_thread(certificate_for, SERVER_NAME, tmp_path)
    token = tmp_path / "token"
    await asyncio.to_thread(token.write_text, "of-the-pod")
    options = ["--meter-port=0", "--meter-address=127.0.0.1", f"--meter-token-file={token}", "--meter-linger=0"]
    environment = {"HOME": str(tmp_path), "KUBECONFIG": str(cluster.kubeconfig)}
    async with (
        latency_controller(certificate=certificate) as following,
        latency_controller(certificate=certificate) as first,
    ):
        await asyncio.to_thread(publish, cluster, first.url, certificate, method="POST", path=CONFIGMAPS)
        first.says(instructions())
        with berth(
            "run", "meter", *QUIET, *options, "--meter-controller-namespace=default", env=environment
        ) as process:
            told = await first.message(0)
            await asyncio.to_thread(
                publish, cluster, following.url, certificate, method="PUT", path=f"{CONFIGMAPS}/{CONFIGMAP}"
            )
            first.says(b"", status=503)
            again = await following.message(0)
            following.says(instructions())
            assert await asyncio.to_thread(process.stop) == 0
    assert (told.instance, again.sequence > told.sequence) == (again.instance, True)
    assert set(first.tokens + following.tokens) == {"Bearer of-the-pod"}
