"""Associations as a status has them, and statuses that cannot be read."""

from __future__ import annotations

import msgspec
import pytest

from agents.router.associations import associations
from berth.api.latencypolicy import Association, LatencyPolicyStatus
from berth.kube.custom_object import CustomObject
from berth.kube.meta import ObjectMeta


def policy(status: bytes) -> CustomObject:
    return CustomObject(ObjectMeta(name="p"), status=msgspec.Raw(status))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(b'{"associations":[{"user":"a","node":"n","lastSeenTime":"x"}],"nodes":[]}', {"a": "n"}, id="one"),
        pytest.param(b"{}", {}, id="none yet"),
        pytest.param(b"null", {}, id="no status"),
        pytest.param(b'{"associations":[{"user":"a"},{"node":"n"},{"user":"b","node":"m"}]}', {"b": "m"}, id="halves"),
        pytest.param(b'{"associations":7}', {}, id="no list"),
        pytest.param(b'{"associations":[{"user":7,"node":"n"}]}', {}, id="no text"),
    ],
)
def test_associations(status: bytes, expected: dict[str, str]) -> None:
    assert associations(policy(status)) == expected


def test_without_a_policy_there_are_none() -> None:
    assert associations(None) == {}


def test_a_status_as_the_controller_writes_it() -> None:
    status = LatencyPolicyStatus(associations=(Association(user="u", node="n", last_seen_time="2026-11-23T12:00:00Z"),))
    assert associations(policy(status.model_dump_json(by_alias=True, exclude_defaults=True).encode())) == {"u": "n"}
