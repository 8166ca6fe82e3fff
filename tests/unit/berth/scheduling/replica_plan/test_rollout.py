"""Pods of a rolling update, and those that they replace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from berth.kube.objects import OwnerReference, Pod, PodCondition, Service
from berth.network.groups import GroupKey
from berth.scheduling.configuration import Profile
from berth.scheduling.gang.strategies import DEFAULT, REPLICAS
from berth.scheduling.replica_plan.rollout import apart, replaced_pods, to_come, with_those_to_come
from tests.support import builders, kinds
from tests.support.placement import ZONE_COSTS, Lab, both_ways, chain, group_object, member, where, zoned
from tests.support.stage import Stage
from tests.unit.berth.scheduling.replica_plan.test_rules import pod_sets

HOST = "kubernetes.io/hostname"
GROUP, WORKLOAD = "appgroup.diktyo.x-k8s.io", "appgroup.diktyo.x-k8s.io.workload"
NEW, OLD = "7d4f", "5c9b"


def replica(
    name: str,
    revision: str,
    *,
    deployment: str = "",
    on: str = "",
    kind: str = "ReplicaSet",
    ready: bool = True,
    **more: Any,
) -> Pod:
    """Pod `a1` of the workload a and its Deployment, with the name that its ReplicaSet gives it; ready on a node."""
    workload = name[0]
    owner = f"{deployment or workload}-{revision}"
    hashed = {"pod-template-hash": revision} if kind == "ReplicaSet" else {}
    pod = member(f"{owner}-"[:58] + name, workload, on=on, labels=hashed, cpu="500m", **more)
    pod.metadata.owner_references = [OwnerReference(kind=kind, name=owner, uid=owner, controller=True)]
    pod.status.conditions = [PodCondition(type="Ready", status="True" if on and ready else "False")]
    return pod


def gone(pods: list[Pod], *waiting: Pod) -> set[str]:
    lab = Lab([zoned("n0"), zoned("n1")])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(*pods, *waiting)
    return {record.key.split("/")[1] for record in replaced_pods(shop, waiting, lab.cache)}


@pytest.mark.parametrize(
    ("pods", "waiting", "found"),
    [
        pytest.param([replica("a1", OLD, on="n0")], replica("a2", NEW), {f"a-{OLD}-a1"}, id="an older revision"),
        pytest.param([replica("a1", NEW, on="n0")], replica("a2", NEW), set(), id="the same revision"),
        pytest.param([replica("b1", OLD, on="n0")], replica("a2", NEW), set(), id="another workload"),
        pytest.param(
            [replica("a1", OLD, on="n0", deployment="a-canary")], replica("a2", NEW), set(), id="another Deployment"
        ),
        *(
            pytest.param(
                [replica("a1", OLD, on="n0", deployment=name), replica("a3", NEW, on="n0", deployment=name)],
                replica("a2", NEW, deployment=name),
                {f"{name}-{OLD}-"[:58] + "a1"},
                id=f"a Deployment with a name of {len(name)} characters, which pods have in part",
            )
            for name in ("a" * 55, "a" * 80)
        ),
        pytest.param([replica("a1", OLD)], replica("a2", NEW), set(), id="one that waits"),
        pytest.param(
            [replica("a1", OLD, on="n0", kind="StatefulSet")],
            replica("a2", NEW, kind="StatefulSet"),
            set(),
            id="a StatefulSet, which has no surge",
        ),
        pytest.param([member("a1", "a", on="n0")], member("a2", "a"), set(), id="nobody's pods"),
    ],
)
def test_who_is_replaced(pods: list[Pod], waiting: Pod, found: set[str]) -> None:
    assert gone(pods, waiting) == found


OLD_PODS = [replica(f"a{n}", OLD, on="n0") for n in range(4)]


@pytest.mark.parametrize(
    ("pods", "waiting", "count"),
    [
        pytest.param([], [replica("a5", NEW)], 3, id="the first one"),
        pytest.param([], [replica(f"a{n}", NEW) for n in range(5, 9)], 0, id="all at once"),
        pytest.param([replica("a5", NEW, on="n1", ready=False)], [replica("a6", NEW)], 2, id="one that came before"),
        pytest.param([replica("a5", NEW, on="n1")], [replica("a6", NEW)], 3, id="one is ready, its old pod is to go"),
        pytest.param(
            [replica("a5", NEW, on="n1", ready=False), replica("a5", NEW, on="n1")],
            [replica("a6", NEW)],
            3,
            id="one has become ready",
        ),
        pytest.param([replica("a5", "stuck", on="n1", ready=False)], [replica("a6", NEW)], 3, id="stuck before"),
        pytest.param([replica("b5", NEW, on="n1", ready=False)], [replica("a6", NEW)], 3, id="another workload"),
    ],
)
def test_how_many_pods_a_rollout_still_brings(pods: list[Pod], waiting: list[Pod], count: int) -> None:
    lab = Lab([zoned("n0"), zoned("n1")])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(*OLD_PODS, *pods, *waiting)
    replaced = replaced_pods(shop, waiting, lab.cache)
    assert to_come(shop, replaced, waiting, lab.cache).total() == count


@pytest.mark.parametrize("first", ["a", "a-canary"])
def test_each_deployment_of_a_workload_brings_pods_of_its_own(first: str) -> None:
    """A canary beside the stable one: pods of one are never those of the other."""
    lab = Lab([zoned("n0"), zoned("n1")])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    old = [replica(f"a{n}", OLD, on="n0") for n in range(4)]
    old += [replica(f"a{n}", OLD, on="n1", deployment="a-canary") for n in range(2)]
    coming = replica("a7", NEW, on="n1", deployment="a-canary", ready=False)
    new = [replica("a5", NEW), replica("a6", NEW, deployment="a-canary", spec={"nodeSelector": {"no": "node"}})]
    lab.see(*old, coming, *new)
    counts = to_come(shop, replaced_pods(shop, new, lab.cache), new, lab.cache)
    assert counts == {("a", "a"): 3}
    ordered = sorted(new, key=lambda pod: not pod.metadata.owner_references[0].name.startswith(f"{first}-{NEW}"))
    planned = with_those_to_come(pod_sets(lab, *ordered), counts)
    assert [(pods.candidates[0].info.pod.metadata.name[-1], pods.to_come) for pods in planned] == [
        (pod.metadata.name[-1], 3 if pod is new[0] else 0) for pod in ordered
    ]


def test_what_waits_itself_is_not_replaced() -> None:
    assert gone([replica("a1", OLD, on="n0")], replica("a2", NEW), replica("a3", OLD)) == set()


def test_placed_pods_are_gone_through_once_for_all_deployments(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a large group may be restarted together."""
    lab = Lab([zoned("n0"), zoned("n1")])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    old = [replica(f"{name}1", OLD, on="n0") for name in "ab"] + [replica("a2", OLD, on="n1", deployment="a-canary")]
    new = [replica(f"{name}3", NEW) for name in "ab"] + [replica("a4", NEW, deployment="a-canary")]
    lab.see(*old, *new)
    members, times = lab.cache.members, list[GroupKey]()
    placed = members.placed
    monkeypatch.setattr(members, "placed", lambda key: times.append(key) or placed(key))
    assert {record.key for record in replaced_pods(shop, new, lab.cache)} == {pod.key for pod in old}
    assert len(times) == 1


