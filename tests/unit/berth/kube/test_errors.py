"""ApiError and its making from responses. How the client reacts to it is in the integration tests."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.errors import MAX_RETRY_AFTER, ApiError, error_from_event, error_from_response, readable

DEEP = b"[" * 9000 + b"]" * 9000


def not_found(plural: str, name: str) -> dict[str, Any]:
    """What the API server answers where an object is not."""
    details = {"name": name, "group": "g", "kind": plural}
    return {"kind": "Status", "status": "Failure", "reason": "NotFound", "details": details, "code": 404}


def error(status: int) -> ApiError:
    return ApiError(status=status, reason="R", message="m")


@pytest.mark.parametrize(
    ("body", "reason", "message"),
    [
        pytest.param(
            b'{"kind":"Status","message":"pods \\"a\\" not found","reason":"NotFound","code":404}',
            "NotFound",
            'pods "a" not found',
            id="status",
        ),
        pytest.param(b"<html>bad gateway</html>", "HTTP404", "<html>bad gateway</html>", id="html of a proxy"),
        pytest.param(b'{"message":null}', "HTTP404", '{"message":null}', id="null message"),
        pytest.param(b"[]", "HTTP404", "[]", id="json but no object"),
        pytest.param(b'{"message":"\xff"}', "HTTP404", '{"message":"�"}', id="not utf-8"),
        pytest.param(b"", "HTTP404", "the server sent no explanation", id="empty"),
        pytest.param(b'{"kind":"Status"}', "HTTP404", "the server sent no explanation", id="status without message"),
        pytest.param(b'{"message":"m","reason":"R","x":%s}' % DEEP, "R", "m", id="nested deeply"),
        pytest.param(b"x" * 9000, "HTTP404", "x" * 500, id="long page is cut"),
    ],
)
def test_message_and_reason_come_from_the_body(body: bytes, reason: str, message: str) -> None:
    made = error_from_response(404, body, None)
    assert (made.status, made.reason, made.message) == (404, reason, message)
    assert str(made) == f"404 {reason}: {message}"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param(None, None, id="absent"),
        pytest.param("", None, id="empty"),
        pytest.param("1", 1.0, id="seconds"),
        pytest.param("0", 0.0, id="zero"),
        pytest.param("2.5", 2.5, id="fraction"),
        pytest.param("-3", None, id="negative"),
        pytest.param("nan", None, id="nan would end every comparison"),
        pytest.param("inf", MAX_RETRY_AFTER, id="infinite"),
        pytest.param("86400", MAX_RETRY_AFTER, id="a day is capped"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", None, id="date"),
    ],
)
def test_retry_after_is_read_in_seconds(header: str | None, seconds: float | None) -> None:
    assert error_from_response(429, b"", header).retry_after == seconds


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_trouble_of_the_server_is_retryable(status: int) -> None:
    assert error(status).retryable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 409, 410, 413, 415, 422, 501])
def test_refusals_are_not_retryable(status: int) -> None:
    assert not error(status).retryable


@pytest.mark.parametrize(
    ("status", "property_name"),
    [(401, "unauthorized"), (404, "not_found"), (409, "conflict"), (410, "expired")],
)
def test_each_meaning_has_one_status(status: int, property_name: str) -> None:
    for other in (400, 401, 403, 404, 409, 410, 422, 500):
        assert getattr(error(other), property_name) is (other == status)


@pytest.mark.parametrize(
    ("status", "text", "expired", "wait"),
    [
        pytest.param({"code": 410, "reason": "Gone", "message": "old"}, "410 Gone: old", True, None, id="expired"),
        pytest.param({"code": 500, "message": "etcd", "metadata": {}}, "500 Error: etcd", False, None, id="trouble"),
        pytest.param(
            {"code": 429, "details": {"retryAfterSeconds": 7, "kind": "pods"}}, "429 Error: ", False, 7.0, id="overload"
        ),
        pytest.param(
            {"code": 429, "details": {"retryAfterSeconds": 86400}}, "429 Error: ", False, 60.0, id="asks for a day"
        ),
        pytest.param({}, "410 Error: ", True, None, id="empty: nothing is known but that it ended"),
    ],
)
def test_the_error_of_a_watch(status: dict[str, Any], text: str, expired: bool, wait: float | None) -> None:
    error = error_from_event(msgspec.json.encode(status))
    assert (str(error), error.expired, error.retry_after) == (text, expired, wait)


def test_an_event_that_is_nested_deeply_has_its_status() -> None:
    assert error_from_event(b'{"code":429,"details":{"causes":%s}}' % DEEP).status == 429


def test_an_answer_that_is_nested_too_deeply_to_be_read_is_a_gateways_fault() -> None:
    with pytest.raises(ApiError, match="502 UnreadableAnswer"), readable(DEEP):
        msgspec.json.decode(DEEP)


@pytest.mark.parametrize(
    ("body", "stated"),
    [
        pytest.param(b'{"kind":"Status","reason":"NotFound"}', True, id="status"),
        pytest.param(b'{"kind":"Status","message":"admission webhook denied the request"}', True, id="no reason"),
        pytest.param(b'{"message":"no route","reason":"NotFound"}', False, id="JSON of something else"),
        pytest.param(b"default backend - 404", False, id="page"),
        pytest.param(b"", False, id="nothing"),
    ],
)
def test_what_the_api_server_states_is_a_status(body: bytes, stated: bool) -> None:
    assert error_from_response(404, body, None).stated == stated


@pytest.mark.parametrize(
    ("status", "body", "gone"),
    [
        pytest.param(404, not_found("appgroups", "shop"), True, id="the object"),
        pytest.param(404, not_found("appgroups", "web"), False, id="another object"),
        pytest.param(404, not_found("namespaces", "shop"), False, id="another kind"),
        pytest.param(404, {**not_found("appgroups", "shop"), "reason": "Expired"}, False, id="another reason"),
        pytest.param(410, not_found("appgroups", "shop"), False, id="another status"),
        pytest.param(404, {**not_found("appgroups", "shop"), "kind": "Page"}, False, id="no Status"),
        pytest.param(404, {"kind": "Status", "reason": "NotFound"}, False, id="without details"),
        pytest.param(404, {"kind": "Status", "reason": "NotFound", "details": {}}, False, id="with empty details"),
        pytest.param(404, "404 page not found", False, id="a kind that is not served, or a load balancer"),
    ],
)
def test_an_object_is_gone_if_the_api_server_names_it(status: int, body: Any, gone: bool) -> None:
    made = error_from_response(status, msgspec.json.encode(body), None)
    assert made.says_gone("appgroups", "shop") == gone
