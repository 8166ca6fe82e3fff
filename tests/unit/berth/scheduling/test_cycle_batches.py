"""Batches of one AppGroup, one after another: members that came and went, members that no node takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from berth.kube.objects import Pod
from berth.network.costs import NetworkCosts
from berth.network.groups import Group
from berth.scheduling.cache.cache import Cache
from berth.scheduling.planning import Planning
from tests.support.placement import member, zoned
from tests.support.stage import Stage, shop


class TestMembersThatCameAndWent:
    @pytest.mark.parametrize(
        "end",
        [
            pytest.param(lambda cache: cache.update_pod(member("b1", "b", on="n1", phase="Succeeded")), id="job-done"),
            pytest.param(lambda cache: cache.delete_pod(member("b1", "b", on="n1")), id="scaled-to-zero"),
        ],
    )
    @pytest.mark.parametrize("tried_before", [True, False], ids=["placed-here", "found-at-start"])
    def test_are_not_waited_for_again(self, end: Callable[[Cache], object], tried_before: bool) -> None:
        stage = Stage()
        stage.group(shop())
        pods = [member("a1", "a"), member("b1", "b")]
        if tried_before:
            stage.add(*pods)
            stage.schedule()
        for pod in pods:
            pod.spec.node_name = "n1"
            stage.cache.update_pod(pod)
        end(stage.cache)
        stage.add(member("a2", "a"))
        stage.schedule()
        assert "a2" in stage.placed()


class TestLeftOver:
    """A member that can never be placed does not switch all-or-nothing off for later batches."""

    @staticmethod
    def stage() -> Stage:
        """One pod was placed after the wait, one never fits."""
        stage = Stage(cpu=3)
        stage.group(shop())
        stage.add(member("a1", "a", cpu="1"), member("never", "b", cpu="100"))
        stage.schedule()
        stage.clock.advance(30)
        stage.schedule()
        assert stage.placed() == {"a1"}
        return stage

    def test_a_later_batch_is_all_or_nothing(self) -> None:
        stage = self.stage()
        stage.clock.advance(60)
        stage.add(member("a2", "a", cpu="1"), member("b2", "b", cpu="2"))
        stage.schedule()
        assert stage.placed() == {"a1"}
        stage.clock.advance(30)
        stage.schedule()
        assert len(stage.placed()) == 2

    def test_a_later_batch_that_fits_is_not_held_up(self) -> None:
        stage = self.stage()
        stage.clock.advance(60)
        stage.add(member("a2", "a", cpu="1"), member("b2", "b", cpu="1"))
        stage.schedule()
        assert stage.placed() == {"a1", "a2", "b2"}
        (entry,) = stage.queue.entries()
        assert [pod.metadata.name for pod in entry.pods.values()] == ["never"]

    def test_what_was_left_over_is_placed_when_it_fits(self) -> None:
        stage = self.stage()
        stage.clock.advance(60)
        stage.cache.update_node(zoned("big", cpu=200))
        stage.queue.move_all_to_active()
        stage.schedule()
        assert stage.placed() == {"a1", "never"}

    def test_a_fault_with_what_was_left_over_gives_the_batch_back(self, monkeypatch: pytest.MonkeyPatch) -> None:
        stage = self.stage()
        stage.clock.advance(60)
        planner = stage.cycle.planners["berth-scheduler"]
        place_group = planner.place_group

        def odd(group: Group, pods: Sequence[Pod], costs: NetworkCosts, *, partial: bool, **more: Any) -> Planning:
            if partial:
                raise RuntimeError("odd")
            return place_group(group, pods, costs, partial=partial, **more)

        stage.add(member("a2", "a", cpu="1"), member("b2", "b", cpu="1"))
        monkeypatch.setattr(planner, "place_group", odd)
        with pytest.raises(RuntimeError, match="odd"):
            stage.schedule()
        assert stage.placed() == {"a1"}
        assert stage.cache.state.pod_count == 1


def test_attempts_that_only_wait_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.clock.tick = 0.5
    stage.group(shop())
    stage.add(member("a1", "a"))
    entry = stage.queue.pop()
    assert entry is not None
    charged: list[float] = []
    monkeypatch.setattr(stage.queue, "charge", lambda _, seconds: charged.append(seconds))
    stage.cycle.schedule_one(entry)
    assert "WaitingForMembers" in stage.reasons()
    assert len(charged) == 1
    assert charged[0] > 0