@pytest.mark.parametrize("before", [{WORKLOAD: "b"}, {GROUP: "other"}], ids=["workload", "AppGroup"])
def test_what_is_relabelled_while_it_is_bound_is_not_replaced_yet(before: dict[str, str]) -> None:
    """The books know it by the labels that it was assumed with until it is seen on its node."""
    lab = Lab([zoned("n0"), zoned("n1")])
    shop = lab.group(group_object("shop", kinds.workload("a"), kinds.workload("b")))
    bound, waiting, other = replica("a1", OLD, on="n0"), replica("a2", NEW), replica("a3", OLD)
    other.metadata.labels |= before
    lab.see(bound, waiting, other)
    lab.cache.assume(other, "n1")
    lab.see(replica("a3", OLD))
    assert {record.key for record in replaced_pods(shop, [waiting], lab.cache)} == {bound.key}
    assert len(lab.place_alone(waiting, shop).decisions) == 1


@pytest.mark.parametrize(
    "field", [{"controller": False}, {"kind": "Job"}], ids=["does not control it", "no ReplicaSet"]
)
def test_an_owner_that_is_no_controlling_replica_set_says_nothing(field: dict[str, Any]) -> None:
    waiting = replica("a2", NEW)
    waiting.metadata.owner_references = [
        OwnerReference(**{"kind": "ReplicaSet", "name": f"a-{NEW}", "uid": "a", "controller": True, **field})
    ]
    assert gone([replica("a1", OLD, on="n0")], waiting) == set()


