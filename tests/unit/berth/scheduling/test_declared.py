"""First pods of an AppGroup come in waves: how long they wait for those that their ReplicaSets are to have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.kube.objects import OwnerReference, Pod
from berth.network.groups import GroupKey
from berth.scheduling.declared import (
    MISSING_AT_MOST_SECONDS,
    MISSING_SECONDS,
    UNANSWERED_SECONDS,
    DeclaredReplicas,
)
from berth.scheduling.queue_entry import EntryKey
from berth.scheduling.settling import GATHER_AT_MOST_SECONDS, GATHER_SECONDS
from tests.support.placement import chain, group_object, member, zoned
from tests.unit.berth.scheduling.test_cycle_settling import Stage

SHOP = EntryKey.of_group(GroupKey("default", "shop"), "berth-scheduler")
BEGUN = {"a": 3, "b": 3}


def replica(name: str, *, kind: str = "ReplicaSet") -> Pod:
    """Pod ``a0`` is of workload a, whose ReplicaSet has that uid."""
    made = member(name, name[0], labels={"app": name[0]})
    made.metadata.owner_references = [OwnerReference(kind=kind, name=name[0], uid=name[0], controller=True)]
    return made


class Waves(Stage):
    """An application of two workloads that may be planned; its ReplicaSets are read when a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[EntryKey] = []
        self.declared = DeclaredReplicas(self.asked.append, self.clock)
        assert self.cycle._settling is not None
        self.cycle._settling.declared = self.declared
        self.network("Dijkstra")
        self.service("b")
        self.cache.update_group(group_object("shop", *chain("a", "b")))

    def answer(self, replicas: Mapping[str, int]) -> None:
        """As the controller does."""
        self.declared.answer(SHOP, replicas)
        self.queue.activate(SHOP, skip_backoff=False)

    def begin(self, *names: str, replicas: Mapping[str, int] | None = None) -> None:
        """Pods come and are looked at; with `replicas`, ReplicaSets are to have so many."""
        self.add(*map(replica, names or ("a0", "b0")))
        self.schedule()
        if replicas is not None:
            self.answer(replicas)
            self.schedule()


def test_pods_that_come_in_waves_are_planned_with_all_that_were_declared() -> None:
    stage = Waves()
    stage.begin("a0", "a1", "b0", replicas=BEGUN)
    for name in ("b1", "a2"):
        assert stage.schedule(seconds=0.9 * MISSING_SECONDS) == set()
        stage.add(replica(name))
    assert stage.schedule(seconds=0.9 * MISSING_SECONDS) == set()
    stage.add(replica("b2"))
    assert len(stage.schedule(seconds=GATHER_SECONDS)) == 6
    assert stage.together == {6}
    assert stage.asked == [SHOP]


@given(gaps=st.lists(st.floats(0.0, 0.99 * MISSING_SECONDS), min_size=4, max_size=4), answered=st.floats(0.0, 0.9))
def test_whatever_the_gaps_all_are_planned_at_once(gaps: list[float], answered: float) -> None:
    stage = Waves()
    stage.begin()
    stage.schedule(seconds=answered * UNANSWERED_SECONDS)
    stage.answer(BEGUN)
    for name, gap in zip(("a1", "b1", "a2", "b2"), gaps, strict=True):
        # The answer may have come long after the first pods, which counts for them as well.
        stage.schedule(seconds=min(gap, 0.99 * MISSING_SECONDS - answered * UNANSWERED_SECONDS))
        stage.add(replica(name))
    stage.schedule(seconds=GATHER_SECONDS)
    assert stage.together == {6}


@pytest.mark.parametrize(
    ("replicas", "waits"),
    [
        pytest.param(None, UNANSWERED_SECONDS, id="nobody-has-said"),
        pytest.param(BEGUN, MISSING_SECONDS, id="more-are-to-come"),
        pytest.param({"a": 1, "b": 1}, GATHER_SECONDS, id="all-are-there"),
        pytest.param({"a": 0, "b": 1}, GATHER_SECONDS, id="scaled-down-meanwhile"),
        pytest.param({}, GATHER_SECONDS, id="cannot-be-read"),
        pytest.param({"a": 1, "b": 1, "c": 9}, GATHER_SECONDS, id="without-a-pod-of-ours"),
    ],
)
def test_how_long_pods_wait_for_the_next_one(replicas: Mapping[str, int] | None, waits: float) -> None:
    stage = Waves()
    stage.begin(replicas=replicas)
    assert stage.schedule(seconds=0.9 * waits) == set()
    assert stage.schedule(seconds=0.2 * waits) == {"a0", "b0"}


@pytest.mark.parametrize(
    ("replicas", "step", "at_most"),
    [
        pytest.param({"a": 1, "b": 10_000}, MISSING_SECONDS / 4, MISSING_AT_MOST_SECONDS, id="more-are-to-come"),
        pytest.param({}, GATHER_SECONDS / 4, GATHER_AT_MOST_SECONDS, id="nobody-knows"),
    ],
)
def test_pods_that_keep_coming_hold_up_the_others_for_so_long(
    replicas: Mapping[str, int], step: float, at_most: float
) -> None:
    stage = Waves()
    stage.begin(replicas=replicas)
    begun, number = stage.clock.now, 0
    while not stage.schedule(seconds=step):
        number += 1
        stage.add(replica(f"b{number}"))
        assert number < 100
    assert stage.clock.now - begun == pytest.approx(at_most, abs=1.01 * step)


@pytest.mark.parametrize("kind", ["StatefulSet", "Job"])
def test_others_are_not_asked_for(kind: str) -> None:
    stage = Waves()
    stage.add(replica("a0", kind=kind), replica("b0", kind=kind))
    assert stage.schedule() == set()
    assert stage.schedule(seconds=GATHER_SECONDS) == {"a0", "b0"}
    assert not stage.asked


def test_later_replicas_wait_for_no_declared_ones() -> None:
    stage = Waves()
    stage.begin(replicas={"a": 1, "b": 1})
    stage.schedule(seconds=GATHER_SECONDS)
    stage.begin("a1", replicas=BEGUN)
    assert stage.schedule(seconds=GATHER_SECONDS) == {"a0", "b0", "a1"}
    assert stage.asked == [SHOP]


@pytest.mark.parametrize(
    ("waited", "asked"),
    [pytest.param(0.9 * MISSING_SECONDS, 2, id="lately"), pytest.param(1.1 * MISSING_SECONDS, 1, id="long-ago")],
)
def test_a_further_try_asks_anew_where_pods_came_lately(waited: float, asked: int) -> None:
    stage = Waves()
    stage.cache.delete_node(zoned("n1", cpu=8))
    stage.begin(replicas={"a": 1, "b": 1})
    stage.schedule(seconds=GATHER_SECONDS)
    stage.add(replica("a1"))
    stage.clock.advance(waited)
    stage.queue.activate(SHOP)
    stage.schedule()
    assert stage.asked == [SHOP] * asked


def test_an_answer_that_nobody_waits_for_any_more_holds_up_nobody() -> None:
    stage = Waves()
    stage.begin()
    stage.schedule(seconds=UNANSWERED_SECONDS)
    assert stage.placed.keys() == {"a0", "b0"}
    stage.answer(BEGUN)
    stage.add(replica("a1"))
    stage.schedule()
    assert stage.schedule(seconds=GATHER_SECONDS) == {"a0", "b0", "a1"}
