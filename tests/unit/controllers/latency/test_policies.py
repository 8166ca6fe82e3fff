"""Policies that go, change and are replaced: what is known of one that is gone, until what it left is dealt with."""

from __future__ import annotations

from typing import Any

import pytest

from berth.kube.objects import CustomObject
from controllers.latency.policies import Policies
from tests.unit.controllers.latency.test_workloads import policy

KEY = "shop/web"


def of(uid: str, **spec: Any) -> CustomObject:
    made = policy(**spec)
    made.metadata.uid = uid
    return made


@pytest.mark.parametrize(
    ("steps", "last"),
    [
        pytest.param([of("1")], None, id="it is there"),
        pytest.param([of("1"), None], "1", id="it went"),
        pytest.param([of("1"), None, of("2")], "1", id="another came after it"),
        pytest.param([of("1"), of("2")], "1", id="another took its place unseen"),
        pytest.param([of("1"), of("2"), None, of("3")], "1", id="the first of several that nobody has looked at"),
        pytest.param([of("1"), of("1", hardMaxLatency="x"), of("1")], None, id="it could not be read for a while"),
        pytest.param([of("1"), of("1", hardMaxLatency="x")], "1", id="it cannot be read any more"),
    ],
)
def test_who_is_gone(steps: list[CustomObject | None], last: str | None) -> None:
    policies = Policies()
    for step in steps:
        policies.remove(KEY) if step is None else policies.update(step)
    found = policies.last(KEY)
    assert (found.metadata.uid if found is not None else None) == last
    policies.forget(KEY)
    assert policies.last(KEY) is None
