"""Which NetworkTopology serves an application, and that its costs stay the same object until they change."""

from __future__ import annotations

import gc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.api.labels import WEIGHTS_ALLOCATED
from berth.api.networktopology import NetworkTopology
from berth.kube.custom_object import encoded
from berth.kube.objects import CustomObject, ObjectMeta
from berth.network.costs import NO_COSTS
from berth.scheduling.cache.topologies import TopologyTable
from berth.scheduling.configuration import Profile, TopologyReference
from tests.support import kinds


@pytest.fixture
def table() -> TopologyTable:
    return TopologyTable()


def topology(name: str = "net", *, cost: Any = 5, namespace: str = "default") -> CustomObject:
    body = kinds.network_topology(kinds.weight_set(z1={"z2": cost}), name=name)
    return CustomObject.of({"metadata": {"name": name, "namespace": namespace}, "spec": body["spec"]})


def test_costs_stay_the_same_object_until_they_change(table: TopologyTable) -> None:
    assert table.costs_for("default", Profile()) is NO_COSTS
    assert table.update(topology()) == (None, True)
    costs = table.costs_for("default", Profile())
    assert costs.zones == {("z1", "z2"): 5.0}
    assert table.costs_for("elsewhere", Profile(system_namespace="default")) is costs
    assert table.update(topology(cost=6)) == (None, True)
    assert table.costs_for("default", Profile()).zones == {("z1", "z2"): 6.0}
    table.delete(topology())
    assert table.costs_for("default", Profile()) is NO_COSTS


@pytest.mark.parametrize(
    ("cost", "changed", "same"),
    [
        pytest.param({"networkCost": 5, "bandwidthAllocated": "1G"}, False, True, id="bandwidth-only"),
        pytest.param({"networkCost": 6}, True, False, id="cost"),
        pytest.param({"networkCost": 5, "bandwidthCapacity": "1G"}, True, False, id="capacity"),
    ],
)
def test_news_that_placement_waits_for(table: TopologyTable, cost: dict[str, Any], changed: bool, same: bool) -> None:
    table.update(topology(cost={"networkCost": 5}))
    costs = table.costs_for("default", Profile())
    assert table.update(topology(cost=cost)) == (None, changed)
    assert (table.costs_for("default", Profile()) is costs) is same


@pytest.mark.parametrize(
    ("edit", "generation"),
    [
        pytest.param({}, 1, id="allocated-bandwidth"),
        pytest.param({"configmapName": "netperf"}, 2, id="measurements-named"),
        pytest.param({"weights": [kinds.weight_set(z1={"z2": 5}), kinds.weight_set("Mine")]}, 2, id="another-set"),
    ],
)
def test_what_placement_writes_itself_is_no_edit(table: TopologyTable, edit: dict[str, Any], generation: int) -> None:
    """Costs of another generation would have plans begin anew, and applications wait for weights of it."""
    spec = kinds.network_topology(kinds.weight_set(z1={"z2": 5}))["spec"]
    metadata = {"name": "net", "namespace": "default", "uid": "u"}
    status = {"observedGeneration": 1}
    table.update(CustomObject.of({"metadata": {**metadata, "generation": 1}, "spec": spec, "status": status}))
    before = table.costs_for("default", Profile())
    after = {**spec, **edit}
    after["weights"] = [*after["weights"], kinds.weight_set(WEIGHTS_ALLOCATED, z1={"z2": {"bandwidthAllocated": "1"}})]
    table.update(CustomObject.of({"metadata": {**metadata, "generation": 2}, "spec": after, "status": status}))
    costs = table.costs_for("default", Profile())
    assert (costs.generation, costs.current, costs is before) == (generation, generation == 1, generation == 1)


def test_weights_of_an_object_restored_from_a_backup_are_of_its_own_spec(table: TopologyTable) -> None:
    """Costs that went to and fro make one spec of two generations, of which the restore brings back the first."""
    spec = kinds.network_topology(kinds.weight_set("Dijkstra", z1={"z2": 5}))["spec"]
    for generation in (3, 1):
        metadata = {"name": "net", "namespace": "default", "uid": "u", "generation": generation}
        status = {"observedGeneration": generation}
        table.update(CustomObject.of({"metadata": metadata, "spec": spec, "status": status}))
        costs = table.costs_for("default", Profile())
        assert (costs.generation, costs.current, costs.weight_sets) == (generation, True, ("Dijkstra",))


def test_a_new_measurement_of_the_same_costs_wakes_nobody(table: TopologyTable) -> None:
    table.update(topology())
    before = table.costs_for("default", Profile())
    again = topology()
    again.status = encoded({"weightCalculationTime": "2026-01-02T03:04:05Z"})
    assert table.update(again) == (None, False)
    after = table.costs_for("default", Profile())
    assert (before.data_time, after.data_time) == ("", "2026-01-02T03:04:05Z")


