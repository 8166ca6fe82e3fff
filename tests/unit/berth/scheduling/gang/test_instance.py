"""Compiled instances: rows of placed peers, parallel edges, separation, and what plugins charge in sum."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.gang import Application, InfrastructureState, LinkModel, NodeCosts, PlacedPeers, Weights
from berth.scheduling.gang.instance import Instance
from tests.support.gang import app, nodes


def test_nodes_of_placed_peers_become_rows() -> None:
    application = app(
        1, 1, placed_peers=PlacedPeers.of([0, 1, 0], [2, 2, 0], bandwidth=[1, 2, 4], incoming=[True, False, False])
    )
    instance = Instance(InfrastructureState(nodes(9, 9, 9)), application, Weights())
    assert instance.peer_nodes.tolist() == [0, 2]
    assert instance.traffic[0].tolist() == [0.0, 0.0, 4.0, 1.0]
    assert instance.weight[3].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert instance.weight[1].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert instance.neighbours(3).tolist() == [0, 1]


def test_parallel_edges_add_up_and_the_strictest_limit_holds() -> None:
    application = app(
        1, 1, edges=[(0, 1), (0, 1), (1, 0)], bandwidth=[1, 2, 4], max_cost=[9, 5, np.inf], weight=[1, 1, 3]
    )
    instance = Instance(InfrastructureState(nodes(9)), application, Weights())
    assert instance.traffic[0, 1] == instance.traffic[1, 0] == 7.0
    assert instance.weight.tolist() == [[0.0, 2.0], [3.0, 0.0]]
    assert instance.limit is not None
    assert instance.limit[0, 1] == 5.0
    assert np.isinf(instance.limit[1, 0])


def test_separation_is_symmetric_and_absent_without_pairs() -> None:
    instance = Instance(InfrastructureState(nodes(9)), app(1, 1, 1, separate=[(0, 2)]), Weights())
    assert instance.separate is not None
    assert np.argwhere(instance.separate).tolist() == [[0, 2], [2, 0]]
    assert Instance(InfrastructureState(nodes(9)), app(1), Weights()).separate is None


@pytest.mark.parametrize(
    ("application", "free", "looked_at"),
    [
        pytest.param(app(1, 1, edges=[(0, 1)], bandwidth=5), 4.0, True, id="too-narrow"),
        pytest.param(app(1, 1, edges=[(0, 1)], bandwidth=5), 5.0, False, id="carries-everything"),
        pytest.param(app(1, 1, edges=[(0, 1), (1, 0)], bandwidth=[3, 2]), 4.0, True, id="both-directions-add-up"),
        pytest.param(app(1, placed_peers=PlacedPeers.of([0], [1], bandwidth=5)), 4.0, True, id="placed-peer"),
        pytest.param(app(1, 1, edges=[(0, 1)]), -1.0, False, id="no-bandwidth"),
    ],
)
def test_links_count_where_they_may_be_too_narrow(application: Application, free: float, looked_at: bool) -> None:
    links = LinkModel(("up",), np.array([9.0]), np.array([free]), by_location={(0, 1): (0,)})
    infrastructure = nodes(9, 9, location=[0, 1], location_cost=[[1.0, 9.0], [9.0, 1.0]], links=links)
    assert (Instance(InfrastructureState(infrastructure), application, Weights()).links is not None) is looked_at


class TestNodeCosts:
    FIRST = NodeCosts(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 0, 1], dtype=np.int32))
    SECOND = NodeCosts(np.array([[10.0, 0.0], [20.0, 0.0]]), np.array([1, 0, 0], dtype=np.int32))

    def test_plugins_add_up_for_every_component(self) -> None:
        application = app(1, 1, 1, node_costs={"First": self.FIRST, "Second": self.SECOND})
        total = Instance(InfrastructureState(nodes(9, 9)), application, Weights()).node_costs
        assert total is not None
        assert total.values[total.group].tolist() == [[21.0, 2.0], [11.0, 2.0], [13.0, 4.0]]

    def test_components_alike_for_all_plugins_share_a_row(self) -> None:
        application = app(1, 1, 1, node_costs={"First": self.FIRST, "Again": self.FIRST})
        total = Instance(InfrastructureState(nodes(9, 9)), application, Weights()).node_costs
        assert total is not None
        assert total.values.shape == (2, 2)

    @pytest.mark.parametrize("application", [app(1), Application.of(np.zeros((0, 2)))], ids=["one", "none"])
    def test_nobody_charges_anything(self, application: Application) -> None:
        instance = Instance(InfrastructureState(nodes(9)), application, Weights())
        assert instance.node_costs is None
        assert not instance.has_node_costs
