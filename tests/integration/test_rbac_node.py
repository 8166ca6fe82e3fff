"""deploy/rbac/node.yaml: an agent writes its node's report and bandwidth alone, by the token of its pod."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agents.node.probing.report_writer import FIELD_MANAGER
from berth.api.labels import RESOURCE_BANDWIDTH
from berth.api.probereport import API_VERSION, KIND
from hack.harness.cluster import REPOSITORY, eventually
from hack.localcluster import LocalCluster
from hack.localcluster.rest import Api
from tests.support.agent_tokens import agent_api, agent_token

NAMESPACE = "berth-system"
ACCOUNT = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/berth-node"
REPORTS = "/apis/berth.dev/v1alpha1/probereports"
APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
STATUS = {"zone": "a", "peerCount": 0}

Agent = Callable[[str | None], Api]


@pytest.fixture(scope="module")
def secured(cluster: LocalCluster) -> LocalCluster:
    """The shared cluster with Berth's service accounts."""
    cluster.kubectl("apply", "--server-side", "-f", str(REPOSITORY / "deploy" / "rbac"))
    # The API server learns of rights by watches: until then all that an agent does is forbidden.
    states = {"verb": "patch", "resource": "nodes", "subresource": "status", "name": "any"}
    review = {"spec": {"user": f"system:serviceaccount:{NAMESPACE}:berth-node", "resourceAttributes": states}}
    path, api = "/apis/authorization.k8s.io/v1/subjectaccessreviews", cluster.api()
    eventually(lambda: api.request("POST", path, review)["status"]["allowed"], what="rights of agents")
    api.close()
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
        opened.append(agent_api(secured, node, namespace=NAMESPACE))
        return opened[-1]

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


def set_status(api: Api, report: str) -> tuple[int, str]:
    """Set the status of a report as agents do; the answer's status and text."""
    body = [{"op": "add", "path": "/status", "value": STATUS}]
    code, _, answer = api.raw("PATCH", f"{REPORTS}/{report}/status", body, content_type=JSON_PATCH)
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
    assert set_status(api, own)[0] == 200


def test_it_writes_no_other_nodes(secured: LocalCluster, agent: Agent, nodes: tuple[str, str]) -> None:
    own, other = nodes
    mine, others = agent(own), agent(other)
    enforced(secured, mine, own)
    text = f"the agent of node {own} may not write the report of {other}"
    assert denied(apply(mine, other), text)
    assert apply(others, other)[0] in (200, 201)
    assert denied(apply(mine, other, status=True), text)
    assert denied(set_status(mine, other), text)
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


REPORT = {"apiVersion": API_VERSION, "kind": KIND, "status": STATUS}
MERGE = "application/merge-patch+json"
NODE = {"apiVersion": "v1", "kind": "Node", "name": "{other}", "uid": "u"}


