"""Whom a token's review names. Left out: the review itself (tests/integration/test_latency_input.py)."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latency_exchange import AUDIENCE
from controllers.latency.callers import Caller, caller_of

EXTRA = {
    "authentication.kubernetes.io/pod-name": ["web-1"],
    "authentication.kubernetes.io/pod-uid": ["u1"],
    "authentication.kubernetes.io/node-name": ["n1"],
}


def status(**fields: Any) -> dict[str, Any]:
    user = {"username": "system:serviceaccount:shop:default", "extra": EXTRA} | fields.pop("user", {})
    return {"authenticated": True, "audiences": [AUDIENCE], "user": user} | fields


@pytest.mark.parametrize(
    ("found", "caller"),
    [
        pytest.param(status(), Caller("shop", "default", "web-1", "u1", "n1"), id="a pod"),
        pytest.param(
            status(user={"extra": {key: EXTRA[key] for key in list(EXTRA)[:2]}}),
            Caller("shop", "default", "web-1", "u1", ""),
            id="a pod, its node not told",
        ),
        pytest.param(status(authenticated=False), None, id="not valid"),
        pytest.param(status(audiences=["elsewhere"]), None, id="made for somebody else"),
        pytest.param(status(audiences=None), None, id="by an API server that knows no audiences"),
        pytest.param(status(user={"extra": {}}), None, id="bound to nothing"),
        pytest.param(status(user={"username": "alice"}), None, id="a person"),
        pytest.param({}, None, id="no answer"),
    ],
)
def test_callers(found: dict[str, Any], caller: Caller | None) -> None:
    assert caller_of(found) == caller
