"""A node that changes between plan and binding: whatever its new labels, amounts and annotations make false counts."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.labels import LABEL_WORKLOAD, LABEL_ZONE, RESOURCE_BANDWIDTH
from berth.kube.objects import CustomObject, Node, Pod
from controllers.placement.binder import BindOutcome, BindResult
from tests.support import builders
from tests.support.desk import Desk
from tests.support.placement import chain, group_object, lone, member, zoned
from tests.support.topologies import Stated, raw_topology, weight_set
from tests.support.volumes import claim, storage_class, using, volume

HOST = "kubernetes.io/hostname"
WEB = {"app": "web"}
LINKED: Stated = {"r1>r2": {"networkCost": 20, "bandwidthCapacity": "50M"}, "r2>r1": {"networkCost": 20}}


def wants(kind: str, **labels: str) -> dict[str, Any]:
    """Required pod affinity or anti-affinity within a zone."""
    term = builders.pod_term(LABEL_ZONE, labels)
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def annotated(node: Node, **settings: str) -> Node:
    node.metadata.annotations = {f"berth.dev/{name.replace('_', '-')}": value for name, value in settings.items()}
    return node


def on_n1(**spec: Any) -> dict[str, Any]:
    return {"nodeSelector": {HOST: "n1"}, **spec}


SPREAD = on_n1(topologySpreadConstraints=[builders.spread(LABEL_ZONE, WEB, nodeAffinityPolicy="Ignore")])
NEAR = on_n1(**wants("podAffinity", app="web"))
APART = on_n1(**wants("podAntiAffinity", app="web"))
ALONE = on_n1()
NEIGHBOUR = lone("peer", on="n2", labels=WEB)
HERMIT = lone("hermit", on="n2", spec=wants("podAntiAffinity", app="web"))


@pytest.fixture
def desk(desk: Desk) -> Desk:
    """n1 in z1, n2 in z2, n3 in z3 of another region, at stated costs and with a link between regions."""
    for node in (zoned("n1", "z1"), zoned("n2", "z2"), zoned("n3", "z3", "r2")):
        desk.see("nodes", node)
    weights = weight_set("UserDefined", regions=dict(LINKED), zones={"z1>z2": 5, "z2>z1": 5})
    desk.see("networktopologies", CustomObject.of(raw_topology(weights, namespace="default")))
    return desk


@pytest.mark.parametrize(
    ("others", "pod", "node", "plugin"),
    [
        pytest.param(
            [lone("peer", on="n2", labels=WEB)],
            lone("p", labels=WEB, spec=SPREAD),
            zoned("n1", "z2"),
            "PodTopologySpread",
            id="spread",
        ),
        pytest.param(
            [lone("peer", on="n2", labels=WEB)],
            lone("p", labels=WEB, spec=SPREAD),
            builders.node("n1"),
            "PodTopologySpread",
            id="spread-and-no-zone-any-more",
        ),
        pytest.param(
            [lone("peer", on="n1", labels=WEB)], lone("p", spec=NEAR), zoned("n1", "z3"), None, id="near-one-beside-it"
        ),
        pytest.param([NEIGHBOUR], lone("p", spec=APART), zoned("n1", "z2"), "InterPodAffinity", id="apart-from-others"),
        pytest.param(
            [HERMIT],
            lone("p", labels=WEB, spec=on_n1()),
            zoned("n1", "z2"),
            "InterPodAffinity",
            id="others-apart",
        ),
        pytest.param([NEIGHBOUR], lone("p", spec=APART), zoned("n1", "z3"), None, id="apart-still"),
        pytest.param(
            [],
            lone("p", cpu="2", spec=ALONE),
            annotated(zoned("n1", "z1"), max_unit_cpu="1"),
            "MaxUnit",
            id="max-unit",
        ),
        pytest.param(
            [],
            lone("p", cpu="2"),
            annotated(zoned("n1", "z1"), usage_threshold="0.25"),
            "UsageThreshold",
            id="usage-threshold",
        ),
        pytest.param([], lone("p"), annotated(zoned("n1", "z1"), price_cpu="5"), None, id="price"),
    ],
)
async def test_what_a_pod_on_its_own_needs(
    desk: Desk, others: list[Pod], pod: Pod, node: Node, plugin: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.pods(*others)
    await look(desk, pod, node, plugin, monkeypatch)


async def test_a_pod_that_is_no_longer_near_whom_it_must_be(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.see("nodes", zoned("n2", "z1"))
    desk.pods(NEIGHBOUR)
    await look(desk, lone("p", spec=NEAR), zoned("n1", "z2"), "InterPodAffinity", monkeypatch)


@pytest.mark.parametrize(
    ("demand", "before", "node", "plugin"),
    [
        pytest.param({"maxNetworkCost": 5}, zoned("n1", "z1"), zoned("n1", "z3", "r2"), "NetworkOverhead", id="cost"),
        pytest.param({"maxNetworkCost": 20}, zoned("n1", "z1"), zoned("n1", "z3", "r2"), None, id="cost-within-limits"),
        pytest.param({"minBandwidth": "60M"}, zoned("n1", "z1"), zoned("n1", "z3", "r2"), "Bandwidth", id="link"),
        pytest.param({"minBandwidth": "50M"}, zoned("n1", "z1"), zoned("n1", "z3", "r2"), None, id="link-with-room"),
        pytest.param(
            {"minBandwidth": "60M"},
            zoned("n1", "z1", extra={RESOURCE_BANDWIDTH: "100M"}),
            zoned("n1", "z1", extra={RESOURCE_BANDWIDTH: "50M"}),
            "Bandwidth",
            id="link-of-the-node",
        ),
    ],
)
async def test_what_a_member_needs_of_the_network(
    desk: Desk, demand: dict[str, Any], before: Node, node: Node, plugin: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.see("nodes", before)
    desk.see("appgroups", group_object("shop", *chain("a", "b", **demand)))
    desk.pods(member("b", "b", on="n2"))
    await look(desk, member("a", "a", spec=on_n1()), node, plugin, monkeypatch)


async def look(desk: Desk, pod: Pod, node: Node, plugin: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a pod decided for n1, n1 changed, and the pod bound: it is refused by a plugin, or bound."""
    bound: list[str] = []

    async def bind(_pod: Pod, node: str, **_: str) -> BindResult:
        bound.append(node)
        return BindResult(BindOutcome.BOUND)

    monkeypatch.setattr(desk.controller.binding._binder, "bind", bind)
    desk.pods(pod)
    (assumed,) = desk.decide()
    assert assumed.decision.node == "n1"
    before = desk.cache.bandwidth().nodes.copy()
    desk.see("nodes", node)
    await desk.bind(assumed)
    if plugin is None:
        assert (bound, desk.said.reasons) == (["n1"], ["Scheduled"])
        assert desk.cache.node_of(pod) == "n1"
        assert desk.cache.bandwidth().nodes == before
    else:
        assert (bound, desk.said.reasons) == ([], ["NodeChanged"])
        assert f"as it is now, {plugin} rejects it: node(s)" in desk.said.notes[0].message
        assert desk.cache.node_of(pod) == ""
        assert [entry.key.name for entry in desk.queue.entries()] != []


