"""One scheduling cycle: what is planned, what waits and until when, what is said. The listener only records."""

from __future__ import annotations

import pytest

from berth.kube.objects import Pod
from berth.network.groups import GroupKey
from berth.scheduling import cycle, planner
from berth.scheduling.cycle import TELL_GROUP_AGAIN, TELL_PODS_AGAIN
from berth.scheduling.decision import Failure
from berth.scheduling.queue_entry import EntryKey, pod_order
from tests.support import kinds
from tests.support.placement import chain, group_object, lone, member, zoned
from tests.support.stage import Stage, shop

SHOP = GroupKey("default", "shop")


@pytest.mark.parametrize(
    ("pod", "group", "key"),
    [
        pytest.param(lone("p"), None, EntryKey("pod", "default", "p", uid="pod-default-p"), id="alone"),
        pytest.param(member("p", "a"), SHOP, EntryKey("group", "default", "shop", "berth-scheduler"), id="group"),
    ],
)
def test_entry_of_a_pod(pod: Pod, group: GroupKey | None, key: EntryKey) -> None:
    assert EntryKey.of(pod, group) == key
    assert key.group == group


def test_a_plan_that_was_cut_short_is_told_and_counted() -> None:
    stage = Stage(planning=1e-9)
    stage.clock.tick = 1e-6
    stage.group(shop())
    stage.add(*(member(f"{one}{n}", one, cpu="100m") for one in "ab" for n in range(25)))
    stage.schedule()
    assert "PlanningCutShort" in stage.reasons()
    assert "gang.planningSeconds" in next(note.text for note in stage.notes if note.reason == "PlanningCutShort")
    assert stage.shortened == ["group"]


class TestSinglePod:
    def test_placed_at_once(self) -> None:
        stage = Stage()
        stage.add(lone("p", cpu="1"))
        assert stage.schedule() == 1
        assert stage.placed() == {"p"}
        assert len(stage.queue) == 0
        assert stage.notes == []

    def test_without_room_it_is_told_and_sleeps(self) -> None:
        stage = Stage()
        stage.add(lone("p", cpu="9"))
        stage.schedule()
        assert stage.reasons() == ["FailedScheduling"]
        assert stage.notes[0].text == "0/1 nodes are available: 1 Insufficient cpu."
        assert stage.conditions == {"p": "0/1 nodes are available: 1 Insufficient cpu."}
        stage.clock.advance(30)
        assert stage.schedule() == 0
        stage.cache.update_node(zoned("big", cpu=16))
        stage.queue.move_all_to_active()
        stage.schedule()
        assert stage.placed() == {"p"}

    def test_a_success_forgets_failed_attempts(self) -> None:
        stage = Stage()
        stage.add(lone("p", cpu="9"))
        for _ in range(3):
            stage.schedule()
            stage.clock.advance(60)
        (entry,) = stage.queue.entries()
        assert entry.attempts == 3
        stage.cache.update_node(zoned("big", cpu=16))
        stage.schedule()
        assert entry.attempts == 0

    def test_an_unforeseen_error_is_told_without_its_words_and_tried_again_later(self) -> None:
        stage = Stage()
        stage.add(lone("p", cpu="1"))
        (entry,) = stage.queue.entries()
        stage.cycle.failed(entry)
        assert not entry.early, "not while nothing else waits, either"
        assert stage.reasons() == ["FailedScheduling"]
        assert stage.conditions == {"p": Failure(lone("p"), error=True).message}
        assert stage.schedule() == 0
        stage.clock.advance(60)
        stage.schedule()
        assert stage.placed() == {"p"}

    def test_pods_of_other_schedulers_are_left_alone(self) -> None:
        stage = Stage()
        stage.add(lone("p", spec={"schedulerName": "default-scheduler"}))
        stage.schedule()
        assert stage.bound == []
        assert stage.notes == []


