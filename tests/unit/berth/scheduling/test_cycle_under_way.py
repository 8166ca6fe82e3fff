"""Plans that take several turns: what others may do in between, and what that means for the plan."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.api.labels import LABEL_WORKLOAD
from berth.kube.objects import CustomObject, Pod, Service
from berth.scheduling.gang import batches, budget
from berth.scheduling.queue import INITIAL_BACKOFF
from berth.scheduling.queue_entry import EntryKey
from tests.support import builders, kinds
from tests.support.placement import chain, group_object, lone, member, zoned
from tests.support.stage import Stage, shop

HOST = "kubernetes.io/hostname"
SHOP = EntryKey("group", "default", "shop", "berth-scheduler")


@pytest.fixture(autouse=True)
def _short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn ends at every opportunity, and a batch is two pods."""
    monkeypatch.setattr(budget, "TURN_SECONDS", 0.0)
    monkeypatch.setattr(batches, "BATCH", 2)


def apps(count: int = 3, **arguments: Any) -> list[Pod]:
    """Pods a0, b0, a1, b1 ... of the AppGroup shop."""
    return [member(f"{one}{n}", one, cpu="100m", **arguments) for n in range(count) for one in "ab"]


def under_way(*pods: Pod, turns: int, usable: bool = True, **options: Any) -> Stage:
    """A stage whose application has had so many turns and needs more."""
    stage = Stage(**{"wait": 0.0, **options})
    if usable:
        stage.group(shop())
    stage.add(*pods)
    for _ in range(turns):
        turn(stage)
    assert stage.bound == []
    assert stage.queue.pop() is not None, "it is active"
    stage.queue.put_back(next(stage.queue.entries()))
    return stage


def turn(stage: Stage) -> None:
    entry = stage.queue.pop()
    assert entry is not None
    stage.cycle.schedule_one(entry)


def with_room_taken(*pods: Pod, **options: Any) -> Stage:
    """A stage whose application has had turns until some of its pods are assumed."""
    stage = under_way(*pods, turns=1, **options)
    while not occupied(stage):
        turn(stage)
    assert stage.bound == []
    return stage


def names(pods: list[Pod]) -> set[str]:
    return {pod.metadata.name for pod in pods}


def occupied(stage: Stage) -> int:
    return stage.cache.state.pod_count


USABLE = pytest.mark.parametrize("usable", [True, False], ids=["planned together", "placed one by one"])


@USABLE
def test_it_is_made_to_its_end(usable: bool) -> None:
    stage = under_way(*apps(), turns=3, usable=usable)
    assert stage.schedule() > 1
    assert stage.placed() == names(apps())
    assert len(stage.queue) == 0
    assert stage.queue.pop() is None
    assert stage.queue.next_due() is None


@USABLE
def test_others_have_their_turn_in_between(usable: bool) -> None:
    stage = under_way(*apps(), turns=3, usable=usable)
    stage.add(lone("late", namespace="other"))
    stage.schedule()
    order = [decision.pod.metadata.name for decision in stage.bound]
    assert order[0] == "late"
    assert set(order[1:]) == names(apps())


@pytest.mark.parametrize("turns", range(1, 6))
@USABLE
def test_a_pod_that_goes_ends_it(usable: bool, turns: int) -> None:
    stage = under_way(*apps(), turns=turns, usable=usable)
    gone = apps()[-1]
    stage.cache.delete_pod(gone)
    stage.queue.delete(gone.metadata.uid)
    stage.schedule()
    assert stage.placed() == names(apps()) - {gone.metadata.name}
    assert occupied(stage) == 5


@USABLE
def test_all_pods_go(usable: bool) -> None:
    stage = with_room_taken(*apps(), usable=usable)
    for pod in apps():
        stage.cache.delete_pod(pod)
        stage.queue.delete(pod.metadata.uid)
    assert stage.queue.pop() is None
    stage.add(lone("other"))
    stage.schedule()
    assert stage.placed() == {"other"}
    assert occupied(stage) == 1
    assert not stage.cycle._under_way


