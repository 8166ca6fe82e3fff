"""Which filters look once more at a node that has changed since a pod was assumed there."""

from __future__ import annotations

from typing import Any

import pytest

from berth.api.labels import LABEL_ZONE
from berth.kube.objects import Pod
from berth.scheduling.cache.node_changes import NOTHING, NodeChange, NodePart
from berth.scheduling.cache.state import ClusterState
from berth.scheduling.configuration import Profile
from berth.scheduling.framework.framework import Framework
from berth.scheduling.framework.plugin import Afterwards
from berth.scheduling.plugins import PLUGINS
from berth.scheduling.plugins.volume_zone import OLD_ZONE
from tests.support import builders
from tests.support.placement import lone
from tests.support.volumes import using

WEB = {"app": "web"}
EVERYTHING = NodePart.PLACE | NodePart.AMOUNTS | NodePart.LINK | NodePart.SETTINGS | NodePart.FEATURES


def rule(kind: str, key: str, **labels: str) -> dict[str, Any]:
    term = builders.pod_term(key, labels or WEB)
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def spread(key: str) -> dict[str, Any]:
    return {"topologySpreadConstraints": [builders.spread(key, WEB)]}


def concerned(pod: Pod, parts: NodePart, *labels: str, placed: Pod | None = None) -> list[str]:
    state = ClusterState()
    state.update_node(builders.node("n1"))
    if placed is not None:
        state.update_pod(placed)
    framework = Framework(plugin.of(Profile()) for plugin in PLUGINS)
    change = NodeChange(parts, frozenset(labels))
    return [plugin.name for plugin in framework.concerned(Afterwards(state.info(pod), state, change))]


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        (NOTHING, []),
        (NodePart.PLACE, ["NetworkOverhead", "Bandwidth"]),
        (NodePart.AMOUNTS, ["UsageThreshold"]),
        (NodePart.LINK, ["NodeBandwidth", "CheckRiskNodeBandwidth", "Bandwidth"]),
        (NodePart.SETTINGS, ["NodeBandwidth", "MaxUnit", "UsageThreshold", "Bandwidth"]),
        (NodePart.FEATURES, ["NodeDeclaredFeatures"]),
    ],
    ids=str,
)
def test_parts_of_a_node(parts: NodePart, names: list[str]) -> None:
    assert concerned(lone("p"), parts) == names


@pytest.mark.parametrize(
    ("spec", "placed", "label", "names"),
    [
        pytest.param({}, None, "rack", [], id="nobody"),
        pytest.param(rule("podAffinity", "rack"), None, "rack", ["InterPodAffinity"], id="affinity"),
        pytest.param(rule("podAntiAffinity", "rack"), None, "rack", ["InterPodAffinity"], id="anti-affinity"),
        pytest.param(rule("podAffinity", "rack"), None, "row", [], id="affinity-by-another"),
        pytest.param({}, rule("podAntiAffinity", "rack"), "rack", ["InterPodAffinity"], id="others-apart"),
        pytest.param({}, rule("podAntiAffinity", "rack"), "row", [], id="others-apart-by-another"),
        pytest.param({}, rule("podAntiAffinity", "rack", app="db"), "rack", [], id="others-apart-from-others"),
        pytest.param({}, rule("podAffinity", "rack"), "rack", [], id="others-near"),
        pytest.param(spread("rack"), None, "rack", ["PodTopologySpread"], id="spread"),
        pytest.param(spread("rack"), None, "row", [], id="spread-by-another"),
        pytest.param(using("c"), None, "rack", ["VolumeBinding"], id="a-volume"),
        pytest.param(using("c"), None, LABEL_ZONE, ["VolumeBinding", "VolumeZone"], id="a-volume-and-the-zone"),
        pytest.param(using("c"), None, OLD_ZONE, ["VolumeBinding", "VolumeZone"], id="a-volume-and-the-old-zone"),
        pytest.param({"nodeSelector": {"rack": "1"}}, None, "rack", [], id="selector-which-is-looked-at-apart"),
    ],
)
def test_labels(spec: dict[str, Any], placed: dict[str, Any] | None, label: str, names: list[str]) -> None:
    other = lone("other", on="n1", spec=placed) if placed is not None else None
    assert concerned(lone("p", labels=WEB, spec=spec), NOTHING, label, placed=other) == names


@pytest.mark.parametrize(
    "spec", [spread("rack"), using("c"), rule("podAffinity", "rack")], ids=["spread", "claim", "affinity"]
)
def test_rules_by_labels_are_no_matter_of_anything_else(spec: dict[str, Any]) -> None:
    own = {"PodTopologySpread", "VolumeBinding", "VolumeZone", "InterPodAffinity"}
    assert own.isdisjoint(concerned(lone("p", spec=spec), EVERYTHING))
