"""NodeDeclaredFeatures: features that a pod cannot run without."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from berth.kube.objects import Pod
from berth.scheduling.plugins.node_declared_features import NodeDeclaredFeatures
from tests.support.builders import node, pod
from tests.support.filtering import cluster, passing


@pytest.mark.parametrize(
    ("spec", "feature"),
    [
        pytest.param(
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "RestartAllContainers"}]}]},
            "RestartAllContainersOnContainerExits",
            id="restart-all-containers",
        ),
        pytest.param(
            {"hostNetwork": True, "hostUsers": False}, "UserNamespacesHostNetworkSupport", id="user-namespace-on-host"
        ),
    ],
)
def test_declared_features(spec: dict[str, Any], feature: str) -> None:
    able, unable = node("able"), node("unable")
    able.status.declared_features = ["Another", feature]
    state = cluster([able, unable])
    assert passing(NodeDeclaredFeatures(), msgspec.convert({"spec": spec}, Pod), state) == {"able"}
    assert passing(NodeDeclaredFeatures(), pod("plain"), state) == {"able", "unable"}