@USABLE
def test_room_of_a_plan_that_is_given_up_helps_others(usable: bool) -> None:
    """Its pods are not ours any more, and no event of theirs will tell of the room."""
    stage = with_room_taken(*apps(), usable=usable)
    stage.add(lone("large", cpu="4"))
    turn(stage)
    assert stage.placed() == set()
    for pod in apps():
        stage.queue.delete(pod.metadata.uid)
    stage.cycle.give_up_gone()
    assert occupied(stage) == 0
    stage.clock.advance(INITIAL_BACKOFF)
    stage.schedule()
    assert stage.placed() == {"large"}


def test_an_edited_group_is_planned_anew() -> None:
    stage = with_room_taken(*apps())
    stage.group(group_object("shop", *chain("b", "a")))
    turn(stage)
    assert occupied(stage) == 0
    stage.schedule()
    assert stage.placed() == names(apps())


@pytest.mark.parametrize(
    ("workload", "spec", "anew"),
    [
        pytest.param("b", {"trafficDistribution": "PreferSameZone"}, True, id="calls go elsewhere"),
        pytest.param("b", {}, False, id="calls go where they went"),
        pytest.param("a", {"trafficDistribution": "PreferSameZone"}, False, id="nobody calls it"),
        pytest.param("c", {"trafficDistribution": "PreferSameZone"}, False, id="of others"),
    ],
)
def test_services_that_come_meanwhile_count(workload: str, spec: dict[str, Any], anew: bool) -> None:
    stage = with_room_taken(*apps())
    before = occupied(stage)
    metadata = {"name": workload, "namespace": "default"}
    selector = {LABEL_WORKLOAD: workload}
    stage.cache.update_service(msgspec.convert({"metadata": metadata, "spec": {"selector": selector, **spec}}, Service))
    turn(stage)
    assert (occupied(stage) < before) is anew
    stage.schedule()
    assert stage.placed() == names(apps())


def measured(cost: int, *, minute: int) -> CustomObject:
    """A NetworkTopology whose costs were measured at that minute."""
    body = kinds.network_topology(kinds.weight_set("NetperfCosts", z1={"z2": cost}))
    metadata = {"name": "net", "namespace": "default", "generation": minute}
    return CustomObject.of({**body, "metadata": metadata, "status": {"dataTime": f"2026-01-01T00:{minute:02}:00Z"}})


@pytest.mark.parametrize(
    ("cost", "anew"), [pytest.param(5, False, id="the same costs"), pytest.param(6, True, id="other costs")]
)
def test_measurements_that_come_meanwhile_count(cost: int, anew: bool) -> None:
    """They come each minute, and where many others have their turns no large plan is made within one."""
    stage = under_way(*apps(), turns=1)
    stage.cache.update_topology(measured(5, minute=1))
    while not occupied(stage):
        turn(stage)
    assert stage.bound == []
    before = occupied(stage)
    stage.cache.update_topology(measured(cost, minute=2))
    turn(stage)
    assert (occupied(stage) < before) is anew
    stage.schedule()
    assert stage.placed() == names(apps())


def test_pods_that_come_meanwhile_are_placed_afterwards() -> None:
    stage = under_way(*apps(2), turns=3)
    stage.add(*apps(4)[4:])
    stage.schedule()
    assert stage.placed() == names(apps(4))
    assert stage.reasons() == ["Placed", "Placed"]


@USABLE
def test_a_pod_that_joins_another_group_is_placed_with_that(usable: bool) -> None:
    stage = with_room_taken(*apps(), usable=usable)
    (assumed, *_) = [pod for pod in apps() if stage.cache.assumed(pod.metadata.uid)]
    moved = member(assumed.metadata.name, "a", group="other", cpu="100m")
    assert not stage.cache.update_pod(moved)
    assert stage.queue.refresh(moved)
    stage.schedule()
    assert stage.placed() == names(apps())
    assert {d.pod.metadata.name: d.pod.metadata.labels["appgroup.diktyo.x-k8s.io"] for d in stage.bound}[
        moved.metadata.name
    ] == "other"


