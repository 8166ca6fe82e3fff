"""Which LatencyPolicy counts for a workload, whatever comes and goes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import CustomObject
from berth.kube.owners import owner_key
from berth.scheduling.cache.user_latency import UserLatency, UserLatencyTable

WEB, API = (owner_key("shop", "Deployment", name) for name in ("web", "api"))
TIME = "2026-01-31T12:00:00Z"


def policy(name: str, target: str = "web", status: dict[str, Any] | None = None, **spec: Any) -> CustomObject:
    metadata = {"name": name, "namespace": "shop", "uid": name}
    wanted = {"targetRef": {"name": target}, "objective": "Minimum", **spec}
    return CustomObject.of({"metadata": metadata, "spec": wanted, "status": status or {}})


def near(node: str) -> dict[str, Any]:
    return {"nodes": [{"node": node, "p50Microseconds": 5000, "time": TIME}]}


def move(target: str, outcome: str) -> dict[str, Any]:
    way = {"pod": "p", "sourceNode": "n", "reason": "Nearer", "startTime": TIME}
    return way | {"targetNode": target, "outcome": outcome}


@pytest.mark.parametrize(
    ("status", "known"),
    [
        pytest.param({}, UserLatency({}, frozenset()), id="nothing"),
        pytest.param(near("a"), UserLatency({"a": 50.0}, frozenset()), id="a-round-trip-of-5-ms-costs-50"),
        pytest.param({"nodes": [{"node": "a", "time": TIME}]}, UserLatency({}, frozenset()), id="not-measured"),
        pytest.param({"plan": ["a", "b"]}, UserLatency({}, frozenset(), frozenset("ab")), id="planned"),
        pytest.param({"moves": [move("a", "Creating")]}, UserLatency({}, frozenset("a")), id="awaited"),
        pytest.param({"moves": [move("a", "Evicting")]}, UserLatency({}, frozenset("a")), id="has-come"),
        pytest.param({"moves": [move("a", "Moved")]}, UserLatency({}, frozenset()), id="has-ended"),
        pytest.param(
            {"moves": [move("a", "Creating")], "plan": ["b"]},
            UserLatency({}, frozenset("a"), frozenset("b")),
            id="both",
        ),
    ],
)
def test_what_a_status_says(status: dict[str, Any], known: UserLatency) -> None:
    table = UserLatencyTable()
    assert table.update(policy("one", status=status)) is None
    assert table.of(WEB) == known
    assert table.of(API) is None


def test_of_two_the_first_by_name_counts_and_the_other_once_it_is_gone() -> None:
    table = UserLatencyTable()
    table.update(policy("b", status=near("b")))
    table.update(policy("a", status=near("a")))
    assert (table.first(WEB), len(table)) == ("shop/a", 2)
    table.forget("shop/a")
    assert table.of(WEB) == UserLatency({"b": 50.0}, frozenset())
    table.forget("shop/b")
    assert (table.of(WEB), table.first(WEB), len(table)) == (None, None, 0)


def test_one_that_cannot_be_read_says_so_and_no_longer_counts() -> None:
    table = UserLatencyTable()
    table.update(policy("one", status=near("a")))
    problem = table.update(policy("one", hardMaxLatency="soon"))
    assert problem is not None
    assert "hardMaxLatency" in problem
    assert table.of(WEB) is None


@given(
    steps=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["web", "api", None]), st.sampled_from("xyz"))),
)
def test_the_table_is_that_of_the_policies_that_there_are(steps: list[tuple[str, str | None, str]]) -> None:
    """None: the policy goes; others come, change, or turn to another workload."""
    table, there = UserLatencyTable(), dict[str, tuple[str, str]]()
    for name, target, node in steps:
        if target is None:
            table.forget(f"shop/{name}")
            there.pop(name, None)
        else:
            table.update(policy(name, target, near(node)))
            there[name] = target, node
        assert len(table) == len(there)
        for workload in ("web", "api"):
            first = min((each for each, (of, _) in there.items() if of == workload), default=None)
            key = owner_key("shop", "Deployment", workload)
            assert table.first(key) == (first and f"shop/{first}")
            assert table.of(key) == (first and UserLatency({there[first][1]: 50.0}, frozenset()))
