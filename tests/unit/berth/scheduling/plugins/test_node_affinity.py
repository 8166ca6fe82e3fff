"""NodeAffinity: nodeSelector and required terms."""

from __future__ import annotations

from berth.scheduling.plugins.node_affinity import REASON as REASON_SELECTOR
from berth.scheduling.plugins.node_affinity import NodeAffinity
from tests.support.builders import node, pod, required_affinity
from tests.support.filtering import cluster, cycle_of, rejected


def test_selectors() -> None:
    state = cluster([node("a", labels={"disk": "ssd", "zone": "1"}), node("b", labels={"disk": "ssd"}), node("c")])
    spec = {"nodeSelector": {"disk": "ssd"}, "affinity": required_affinity(("zone", "Exists", []))}
    new = pod("new", spec=spec)
    assert rejected(NodeAffinity(), new, state) == {"b": [REASON_SELECTOR], "c": [REASON_SELECTOR]}
    assert NodeAffinity().filter(cycle_of(pod("plain"), state)) == ()