def test_room_that_others_take_meanwhile_is_not_taken_twice() -> None:
    stage = under_way(*apps(3), turns=3, wait=30.0)
    stage.add(lone("large", namespace="other", cpu="3500m"))
    stage.schedule()
    assert stage.placed() == {"large"}
    assert occupied(stage) == 1


def test_what_came_too_late_for_a_plan_that_failed_is_looked_at_soon() -> None:
    """The change may have come while others had their turn: nobody will tell of it again."""
    stage = under_way(*apps(3), turns=3, wait=30.0)
    stage.add(lone("large", namespace="other", cpu="3500m"))
    stage.schedule()
    stage.cache.update_node(zoned("n2"))
    stage.clock.advance(INITIAL_BACKOFF)
    stage.schedule()
    assert stage.placed() == {"large", *names(apps(3))}


@USABLE
def test_a_pod_that_comes_meanwhile_is_planned_next_however_coarse_the_timer(
    usable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = under_way(*apps(), turns=0, usable=usable)
    monkeypatch.setattr(stage.cycle, "_timer", lambda: 0.0)
    turn(stage)
    late = member("a9", "a", cpu="100m")
    stage.add(late)
    stage.schedule()
    assert stage.placed() == names([*apps(), late])


def test_rules_of_pods_placed_meanwhile_are_kept() -> None:
    stage = under_way(*apps(), turns=2)
    stage.cache.update_node(zoned("n2"))
    term = builders.pod_term(HOST, {"appgroup.diktyo.x-k8s.io": "shop"})
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    stage.add(lone("loner", cpu="100m", spec={"affinity": rule}))
    stage.schedule()
    where = {decision.pod.metadata.name: decision.node for decision in stage.bound}
    assert len(where) == 7
    assert where.pop("loner") not in where.values()


@pytest.mark.parametrize("rules", [False, True], ids=["planned", "checked one by one"])
@pytest.mark.parametrize("turns", range(1, 8))
def test_a_node_that_goes_gets_nothing(turns: int, rules: bool) -> None:
    spread = {"maxSkew": 9, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"appgroup.diktyo.x-k8s.io": "shop"}}}
    pods = apps(8, spec={"topologySpreadConstraints": [spread]} if rules else {})
    stage = under_way(*pods, turns=turns)
    stage.cache.update_node(zoned("n2"))
    stage.cache.delete_node(zoned("n1"))
    stage.schedule()
    late = {decision.node for decision in stage.bound[1:]}
    assert names(pods) >= stage.placed()
    assert "n2" in late or not late


def test_a_fault_gives_back_what_is_assumed(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = with_room_taken(*apps())
    planner = stage.cycle.planners["berth-scheduler"]
    monkeypatch.setattr(planner, "_infrastructure", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        turn(stage)
    assert occupied(stage) == 0
    assert not stage.cycle._under_way


def test_a_batch_that_fits_nowhere_by_now_keeps_nobody_else_back() -> None:
    """The one node with room for its pods is filled by others while the plan is under way."""
    stage = under_way(*[member(f"a{n}", "a", cpu="3") for n in range(2)], member("b0", "b", cpu="100m"), turns=2, cpu=7)
    stage.add(lone("large", namespace="other", cpu="5"))
    stage.schedule()
    assert stage.placed() == {"large", "b0"}
    assert stage.cache.state.pod_count == 2


def test_a_plan_that_is_given_up_loses_its_age() -> None:
    """Whoever edits an AppGroup all the time must not have the turns of those that wait longer."""
    stage = under_way(*apps(), turns=4)
    (entry,) = stage.queue.entries()
    since = entry.active_since
    stage.clock.advance(5)
    turn(stage)
    assert entry.active_since == since
    stage.group(group_object("shop", *chain("b", "a")))
    turn(stage)
    assert entry.active_since == stage.clock.now
