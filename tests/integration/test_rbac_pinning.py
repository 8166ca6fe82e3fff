"""deploy/rbac/pinning.yaml: an agent writes the status of its node's SocketStatus alone, by the token of its pod."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.node.pinning.status_writer import FIELD_MANAGER
from berth.api.socketstatus import API_VERSION, KIND
from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api
from tests.support.agent_tokens import agent_api

NAMESPACE = "berth-system"
ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/berth-pinning"
STATUSES = "/apis/berth.dev/v1alpha1/socketstatuses"
APPLY = "application/apply-patch+yaml"
ASSIGNMENT = {"uid": "u", "namespace": "shop", "name": "web", "socket": 0}

Agent = Callable[[str | None], Api]


@pytest.fixture(scope="module")
def secured(cluster: LocalCluster) -> LocalCluster:
    """The shared cluster with Berth's service accounts."""
    rights = REPOSITORY / "deploy" / "agent-and-pinning" / "rights.yaml"
    for path in (REPOSITORY / "deploy" / "rbac", rights):
        cluster.kubectl("apply", "--server-side", "-f", str(path))
    return cluster


@pytest.fixture
def nodes(secured: LocalCluster) -> Iterator[tuple[str, str]]:
    """Two nodes of the test's own, the first with the second's name in its own."""
    api = secured.api()
    name = f"pin-{secrets.token_hex(4)}"
    pair = (f"{name}-b", name)
    for node in pair:
        api.request("POST", "/api/v1/nodes", {"metadata": {"name": node}})
    yield pair
    for node in pair:
        api.raw("DELETE", f"/api/v1/nodes/{node}")
        api.raw("DELETE", f"{STATUSES}/{node}")
    api.close()


@pytest.fixture
def agent(secured: LocalCluster) -> Iterator[Agent]:
    """A client with the token of an agent's pod on a node; of no pod for None."""
    api, opened = secured.api(), []

    def connect(node: str | None) -> Api:
        opened.append(agent_api(secured, node, namespace=NAMESPACE, account="berth-pinning"))
        return opened[-1]

    eventually(lambda: api.healthy(ACCOUNT), what="service account")
    yield connect
    for client in opened:
        client.close()
    api.close()


def apply(api: Api, node: str, body: dict[str, Any] | None = None, **metadata: Any) -> tuple[int, str]:
    """Apply a SocketStatus, or its status; the answer's status and text."""
    document = {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": node, **metadata}, **(body or {})}
    path = f"{STATUSES}/{node}" + ("/status" if body and "status" in body else "")
    code, _, answer = api.raw("PATCH", f"{path}?fieldManager={FIELD_MANAGER}&force=true", document, content_type=APPLY)
    return code, answer.decode()


def enforced(api: Api, node: str) -> None:
    """Wait until the policy, which the API server learns of by a watch, is in force."""
    eventually(lambda: apply(api, f"{node}-nobodys")[0] == 403, what="admission policy")


def test_an_agent_writes_the_status_of_its_node(secured: LocalCluster, agent: Agent, nodes: tuple[str, str]) -> None:
    own, _ = nodes
    api = agent(own)
    enforced(api, own)
    uid = api.request("GET", f"/api/v1/nodes/{own}")["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": own, "uid": uid}
    assert apply(api, own, ownerReferences=[owner])[0] in (200, 201)
    assert apply(api, own, {"status": {"socketCount": 2}})[0] == 200
    everything = secured.api()
    patch = {"spec": {"assignments": [ASSIGNMENT]}}
    everything.raw("PATCH", f"{STATUSES}/{own}", patch, content_type="application/merge-patch+json")
    assert apply(api, own, {"status": {"socketCount": 3}})[0] == 200
    found = everything.request("GET", f"{STATUSES}/{own}")
    assert (found["spec"], found["status"]) == ({"assignments": [ASSIGNMENT]}, {"socketCount": 3})
    everything.close()


def test_it_writes_no_other_nodes(agent: Agent, nodes: tuple[str, str]) -> None:
    own, other = nodes
    mine, others = agent(own), agent(other)
    enforced(mine, own)
    text = f"the agent of node {own} may not write the SocketStatus of {other}"
    code, answer = apply(mine, other)
    assert (code, text in answer) == (403, True)
    assert apply(others, other)[0] in (200, 201)
    code, answer = apply(mine, other, {"status": {"socketCount": 2}})
    assert (code, text in answer) == (403, True)


@pytest.mark.parametrize("there", [True, False], ids=["to an object that is there", "with a new object"])
def test_it_assigns_nothing(secured: LocalCluster, agent: Agent, nodes: tuple[str, str], there: bool) -> None:
    own, _ = nodes
    api = agent(own)
    enforced(api, own)
    if there:
        assert apply(api, own)[0] in (200, 201)
    code, answer = apply(api, own, {"spec": {"assignments": [ASSIGNMENT]}})
    assert (code, "not what is to run there" in answer) == (403, True)


@pytest.mark.parametrize(
    "metadata",
    [
        pytest.param(
            {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "x", "uid": "u"}]}, id="another node's"
        ),
        pytest.param({"finalizers": ["example.com/never"]}, id="never to be deleted"),
    ],
)
def test_a_socketstatus_is_its_nodes_alone(agent: Agent, nodes: tuple[str, str], metadata: dict[str, Any]) -> None:
    own, _ = nodes
    api = agent(own)
    enforced(api, own)
    code, answer = apply(api, own, **metadata)
    assert (code, "no owner but its node" in answer) == (403, True)