@pytest.mark.parametrize(
    ("again", "readings"),
    [
        pytest.param(ObjectMeta(name="net", namespace="default", labels={"a": "b"}), 1, id="label"),
        pytest.param(ObjectMeta(name="other", namespace="default"), 2, id="another"),
    ],
)
def test_one_whose_content_is_the_same_is_not_read_again(
    table: TopologyTable, again: ObjectMeta, readings: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    parse = NetworkTopology.parse
    monkeypatch.setattr(NetworkTopology, "parse", lambda obj: read.append(obj["metadata"]["name"]) or parse(obj))
    table.update(topology())
    assert table.update(CustomObject(metadata=again, spec=topology().spec)) == (None, readings == 2)
    assert len(read) == readings


def models() -> list[NetworkTopology]:
    gc.collect()
    return [item for item in gc.get_objects() if isinstance(item, NetworkTopology)]


def test_no_model_is_kept(table: TopologyTable) -> None:
    of_others = models()
    table.update(topology("a"))
    table.update(topology("b"))
    assert table.costs_for("default", Profile()).source == "default/a"
    assert [item.key for item in models() if not any(item is other for other in of_others)] == []


def test_a_profile_may_name_one(table: TopologyTable) -> None:
    table.update(topology("a", cost=1))
    table.update(topology("b", cost=2))
    profile = Profile(network_topology=TopologyReference(namespace="default", name="b"))
    assert table.costs_for("default", profile).source == "default/b"
    assert table.costs_for("default", Profile()).source == "default/a"


def test_one_that_a_profile_names_and_that_is_absent_is_not_replaced(table: TopologyTable) -> None:
    table.update(topology("a", cost=1))
    profile = Profile(network_topology=TopologyReference(namespace="default", name="b"))
    costs = table.costs_for("default", profile)
    assert (costs.available, costs.absent, costs.source) == (False, "default/b", "")
    assert table.costs_for("default", profile) is costs
    table.update(topology("b", cost=2))
    assert table.costs_for("default", profile).source == "default/b"


def test_those_of_other_namespaces_count_only_in_the_system_namespace(table: TopologyTable) -> None:
    table.update(topology("net", namespace="tenant"))
    assert not table.costs_for("default", Profile()).available
    assert table.costs_for("default", Profile(system_namespace="tenant")).source == "tenant/net"


def test_profiles_with_other_weight_sets_do_not_share(table: TopologyTable) -> None:
    table.update(topology())
    assert table.costs_for("default", Profile(weight_sets=["Dijkstra"])).zones == {}
    assert table.costs_for("default", Profile()).zones == {("z1", "z2"): 5.0}


def test_one_that_cannot_be_read_is_named_and_no_longer_used(table: TopologyTable) -> None:
    table.update(topology())
    problem, changed = table.update(topology(cost="near"))
    assert changed
    assert problem is not None
    assert "NetworkTopology default/net" in problem
    assert "networkCost" in problem
    assert table.costs_for("default", Profile()) is NO_COSTS


def having(names: list[str]) -> TopologyTable:
    table = TopologyTable()
    for one in names:
        namespace, name = one.split("/")
        table.update(topology(name, namespace=namespace))
    return table


@pytest.mark.parametrize(
    ("names", "preferred", "chosen"),
    [
        pytest.param([], None, None, id="none"),
        pytest.param(["x/net"], None, None, id="only-one-elsewhere"),
        pytest.param(["x/net", "sys/b", "sys/a"], None, "sys/a", id="system-namespace"),
        pytest.param(["x/net", "sys/a", "shop/b", "shop/a"], None, "shop/a", id="own-namespace-first-by-name"),
        pytest.param(["x/net", "shop/a"], "x/net", "x/net", id="configured"),
        pytest.param(["y/net", "shop/net"], "gone/net", None, id="configured-one-is-missing"),
        pytest.param([], "gone/net", None, id="configured-one-and-every-other-missing"),
        pytest.param(["shop-two/net", "sys-two/net"], None, None, id="namespace-prefix-is-no-match"),
    ],
)
def test_choice(names: list[str], preferred: str | None, chosen: str | None) -> None:
    reference = None
    if preferred is not None:
        namespace, name = preferred.split("/")
        reference = TopologyReference(namespace=namespace, name=name)
    found = having(names).serving("shop", Profile(network_topology=reference, system_namespace="sys"))
    assert found == (tuple(chosen.split("/")) if chosen is not None else None)


NAME = st.sampled_from([f"{namespace}/{name}" for namespace in ("shop", "sys", "x") for name in "abc"])


@given(st.lists(st.tuples(NAME, st.sampled_from(["good", "bad", "gone"])), max_size=40))
def test_the_choice_is_the_first_by_name_after_any_history(steps: list[tuple[str, str]]) -> None:
    table, usable = TopologyTable(), set[str]()
    for one, what in steps:
        namespace, name = one.split("/")
        made = topology(name, namespace=namespace, cost="near" if what == "bad" else 5)
        table.delete(made) if what == "gone" else table.update(made)
        usable = usable | {one} if what == "good" else usable - {one}
        expected = min((one for one in usable if one.startswith("shop/")), default="") or min(
            (one for one in usable if one.startswith("sys/")), default=""
        )
        found = table.costs_for("shop", Profile(system_namespace="sys"))
        assert found.source == expected


class Unlisted(dict[Any, Any]):
    """A registry of all tenants, which may be asked for one of them and not be gone through."""

    def __iter__(self) -> Any:
        raise AssertionError("all tenants are looked at")

    keys = values = items = __iter__


def test_the_choice_looks_at_no_other_namespace() -> None:
    table = having([f"tenant-{number}/net" for number in range(50)])
    for name in vars(table):
        setattr(table, name, Unlisted(getattr(table, name)))
    assert table.costs_for("tenant-7", Profile()).source == "tenant-7/net"
