"""deploy/rbac/node.yaml: an agent writes its node's report alone, by the token of its pod."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.node.probing.report_writer import FIELD_MANAGER
from berth.api.probereport import API_VERSION, KIND
from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api

NAMESPACE = "berth-system"
ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/berth-node"
REPORTS = "/apis/berth.dev/v1alpha1/probereports"
APPLY = "application/apply-patch+yaml"
STATUS = {"zone": "a", "peerCount": 0}

Agent = Callable[[str | None], Api]


@pytest.fixture(scope="module")
def secured(cluster: LocalCluster) -> LocalCluster:
    """The shared cluster with Berth's service accounts."""
    cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "deploy" / "rbac"))
    return cluster


@pytest.fixture
def nodes(secured: LocalCluster) -> Iterator[tuple[str, str]]:
    """Two nodes of the test's own, the first with the second's name in its own."""
    api = secured.api()
    name = f"agent-{secrets.token_hex(4)}"
    pair = (f"{name}-b", name)
    for node in pair:
        api.request("POST", "/api/v1/nodes", {"metadata": {"name": node}})
    yield pair
    for node in pair:
        api.raw("DELETE", f"/api/v1/nodes/{node}")
        api.raw("DELETE", f"{REPORTS}/{node}")
    api.close()


@pytest.fixture
def agent(secured: LocalCluster) -> Iterator[Agent]:
    """A client with the token of an agent's pod on a node; of no pod for None."""
    api, opened = secured.api(), []

    def connect(node: str | None) -> Api:
        spec: dict[str, Any] = {"expirationSeconds": 3600}
        if node is not None:
            pod = {
                "metadata": {"name": f"on-{node}"},
                "spec": {
                    "nodeName": node,
                    "serviceAccountName": "berth-node",
                    "containers": [{"name": "agent", "image": "berth"}],
                },
            }
            made = api.request("POST", f"/api/v1/namespaces/{NAMESPACE}/pods", pod)
            metadata = made["metadata"]
            spec["boundObjectRef"] = {
                "kind": "Pod",
                "apiVersion": "v1",
                "name": metadata["name"],
                "uid": metadata["uid"],
            }
        answer = api.request("POST", f"{ACCOUNT}/token", {"spec": spec})
        client = secured.api(token=answer["status"]["token"])
        opened.append(client)
        return client

    eventually(lambda: api.healthy(ACCOUNT), what="service account")
    yield connect
    for client in opened:
        client.close()
    api.close()


def apply(api: Api, report: str, *, status: bool = False, **metadata: Any) -> tuple[int, str]:
    """Apply a report, or its status; the answer's status and text."""
    body: dict[str, Any] = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": report, **metadata}}
    path = f"{REPORTS}/{report}"
    if status:
        body, path = {**body, "status": STATUS}, f"{path}/status"
    code, _, answer = api.raw("PATCH", f"{path}?fieldManager={FIELD_MANAGER}&force=true", body, content_type=APPLY)
    return code, answer.decode()


def denied(answer: tuple[int, str], text: str) -> bool:
    return answer[0] == 403 and text in answer[1]


def enforced(secured: LocalCluster, api: Api, node: str) -> None:
    """Wait until the policy, which the API server learns of by a watch, is in force."""
    eventually(lambda: apply(api, f"{node}-nobodys")[0] == 403, what="admission policy")


def test_an_agent_writes_the_report_of_its_node(secured: LocalCluster, agent: Agent, nodes: tuple[str, str]) -> None:
    own, _ = nodes
    api = agent(own)
    uid = api.request("GET", f"/api/v1/nodes/{own}")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": own, "uid": uid}
    assert apply(api, own, ownerReferences=[owner])[0] in (200, 201)
    assert apply(api, own, status=True)[0] == 200
    assert secured.api().request("GET", f"{REPORTS}/{own}")["status"] == STATUS


def test_it_writes_no_other_nodes(secured: LocalCluster, agent: Agent, nodes: tuple[str, str]) -> None:
    own, other = nodes
    mine, others = agent(own), agent(other)
    enforced(secured, mine, own)
    text = f"the agent of node {own} may not write the report of {other}"
    assert denied(apply(mine, other), text)
    assert apply(others, other)[0] in (200, 201)
    assert denied(apply(mine, other, status=True), text)
    forged = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": other}}
    status, _, answer = mine.raw("POST", REPORTS, forged)
    assert denied((status, answer.decode()), text)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "u"}]}, id="another node's"
        ),
        pytest.param({"finalizers": ["example.com/never"]}, id="never to be deleted"),
    ],
)
def test_a_report_is_its_nodes_alone(
    secured: LocalCluster, agent: Agent, nodes: tuple[str, str], metadata: dict[str, Any]
) -> None:
    own, _ = nodes
    api = agent(own)
    enforced(secured, api, own)
    assert denied(apply(api, own, **metadata), "no owner but its node")


def test_a_token_without_a_node_writes_nothing(secured: LocalCluster, agent: Agent, nodes: tuple[str, str]) -> None:
    own, _ = nodes
    api = agent(None)
    enforced(secured, api, own)
    assert denied(apply(api, own), "the token names no node")


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("DELETE", f"{REPORTS}/{{own}}", None, id="delete its report"),
        pytest.param("GET", REPORTS, None, id="read reports"),
        pytest.param("GET", "/api/v1/nodes", None, id="list nodes"),
        pytest.param("PATCH", "/api/v1/nodes/{own}", {"metadata": {"labels": {"a": "b"}}}, id="label its node"),
        pytest.param("PATCH", "/api/v1/nodes/{own}/status", {"status": {"capacity": {}}}, id="write its node's status"),
        pytest.param("GET", "/api/v1/pods", None, id="list pods"),
        pytest.param("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets", None, id="read secrets"),
        pytest.param("POST", f"{ACCOUNT}/token", {"spec": {}}, id="ask for tokens"),
        pytest.param("GET", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", None, id="others' Services"),
    ],
)
def test_what_it_may_not_do(agent: Agent, nodes: tuple[str, str], method: str, path: str, body: Any) -> None:
    own, _ = nodes
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    status, _, answer = agent(own).raw(method, path.format(own=own), body, content_type=kind)
    assert (status, b"forbidden" in answer) == (403, True)


def test_people_are_not_held_to_it(secured: LocalCluster, nodes: tuple[str, str]) -> None:
    own, _ = nodes
    assert apply(secured.api(), own)[0] in (200, 201)
