"""Policies that go, change and are replaced: what is known of one that is gone, until what it left is dealt with."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.latencypolicy import API_VERSION, KIND, Surge
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


@pytest.mark.parametrize("successor", [None, "2"], ids=["deleted", "replaced by another"])
def test_the_answer_to_a_write_that_comes_after_the_end_brings_nothing_back(successor: str | None) -> None:
    """It raised the number of replicas, and that would stay so."""
    policies = Policies()
    policies.update(of("1"))
    policies.remove(KEY)
    if successor is not None:
        policies.update(of(successor))
    document = of("1").document(api_version=API_VERSION, kind=KIND)
    document["metadata"]["resourceVersion"] = "9"
    surge = {"replicas": 1, "previous": 1, "wanted": 2}
    policies.written(document | {"status": {"surge": surge}})
    found = policies.get(KEY)
    assert (found.metadata.uid if found is not None else None) == successor
    last = policies.last(KEY)
    assert last is not None
    assert last.status.surge == Surge(replicas=1, previous=1, wanted=2)
