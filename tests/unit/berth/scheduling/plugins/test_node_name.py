"""NodeName: a pod that names its node."""

from __future__ import annotations

from berth.scheduling.plugins.node_name import NodeName
from tests.support.builders import node, pod
from tests.support.filtering import cluster, passing


def test_named_node() -> None:
    state = cluster([node("a"), node("b")])
    assert passing(NodeName(), pod("new", on="b"), state) == {"b"}
    assert passing(NodeName(), pod("new", on="gone"), state) == set()
    assert passing(NodeName(), pod("new"), state) == {"a", "b"}