def test_what_others_have_set_keeps_no_status_from_being_written(
    secured: LocalCluster, agent: Agent, nodes: tuple[str, str]
) -> None:
    own, other = nodes
    api, everything = agent(own), secured.api()
    enforced(api, own)
    assert apply(api, own)[0] in (200, 201)
    uid = everything.request("GET", f"/api/v1/nodes/{other}")["metadata"]["uid"]
    set_by_others = {
        "finalizers": ["example.com/kept"],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": other, "uid": uid}],
    }
    merge = "application/merge-patch+json"
    everything.raw("PATCH", f"{STATUSES}/{own}", {"metadata": set_by_others}, content_type=merge)
    assert apply(api, own, {"status": {"socketCount": 3}})[0] == 200
    uid = everything.request("GET", f"/api/v1/nodes/{own}")["metadata"]["uid"]
    assert apply(api, own, ownerReferences=[{"apiVersion": "v1", "kind": "Node", "name": own, "uid": uid}])[0] == 200
    for taken in (
        {"finalizers": None},
        {"ownerReferences": None},
        {"finalizers": ["example.com/kept", "example.com/x"]},
    ):
        code, _, answer = api.raw("PATCH", f"{STATUSES}/{own}", {"metadata": taken}, content_type=merge)
        assert (code, b"and takes away none" in answer) == (403, True)
    everything.raw("PATCH", f"{STATUSES}/{own}", {"metadata": {"finalizers": None}}, content_type=merge)
    everything.close()


def test_a_token_without_a_node_writes_nothing(agent: Agent, nodes: tuple[str, str]) -> None:
    own, _ = nodes
    api = agent(None)
    enforced(api, own)
    code, answer = apply(api, own)
    assert (code, "the token names no node" in answer) == (403, True)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        pytest.param("DELETE", f"{STATUSES}/{{own}}", None, id="delete its SocketStatus"),
        pytest.param("GET", "/api/v1/nodes", None, id="list nodes"),
        pytest.param("PATCH", "/api/v1/nodes/{own}", {"metadata": {"labels": {"a": "b"}}}, id="label its node"),
        pytest.param("PATCH", "/api/v1/nodes/{own}/status", {"status": {}}, id="the status of its node"),
        pytest.param("PATCH", "/apis/berth.dev/v1alpha1/probereports/{own}", {}, id="its ProbeReport"),
        pytest.param("PATCH", "/api/v1/namespaces/default/pods/x", {}, id="change pods"),
        pytest.param("GET", f"/api/v1/namespaces/{NAMESPACE}/secrets", None, id="read secrets"),
        pytest.param("POST", f"{ACCOUNT}/token", {"spec": {}}, id="ask for tokens"),
    ],
)
def test_what_it_may_not_do(agent: Agent, nodes: tuple[str, str], method: str, path: str, body: Any) -> None:
    own, _ = nodes
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    status, _, answer = agent(own).raw(method, path.format(own=own), body, content_type=kind)
    assert (status, b"forbidden" in answer) == (403, True)


def test_it_follows_pods_and_socketstatuses(agent: Agent, nodes: tuple[str, str]) -> None:
    api = agent(nodes[0])
    assert "items" in api.request("GET", f"/api/v1/pods?fieldSelector=spec.nodeName={nodes[0]}")
    assert "items" in api.request("GET", f"{STATUSES}?fieldSelector=metadata.name={nodes[0]}")


def test_the_account_of_both_agents_is_held_to_its_node_as_well(
    secured: LocalCluster, agent: Agent, nodes: tuple[str, str]
) -> None:
    own, other = nodes
    enforced(agent(own), own)
    both = agent_api(secured, own, namespace=NAMESPACE, account="berth-node")
    code, answer = apply(both, other)
    assert (code, f"the agent of node {own} may not write the SocketStatus of {other}" in answer) == (403, True)
    assert apply(both, own)[0] in (200, 201)
    assert apply(both, own, {"status": {"socketCount": 2}})[0] == 200
    code, answer = apply(both, own, {"spec": {"assignments": [ASSIGNMENT]}})
    assert (code, "not what is to run there" in answer) == (403, True)
    both.close()
