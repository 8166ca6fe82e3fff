"""The NetworkTopology: its weight sets and their costs."""

from berth.api.networktopology import NetworkTopology, iter_costs
from tests.support.kinds import network_topology, weight_set


def test_what_a_cost_does_not_state_is_none_and_not_zero() -> None:
    topology = NetworkTopology.parse(network_topology(weight_set(a={"b": {}})))
    [(_, _, cost)] = iter_costs(topology.spec.weights[0], "topology.kubernetes.io/zone")
    assert (cost.network_cost, cost.bandwidth_capacity, cost.bandwidth_allocated) == (None, None, None)


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
