"""Why weight sets are keyed by name (docs/adr/0040): what a list without keys, as upstream has it, does instead."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from controllers.networktopology.weights import FIELD_MANAGER
from hack.harness.cluster import REPOSITORY, Kubectl
from hack.localcluster import LocalCluster
from tests.support.kinds import network_topology, weight_set

GROUP = "atomic.example.com"
CRD = REPOSITORY / "crds" / "networktopology.diktyo.x-k8s.io_networktopologies.yaml"


@pytest.fixture
def without_keys(cluster: LocalCluster, kubectl: Kubectl) -> Iterator[Kubectl]:
    """The kind under another group, its list of weight sets atomic."""
    crd = yaml.safe_load(CRD.read_text())
    crd["metadata"] = {"name": f"networktopologies.{GROUP}"}
    crd["spec"]["group"] = GROUP
    names = {name: value for name, value in crd["spec"]["names"].items() if name in ("kind", "listKind", "plural")}
    crd["spec"]["names"] = names
    for version in crd["spec"]["versions"]:
        weights = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["weights"]
        del weights["x-kubernetes-list-type"], weights["x-kubernetes-list-map-keys"]
    cluster.kubectl("apply", "--server-side", "-f", "-", input=json.dumps(crd))
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=120s", f"crd/networktopologies.{GROUP}")
    yield kubectl
    cluster.kubectl("delete", f"crd/networktopologies.{GROUP}", "--wait=false")


def topology(*sets: dict[str, Any]) -> str:
    return json.dumps({**network_topology(*sets), "apiVersion": f"{GROUP}/v1alpha1"})


def test_two_of_one_name_pass_and_nobody_can_add_a_set(without_keys: Kubectl) -> None:
    people = ("apply", "--server-side", "-f", "-")
    controller = (*people, f"--field-manager={FIELD_MANAGER}")
    stated, computed = weight_set("UserDefined", a={"b": 5}), weight_set("Dijkstra", a={"b": 5})

    def names() -> list[str]:
        return [item["name"] for item in without_keys.get(f"networktopologies.{GROUP}", "net")["spec"]["weights"]]

    without_keys(*people, input=topology(stated, stated))
    assert names() == ["UserDefined", "UserDefined"]
    assert "conflict" in without_keys.refused(*controller, input=topology(computed))
    # With force it takes away what people stated; with all sets in one apply, people can change nothing any more.
    without_keys(*controller, "--force-conflicts", input=topology(computed))
    assert names() == ["Dijkstra"]
    without_keys(*controller, input=topology(stated, computed))
    assert "conflict" in without_keys.refused(*people, input=topology(weight_set("UserDefined", a={"b": 6})))
