"""How calls to workloads are routed, as Services and pods come and go; a change costs its own namespace alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.kube.objects import ObjectMeta, OwnerReference, Pod, Service
from berth.network.groups import GroupKey, read_group
from berth.network.routing import Routing
from berth.network.services import Labels, ServiceIndex
from berth.scheduling.cache import services as module
from berth.scheduling.cache.services import ServiceTable, WorkloadRouting
from tests.support.placement import chain, group_object, lone, member

SHOP = GroupKey("default", "shop")
OTHER = GroupKey("other", "shop")
ZONE = {"trafficDistribution": "PreferSameZone"}
NONE = WorkloadRouting()


def service(name: str = "web", *, namespace: str = "default", app: str = "web", **spec: Any) -> Service:
    body = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": {"app": app}, **spec}}
    return msgspec.convert(body, Service)


def replica(name: str = "w1", workload: str = "web", **arguments: Any) -> Pod:
    labels = {"app": workload, **arguments.pop("labels", {})}
    return member(name, workload, labels=labels, **arguments)


def owned(pod: Pod, kind: str) -> Pod:
    pod.metadata.owner_references = [OwnerReference(kind=kind, name="o", uid="o", controller=True)]
    return pod


@pytest.fixture
def table() -> ServiceTable:
    made = ServiceTable()
    made.join(replica())
    return made


class TestServices:
    @pytest.mark.parametrize(
        ("services", "routing"),
        [
            pytest.param([], NONE, id="none"),
            pytest.param([service(**ZONE)], WorkloadRouting(Routing.SAME_ZONE, "web"), id="one"),
            pytest.param([service(app="db", **ZONE)], NONE, id="of-other-pods"),
            pytest.param([service(namespace="other", **ZONE)], NONE, id="of-another-namespace"),
            pytest.param([service(type="ExternalName", **ZONE)], NONE, id="external-name"),
            pytest.param([service(selector={}, **ZONE)], NONE, id="without-selector"),
            pytest.param(
                [service(clusterIP="None", **ZONE)], WorkloadRouting(Routing.ALL, "web", settable=False), id="headless"
            ),
            pytest.param([service("a"), service(**ZONE)], WorkloadRouting(Routing.SAME_ZONE, "web"), id="by-name"),
        ],
    )
    def test_what_they_say_of_a_workload(
        self, table: ServiceTable, services: list[Service], routing: WorkloadRouting
    ) -> None:
        for one in services:
            table.update(one)
        assert table.routing(SHOP, "web") == routing
        for one in services:
            table.delete(one)
        assert table.routing(SHOP, "web") == NONE

    @pytest.mark.parametrize(
        ("replicas", "services", "open_"),
        [
            pytest.param([replica("a1", "a")], [], [], id="one-pod"),
            pytest.param([replica("b1", "b"), replica("b2", "b")], [], ["b"], id="two"),
            pytest.param([replica("a1", "a"), replica("a2", "a")], [], [], id="two-that-only-call"),
            pytest.param([replica("b1", "b"), replica("b2", "b")], [service(app="b")], [], id="two-with-a-service"),
            pytest.param([replica("b1", "b"), replica("b2", "b")], [service(app="c")], ["b"], id="two-with-another's"),
            pytest.param(
                [owned(replica("b1", "b"), "StatefulSet"), owned(replica("b2", "b"), "StatefulSet")], [], [],
                id="two-of-a-stateful-set",
            ),
            pytest.param([replica(f"{name}{i}", name) for i in (1, 2) for name in "cb"], [], ["b", "c"], id="each"),
        ],
    )  # fmt: skip
    def test_of_which_workloads_it_is_open_which_replica_is_called(
        self, replicas: list[Pod], services: list[Service], open_: list[str]
    ) -> None:
        table = ServiceTable()
        for pod in replicas:
            table.join(pod)
        for one in services:
            table.update(one)
        assert table.unserved(read_group(group_object("shop", *chain("a", "b", "c")))) == open_

    def test_the_annotation_that_takes_the_place_of_a_setting_leaves_nothing_to_set(self, table: ServiceTable) -> None:
        table.update(service())
        assert table.routing(SHOP, "web").settable
        automatic = service()
        automatic.metadata.annotations["service.kubernetes.io/topology-mode"] = "Auto"
        table.update(automatic)
        assert table.routing(SHOP, "web") == WorkloadRouting(Routing.ALL, "web", settable=False)

    def test_a_changed_service_counts(self, table: ServiceTable) -> None:
        assert table.update(service(**ZONE))
        assert table.routing(SHOP, "web").routing is Routing.SAME_ZONE
        assert table.update(service(internalTrafficPolicy="Local"))
        assert table.routing(SHOP, "web").routing is Routing.LOCAL
        assert table.update(service(app="db"))
        assert table.routing(SHOP, "web") == NONE

    def test_a_change_that_routes_alike_is_none(self, table: ServiceTable) -> None:
        table.update(service(**ZONE))
        labelled = service(**ZONE)
        labelled.metadata = ObjectMeta(name="web", namespace="default", labels={"a": "b"}, resource_version="9")
        assert not table.update(labelled)

    def test_an_annotation_may_change_it(self, table: ServiceTable) -> None:
        table.update(service(**ZONE))
        annotated = service(**ZONE)
        annotated.metadata.annotations = {"service.kubernetes.io/topology-mode": "Auto"}
        assert table.update(annotated)
        assert table.routing(SHOP, "web").routing is Routing.ALL

    @pytest.mark.parametrize(
        ("demand", "near"),
        [
            pytest.param({"maxNetworkCost": 5}, True, id="limit"),
            pytest.param({"minBandwidth": "1M"}, True, id="bandwidth"),
            pytest.param({}, False, id="neither"),
        ],
    )
    def test_groups_whose_calls_are_judged_by_them(
        self, table: ServiceTable, demand: dict[str, Any], near: bool
    ) -> None:
        group = read_group(group_object("shop", *chain("app", "web", **demand)))
        assert not table.keeps_near(group)
        table.update(service(**ZONE))
        assert table.keeps_near(group) is near
        table.update(service(clusterIP="None"))
        assert not table.keeps_near(group)

    def test_the_end_of_one_that_was_never_seen_changes_nothing(self, table: ServiceTable) -> None:
        table.delete(service("unseen"))
        assert table.routing(SHOP, "web") == NONE


class TestPods:
    @pytest.fixture(autouse=True)
    def zonal(self, table: ServiceTable) -> None:
        table.update(service(**ZONE))
        assert table.routing(SHOP, "web").routing is Routing.SAME_ZONE

    def test_the_last_one_that_is_selected_goes(self, table: ServiceTable) -> None:
        table.join(replica("w2"))
        for name, left in (("w1", Routing.SAME_ZONE), ("w2", Routing.ALL)):
            table.leave(replica(name).metadata.uid)
            assert table.routing(SHOP, "web").routing is left
        table.leave("unknown")

    def test_other_labels(self, table: ServiceTable) -> None:
        table.join(replica(labels={"app": "blue"}))
        assert table.routing(SHOP, "web") == NONE

    def test_one_that_is_selected_is_enough(self, table: ServiceTable) -> None:
        table.join(replica("w2", labels={"app": "blue"}))
        assert table.routing(SHOP, "web").routing is Routing.SAME_ZONE

    def test_another_group_is_another_workload(self, table: ServiceTable) -> None:
        table.join(replica(group="mall"))
        assert table.routing(SHOP, "web") == NONE
        assert table.routing(GroupKey("default", "mall"), "web").routing is Routing.SAME_ZONE

    def test_a_pod_that_leaves_its_group(self, table: ServiceTable) -> None:
        table.join(lone("w1", labels={"app": "web"}))
        assert table.routing(SHOP, "web") == NONE

    @pytest.mark.parametrize(
        ("kind", "routing", "settable"),
        [
            pytest.param("StatefulSet", Routing.ALL, False, id="members-are-called-by-name"),
            pytest.param("ReplicaSet", Routing.SAME_ZONE, True, id="replicas-are-alike"),
        ],
    )
    def test_what_made_them(self, table: ServiceTable, kind: str, routing: Routing, settable: bool) -> None:
        table.join(owned(replica(), kind))
        assert table.routing(SHOP, "web") == WorkloadRouting(routing, "web", settable=settable)


class TestMemory:
    """What is kept of workloads and namespaces goes with their pods."""

    def test_nothing_is_kept_of_a_workload_without_pods(self, table: ServiceTable) -> None:
        for number in range(5):
            assert table.routing(GroupKey(f"ns-{number}", "shop"), "web") == NONE
        assert table._known == {}

    @pytest.mark.parametrize("asked", [True, False], ids=["asked", "never asked"])
    def test_nothing_is_kept_of_a_namespace_that_is_empty_again(self, table: ServiceTable, asked: bool) -> None:
        table.leave(replica().metadata.uid)
        table.update(service(namespace="other", **ZONE))
        table.join(replica(namespace="other"))
        if asked:
            assert table.routing(OTHER, "web").routing is Routing.SAME_ZONE
        table.delete(service(namespace="other"))
        table.leave(replica(namespace="other").metadata.uid)
        assert not any((table._known, table._services, table._pods, table._replicas, table._shapes))

    def test_pods_that_are_alike_are_kept_once(self, table: ServiceTable) -> None:
        pods = [replica(f"w{number}", labels={f"label-{n}": "x" for n in range(20)}) for number in range(500)]
        tracemalloc.start()
        try:
            for pod in pods:
                table.join(pod)
            assert tracemalloc.get_traced_memory()[0] < 2**17
        finally:
            tracemalloc.stop()


class TestCost:
    """Counted in Services that are looked at."""

    @pytest.fixture
    def looked(self, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        seen: list[str] = []

        class Counted(ServiceIndex):
            def used(self, workloads: Sequence[tuple[str, Iterable[Labels]]]) -> list[Service | None]:
                seen.extend(f"{item.metadata.namespace}/{item.metadata.name}" for item in self.ordered)
                return super().used(workloads)

        monkeypatch.setattr(module, "ServiceIndex", Counted)
        return seen

    @pytest.fixture
    def busy(self, table: ServiceTable, looked: list[str]) -> ServiceTable:
        table.join(replica("o1", namespace="other"))
        table.update(service(**ZONE))
        table.update(service(namespace="other"))
        for key in (SHOP, OTHER):
            table.routing(key, "web")
        assert looked == ["default/web", "other/web"]
        looked.clear()
        return table

    @pytest.mark.parametrize(
        ("change", "again"),
        [
            pytest.param(lambda table: None, [], id="nothing"),
            pytest.param(lambda table: table.update(service(app="db")), ["default/web"], id="a-service"),
            pytest.param(lambda table: table.delete(service("unseen")), [], id="an-unknown-service"),
            pytest.param(lambda table: table.update(service(**ZONE)), [], id="an-equal-service"),
            pytest.param(lambda table: table.join(replica("w2")), [], id="one-more-replica"),
            pytest.param(lambda table: table.join(replica("w1", on="n1")), [], id="a-replica-got-its-node"),
            pytest.param(lambda table: table.join(replica("d1", "db")), [], id="a-pod-of-another-workload"),
            pytest.param(lambda table: table.join(lone("p", labels={"app": "web"})), [], id="a-pod-outside"),
        ],
    )
    def test_only_what_can_differ_is_looked_at(
        self, busy: ServiceTable, looked: list[str], change: Any, again: list[str]
    ) -> None:
        change(busy)
        for key in (SHOP, OTHER):
            busy.routing(key, "web")
        assert looked == again

    def test_services_are_looked_at_once_for_all_workloads_of_a_namespace(
        self, busy: ServiceTable, looked: list[str]
    ) -> None:
        for number in range(20):
            busy.join(replica(f"d{number}", f"db-{number}"))
        busy.update(service(**ZONE, app="db-7"))
        routings = [busy.routing(SHOP, f"db-{number}").routing for number in range(20)]
        assert routings == [Routing.SAME_ZONE if number == 7 else Routing.ALL for number in range(20)]
        assert looked == ["default/web"]

    def test_of_thousands_of_workloads_some_hundreds_are_worked_out_at_a_time(
        self, busy: ServiceTable, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "TOGETHER", 10)
        asked: list[int] = []
        used = ServiceIndex.used

        def counted(index: ServiceIndex, workloads: Sequence[tuple[str, Iterable[Labels]]]) -> Any:
            asked.append(len(workloads))
            return used(index, workloads)

        monkeypatch.setattr(ServiceIndex, "used", counted)
        for number in range(24):
            busy.join(replica(f"d{number}", f"db-{number}"))
        busy.update(service(**ZONE, app="db-23"))
        routings = {number: busy.routing(SHOP, f"db-{number}").routing for number in reversed(range(24))}
        assert routings == {number: Routing.SAME_ZONE if number == 23 else Routing.ALL for number in range(24)}
        assert max(asked) == 10
        assert sum(asked) == 25, "each once, with that of the table"


EVENT = st.tuples(
    st.sampled_from(["update", "delete", "join", "leave"]),
    st.sampled_from("abc"),
    st.sampled_from(["default", "other"]),
    st.sampled_from(["web", "db"]),
    st.sampled_from([{}, ZONE, {"clusterIP": "None"}, {"internalTrafficPolicy": "Local"}]),
    st.booleans(),
)


@settings(max_examples=200, deadline=None, derandomize=True)
@given(events=st.lists(EVENT, max_size=25))
def test_what_was_kept_is_what_a_new_table_says(events: list[Any]) -> None:
    """Asked after every event, the table says what one says that was fed with the survivors alone."""
    table = ServiceTable()
    services: dict[tuple[str, str], Service] = {}
    pods: dict[str, Pod] = {}
    for what, name, namespace, app, spec, asked in events:
        one, pod = service(name, namespace=namespace, app=app, **spec), replica(name, app, namespace=namespace)
        if what == "update":
            table.update(one)
            services[namespace, name] = one
        elif what == "delete":
            table.delete(one)
            services.pop((namespace, name), None)
        elif what == "join":
            table.join(pod)
            pods[pod.metadata.uid] = pod
        else:
            table.leave(pod.metadata.uid)
            pods.pop(pod.metadata.uid, None)
        fresh = ServiceTable()
        for there in pods.values():
            fresh.join(there)
        for item in services.values():
            fresh.update(item)
        if asked:
            for key in (SHOP, OTHER):
                for workload in ("web", "db"):
                    assert table.routing(key, workload) == fresh.routing(key, workload)
