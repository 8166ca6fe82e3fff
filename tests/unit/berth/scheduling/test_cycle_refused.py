"""Pods of AppGroups whose binding was refused: they have waited as long as before, and hold nobody up."""

from __future__ import annotations

from berth.kube.objects import Pod
from berth.scheduling.queue_entry import EntryKey
from tests.support.placement import member
from tests.support.stage import Stage, shop

BACKOFF = 1.0


class Refusing(Stage):
    """A stage that takes decisions back as the binding cycle does."""

    def refuse(self, *pods: Pod) -> None:
        for pod in pods:
            self.cache.forget(pod)
            assert self.cache.update_pod(pod)
            self.queue.requeue(pod, EntryKey.of(pod, self.cache.members.group_of(pod.metadata.uid)))

    def after(self, seconds: float) -> list[str]:
        """Pods that get a node within so many seconds."""
        self.bound.clear()
        end = self.clock.now + seconds
        self.schedule()
        while (due := self.queue.next_due()) is not None and due <= end:
            self.clock.now = max(due, self.clock.now)
            self.schedule()
        self.clock.now = end
        return sorted(self.placed())


def test_an_incomplete_group_is_not_waited_for_again() -> None:
    stage, pod = Refusing(), member("a1", "a")
    stage.group(shop())
    stage.add(pod)
    assert stage.after(29) == []
    assert stage.after(1) == ["a1"]
    for times in range(3):
        stage.refuse(pod)
        assert stage.after(BACKOFF * 2**times) == ["a1"]


def test_a_group_that_is_missing_is_not_waited_for_again() -> None:
    stage, pod = Refusing(), member("a1", "a")
    stage.add(pod)
    assert stage.after(30) == ["a1"]
    stage.refuse(pod)
    assert stage.after(BACKOFF) == ["a1"]


def test_the_wait_goes_on_where_it_was() -> None:
    """Two of three find room 20 s after they came, and none once they are refused: 10 s later what fits is placed."""
    stage, pods = Refusing(cpu=4), [member(f"{name}1", name, cpu="2") for name in "ab"]
    stage.group(shop())
    stage.add(pods[0])
    assert stage.after(20) == []
    stage.add(pods[1])
    assert stage.after(1) == ["a1", "b1"]
    stage.cache.update_pod(member("taken", "c", group="other", cpu="2", on="n1"))
    stage.refuse(*pods)
    assert stage.after(8) == []
    assert stage.after(2) == ["a1"]


def test_a_later_batch_is_all_or_nothing_whoever_was_refused_before() -> None:
    stage, early = Refusing(cpu=4), member("a1", "a", cpu="1")
    stage.group(shop())
    stage.add(early)
    assert stage.after(30) == ["a1"]
    stage.refuse(early)
    stage.add(member("a2", "a", cpu="2"), member("b2", "b", cpu="100"))
    assert stage.after(20) == ["a1"]
    assert stage.after(20) == ["a2"]


def test_a_refused_pod_of_an_earlier_batch_does_not_shorten_the_wait_of_a_later_one() -> None:
    stage, early = Refusing(cpu=4), member("a1", "a", cpu="1")
    stage.group(shop())
    stage.add(early)
    assert stage.after(30) == ["a1"]
    stage.add(member("a2", "a", cpu="2"), member("b2", "b", cpu="100"))
    assert stage.after(10) == []
    stage.refuse(early)
    assert stage.after(19) == ["a1"]
    assert stage.after(2) == ["a2"]
