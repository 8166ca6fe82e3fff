"""The examples agree with each other and with the demo cluster. That they apply and run is tested with a cluster."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from berth.api.appgroup import AppGroup
from berth.api.labels import LABEL_REGION, LABEL_ZONE, SCHEDULER_NAME, Membership, membership
from berth.api.networktopology import NetworkTopology, iter_costs
from berth.api.quantity import Quantity

ROOT = Path(__file__).parents[2]
EDGES = {1: [2, 3, 4, 6, 8, 9, 10], 2: [11], 8: [2, 3, 4, 5, 6, 7], 9: [3]}
REQUESTS = {
    "frontend": ("100m", "64Mi"),
    "cartservice": ("200m", "64Mi"),
    "productcatalogservice": ("100m", "64Mi"),
    "currencyservice": ("100m", "64Mi"),
    "paymentservice": ("100m", "64Mi"),
    "shippingservice": ("100m", "64Mi"),
    "emailservice": ("100m", "64Mi"),
    "checkoutservice": ("100m", "64Mi"),
    "recommendationservice": ("100m", "220Mi"),
    "adservice": ("200m", "180Mi"),
    "redis-cart": ("70m", "200Mi"),
}


def documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((ROOT / "examples" / name).read_text()))


@pytest.fixture
def group() -> AppGroup:
    [raw] = documents("01-appgroup-online-boutique.yaml")
    return AppGroup.parse(raw)


@pytest.fixture
def deployments() -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in documents("03-online-boutique-deployments.yaml")}


def topology() -> NetworkTopology:
    [raw] = documents("02-networktopology.yaml")
    return NetworkTopology.parse(raw)


def demo_zones() -> dict[str, list[str]]:
    demo = yaml.safe_load((ROOT / "hack" / "topologies" / "demo.yaml").read_text())
    return {region["name"]: [zone["name"] for zone in region["zones"]] for region in demo["regions"]}


def test_the_graph_is_online_boutique(group: AppGroup) -> None:
    selectors = [item.workload.selector for item in group.spec.workloads]
    assert selectors == list(REQUESTS)
    found = {
        number: [selectors.index(edge.workload.selector) + 1 for edge in item.dependencies]
        for number, item in enumerate(group.spec.workloads, start=1)
        if item.dependencies
    }
    assert found == EDGES
    assert group.spec.num_members == len(selectors)


def test_every_edge_states_what_it_needs(group: AppGroup) -> None:
    for item in group.spec.workloads:
        for edge in item.dependencies:
            assert edge.min_bandwidth is not None
            assert Quantity(edge.min_bandwidth) > Quantity(0)
            assert edge.max_network_cost is not None


def test_deployments_are_the_workloads_of_the_group(group: AppGroup, deployments: dict[str, Any]) -> None:
    assert list(deployments) == [item.workload.name for item in group.spec.workloads]
    for item in group.spec.workloads:
        template = deployments[item.workload.name]["spec"]["template"]
        assert template["spec"]["schedulerName"] == SCHEDULER_NAME
        assert membership(template["metadata"]["labels"]) == Membership(group.metadata.name, item.workload.selector)


def test_requests_are_those_of_the_release(deployments: dict[str, Any]) -> None:
    found = {
        name: tuple(item["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"].values())
        for name, item in deployments.items()
    }
    assert found == REQUESTS


def test_costs_cover_the_demo_cluster() -> None:
    weights = topology().weight_set("UserDefined")
    assert weights is not None
    regions = demo_zones()
    pairs = {(origin, to) for origin, to, _ in iter_costs(weights, LABEL_REGION)}
    assert pairs == {(a, b) for a in regions for b in regions if a != b}
    pairs = {(origin, to) for origin, to, _ in iter_costs(weights, LABEL_ZONE)}
    assert pairs == {(a, b) for zones in regions.values() for a in zones for b in zones if a != b}


def test_no_edge_of_the_application_is_impossible(group: AppGroup) -> None:
    weights = topology().weight_set("UserDefined")
    assert weights is not None
    cheapest = min(cost.network_cost or 0 for _, _, cost in iter_costs(weights, LABEL_ZONE))
    limits = [edge.max_network_cost for item in group.spec.workloads for edge in item.dependencies]
    assert min(limit for limit in limits if limit is not None) >= cheapest


def test_measurements_are_in_upstreams_form_and_cover_every_pair_of_zones() -> None:
    [source] = documents("04-configmap-netperf.yaml")
    assert (
        f'"configmapName":"{source["metadata"]["name"]}"' in (ROOT / "examples/04-configmap-netperf.yaml").read_text()
    )
    nodes = [f"{zone}-01" for zones in demo_zones().values() for zone in zones]
    wanted = {f"netperf.p90.latency.milliseconds.origin.{a}.destination.{b}" for a in nodes for b in nodes if a != b}
    assert set(source["data"]) == wanted
    assert all(float(value) > 0 for value in source["data"].values())


def replicated(kind: str) -> dict[str, dict[str, Any]]:
    """Objects of the example with replicas, by name."""
    found = [item for path in sorted((ROOT / "examples" / "replicas").glob("*.yaml")) for item in documents(str(path))]
    assert all(item["kind"] == "Namespace" or item["metadata"]["namespace"] == "boutique" for item in found)
    return {item["metadata"]["name"]: item for item in found if item["kind"] == kind}


def test_the_example_with_replicas_is_the_same_application(
    group: AppGroup, deployments: dict[str, dict[str, Any]]
) -> None:
    made = replicated("Deployment")
    [raw] = replicated("AppGroup").values()
    again = AppGroup.parse(raw)
    assert again.spec.workloads == group.spec.workloads
    assert again.spec.num_members == sum(item["spec"]["replicas"] for item in made.values()) == 31
    assert [item["spec"]["template"] for item in made.values()] == [
        item["spec"]["template"] for item in deployments.values()
    ]
    [network] = replicated("NetworkTopology").values()
    assert network["spec"] == documents("02-networktopology.yaml")[0]["spec"]


def test_every_workload_of_the_example_with_replicas_has_a_service_that_keeps_calls_near() -> None:
    services, made = replicated("Service"), replicated("Deployment")
    assert list(services) == list(made)
    for name, service in services.items():
        spec, template = service["spec"], made[name]["spec"]["template"]
        assert spec["selector"] == {"app": template["metadata"]["labels"]["app"]}
        [port] = template["spec"]["containers"][0]["ports"]
        assert [item["targetPort"] for item in spec["ports"]] == [port["containerPort"]]
        several = made[name]["spec"]["replicas"] > 1
        assert spec.get("trafficDistribution") == ("PreferSameZone" if several else None)


def test_no_two_examples_state_the_same_object() -> None:
    stated = [
        (item["kind"], item["metadata"]["name"])
        for path in sorted((ROOT / "examples").glob("*.yaml"))
        for item in documents(path.name)
    ]
    assert len(stated) == len(set(stated))