@pytest.mark.parametrize(
    ("method", "path", "content_type", "body"),
    [
        pytest.param("POST", "", None, {**REPORT, "metadata": {"generateName": "{other}"}}, id="a made-up name"),
        pytest.param("POST", "", None, {**REPORT, "metadata": {"generateName": "{own}"}}, id="one like its own"),
        pytest.param("POST", "?dryRun=All", None, {**REPORT, "metadata": {"name": "{other}"}}, id="dry run"),
        pytest.param("PUT", "/{other}", None, {**REPORT, "metadata": {"name": "{other}"}}, id="replace"),
        pytest.param("PUT", "/{other}/status", None, {**REPORT, "metadata": {"name": "{other}"}}, id="replace status"),
        pytest.param("PATCH", "/{other}", MERGE, {"metadata": {"labels": {"a": "b"}}}, id="merge"),
        pytest.param("PATCH", "/{other}/status", MERGE, {"status": {"peerCount": 7}}, id="merge status"),
        pytest.param(
            "PATCH", "/{other}/status?dryRun=All", MERGE, {"status": {"peerCount": 7}}, id="dry run of a status"
        ),
        pytest.param(
            "PATCH",
            "/{other}?fieldManager=kubelet&force=true",
            APPLY,
            {**REPORT, "metadata": {"name": "{other}"}},
            id="as another manager",
        ),
        pytest.param(
            "PATCH",
            "/{own}?fieldManager=x",
            APPLY,
            {**REPORT, "metadata": {"name": "{other}"}},
            id="its own path and another name",
        ),
        pytest.param("PATCH", "/{own}", MERGE, {"metadata": {"name": "{other}"}}, id="another name"),
        pytest.param(
            "PATCH",
            "/{own}",
            JSON_PATCH,
            [{"op": "replace", "path": "/metadata/name", "value": "{other}"}],
            id="another name by a JSON patch",
        ),
        pytest.param("PATCH", "/{own}", MERGE, {"metadata": {"ownerReferences": [NODE]}}, id="another owner"),
        pytest.param("PATCH", "/{own}", MERGE, {"metadata": {"finalizers": ["example.com/never"]}}, id="a finalizer"),
        pytest.param("DELETE", "", None, None, id="delete all"),
        pytest.param("DELETE", "?labelSelector=a!%3Db", None, None, id="delete those selected"),
        pytest.param("DELETE", "/{other}", None, None, id="delete one"),
    ],
)
def test_no_way_leads_to_another_nodes_report(
    secured: LocalCluster,
    agent: Agent,
    nodes: tuple[str, str],
    method: str,
    path: str,
    content_type: str | None,
    body: Any,
) -> None:
    own, other = nodes
    everything, mine = secured.api(), agent(own)
    enforced(secured, mine, own)
    for name in nodes:
        assert apply(everything, name)[0] in (200, 201)
        assert apply(everything, name, status=True)[0] == 200

    def seen() -> dict[str, Any]:
        items = everything.request("GET", REPORTS)["items"]
        return {name: item for item in items if (name := item["metadata"]["name"]).startswith(other)}

    def filled(text: str) -> str:
        return text.replace("{own}", own).replace("{other}", other)

    before = seen()
    sent = json.loads(filled(json.dumps(body)))
    kind = content_type or "application/json"
    status, _, answer = mine.raw(method, REPORTS + filled(path), sent, content_type=kind)
    assert status in (400, 403, 422), answer
    assert seen() == before
    everything.close()


@pytest.mark.parametrize(
    "path", ["/{own}", "/{own}/status"], ids=["beside a status that is its own", "through the status"]
)
def test_metadata_of_its_report_come_by_no_other_way(
    secured: LocalCluster, agent: Agent, nodes: tuple[str, str], path: str
) -> None:
    """A status of its own to write is no way to hang the report on another node, or to keep it for ever."""
    own, other = nodes
    api = agent(own)
    enforced(secured, api, own)
    assert apply(api, own)[0] in (200, 201)
    metadata = {"ownerReferences": [{**NODE, "name": other}], "finalizers": ["example.com/never"]}
    api.raw("PATCH", REPORTS + path.format(own=own), {"metadata": metadata, "status": STATUS}, content_type=MERGE)
    found = secured.api().request("GET", f"{REPORTS}/{own}")["metadata"]
    assert metadata.keys().isdisjoint(found)


def test_what_others_have_set_of_its_report_keeps_none_from_being_written(
    secured: LocalCluster, agent: Agent, nodes: tuple[str, str]
) -> None:
    """As a tool that makes backups: the agent's node would look silent from then on."""
    own, _ = nodes
    api, everything = agent(own), secured.api()
    enforced(secured, api, own)
    assert apply(api, own)[0] in (200, 201)
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "backup", "uid": "u"}
    metadata = {"finalizers": ["example.com/backup"], "ownerReferences": [owner]}
    path = f"{REPORTS}/{own}"
    assert everything.raw("PATCH", path, {"metadata": metadata}, content_type=MERGE)[0] == 200
    try:
        assert set_status(api, own)[0] == 200
        uid = everything.request("GET", f"/api/v1/nodes/{own}")["metadata"]["uid"]
        mine = {"apiVersion": "v1", "kind": "Node", "name": own, "uid": uid}
        assert apply(api, own, ownerReferences=[mine])[0] == 200
        taken = {"metadata": {"finalizers": None, "ownerReferences": None}}
        assert api.raw("PATCH", path, taken, content_type=MERGE)[0] == 403
    finally:
        everything.raw("PATCH", path, {"metadata": {"finalizers": None}}, content_type=MERGE)


