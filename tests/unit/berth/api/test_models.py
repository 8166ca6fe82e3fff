"""The two models: raw objects, among them upstream's manifests, read and written."""

from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from berth.api.appgroup import (
    AppGroup,
    AppGroupStatus,
    SortingAlgorithm,
    TopologyOrderEntry,
    order_summary,
)
from berth.api.networktopology import NetworkTopology, NetworkTopologyStatus, iter_costs
from berth.api.quantity import Quantity
from tests.support.kinds import app_group, network_topology, ref, weight_set, workload

UPSTREAM = sorted((Path(__file__).parents[3] / "data" / "upstream").glob("*.yaml"))
MODELS = {"AppGroup": AppGroup, "NetworkTopology": NetworkTopology}


@pytest.mark.parametrize("path", UPSTREAM, ids=[path.stem for path in UPSTREAM])
def test_upstream_manifests_are_read(path: Path) -> None:
    raw = yaml.safe_load(path.read_text())
    model = MODELS[raw["kind"]].parse(raw)
    assert model.metadata.name == raw["metadata"]["name"]
    # Writing the spec again loses nothing that the manifest says, whatever way it wrote its quantities.
    written = MODELS[raw["kind"]].parse(model.to_api())
    assert written.spec == model.spec


def test_appgroup_fields() -> None:
    group = AppGroup.parse(
        app_group(workload("a", "b", minBandwidth="100Mi", maxNetworkCost=7), workload("b"), numMembers=5)
    )
    assert group.spec.num_members == 5
    assert group.spec.topology_sorting_algorithm is SortingAlgorithm.KAHN_SORT
    edge = group.spec.workloads[0].dependencies[0]
    assert (edge.workload.selector, edge.min_bandwidth, edge.max_network_cost) == ("b", Quantity("100Mi"), 7)
    assert group.spec.workloads[1].dependencies == ()


def test_what_is_absent_is_none_and_not_zero() -> None:
    edge = AppGroup.parse(app_group(workload("a", "b"), workload("b"))).spec.workloads[0].dependencies[0]
    assert (edge.min_bandwidth, edge.max_network_cost) == (None, None)
    topology = NetworkTopology.parse(network_topology(weight_set(a={"b": {}})))
    [(_, _, cost)] = iter_costs(topology.spec.weights[0], "topology.kubernetes.io/zone")
    assert (cost.network_cost, cost.bandwidth_capacity, cost.bandwidth_allocated) == (None, None, None)


def test_an_object_as_the_api_server_sends_it() -> None:
    raw = app_group(workload("a"))
    raw["metadata"] |= {
        "namespace": "shop",
        "uid": "u-1",
        "generation": 4,
        "resourceVersion": "17",
        "creationTimestamp": "2026-01-31T12:00:00Z",
        "managedFields": [{"manager": "kubectl"}],
    }
    raw["status"] = {"runningWorkloads": 1, "addedByANewerVersion": {"x": 1}}
    group = AppGroup.parse(raw)
    assert (group.key, group.metadata.uid, group.metadata.generation) == ("shop/shop", "u-1", 4)
    assert group.metadata.creation_timestamp is not None
    assert group.metadata.creation_timestamp.isoformat() == "2026-01-31T12:00:00+00:00"
    assert group.status.running_workloads == 1


@pytest.mark.parametrize("model", [AppGroupStatus, NetworkTopologyStatus])
def test_an_empty_status_is_valid(model: type[AppGroupStatus] | type[NetworkTopologyStatus]) -> None:
    assert model.model_validate({}).conditions == ()


def test_status_is_written_in_the_wire_form() -> None:
    entry = TopologyOrderEntry.model_validate({"workload": ref("a"), "index": 1})
    status = AppGroupStatus(running_workloads=0, topology_order=(entry,), order_summary="a")
    assert status.to_api() == {
        "runningWorkloads": 0,
        "topologyOrder": [{"workload": ref("a"), "index": 1}],
        "orderSummary": "a",
        "podsScheduled": [],
        "conditions": [],
    }


def test_models_are_immutable_values() -> None:
    raw = app_group(workload("a", "b"), workload("b"))
    one, two = AppGroup.parse(raw), AppGroup.parse(raw)
    assert one.spec == two.spec
    assert hash(one.spec) == hash(two.spec)
    with pytest.raises(ValidationError, match="frozen"):
        one.spec.num_members = 3


@pytest.mark.parametrize(
    ("selectors", "summary"),
    [
        ([], ""),
        (["p1"], "p1"),
        (["p1", "p2", "p3"], "p1,p2,p3"),
        (["p1", "p10", "p9", "p8"], "p1,p10,p9,...(4)"),
        ([f"p{i}" for i in range(1, 12)], "p1,p2,p3,...(11)"),
    ],
    ids=["none", "one", "just-fits", "one-left-out", "eleven"],
)
def test_order_summary(selectors: list[str], summary: str) -> None:
    assert order_summary(selectors) == summary


def test_weight_sets_are_found_by_name_and_level() -> None:
    topology = NetworkTopology.parse(
        network_topology(
            weight_set(z1={"z2": 5, "z3": 7}, z2={"z1": 6}),
            weight_set("Dijkstra", key="topology.kubernetes.io/region", r={"s": 1}),
        )
    )
    user = topology.weight_set("UserDefined")
    assert user is not None
    costs = [(origin, to, cost.network_cost) for origin, to, cost in iter_costs(user, "topology.kubernetes.io/zone")]
    assert costs == [("z1", "z2", 5), ("z1", "z3", 7), ("z2", "z1", 6)]
    assert iter_costs(user, "topology.kubernetes.io/region") == []
    assert topology.weight_set("NetperfCosts") is None