class TestCompleteGroup:
    def test_placed_together_with_one_note_on_the_group(self) -> None:
        stage = Stage()
        stage.group(shop())
        stage.add(member("a1", "a", cpu="1"), member("b1", "b", cpu="1"))
        assert stage.schedule() == 1
        assert stage.placed() == {"a1", "b1"}
        (note,) = stage.notes
        assert note.reason == "Placed"
        assert stage.groups_told == ["shop"]
        assert note.text == "Placed 2 pods on 1 node; mean edge cost 0.00 over 1 edge, 0% of the calls leave their zone"

    def test_no_room_for_all_means_nobody_until_the_wait_is_over(self) -> None:
        stage = Stage(cpu=1)
        stage.group(shop())
        stage.add(member("a1", "a", cpu="1"), member("b1", "b", cpu="1"))
        stage.schedule()
        assert stage.bound == []
        assert set(stage.conditions) == {"a1", "b1"}
        assert stage.reasons().count("NotPlaced") == 1
        stage.clock.advance(29)
        assert stage.schedule() == 0
        stage.clock.advance(1)
        assert stage.schedule() == 1
        assert len(stage.bound) == 1
        assert len(stage.queue) == 1

    def test_keep_waiting_never_places_a_part(self) -> None:
        stage = Stage(cpu=1, after_wait="KeepWaiting")
        stage.group(shop())
        stage.add(member("a1", "a", cpu="1"), member("b1", "b", cpu="1"))
        for _ in range(5):
            stage.schedule()
            stage.clock.advance(60)
        assert stage.bound == []

    def test_unknown_workload_is_told_and_placed(self) -> None:
        stage = Stage()
        stage.group(shop())
        stage.add(member("a1", "a"), member("b1", "b"), member("x1", "stranger"))
        stage.schedule()
        assert stage.placed() == {"a1", "b1", "x1"}
        note = next(note for note in stage.notes if note.reason == "WorkloadUnknown")
        assert "'stranger' is not a workload of AppGroup shop" in note.text
        assert "use one of: a, b" in note.text

    def test_edges_to_older_pods_count_once(self) -> None:
        stage = Stage()
        stage.group(group_object("shop", *chain("a", "b", "c")))
        stage.cache.update_pod(member("a1", "a", on="n1"))
        stage.add(member("b1", "b"), member("c1", "c"))
        stage.schedule()
        assert [note.text for note in stage.notes] == [
            "Placed 2 pods on 1 node; mean edge cost 0.00 over 2 edges, 0% of the calls leave their zone"
        ]


