"""Who is sent to another node's router, and who is served here."""

from __future__ import annotations

import pytest

from agents.router.steering import AGAIN_SECONDS, Steering
from berth.api.latency_exchange import Identity, IdentitySource, Instructions

TO_B = Instructions(steer={"u": "b"})
NEAR = {"a": "192.0.2.1", "b": "192.0.2.2"}


def location(
    instructions: Instructions = TO_B,
    *,
    url: str = "http://{address}:8000",
    node: str = "a",
    routers: dict[str, str] = NEAR,
    method: str = "GET",
    target: str = "/x?y=%20z",
) -> str | None:
    steering = Steering(url, node, lambda: 0.0)
    steering.routers = routers
    return steering.location("u", method, target, instructions)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(location(), "http://192.0.2.2:8000/x?y=%20z", id="by address"),
        pytest.param(location(url="https://{node}.edge.example/"), "https://b.edge.example/x?y=%20z", id="by name"),
        pytest.param(location(routers={"b": "2001:db8::2"}), "http://[2001:db8::2]:8000/x?y=%20z", id="IPv6"),
        pytest.param(location(method="HEAD"), "http://192.0.2.2:8000/x?y=%20z", id="HEAD"),
        pytest.param(location(target="//evil.example/"), "http://192.0.2.2:8000//evil.example/", id="no other host"),
        pytest.param(location(node="b"), None, id="it is here already"),
        pytest.param(location(url=""), None, id="no URL is known"),
        pytest.param(location(routers={}), None, id="no router is there"),
        pytest.param(location(Instructions()), None, id="nobody has said so"),
        pytest.param(location(Instructions(steer={"v": "b"})), None, id="another user"),
        *(pytest.param(location(method=method), None, id=method) for method in ("POST", "PUT", "DELETE", "OPTIONS")),
        *(
            pytest.param(
                location(Instructions(identity=Identity(source, "n"), steer={"u": "b"})),
                "http://192.0.2.2:8000/x?y=%20z" if source is IdentitySource.QUERY else None,
                id=f"identity by {source}",
            )
            for source in (IdentitySource.HEADER, IdentitySource.COOKIE, IdentitySource.QUERY)
        ),
    ],
)
def test_location(found: str | None, expected: str | None) -> None:
    assert found == expected


def test_who_comes_back_is_served_for_a_while() -> None:
    now = 0.0
    steering = Steering("http://{address}", "a", lambda: now)
    steering.routers = NEAR
    assert steering.location("u", "GET", "/", TO_B) is not None
    assert steering.location("u", "GET", "/", TO_B) is None
    now += AGAIN_SECONDS + 1
    assert steering.location("u", "GET", "/", TO_B) is not None