PREFERRED = {
    "affinity": {
        "podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "podAffinityTerm": builders.pod_term(HOST, {WORKLOAD: "a"})}
            ]
        }
    }
}
SOFT = {"topologySpreadConstraints": [builders.spread(HOST, {WORKLOAD: "a"}, whenUnsatisfiable="ScheduleAnyway")]}


@pytest.mark.parametrize("spec", [{}, PREFERRED, SOFT], ids=["survival", "preferred anti-affinity", "soft spread"])
@pytest.mark.parametrize(
    ("strategy", "number"), [(DEFAULT, 1), (REPLICAS, 1), (REPLICAS, 2)], ids=["alone", "alone, replicas", "jointly"]
)
def test_a_surge_pod_is_placed_as_if_those_it_replaces_were_gone(
    spec: dict[str, Any], strategy: str, number: int
) -> None:
    """One new pod goes where its callee is, though an old one is there; of two, each takes a node of the callee's."""
    lab = Lab(
        [zoned(f"n{n}", zone) for n, zone in enumerate(("z3", "z1", "z1", "z1"))],
        Profile.model_validate({"gang": {"strategy": strategy}}),
    )
    shop = lab.group(group_object("shop", *chain("a", "b")))
    homes = ["n2", "n3"][:number]
    lab.see(*(replica(f"a{n}", OLD, on=home, spec=spec) for n, home in enumerate(homes)))
    lab.see(*(replica(f"b{n}", OLD, on=home) for n, home in enumerate(homes)))
    outcome = lab.place(shop, *(replica(f"a{n}", NEW, spec=spec) for n in range(2, 2 + number)))
    assert sorted(where(outcome).values()) == homes


@pytest.mark.parametrize("bandwidth", ["", "1M"], ids=["no minBandwidth", "minBandwidth"])
def test_the_second_surge_pod_keeps_away_from_the_first(bandwidth: str) -> None:
    """Budgets are charged with what is there, old pods included; all else counts the new revision alone."""
    extra = {"network.aware.com/bandwidth": "10M"}
    lab = Lab([zoned(f"n{number}", extra=extra) for number in range(3)])
    demand = {"minBandwidth": bandwidth} if bandwidth else {}
    shop = lab.group(group_object("shop", *chain("a", "b", **demand)))
    lab.see(*(replica(f"{name}1", NEW, on="n0") for name in "ab"))
    lab.see(*(replica(f"{name}2", OLD, on="n1") for name in "ab"))
    outcome = lab.place(shop, *(replica(f"{name}3", NEW) for name in "ab"))
    assert outcome.complete
    assert "n0" not in where(outcome).values()


def test_a_later_replica_of_the_same_revision_keeps_away() -> None:
    lab = Lab([zoned("n0"), zoned("n1")])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(replica("a1", NEW, on="n0"), replica("b1", NEW, on="n0"))
    assert set(where(lab.place(shop, replica("a2", NEW))).values()) == {"n1"}


