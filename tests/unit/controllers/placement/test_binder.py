"""What is sent as a Binding, what answers and read-backs mean, and pods that cannot be read back.

Sending is tested on a real API server: tests/integration/test_placement_bind_faults.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from berth.kube import client as client_module
from berth.kube.client import ApiClient
from berth.kube.errors import ApiError
from berth.kube.objects import Pod
from controllers.placement import binder as binder_module
from controllers.placement.binder import Binder, BindOutcome, BindResult, binding, found
from controllers.placement.binder import refusal as settled_by
from tests.support.api_server import Answer, Request, api_server, refusal
from tests.support.placement import lone


def test_binding_is_valid_for_this_very_pod_only_and_carries_the_decision() -> None:
    body = msgspec.json.decode(msgspec.json.encode(binding(lone("p", namespace="ns"), "n1", decision='{"v":1}')))
    assert body == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {
            "name": "p",
            "namespace": "ns",
            "uid": "pod-ns-p",
            "annotations": {"berth.dev/decision": '{"v":1}'},
        },
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n1"},
    }


def test_without_a_decision_there_is_no_annotation() -> None:
    assert binding(lone("p"), "n1", decision="").metadata.annotations == {}


def test_what_calls_were_admitted_with_is_written_by_the_same_call() -> None:
    sent = binding(lone("p"), "n1", decision="", admitted='{"b":7}')
    assert sent.metadata.annotations == {"berth.dev/admitted-bandwidth": '{"b":7}'}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        pytest.param(404, BindOutcome.GONE, id="not-found"),
        pytest.param(409, None, id="conflict-must-be-looked-at"),
        pytest.param(408, None, id="timeout-may-have-worked"),
        pytest.param(429, None, id="throttled"),
        pytest.param(500, None, id="server-trouble-may-have-worked"),
        pytest.param(503, None, id="unavailable"),
        pytest.param(504, None, id="gateway-timeout"),
        pytest.param(400, BindOutcome.REFUSED, id="bad-request"),
        pytest.param(401, BindOutcome.REFUSED, id="unauthorized"),
        pytest.param(403, BindOutcome.REFUSED, id="forbidden"),
        pytest.param(422, BindOutcome.REFUSED, id="invalid"),
        pytest.param(501, BindOutcome.REFUSED, id="not-implemented"),
    ],
)
def test_what_an_error_settles(status: int, outcome: BindOutcome | None) -> None:
    result = settled_by(ApiError(status=status, reason="Reason", message="words"))
    assert (result.outcome if result is not None else None) is outcome
    if result is not None and outcome is BindOutcome.REFUSED:
        assert result.problem == f"{status} Reason: words"


def recreated() -> Pod:
    pod = lone("p", on="n1")
    pod.metadata.uid = "another"
    return pod


@pytest.mark.parametrize(
    ("current", "result"),
    [
        pytest.param(lone("p"), None, id="still-free"),
        pytest.param(lone("p", on="n1"), BindResult(BindOutcome.BOUND), id="our-binding-had-worked"),
        pytest.param(lone("p", on="n2"), BindResult(BindOutcome.ELSEWHERE), id="bound-by-somebody-else"),
        pytest.param(recreated(), BindResult(BindOutcome.GONE), id="namesake"),
    ],
)
def test_what_a_read_back_says(current: Pod, result: BindResult | None) -> None:
    assert found(lone("p"), "n1", current) == result


@pytest.fixture
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (client_module, binder_module):
        monkeypatch.setattr(module, "backoff", lambda *_, **__: 0.0)


def unreadable_pods(status: int) -> Callable[[Request], Answer]:
    """A server that loses bindings and does not show pods."""
    return lambda request: refusal(503 if request.method == "POST" else status, "Reason")


ODD_ANSWERS = [
    pytest.param({"login": "https://sso.example"}, id="JSON of something on the way"),
    pytest.param({"kind": "Status", "status": "Failure", "code": 500}, id="a failure"),
    pytest.param({"kind": "Pod", "metadata": {"name": "p"}}, id="another object"),
    pytest.param({}, id="nothing in it"),
    pytest.param(b'{"kind":"Status","status":"Success","details":{}', id="cut off after a bracket"),
]


@pytest.mark.parametrize("answer", ODD_ANSWERS)
@pytest.mark.parametrize(
    ("node", "outcome"),
    [pytest.param("n1", BindOutcome.BOUND, id="bound"), pytest.param("", BindOutcome.REFUSED, id="free")],
)
async def test_an_answer_that_does_not_say_success_is_looked_up(
    answer: object, node: str, outcome: BindOutcome, no_pause: None
) -> None:
    shown = {
        "metadata": {"name": "p", "namespace": "default", "uid": lone("p").metadata.uid},
        "spec": {"nodeName": node},
    }
    with api_server(lambda request: Answer(200, answer if request.method == "POST" else shown)) as server:
        async with ApiClient(server.connection()) as client:
            result = await Binder(client).bind(lone("p"), "n1", decision="{}")
    assert result.outcome is outcome
    assert server.count("POST") == (1 if node else binder_module.MAX_ATTEMPTS)


async def test_the_api_servers_answer_is_believed() -> None:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    with api_server(lambda _: Answer(201, status)) as server:
        async with ApiClient(server.connection()) as client:
            result = await Binder(client).bind(lone("p"), "n1", decision="{}")
    assert result == BindResult(BindOutcome.BOUND)
    assert server.count("GET") == 0


PAGE = b"default backend - 404"


@pytest.mark.parametrize("status", [302, 403, 404, 422], ids=str)
async def test_a_refusal_of_something_on_the_way_settles_nothing(status: int, no_pause: None) -> None:
    """It may come after the API server has bound the pod: nothing is forgotten, and no room given back."""
    shown = {"metadata": {"name": "p", "namespace": "default", "uid": lone("p").metadata.uid}}
    bound = {**shown, "spec": {"nodeName": "n1"}}
    with api_server(lambda request: Answer(status, PAGE) if request.method == "POST" else Answer(200, bound)) as server:
        async with ApiClient(server.connection()) as client:
            assert (await Binder(client).bind(lone("p"), "n1", decision="{}")).outcome is BindOutcome.BOUND
    with api_server(lambda request: Answer(status, PAGE) if request.method == "POST" else Answer(200, shown)) as server:
        async with ApiClient(server.connection()) as client:
            result = await Binder(client).bind(lone("p"), "n1", decision="{}")
    assert result == BindResult(BindOutcome.REFUSED, f"{status} HTTP{status}: {PAGE.decode()}")
    assert server.count("POST") == binder_module.MAX_ATTEMPTS


async def test_a_page_that_says_not_found_is_no_word_about_the_pod(no_pause: None) -> None:
    with api_server(lambda _: Answer(404, PAGE)) as server:
        async with ApiClient(server.connection()) as client:
            result = await Binder(client).bind(lone("p"), "n1", decision="{}")
    assert (result.outcome, result.problem) == (BindOutcome.UNKNOWN, f"404 HTTP404: {PAGE.decode()}")


@pytest.mark.parametrize("status", [403, 500])
async def test_a_pod_that_cannot_be_read_holds_up_no_worker(status: int, no_pause: None) -> None:
    with api_server(unreadable_pods(status)) as server:
        async with ApiClient(server.connection()) as client:
            result = await Binder(client).bind(lone("p"), "n1", decision="{}")
    assert (result.outcome, result.final) == (BindOutcome.UNKNOWN, status == 403)


@pytest.mark.parametrize(
    ("shown", "outcome"),
    [
        pytest.param(lone("p", on="n1"), BindOutcome.BOUND, id="bound"),
        pytest.param(lone("p", on="n2"), BindOutcome.ELSEWHERE, id="elsewhere"),
        pytest.param(None, BindOutcome.GONE, id="deleted"),
        pytest.param(recreated(), BindOutcome.GONE, id="namesake"),
    ],
)
async def test_the_watch_tells_what_the_server_does_not(
    shown: Pod | None, outcome: BindOutcome, no_pause: None
) -> None:
    views = iter([*[lone("p")] * 4, shown])  # looked at before a turn to ask, and once it has come
    with api_server(unreadable_pods(500)) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            binder = Binder(client)
            result = await binder.find_out(lone("p"), "n1", lambda: next(views))
    assert result.outcome is outcome
    assert server.count("GET") == 2


async def test_a_server_that_refuses_to_show_the_pod_is_believed_in_the_end(
    no_pause: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binder_module, "TRUST_WATCH_AFTER", 0.0)
    with api_server(unreadable_pods(403)) as server:
        async with ApiClient(server.connection()) as client:
            result = await Binder(client).find_out(lone("p"), "n1", lambda: lone("p"))
    assert result == BindResult(BindOutcome.REFUSED, "the pod cannot be read: 403 Reason: words")


async def test_while_the_server_is_in_trouble_nothing_is_given_up(
    no_pause: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watch may be in trouble as well, so a pod that it shows free may be bound."""
    monkeypatch.setattr(binder_module, "TRUST_WATCH_AFTER", 0.0)
    with api_server(unreadable_pods(500)) as server:
        async with ApiClient(server.connection(), retries=0) as client:
            binder = Binder(client)
            task = asyncio.create_task(binder.find_out(lone("p"), "n1", lambda: lone("p")))
            assert await asyncio.to_thread(server.wait, lambda: server.count("GET") >= 20)
            assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def test_the_socket_is_written_by_the_same_call() -> None:
    sent = binding(lone("p"), "n1", decision="", socket="0")
    assert sent.metadata.annotations == {"berth.dev/socket": "0"}
