"""Runs of Berth's decisions about one user: what holds in each of them, whatever the seed."""

from __future__ import annotations

import pytest

from bench.latency.cells import CALM, CELLS, Cell
from bench.latency.policy import Outcome, Simulation
from bench.latency.scenarios import SCENARIOS

SEEDS = range(3)


@pytest.mark.parametrize("cell", CELLS, ids=[cell.name for cell in CELLS])
def test_no_request_fails_and_one_pod_more_at_most(cell: Cell) -> None:
    terms = cell.terms._replace(horizon=300.0)
    for seed in SEEDS:
        found = Simulation(terms, seed).run()
        assert found.failed == 0
        assert found.extra <= 1
        assert found.success == (found.convergence < 300 - 120)
        assert found.moves + found.cancelled <= 12


def test_a_seed_gives_one_run() -> None:
    terms = Cell("minimum", SCENARIOS[0], 0.0).terms._replace(horizon=200.0)
    assert Simulation(terms, 4).run() == Simulation(terms, 4).run()


@pytest.mark.parametrize(
    ("share", "least", "most"), [pytest.param(0.0, 0, 25, id="probed"), pytest.param(1.0, 20, 80, id="steered")]
)
def test_the_minimum_is_reached_sooner_where_users_can_be_probed(share: float, least: int, most: int) -> None:
    terms = Cell("minimum", SCENARIOS[0], share).terms._replace(horizon=240.0)
    found: list[Outcome] = [Simulation(terms, seed).run() for seed in range(5)]
    assert all(each.success for each in found)
    assert all(least <= each.convergence <= most for each in found)


def test_requests_go_through_every_other_cluster_with_a_detour_and_the_meter_sees_none_of_them() -> None:
    run = Simulation(Cell("minimum", SCENARIOS[0], 1.0).terms._replace(horizon=240.0), 1)
    place = next(iter(run.pods.values())).node
    run.run()
    assert {node for node, source in run.windows if source == "Router"} == set(SCENARIOS[0].nodes) - {place}
    served = {node for node, source in run.windows if source == "Meter"}
    assert served == {place, *(pod.node for pod in run.pods.values())}
    assert {path - 30 for _, path, _ in run.paths} >= {run.far[node] for node in run.far if node != place}


@pytest.mark.parametrize("name", CALM)
def test_where_nothing_has_to_move_little_does(name: str) -> None:
    found = Simulation(CALM[name]._replace(horizon=600.0), 1).run()
    assert found.moves <= 2
