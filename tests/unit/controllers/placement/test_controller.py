"""The placement controller's parts, put together but not run."""

from __future__ import annotations

import weakref
from pathlib import Path

import pytest

from berth.scheduling.configuration import ConfigurationError, PlacementConfiguration
from berth.scheduling.gang import batches, budget
from controllers.placement.controller import load_configuration
from tests.support.desk import Desk
from tests.support.kube import running, until
from tests.support.placement import chain, group_object, member


def test_every_kind_that_placement_reads_is_watched(desk: Desk) -> None:
    assert set(desk.controller.watches) == {
        "nodes", "namespaces", "pods", "services", "appgroups", "networktopologies",
        "persistentvolumes", "persistentvolumeclaims",
        "storageclasses", "csinodes", "csidrivers", "csistoragecapacities", "volumeattachments",
    }  # fmt: skip


async def test_a_plan_under_way_goes_with_the_last_of_its_pods(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether anything else waits or not: until then the plan keeps memory, and room that it has assumed."""
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(batches, "BATCH", 2)
    controller = desk.controller
    pods = [member(f"{one}{number}", one, cpu="100m") for number in range(3) for one in "ab"]
    desk.see("appgroups", group_object("shop", *chain("a", "b")))
    desk.pods(*pods)
    for _ in range(4):
        entry = desk.queue.pop()
        assert entry is not None
        controller.cycle.schedule_one(entry)
    planning = weakref.ref(next(iter(controller.cycle._under_way.values())).planning)
    for watch in controller.watches.values():
        watch.synced.set()
    for pod in pods:
        desk.lose("pods", pod)
    async with running(controller._schedule()):
        await until(lambda: planning() is None, what="the plan is given up", seconds=5.0)
    assert desk.cache.state.pod_count == 0


class TestConfiguration:
    def test_default(self) -> None:
        assert load_configuration(None) == PlacementConfiguration()

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            pytest.param("profiles: [", "not valid YAML", id="no-yaml"),
            pytest.param("profilez: []", "profilez", id="unknown-field"),
        ],
    )
    def test_problems_name_the_file(self, tmp_path: Path, text: str, problem: str) -> None:
        path = tmp_path / "placement.yaml"
        path.write_text(text)
        with pytest.raises(ConfigurationError, match=problem) as raised:
            load_configuration(path)
        assert str(path) in str(raised.value)
