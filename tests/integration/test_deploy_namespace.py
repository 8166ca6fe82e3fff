"""deploy/ in another namespace than berth-system: rights and admission policies go with it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.node.probing.report_writer import FIELD_MANAGER
from berth.api.probereport import API_VERSION, KIND
from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api
from tests.support.agent_tokens import agent_api

NAMESPACE = "network"
REPORTS = "/apis/berth.dev/v1alpha1/probereports"
OVERLAY = """
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: {namespace}
resources: [{deploy}]
"""


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A kustomization that does nothing but name another namespace."""
    directory = tmp_path_factory.mktemp("overlay").resolve()
    deploy = os.path.relpath(REPOSITORY / "deploy", directory)
    (directory / "kustomization.yaml").write_text(OVERLAY.format(namespace=NAMESPACE, deploy=deploy))
    return directory


@pytest.fixture(scope="module")
def installed(module_cluster: Any, overlay: Path) -> LocalCluster:
    """A cluster with Berth's accounts in that namespace, and two nodes."""
    cluster: LocalCluster = module_cluster(kwok=False)
    cluster.kubectl("apply", "--server-side", "-k", str(overlay))
    api = cluster.api()
    for name in ("n1", "n2"):
        api.request("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/berth-node"
    eventually(lambda: api.healthy(account), what="service account")
    api.close()
    return cluster


def apply(api: Api, report: str) -> tuple[int, str]:
    """Apply a report; the answer's status and text."""
    body = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": report}}
    path = f"{REPORTS}/{report}?fieldManager={FIELD_MANAGER}&force=true"
    code, _, answer = api.raw("PATCH", path, body, content_type="application/apply-patch+yaml")
    return code, answer.decode()


def test_nothing_names_the_usual_namespace(installed: LocalCluster, overlay: Path) -> None:
    documents = yaml.safe_load_all(installed.kubectl("kustomize", str(overlay)).stdout)
    left = [item["metadata"]["name"] for item in documents if "berth-system" in yaml.safe_dump(item)]
    assert left == []


def test_an_agent_there_writes_the_report_of_its_node_alone(installed: LocalCluster) -> None:
    agent = agent_api(installed, "n1", namespace=NAMESPACE)
    refused = eventually(lambda: apply(agent, "n2"), accept=lambda answer: answer[0] == 403, what="admission policy")
    assert "the agent of node n1 may not write the report of n2" in refused[1]
    assert apply(agent, "n1")[0] in (200, 201)
    agent.close()


def test_an_agent_there_states_no_other_nodes_bandwidth(installed: LocalCluster) -> None:
    agent = agent_api(installed, "n2", namespace=NAMESPACE)
    body = {"status": {"capacity": {"network.aware.com/bandwidth": "1"}}}
    kind = "application/strategic-merge-patch+json"

    def state(node: str) -> tuple[int, str]:
        code, _, answer = agent.raw("PATCH", f"/api/v1/nodes/{node}/status", body, content_type=kind)
        return code, answer.decode()

    refused = eventually(lambda: state("n1"), accept=lambda answer: answer[0] == 403, what="admission policy")
    assert "the agent of node 'n2' may not write the status of n1" in refused[1]
    assert state("n2")[0] == 200
    agent.close()