async def test_a_node_that_is_as_it_was_is_not_judged_again(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat shows it anew; what others have taken since does not count as a change of the node."""
    monkeypatch.setattr(desk.controller.binding, "_refusal", None)
    assumed = desk.place(lone("p", spec=on_n1()))
    desk.see("nodes", zoned("n1", "z1"))
    record = desk.cache.state.record(assumed.decision.pod.metadata.uid)
    assert record is not None
    assert desk.controller.binding.changed(assumed.decision.pod, record) is None


async def test_the_rest_of_a_group_stays_where_it_is_and_the_pod_finds_another_place(desk: Desk) -> None:
    """Two of a workload, one in each zone; the node of one moves to the other zone before it is bound."""
    desk.see("appgroups", group_object("shop", *chain("a", "b")))
    rule = [builders.spread(LABEL_ZONE, {LABEL_WORKLOAD: "a"})]
    desk.pods(*(member(f"a{n}", "a", cpu="3", spec={"topologySpreadConstraints": rule}) for n in range(2)))
    desk.pods(member("b0", "b", cpu="100m"))
    decided = {item.decision.pod.metadata.name: item for item in desk.decide()}
    first, second = decided["a0"].decision, decided["a1"].decision
    zones = {"n1": "z1", "n2": "z2", "n3": "z3"}
    assert zones[first.node] != zones[second.node]
    desk.see("nodes", zoned(first.node, zones[second.node]))
    desk.see("nodes", zoned("n4", "z4"))
    await desk.bind(decided["a0"])
    assert desk.said.reasons[-1] == "NodeChanged"
    (entry,) = desk.queue.entries()
    desk.controller.cycle.schedule_one(entry)
    assert desk.cache.node_of(first.pod) not in ("", first.node, second.node)
    assert desk.cache.node_of(second.pod) == second.node


def test_only_an_assumed_pod_can_be_set_aside(desk: Desk) -> None:
    pod = lone("p", on="n1")
    desk.pods(pod)
    with pytest.raises(ValueError, match="pod default/p is not assumed on any node"), desk.cache.set_aside(pod):
        pass
    assert desk.cache.node_of(pod) == "n1"


def test_a_pod_that_is_judged_again_keeps_its_volume(desk: Desk) -> None:
    for plural, item in (
        ("storageclasses", storage_class()),
        ("persistentvolumes", volume("v")),
        ("persistentvolumeclaims", claim("c")),
    ):
        desk.see(plural, item)
    assumed = desk.place(lone("p", spec={**using("c"), **ALONE}))
    desk.see("nodes", zoned("n1", "z1", labels={"disk": "ssd"}))
    pod = assumed.decision.pod
    record = desk.cache.state.record(pod.metadata.uid)
    assert record is not None
    assert desk.controller.binding.changed(pod, record) is None
    assert desk.cache.state.volumes.reserved_for("v") == "default/c"
    assert desk.cache.node_of(pod) == "n1"
