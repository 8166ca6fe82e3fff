"""The waiting pods of an AppGroup as a problem in counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from berth.kube.objects import OwnerReference, Pod, Service
from berth.network.costs import NO_COSTS
from berth.network.routing import Routing
from berth.scheduling.configuration import Link, Profile
from berth.scheduling.framework.framework import FilterResult
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.budget import finish
from berth.scheduling.gang.problem import Weights
from berth.scheduling.replica_plan.question import Question, pose
from berth.scheduling.replicas.model import Model
from tests.support import builders
from tests.support.placement import Lab, chain, group_object, member, zoned

WORKLOAD = "appgroup.diktyo.x-k8s.io.workload"
BANDWIDTH = "network.aware.com/bandwidth"


def lab(**arguments: Any) -> Lab:
    """n0 and n1 in z1, n2 in z3 of another region, n3 nowhere."""
    nodes = [zoned("n0", "z1", "r1"), zoned("n1", "z1", "r1"), zoned("n2", "z3", "r2"), builders.node("n3")]
    return Lab(nodes, **arguments)


def asked(
    small: Lab, *pods: Pod, edges: dict[str, Any] | None = None, spec: dict[str, Any] | None = None
) -> Question | None:
    """The question about waiting pods of a chain a -> b -> c; `edges` are fields of its dependencies."""
    group = small.group(group_object("shop", *chain("a", "b", "c", **(edges or {}))))
    small.see(*pods)
    state = small.cache.state
    everywhere = FilterResult(mask=state.alive.copy(), nodes=state.size)
    infrastructure = small.planner.view.current(small.costs, small.cache.bandwidth())
    return finish(
        pose(
            group,
            [Candidate(state.info(pod), everywhere, {}) for pod in pods],
            small.cache,
            lambda: infrastructure,
            small.planner.view.places,
            Weights(),
            enforce_limits=small.costs.available,
        )
    )


def question(small: Lab, *pods: Pod, **arguments: Any) -> Question:
    found = asked(small, *pods, **arguments)
    assert found is not None
    return found


def prefer(workload: str, value: str = "PreferSameZone") -> Service:
    spec = {"selector": {WORKLOAD: workload}, "trafficDistribution": value}
    return msgspec.convert({"metadata": {"name": workload, "namespace": "default"}, "spec": spec}, Service)


def test_pod_sets_that_cost_the_same_share_their_charges_in_the_problem_and_in_the_search() -> None:
    priced = lab(profile=Profile.model_validate({"prices": {"cpu": 0.5}}))
    made = question(priced, member("a0", "a", cpu="1"), member("b0", "b", cpu="1"), member("c0", "c", cpu="2")).problem
    charge = Model(made, np.array([0, 2])).charge
    for costs in ([pods.cost for pods in made.pod_sets], charge):
        assert costs[0] is costs[1]
        assert costs[0] is not costs[2]
    assert [each.tolist() for each in charge if each is not None] == [[0.5, 0.5], [0.5, 0.5], [1.0, 1.0]]


def test_pods_of_one_template_are_a_pod_set_and_templates_of_one_workload_share_it() -> None:
    old, new = [member(f"a{n}", "a", cpu="1") for n in range(2)], [member("a2", "a", cpu="2")]
    made = question(lab(), *old, *new, member("b0", "b")).problem
    assert [(pods.workload, pods.replicas, int(pods.request[0])) for pods in made.pod_sets] == [
        (0, 2, 1000),
        (0, 1, 2000),
        (1, 1, 0),
    ]
    assert [each.name for each in made.workloads] == ["a", "b"]
    assert [(edge.caller, edge.callee) for edge in made.edges] == [(0, 1)]


def test_placed_members_stay_where_they_are_unless_they_are_being_deleted() -> None:
    small = lab()
    small.see(member("b0", "b", on="n2"), member("b1", "b", on="n2"), member("b2", "b", on="n0", deleting=True))
    made = question(small, member("a0", "a")).problem
    assert {each.name: dict(each.placed) for each in made.workloads} == {"a": {}, "b": {2: 2}}


def test_nodes() -> None:
    small = lab()
    small.see(member("x", "x", cpu="1", on="n1", group="other"))
    nodes = question(small, member("a0", "a")).problem.nodes
    assert nodes.free.dtype == np.int64
    assert nodes.free[:, 0].tolist() == [4000, 3000, 4000, 4000]
    assert nodes.zone[0] == nodes.zone[1]
    assert len(set(nodes.zone.tolist())) == 3
    assert nodes.service_zone is not None
    assert nodes.service_zone[nodes.location].tolist() == [0, 0, 1, -1]
    assert nodes.location_cost[nodes.location[0], nodes.location[2]] == 20.0
    assert nodes.reserve is None
    assert nodes.bandwidth is None


def test_what_a_threshold_keeps_back_is_open_to_pods_that_name_the_node() -> None:
    named = member("b0", "b", cpu="1", spec={"nodeSelector": {"kubernetes.io/hostname": "n0"}})
    made = question(lab(profile=Profile(usage_threshold=0.75)), member("a0", "a", cpu="1"), named).problem
    assert made.nodes.reserve is not None
    assert made.nodes.reserve[:, 0].tolist() == [1000] * 4
    assert [pods.names_nodes for pods in made.pod_sets] == [False, True]


def test_prices_and_largest_units() -> None:
    small = lab()
    node = zoned("n0", "z1", "r1")
    node.metadata.annotations = {"berth.dev/price-cpu": "3", "berth.dev/max-unit-cpu": "1"}
    small.cache.update_node(node)
    (pods, large) = question(small, member("a0", "a", cpu="1"), member("b0", "b", cpu="2")).problem.pod_sets
    assert pods.cost is not None
    assert pods.cost.tolist() == [3.0, 0.0, 0.0, 0.0]
    assert pods.mask is not None
    assert large.mask is not None
    assert (pods.mask.tolist(), large.mask.tolist()) == ([True] * 4, [False, True, True, True])


@pytest.mark.parametrize(
    ("limit", "costs", "routing", "most"),
    [
        pytest.param({}, None, Routing.SAME_ZONE, np.inf, id="no limit"),
        pytest.param({"maxNetworkCost": 5}, None, Routing.SAME_ZONE, 5.0, id="a limit holds for whom is reached"),
        pytest.param({"maxNetworkCost": 200}, None, Routing.SAME_ZONE, 200.0, id="a limit that rules nothing out"),
        pytest.param({"maxNetworkCost": 5}, NO_COSTS, Routing.SAME_ZONE, np.inf, id="no costs, no limits"),
    ],
)
def test_routing_and_limits(limit: dict[str, int], costs: Any, routing: Routing, most: float) -> None:
    small = lab(**({} if costs is None else {"costs": costs}))
    small.cache.update_service(prefer("b"))
    made = question(small, member("a0", "a"), member("b0", "b"), edges=limit).problem
    assert [each.routing for each in made.workloads] == [Routing.ALL, routing]
    assert [edge.max_cost for edge in made.edges] == [most]


def limited() -> Lab:
    small = lab()
    small.cache.update_node(zoned("n0", "z1", "r1", extra={BANDWIDTH: "100M"}))
    return small


def test_bandwidth_of_a_group_is_counted_anew_with_that_of_its_placed_pods() -> None:
    small = limited()
    small.see(member("a0", "a", on="n0"), member("b0", "b", on="n1"))
    found = question(small, member("b1", "b"), edges={"minBandwidth": "10M"})
    assert (found.judged, found.carried) == (False, True)
    assert found.problem.nodes.bandwidth is not None
    assert found.problem.nodes.bandwidth.tolist() == [100e6, np.inf, np.inf, np.inf]
    assert [edge.bandwidth for edge in found.problem.edges] == [10e6]


def revision(name: str, template: str, *, on: str = "") -> Pod:
    """Pod of a revision of the Deployment a."""
    owner = f"a-{template}"
    pod = member(f"{owner}-{name}", "a", on=on, labels={"pod-template-hash": template})
    pod.metadata.owner_references = [OwnerReference(kind="ReplicaSet", name=owner, uid=owner, controller=True)]
    return pod


@pytest.mark.parametrize(("edges", "leaving"), [({"minBandwidth": "10M"}, {0: 2}), ({}, {})], ids=["some", "none"])
def test_pods_that_a_rollout_replaces_count_for_bandwidth_alone(edges: dict[str, str], leaving: dict[int, int]) -> None:
    small = limited()
    small.see(revision("a0", "old", on="n0"), revision("a1", "old", on="n0"), revision("a2", "new", on="n1"))
    small.see(member("b0", "b", on="n2"))
    made = question(small, revision("a3", "new"), edges=edges).problem
    assert [dict(each.placed) for each in made.workloads] == [{1: 1}, {2: 1}]
    assert [dict(each.leaving) for each in made.workloads] == [leaving, {}]


def test_bandwidth_is_routed_as_the_service_says() -> None:
    small = limited()
    small.cache.update_service(prefer("b"))
    made = question(small, member("a0", "a"), member("b0", "b"), edges={"minBandwidth": "10M"}).problem
    assert [each.routing for each in made.workloads] == [Routing.ALL, Routing.SAME_ZONE]


def linked() -> Lab:
    return lab(profile=Profile(links=[Link(name="up", capacity="1G", nodes=["n0"])]))


def priced() -> Lab:
    return lab(profile=Profile(prices={"bandwidth": 1.0}))


def same_zone_twice() -> Lab:
    small = Lab([zoned("n0", "z1", "r1"), zoned("n1", "z1", "r2")])
    small.cache.update_service(prefer("b"))
    return small


@pytest.mark.parametrize("cluster", [linked, priced])
@pytest.mark.parametrize("bandwidth", [None, "10M"])
def test_links_and_prices_of_bandwidth_cannot_be_said_in_counts(
    cluster: Callable[[], Lab], bandwidth: str | None
) -> None:
    edges = {"minBandwidth": bandwidth} if bandwidth else {}
    assert (asked(cluster(), member("a0", "a"), member("b0", "b"), edges=edges) is None) is bool(bandwidth)


def test_links_between_zones_have_what_other_groups_leave_of_them() -> None:
    """What the group's own pods take is counted anew with the plan; calls inside a zone take of another link."""
    between, inside = (
        Link(name="between", capacity="1G", zones=[("z3", "z1")]),
        Link(name="inside", capacity="2G", zones=[("z1", "z1"), ("z3", "z3")]),
    )
    small = lab(profile=Profile(links=[between, inside]))
    small.group(group_object("other", *chain("a", "b", minBandwidth="30M")))
    small.see(member("oa", "a", on="n0", group="other"), member("ob", "b", on="n2", group="other"))
    small.see(member("a0", "a", on="n0"), member("b0", "b", on="n2"))
    found = question(small, member("b1", "b"), edges={"minBandwidth": "10M"})
    assert found.carried
    assert [(sorted(link.between), link.free) for link in found.problem.nodes.links] == [
        ([(0, 1)], 970e6),
        ([(0, 0), (1, 1)], 2e9),
    ]


def test_what_pods_request_of_bandwidth_themselves_is_kept_from_their_edges() -> None:
    requesting = [member(f"a{n}", "a", network_aware_com__bandwidth="1M") for n in range(3)]
    nowhere = {"topologySpreadConstraints": [builders.spread("rack", {WORKLOAD: "c"})]}
    never = member("c0", "c", network_aware_com__bandwidth="50M", spec=nowhere)
    found = question(limited(), *requesting, member("b0", "b"), never, edges={"minBandwidth": "10M"})
    assert found.judged
    assert found.problem.nodes.bandwidth is not None
    assert found.problem.nodes.bandwidth.tolist() == [97e6, np.inf, np.inf, np.inf]


def test_zones_of_one_name_in_two_regions_are_one_zone_to_services() -> None:
    made = question(same_zone_twice(), member("a0", "a"), member("b0", "b")).problem
    assert [each.routing for each in made.workloads] == [Routing.ALL, Routing.SAME_ZONE]
    assert made.nodes.location.tolist() == [0, 1]
    assert made.nodes.service_zone is not None
    assert made.nodes.service_zone.tolist() == [0, 0]