def test_a_token_of_which_somebody_has_changed_the_node_is_none(secured: LocalCluster, nodes: tuple[str, str]) -> None:
    own, other = nodes
    head, claims, signature = agent_token(secured, own, namespace=NAMESPACE).split(".")
    said = json.loads(base64.urlsafe_b64decode(claims + "=="))
    assert said["kubernetes.io"]["node"]["name"] == own
    said["kubernetes.io"]["node"]["name"] = other

    def encoded(part: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode()

    for forged in (f"{head}.{encoded(said)}.{signature}", f"{encoded({'alg': 'none'})}.{encoded(said)}."):
        api = secured.api(token=forged)
        assert apply(api, other)[0] == 401
        api.close()


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
        pytest.param("DELETE", "/api/v1/nodes/{own}", None, id="delete its node"),
        pytest.param("PUT", "/api/v1/nodes/{own}/status", {"metadata": {"name": "{own}"}}, id="replace its status"),
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


def state(api: Api, node: str, status: dict[str, Any] | None = None, **metadata: Any) -> tuple[int, str]:
    """Patch a node's status as the agent does; the answer's status and text."""
    body = {"metadata": metadata, "status": status or {}}
    kind = "application/strategic-merge-patch+json"
    code, _, answer = api.raw("PATCH", f"/api/v1/nodes/{node}/status", body, content_type=kind)
    return code, answer.decode()


def bandwidth(amount: str | None) -> dict[str, Any]:
    return {"capacity": {RESOURCE_BANDWIDTH: amount}, "allocatable": {RESOURCE_BANDWIDTH: amount}}


def furnish(api: Api, node: str) -> None:
    """Have a status as a kubelet writes it."""
    status = {
        "capacity": {"cpu": "4", "memory": "16Gi"},
        "allocatable": {"cpu": "3800m", "memory": "15Gi"},
        "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-01-31T12:00:00Z"}],
        "addresses": [{"type": "InternalIP", "address": "192.0.2.7"}],
        "images": [{"names": [f"registry.example/{number}/{'i' * 120}"], "sizeBytes": 9} for number in range(50)],
    }
    assert state(api, node, status)[0] == 200


def test_an_agent_states_its_nodes_bandwidth(secured: LocalCluster, agent: Agent, nodes: tuple[str, str]) -> None:
    own, _ = nodes
    api, everything = agent(own), secured.api()
    assert state(api, own, bandwidth("10000000000"))[0] == 200  # a node without any status
    furnish(everything, own)
    assert state(api, own, bandwidth("25000000000"))[0] == 200
    found = everything.request("GET", f"/api/v1/nodes/{own}")["status"]
    assert found["capacity"] == {"cpu": "4", "memory": "16Gi", RESOURCE_BANDWIDTH: "25G"}
    assert found["allocatable"] == {"cpu": "3800m", "memory": "15Gi", RESOURCE_BANDWIDTH: "25G"}


def test_it_states_no_other_nodes(agent: Agent, nodes: tuple[str, str]) -> None:
    own, other = nodes
    api = agent(own)
    eventually(lambda: state(api, other, bandwidth("1"))[0] == 403, what="admission policy")
    answer = state(api, other, bandwidth("10000000000"))
    assert denied(answer, f"the agent of node '{own}' may not write the status of {other}")


@pytest.mark.parametrize(
    ("status", "metadata", "text"),
    [
        pytest.param({"capacity": {"cpu": "64"}}, {}, "changes no other", id="more CPUs"),
        pytest.param({"allocatable": {"cpu": "64"}}, {}, "changes no other", id="more CPUs for pods"),
        pytest.param({"allocatable": {"memory": None}}, {}, "changes no other", id="no memory"),
        pytest.param({"capacity": {"example.com/gpu": "8"}}, {}, "changes no other", id="another resource"),
        pytest.param({"capacity": None}, {}, "changes no other", id="no capacity at all"),
        pytest.param({"conditions": [{"type": "Ready", "status": "False"}]}, {}, "nothing else", id="not ready"),
        pytest.param({"conditions": None}, {}, "nothing else", id="no conditions"),
        pytest.param({"addresses": [{"type": "InternalIP", "address": "192.0.2.8"}]}, {}, "nothing else", id="address"),
        pytest.param({"daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}, {}, "nothing else", id="kubelet's port"),
        pytest.param(bandwidth("1"), {"labels": {"zone": "b"}}, "no metadata", id="a label beside it"),
        pytest.param(bandwidth("1"), {"annotations": {"a": "b"}}, "no metadata", id="an annotation beside it"),
        pytest.param({}, {"finalizers": ["example.com/never"]}, "no metadata", id="never to be deleted"),
    ],
)
def test_it_states_nothing_else(
    secured: LocalCluster,
    agent: Agent,
    nodes: tuple[str, str],
    status: dict[str, Any],
    metadata: dict[str, Any],
    text: str,
) -> None:
    own, other = nodes
    api = agent(own)
    furnish(secured.api(), own)
    eventually(lambda: state(api, other, bandwidth("1"))[0] == 403, what="admission policy")
    answer = state(api, own, status, **metadata)
    assert denied(answer, text), answer
