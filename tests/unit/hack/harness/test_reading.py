"""What is read in place of kubectl, of a scripted server; beside kubectl: tests/integration/test_local_cluster.py."""

from __future__ import annotations

from typing import Any

import pytest

from hack.harness.reading import Reader
from hack.localcluster.rest import Api, ApiError
from tests.support.api_server import Answer, ApiServer, Request, api_server, refusal


def kind(plural: str, name: str, *short: str, namespaced: bool = True) -> dict[str, Any]:
    return {
        "name": plural,
        "singularName": name.lower(),
        "kind": name,
        "namespaced": namespaced,
        "shortNames": list(short),
    }


POD = {"metadata": {"name": "p", "managedFields": [{"manager": "x"}]}, "spec": {"a": 1}}
SHOWN = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"a": 1}}
ANSWERS: dict[str, Any] = {
    "/apis": {
        "groups": [
            {"preferredVersion": {"groupVersion": "events.k8s.io/v1"}},
            {"preferredVersion": {"groupVersion": "gone.example/v1"}},
        ]
    },
    "/api/v1": {
        "resources": [
            kind("pods", "Pod", "po"),
            kind("pods/status", "Pod"),
            kind("nodes", "Node", "no", namespaced=False),
            kind("events", "Event", "ev"),
        ]
    },
    "/apis/events.k8s.io/v1": {"resources": [kind("events", "Event", "ev")]},
    "/api/v1/namespaces/ns/pods/p": POD,
    "/api/v1/namespaces/ns/pods": {"items": [POD]},
    "/api/v1/namespaces/ns/pods?labelSelector=app%3Dweb": {"items": []},
    "/api/v1/namespaces/ns/events?fieldSelector=a.b%3Dc": {"items": []},
    "/apis/events.k8s.io/v1/namespaces/ns/events": {"items": [{"metadata": {"name": "e"}}]},
    "/api/v1/nodes/n": {"metadata": {"name": "n"}},
}
EMPTY = {"apiVersion": "v1", "items": [], "kind": "List", "metadata": {"resourceVersion": ""}}


def answer(request: Request) -> Answer:
    found = ANSWERS.get(request.path)
    return refusal(404, "NotFound", "no such thing") if found is None else Answer(200, found)


def reader(server: ApiServer) -> Reader:
    return Reader(Api(server.url))


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        pytest.param(["pod", "p"], SHOWN, id="an object"),
        pytest.param(["po", "p"], SHOWN, id="by the kind's short name"),
        pytest.param(["pod", "p", "--show-managed-fields"], SHOWN | POD, id="with who wrote which field"),
        pytest.param(["pods"], EMPTY | {"items": [SHOWN]}, id="a list"),
        pytest.param(["pods", "-l=app=web"], EMPTY, id="by label"),
        pytest.param(["events", "--field-selector=a.b=c"], EMPTY, id="by field; of two groups the first"),
        pytest.param(
            ["events.events.k8s.io"],
            EMPTY | {"items": [{"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"}}]},
            id="of a group that is named",
        ),
        pytest.param(
            ["node", "n"], {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}, id="of no namespace"
        ),
        pytest.param(["pods,nodes"], None, id="several kinds"),
        pytest.param(["pods/p"], None, id="kind and name in one"),
        pytest.param(["pods", "-l", "app=web"], None, id="an option in two words"),
        pytest.param(["pods", "--watch"], None, id="an option that is not known"),
        pytest.param(["pods", "p", "q"], None, id="several objects"),
        pytest.param(["nonsense"], None, id="no kind"),
    ],
)
def test_what_kubectl_would_print_or_nothing(args: list[str], shown: Any) -> None:
    with api_server(answer) as server:
        assert reader(server).get("ns", args) == shown


def test_what_is_not_there_is_an_error() -> None:
    with api_server(answer) as server, pytest.raises(ApiError, match="no such thing"):
        reader(server).get("ns", ["pod", "q"])


def test_kinds_are_looked_up_once_and_again_for_one_that_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    with api_server(answer) as server:
        reading = reader(server)
        for _ in range(2):
            reading.get("ns", ["pods"])
        assert [request.path for request in server.requests].count("/api/v1") == 1
        late = {"resources": [*ANSWERS["/api/v1"]["resources"], kind("configmaps", "ConfigMap", "cm")]}
        monkeypatch.setitem(ANSWERS, "/api/v1", late)
        monkeypatch.setitem(ANSWERS, "/api/v1/namespaces/ns/configmaps", {"items": []})
        assert reading.get("ns", ["cm"]) == EMPTY


class EndedByTheServer(Api):
    """A client whose connections end whenever the server was started again."""

    ends = 0

    def raw(self, method: str, path: str, *args: Any, **arguments: Any) -> tuple[int, dict[str, str], bytes]:
        if self.ends:
            self.ends -= 1
            raise ConnectionResetError
        return super().raw(method, path, *args, **arguments)


@pytest.mark.parametrize("ends", [1, 2])
def test_a_server_that_was_started_again_is_read_over_another_connection(ends: int) -> None:
    with api_server(answer) as server:
        client = EndedByTheServer(server.url)
        reading = Reader(client)
        reading.get("ns", ["pods"])
        client.ends = ends
        if ends == 1:
            assert reading.get("ns", ["pods"]) == EMPTY | {"items": [SHOWN]}
        else:
            with pytest.raises(ConnectionResetError):
                reading.get("ns", ["pods"])