def test_what_is_replaced_still_takes_its_room() -> None:
    lab = Lab([zoned("n0", cpu="1"), zoned("n1", cpu="1")])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(replica("a1", OLD, on="n0"), replica("b1", OLD, on="n0"))
    assert set(where(lab.place(shop, replica("a2", NEW))).values()) == {"n1"}


@pytest.mark.parametrize(
    ("old", "service", "expected"),
    [
        pytest.param("a", {}, {"n1"}, id="a caller"),
        pytest.param("b", {}, {"n1"}, id="an endpoint"),
        pytest.param("a", {"trafficDistribution": "PreferSameZone"}, {"n1"}, id="a caller that has none in its zone"),
        pytest.param("b", {"trafficDistribution": "PreferSameZone"}, {"n2"}, id="an endpoint in a zone with no caller"),
    ],
)
def test_limits_hold_for_calls_of_what_is_replaced(old: str, service: dict[str, Any], expected: set[str]) -> None:
    """Both new pods would be cheapest beside what the second of them calls, in the other zone."""
    lab = Lab([zoned("n0", "z1", cpu="500m"), zoned("n1", "z1"), zoned("n2", "z2")])
    limited = kinds.workload("a", "b", maxNetworkCost=2)
    shop = lab.group(group_object("shop", limited, kinds.workload("b", "c"), kinds.workload("c")))
    body = {"metadata": {"name": "b", "namespace": "default"}, "spec": {"selector": {WORKLOAD: "b"}, **service}}
    lab.cache.update_service(msgspec.convert(body, Service))
    lab.see(replica(f"{old}1", OLD, on="n0"), replica("c1", OLD, on="n2"))
    assert set(where(lab.place(shop, *(replica(f"{name}2", NEW) for name in "ab"))).values()) == expected


