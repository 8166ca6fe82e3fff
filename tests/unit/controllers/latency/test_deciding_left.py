"""A node that pods have left: what agents say of it counts at once, and where a pod is what its meter says does."""

from __future__ import annotations

import pytest

from berth.api.latency_exchange import UserRoundTrips
from berth.api.latencypolicy import LatencyPolicyStatus, MeasurementSource, NodeStatus, Sharing
from berth.kube.objects import ObjectMeta
from controllers.latency.objects import NetworkNode
from tests.support.latency import METER, NOW, PROBE, later
from tests.unit.controllers.latency.test_deciding import KEY, Room

FAR = 90_000
METERED = LatencyPolicyStatus(
    nodes=tuple(
        NodeStatus(node=node, source=METER, p50_microseconds=FAR, p90_microseconds=FAR, samples=15, time=NOW)
        for node in ("a", "b", "c")
    )
)


@pytest.mark.parametrize(
    ("sharing", "sources"),
    [
        pytest.param(Sharing.NODE, {"a": METER, "b": PROBE, "c": PROBE}, id="of the pod's node"),
        pytest.param(Sharing.ZONE, {"a": METER, "b": METER, "c": PROBE}, id="of all nodes of the pod's zone"),
    ],
)
async def test_what_a_meter_says_stands_where_a_pod_is(sharing: Sharing, sources: dict[str, MeasurementSource]) -> None:
    room = Room(mode="Single", status=METERED)
    for node, zone in {"a": "z1", "b": "z1", "c": "z2"}.items():
        labels = {"topology.kubernetes.io/zone": zone}
        room.places.node_changed(None, NetworkNode(metadata=ObjectMeta(name=node, labels=labels)))
    room.policy = room.policy.model_copy(update={"spec": room.policy.spec.model_copy(update={"sharing": sharing})})
    room.observations.served(KEY, room.places.place_of("a", sharing), [UserRoundTrips("u", (FAR,), 0.0)], NOW)
    for place in room.places.nodes_by_place(sharing):
        room.observations.probed(KEY, place, "203.0.113.1", (10_000,) * 3, later(5))
    found = await room.choose(6)
    assert {known.node: known.source for known in found.status.nodes} == sources
