"""NodeUnschedulable: cordoned nodes."""

from __future__ import annotations

from typing import Any

import pytest

from berth.scheduling.plugins.node_unschedulable import NodeUnschedulable
from tests.support.builders import node, pod
from tests.support.filtering import cluster, rejected


@pytest.mark.parametrize(
    ("toleration", "admitted"),
    [
        pytest.param(None, False, id="none"),
        pytest.param({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}, True, id="any-effect"),
        pytest.param(
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoSchedule"}, True, id="effect"
        ),
        pytest.param(
            {"key": "node.kubernetes.io/unschedulable", "operator": "Exists", "effect": "NoExecute"},
            False,
            id="other-effect",
        ),
        pytest.param({"operator": "Exists"}, True, id="everything"),
    ],
)
def test_cordoned_nodes(toleration: dict[str, Any] | None, admitted: bool) -> None:
    state = cluster([node("open"), node("cordoned", unschedulable=True)])
    new = pod("new", spec={"tolerations": [toleration] if toleration else []})
    expected = {} if admitted else {"cordoned": ["node(s) were unschedulable"]}
    assert rejected(NodeUnschedulable(), new, state) == expected