@pytest.mark.parametrize("over", [False, True], ids=["all or nothing", "what fits"])
@pytest.mark.parametrize("came", ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"], ids=["at once", "later"])
def test_what_stays_does_not_count_on_what_goes_and_waits_as_well(came: str, *, over: bool) -> None:
    """A Deployment that is scaled in the middle of a rollout has one more pod of each revision."""
    stage = Stage(wait=0.0 if over else 30.0)
    for number in (2, 3, 4):
        stage.cache.update_node(zoned(f"n{number}"))
    stage.group(group_object("shop", *chain("a", "b")))
    for pod in (replica("b1", OLD, on="n1"), *(replica(f"a{n}", OLD, on=f"n{n}") for n in (1, 2, 3))):
        stage.cache.update_pod(pod)
    late, new = replica("a4", OLD), [replica(f"a{n}", NEW) for n in (5, 6, 7)]
    for pod in new:
        pod.metadata.creation_timestamp = came
    late.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    stage.add(late, *new)
    stage.schedule()
    homes = {decision.pod.metadata.name: decision.node for decision in stage.bound}
    assert len(homes) == 4
    assert len({homes[pod.metadata.name] for pod in new}) == 2


@pytest.mark.parametrize("there", [False, True], ids=["first pods", "it grows"])
@pytest.mark.parametrize("fits", [False, True], ids=["too large", "it fits"])
def test_what_goes_is_nothing_to_begin_an_application_with(*, there: bool, fits: bool) -> None:
    """All or nothing holds for its first pods; later a revision that never fits must not hold up the other."""
    stage = Stage()
    stage.group(group_object("shop", *chain("a", "b")))
    if there:
        for pod in (replica("a1", OLD, on="n1"), replica("b1", OLD, on="n1")):
            stage.cache.update_pod(pod)
    old, new = [replica("a2", OLD), replica("b2", OLD)], [replica("a3", NEW), replica("b3", NEW)]
    new[0].spec.node_selector = {} if fits else {"no": "node"}
    for pod in new:
        pod.metadata.creation_timestamp = "2026-01-02T00:00:00Z"
    for pod in old:
        pod.metadata.creation_timestamp = "2026-01-01T00:00:00Z"
    stage.add(*old, *new)
    stage.schedule()
    placed = {pod.metadata.name for pod in (old if there or fits else []) + (new if fits else [])}
    assert stage.placed() == placed
    assert stage.conditions.keys() == {pod.metadata.name for pod in (*old, *new)} - placed


def test_those_that_come_last_or_matter_most_are_planned_first() -> None:
    old, new, urgent = replica("a1", OLD), replica("a2", NEW), replica("b1", OLD, spec={"priority": 1})
    late, other, nobody = replica("b2", NEW), replica("a3", OLD, deployment="a-canary"), member("c", "c")
    for pod, came in ((old, "1"), (new, "2"), (urgent, "1"), (late, "2"), (other, "1"), (nobody, "1")):
        pod.metadata.creation_timestamp = came
    assert apart([old, new, urgent, late, other, nobody]) == [[new, urgent, other, nobody], [old, late]]
    assert apart([old, nobody]) == [[old, nobody]]
    assert apart([]) == []


@pytest.mark.parametrize("home", ["z1", "z2", "z3"])
@pytest.mark.parametrize("surge", [1, 2])
def test_an_application_that_is_rolled_out_stays_where_it_is(home: str, surge: int) -> None:
    """Other zones are emptier, and would do as well if the old pods were gone; the others of it would be far away."""
    lab = Lab([zoned(f"{zone}-{n}", zone) for zone in ("z1", "z2", "z3") for n in range(2)])
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(*(replica(f"{name}{n}", OLD, on=f"{home}-{n}") for name in "ab" for n in range(2)))
    outcome = lab.place(shop, *(replica(f"{name}{n + 2}", NEW) for name in "ab" for n in range(surge)))
    assert {node.split("-")[0] for node in where(outcome).values()} == {home}
    assert all({*decision.terms} <= {"network", "survival"} for decision in outcome.decisions)


UNSPREAD = Profile.model_validate({"podTopologySpread": {"defaultingType": "List", "defaultConstraints": []}})


@pytest.mark.parametrize("placed", [0, 150], ids=["all at once", "the last of many"])
@pytest.mark.parametrize("number", [2, 150])
def test_it_goes_where_its_calls_are_nearer_however_many_replicas_there_are(number: int, placed: int) -> None:
    """An edge counts once, whatever the replicas: to stay must count no more for many."""
    lab = Lab([zoned(f"{zone}-{n}", zone, cpu="200") for zone in ("z1", "z2") for n in range(4)], UNSPREAD)
    shop = lab.group(group_object("shop", *chain("a", "b")))
    lab.see(*(replica(f"a{n}", OLD, on=f"z1-{n % 4}") for n in range(number)))
    lab.see(*(replica(f"b{n}", NEW, on=f"z2-{n}") for n in range(2)))
    lab.see(*(replica(f"ax{n}", NEW, on=f"z2-{n % 4}") for n in range(placed)))
    outcome = lab.place(shop, *(replica(f"a{n + number}", NEW) for n in range(number)))
    assert sum(node.startswith("z2") for node in where(outcome).values()) >= number - 1  # one may survive a zone


@pytest.mark.parametrize("far", [20.0, 2000.0])
def test_to_stay_is_not_worth_what_survives_however_far_the_other_zone_is(far: float) -> None:
    """Nobody calls it. From scratch one of two would be in another region, whose zones are as dear as they are far."""
    costs = replace(ZONE_COSTS, regions=both_ways({("r1", "r2"): far}))
    lab = Lab([zoned(f"{zone}-{n}", zone, region) for zone, region in (("z1", "r1"), ("z3", "r2")) for n in range(2)])
    lab.costs = costs
    shop = lab.group(group_object("shop", *chain("b", "c"), kinds.workload("a")))
    lab.see(*(replica(f"a{n}", OLD, on=f"z1-{n}") for n in range(2)))
    outcome = lab.place(shop, *(replica(f"a{n + 2}", NEW) for n in range(2)))
    assert {node.split("-")[0] for node in where(outcome).values()} == {"z1", "z3"}
