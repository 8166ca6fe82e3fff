"""What is sent as a Binding, and what answers and read-backs mean. Sending is tested on a real API server."""

from __future__ import annotations

import msgspec
import pytest

from berth.kube.errors import ApiError
from berth.kube.objects import Pod
from controllers.placement.binder import BindOutcome, BindResult, binding, found, refusal
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
    result = refusal(ApiError(status=status, reason="Reason", message="words"))
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
