"""A node that has changed between plan and binding is judged by what has changed of it, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Never

import pytest

from berth.api.labels import LABEL_ZONE, RESOURCE_BANDWIDTH
from berth.kube.objects import CustomObject, Node, OwnerReference, Pod
from berth.scheduling.cache.cache import Cache
from controllers.placement.binder import BindOutcome, BindResult
from tests.support import builders
from tests.support.desk import Desk
from tests.support.placement import chain, group_object, lone, member, zoned
from tests.support.topologies import raw_topology, weight_set

WEB = {"app": "web"}
N1 = {"kubernetes.io/hostname": "n1"}
LINKED = {"r1>r2": {"networkCost": 20, "bandwidthCapacity": "50M"}, "r2>r1": {"networkCost": 20}}
Change = Callable[[Desk], None]


def on_n1(**spec: Any) -> dict[str, Any]:
    return {"nodeSelector": N1, **spec}


def apart_by(key: str) -> dict[str, Any]:
    term = builders.pod_term(key, WEB)
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def skewed(desk: Desk) -> None:
    """Another scheduler binds a pod of the same kind into the zone."""
    desk.pods(lone("peer", on="n1", labels=WEB))


def taken(desk: Desk) -> None:
    """What another group is charged with exceeds the node's budget."""
    desk.see("appgroups", group_object("other", *chain("a", "b", minBandwidth="80M")))
    desk.pods(member("oa", "a", group="other", on="n1"), member("ob", "b", group="other", on="n2"))


def owned(pod: Pod) -> Pod:
    pod.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name="rs", uid="rs", controller=True)]
    return pod


def rejected(desk: Desk) -> None:
    """A kubelet has rejected a pod of the same owner."""
    desk.cache.note_rejection(owned(lone("before", on="n1")))


def dearer(desk: Desk) -> None:
    """Calls to the other zone cost more than the pod allows."""
    weights = weight_set("UserDefined", zones={"z1>z2": 50, "z2>z1": 50})
    desk.see("networktopologies", CustomObject.of(raw_topology(weights, namespace="default")))


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """n1 in z1 with a budget, n2 in z2; at stated costs."""
    for node in (zoned("n1", "z1", extra={RESOURCE_BANDWIDTH: "100M"}), zoned("n2", "z2")):
        desk.see("nodes", node)
    weights = weight_set("UserDefined", zones={"z1>z2": 5, "z2>z1": 5})
    desk.see("networktopologies", CustomObject.of(raw_topology(weights, namespace="default")))
    desk.see("appgroups", group_object("shop", *chain("a", "b", minBandwidth="60M", maxNetworkCost=5)))
    desk.pods(member("b", "b", on="n2"))
    return desk


SPREAD = on_n1(topologySpreadConstraints=[builders.spread(LABEL_ZONE, WEB, nodeAffinityPolicy="Ignore")])
LABELLED = zoned("n1", "z1", extra={RESOURCE_BANDWIDTH: "100M"}, labels={"rack": "7"})


@pytest.mark.parametrize(
    ("pod", "cause"),
    [
        pytest.param(lone("p", labels=WEB, spec=SPREAD), skewed, id="a-skew-that-another-scheduler-makes"),
        pytest.param(lone("p", labels=WEB, spec=on_n1(**apart_by(LABEL_ZONE))), skewed, id="a-neighbour"),
        pytest.param(member("a", "a", spec=on_n1()), taken, id="calls-of-others"),
        pytest.param(member("a", "a", spec=on_n1()), dearer, id="costs"),
        pytest.param(owned(lone("p", spec=on_n1())), rejected, id="a-kubelet-that-rejected-its-like"),
    ],
)
async def test_what_is_not_of_the_node_is_not_held_against_it(
    desk: Desk, pod: Pod, cause: Change, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node has another label as well, which nobody reads."""
    bound = binding(desk, monkeypatch)
    assumed = desk.place(pod)
    cause(desk)
    desk.see("nodes", LABELLED)
    await desk.bind(assumed)
    assert bound == ["n1"]
    assert "NodeChanged" not in desk.said.reasons


@pytest.mark.parametrize(
    ("pod", "others", "node"),
    [
        pytest.param(lone("p", labels=WEB, spec=SPREAD), [], LABELLED, id="spread-by-other-labels"),
        pytest.param(lone("p", labels=WEB, spec=on_n1(**apart_by(LABEL_ZONE))), [], LABELLED, id="apart-by-others"),
        pytest.param(
            lone("p", labels=WEB, spec=on_n1()),
            [lone("hermit", on="n2", spec=apart_by(LABEL_ZONE))],
            LABELLED,
            id="others-apart-by-others",
        ),
        pytest.param(member("a", "a", spec=on_n1()), [], LABELLED, id="calls"),
    ],
)
async def test_what_nobody_reads_costs_nothing(
    desk: Desk, pod: Pod, others: list[Pod], node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is set aside, and no filter run: thousands of pods may be unbound while a labeller goes round."""
    bound = binding(desk, monkeypatch)
    desk.pods(*others)
    assumed = desk.place(pod)
    desk.see("nodes", node)

    def never(*_: Any) -> Never:
        raise AssertionError("the pod is judged again")

    monkeypatch.setattr(Cache, "set_aside", never)
    monkeypatch.setattr(Cache, "bandwidth", never)
    record = desk.cache.state.record(assumed.decision.pod.metadata.uid)
    assert record is not None
    assert desk.controller.binding.changed(assumed.decision.pod, record) is None
    assert bound == []


@pytest.mark.parametrize("owner", ["own", "others"])
@pytest.mark.parametrize("key", ["rack", LABEL_ZONE])
async def test_labels_that_rules_about_pods_name_are_read(
    desk: Desk, owner: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound = binding(desk, monkeypatch)
    desk.see("nodes", zoned("n1", "z1", labels={"rack": "6"}))
    desk.see("nodes", zoned("n2", "z2", labels={"rack": "7"}))
    rule = apart_by(key)
    desk.pods(lone("peer", on="n2", labels=WEB, spec={} if owner == "own" else rule))
    pod = lone("p", labels=WEB, spec=on_n1(**(rule if owner == "own" else {})))
    assumed = desk.place(pod)
    desk.see("nodes", zoned("n1", "z1" if key == "rack" else "z2", labels={"rack": "7" if key == "rack" else "6"}))
    await desk.bind(assumed)
    assert (bound, desk.said.reasons) == ([], ["NodeChanged"])
    message = "as it is now, InterPodAffinity rejects it: node(s) did"
    assert message in desk.said.notes[0].message


def binding(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Nodes that pods are bound to from now on."""
    bound: list[str] = []

    async def bind(_pod: Pod, node: str, **_: str) -> BindResult:
        bound.append(node)
        return BindResult(BindOutcome.BOUND)

    monkeypatch.setattr(desk.controller.binding._binder, "bind", bind)
    return bound