class TestMissingMembers:
    def test_the_group_waits_and_says_for_whom(self) -> None:
        stage = Stage()
        stage.group(shop())
        stage.add(member("a1", "a"))
        assert stage.schedule() == 1
        assert stage.bound == []
        assert stage.reasons() == ["WaitingForMembers", "WaitingForMembers"]
        assert stage.groups_told == ["shop"]
        assert stage.waiting_told == ["a1"]
        assert {note.text for note in stage.notes} == {
            "AppGroup shop has 1 of 2 pods; workloads without a pod: b; waiting up to 30 s"
        }

    def test_while_it_gathers_the_group_is_told_once_and_each_pod_when_it_comes(self) -> None:
        stage = Stage(wait=600)
        stage.group(shop(numMembers=200))
        for number in range(199):
            stage.add(member(f"a{number}", "a"))
            assert stage.schedule() == 1
            stage.clock.advance(0.1)
        assert stage.groups_told == ["shop"]
        assert stage.waiting_told == [f"a{number}" for number in range(199)]

    def test_pods_are_put_in_order_when_they_are_planned(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looked_at: list[str] = []

        def order(pod: Pod, index: int) -> tuple[int, int, str, str, str]:
            looked_at.append(pod.metadata.name)
            return pod_order(pod, index)

        for module in (cycle, planner):
            monkeypatch.setattr(module, "pod_order", order)
        stage = Stage()
        stage.group(shop())
        for number in range(50):
            stage.add(member(f"a{number}", "a", cpu="10m"))
            stage.schedule()
        assert looked_at == [], "with each that came, all were put in order"
        stage.add(member("b", "b", cpu="10m"))
        stage.schedule()
        assert len(stage.placed()) == len(set(looked_at)) == 51

    @pytest.mark.parametrize(
        ("after", "pods"),
        [(TELL_GROUP_AGAIN, ["a0", "a1", "a2"]), (TELL_PODS_AGAIN, ["a0", "a0", "a1", "a0", "a1", "a2"])],
        ids=["a while", "a long while"],
    )
    def test_what_still_waits_is_told_again(self, after: float, pods: list[str]) -> None:
        stage = Stage(wait=99999)
        stage.group(shop(numMembers=9))
        for number in range(3):
            stage.add(member(f"a{number}", "a"))
            stage.schedule()
            stage.clock.advance(after)
        assert stage.groups_told == ["shop"] * 3
        assert stage.waiting_told == pods

    def test_pods_that_come_and_go_leave_nothing_behind(self) -> None:
        stage = Stage(wait=600)
        stage.group(shop(numMembers=9))
        stage.add(member("stays", "a"))
        for number in range(20):
            pod = member(f"a{number}", "a")
            stage.add(pod)
            stage.schedule()
            stage.queue.delete(pod.metadata.uid)
        (entry,) = stage.queue.entries()
        assert entry.told.pods == entry.pods.keys()

    def test_a_group_that_waits_for_something_else_now_is_told_so(self) -> None:
        stage = Stage(wait=600)
        stage.add(member("a1", "a"))
        stage.schedule()
        stage.group(shop())
        stage.schedule()
        assert stage.reasons() == ["AppGroupMissing", "WaitingForMembers", "WaitingForMembers"]
        assert stage.waiting_told == ["a1", "a1"]

    def test_a_group_that_waits_again_after_a_plan_is_told_again(self) -> None:
        stage = Stage(wait=600)
        stage.group(shop())
        stage.add(member("a1", "a"))
        stage.schedule()
        lost = member("b1", "b", cpu="99")
        stage.add(lost)
        stage.schedule()
        assert stage.conditions.keys() == {"a1", "b1"}
        stage.cache.delete_pod(lost)
        stage.queue.delete(lost.metadata.uid)
        stage.group(shop(numMembers=3))
        stage.schedule()
        assert stage.waiting_told == ["a1", "a1"]

    def test_the_last_member_starts_it(self) -> None:
        stage = Stage()
        stage.group(shop())
        stage.add(member("a1", "a"))
        stage.schedule()
        stage.clock.advance(3)
        stage.add(member("b1", "b"))
        stage.schedule()
        assert stage.placed() == {"a1", "b1"}

    def test_after_the_wait_those_present_are_placed(self) -> None:
        stage = Stage()
        stage.group(shop())
        stage.add(member("a1", "a"))
        stage.schedule()
        assert stage.queue.next_due() == stage.clock.now + 30
        stage.clock.advance(30)
        stage.schedule()
        assert stage.placed() == {"a1"}

    def test_keep_waiting_waits_without_spinning_until_the_member_comes(self) -> None:
        stage = Stage(after_wait="KeepWaiting")
        stage.group(shop())
        stage.add(member("a1", "a"))
        stage.schedule()
        assert stage.notes[0].text.endswith("waiting until they appear")
        stage.clock.advance(31)
        assert stage.schedule() == 1
        assert stage.schedule() == 0
        assert stage.bound == []
        stage.clock.advance(1)
        stage.add(member("b1", "b"))
        stage.schedule()
        assert stage.placed() == {"a1", "b1"}

    def test_wait_of_zero_places_at_once(self) -> None:
        stage = Stage(wait=0)
        stage.group(shop())
        stage.add(member("a1", "a"))
        stage.schedule()
        assert stage.placed() == {"a1"}


class TestWithoutUsableGroup:
    def test_a_missing_group_is_waited_for(self) -> None:
        stage = Stage()
        stage.add(member("a1", "a"))
        stage.schedule()
        assert stage.reasons() == ["AppGroupMissing"]
        assert "does not exist in namespace default" in stage.notes[0].text
        stage.group(group_object("shop", kinds.workload("a")))
        stage.schedule()
        assert stage.placed() == {"a1"}
        assert stage.bound[0].group == ("default", "shop")

    def test_after_the_wait_its_pods_are_placed_alone_in_order(self) -> None:
        stage = Stage(cpu=1)
        stage.add(member("z", "a", cpu="1"), member("vip", "b", cpu="1", spec={"priority": 9}))
        stage.schedule()
        stage.clock.advance(30)
        stage.schedule()
        assert stage.placed() == {"vip"}
        assert stage.bound[0].group is None
        assert list(stage.conditions) == ["z"]
        assert stage.queue.next_due() is not None

    def test_a_broken_group_places_alone_at_once(self) -> None:
        stage = Stage()
        stage.group(group_object("shop", kinds.workload("a"), numMembers=0))
        stage.add(member("a1", "a"))
        stage.schedule()
        assert stage.placed() == {"a1"}
        assert stage.reasons() == ["AppGroupUnusable"]
        assert "spec.numMembers" in stage.notes[0].text

    def test_a_mended_group_counts(self) -> None:
        stage = Stage(cpu=1)
        stage.group(group_object("shop", kinds.workload("a"), numMembers=0))
        stage.add(member("a1", "a", cpu="2"))
        stage.schedule()
        stage.group(group_object("shop", kinds.workload("a")))
        stage.cache.update_node(zoned("n2", cpu=4))
        stage.schedule()
        assert stage.bound[0].group == ("default", "shop")


def test_an_absent_topology_of_the_configuration_is_told_and_the_group_is_placed() -> None:
    stage = Stage(network_topology={"namespace": "infra", "name": "net"})
    stage.group(group_object("shop", *chain("web", "db")))
    stage.add(member("web-1", "web"), member("db-1", "db"))
    stage.schedule()
    assert stage.placed() == {"web-1", "db-1"}
    [told] = [note for note in stage.notes if note.reason == "NetworkTopologyAbsent"]
    assert told.warning
    assert "NetworkTopology infra/net, which the configuration names, does not exist or cannot be read" in told.text
    assert stage.groups_told.count("shop") == 2, "absent, and placed"


def test_every_failure_backs_off_and_nothing_spins() -> None:
    stage = Stage(cpu=1)
    stage.group(shop())
    stage.add(member("a1", "a", cpu="5"), member("b1", "b", cpu="1"), lone("p", cpu="7"))
    tries = 0
    for _ in range(600):
        tries += stage.schedule()
        stage.clock.advance(1)
    assert stage.placed() == {"b1"}
    assert tries < 30
