"""Watch events about pods of a plan that takes several turns."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.network.groups import GroupKey
from berth.scheduling.gang import budget
from tests.support.desk import Desk
from tests.support.placement import lone, member


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)


def half_placed(desk: Desk) -> list[Pod]:
    """Pods without an AppGroup object, of which some have a node that nobody was told."""
    pods = [member(f"p{n}", "a", cpu="100m") for n in range(4)]
    desk.pods(*pods)
    (waits,) = desk.queue.entries()
    waits.first_seen -= 3600.0  # nobody waits for the AppGroup any more
    for _ in range(3):
        entry = desk.queue.pop()
        assert entry is not None
        desk.controller.cycle.schedule_one(entry)
    assumed = [pod for pod in pods if desk.cache.assumed(pod.metadata.uid)]
    assert 0 < len(assumed) < len(pods)
    return pods


@pytest.mark.parametrize("number", range(4))
def test_a_late_event_does_not_take_a_pod_out(desk: Desk, number: int) -> None:
    pods = half_placed(desk)
    desk.pods(member(f"p{number}", "a", cpu="100m"))
    placed = {item.decision.pod.metadata.name for item in desk.decide()}
    assert placed == {pod.metadata.name for pod in pods}
    assert len(desk.queue) == 0


@pytest.mark.parametrize("number", range(4))
def test_a_pod_that_leaves_the_group_is_placed_all_the_same(desk: Desk, number: int) -> None:
    half_placed(desk)
    desk.pods(lone(f"p{number}", cpu="100m"))
    placed = [item.decision.pod for item in desk.decide()]
    assert sorted(pod.metadata.name for pod in placed) == ["p0", "p1", "p2", "p3"]
    (moved,) = (pod for pod in placed if pod.metadata.name == f"p{number}")
    assert not moved.metadata.labels
    assert len(desk.queue) == 0


@pytest.mark.parametrize("number", range(4))
def test_a_pod_that_is_bound_by_another_scheduler_is_left_alone(desk: Desk, number: int) -> None:
    half_placed(desk)
    desk.pods(member(f"p{number}", "a", cpu="100m", on="n2"))
    placed = {item.decision.pod.metadata.name for item in desk.decide()}
    assert placed == {"p0", "p1", "p2", "p3"} - {f"p{number}"}
    assert desk.cache.state.pod_count == 4


@pytest.mark.parametrize("number", range(4))
def test_a_pod_that_is_deleted_is_forgotten(desk: Desk, number: int) -> None:
    half_placed(desk)
    desk.lose("pods", member(f"p{number}", "a", cpu="100m"))
    placed = {item.decision.pod.metadata.name for item in desk.decide()}
    assert placed == {"p0", "p1", "p2", "p3"} - {f"p{number}"}
    assert desk.cache.state.pod_count == 3


@pytest.mark.parametrize("number", range(4))
def test_a_pod_that_is_being_deleted_is_planned_no_more(desk: Desk, number: int) -> None:
    """A finalizer may keep it for long: no other pod of its AppGroup waits for room for it."""
    half_placed(desk)
    desk.pods(member(f"p{number}", "a", cpu="100m", deleting=True))
    assert f"p{number}" not in {pod.metadata.name for entry in desk.queue.entries() for pod in entry.pods.values()}
    placed = {item.decision.pod.metadata.name for item in desk.decide()}
    assert placed == {"p0", "p1", "p2", "p3"} - {f"p{number}"}
    assert desk.cache.state.pod_count == 3
    assert len(desk.cache.members.of(GroupKey("default", "shop"))) == 3
