"""Which nodes the search looks at."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bench.replicas_core.cases import boutique, cluster, mesh, uneven
from berth.scheduling.planning import finish
from berth.scheduling.replicas.columns import CELLS, LOCATIONS, PAIRS, choose_columns
from berth.scheduling.replicas.plan import plan
from berth.scheduling.replicas.problem import Nodes, PodSet, Problem


def first(problem: Problem) -> np.ndarray:
    return next(iter(choose_columns(problem)))


def test_of_equal_nodes_only_as_many_as_a_plan_uses() -> None:
    problem = boutique(nodes=cluster(5000, 16))
    columns = first(problem)
    assert len(columns) <= 16 * 8
    assert set(problem.nodes.location[columns].tolist()) == set(range(16))


def test_a_small_cluster_is_looked_at_as_a_whole() -> None:
    assert [len(columns) for columns in choose_columns(boutique(nodes=cluster(6, 2)))] == [6]


@pytest.mark.parametrize("which", ["placed", "leaving"])
def test_nodes_with_placed_replicas_are_columns(which: str) -> None:
    problem = boutique(nodes=cluster(5000, 16))
    there: dict[str, Any] = {which: {4321: 1}}
    placed = [replace(workload, **there) for workload in problem.workloads]
    assert 4321 in first(replace(problem, workloads=placed)).tolist()


def test_nodes_that_a_mask_or_a_charge_tells_apart_are_classes_of_their_own() -> None:
    problem = boutique(1, nodes=cluster(5000, 2))
    mask = np.zeros(5000, dtype=np.bool_)
    mask[4000] = True
    charge = np.ones(5000)
    charge[3000] = 0.0
    one, other, *rest = problem.pod_sets
    masked = replace(problem, pod_sets=[replace(one, mask=mask), replace(other, cost=charge), *rest])
    assert {3000, 4000} <= set(first(masked).tolist())


def test_of_unequal_nodes_the_emptiest_of_every_location_and_then_all() -> None:
    problem = uneven(boutique(nodes=cluster(5000, 16)))
    columns, rest = choose_columns(problem)
    assert len(columns) < 1500
    assert set(problem.nodes.location[columns].tolist()) == set(range(16))
    assert len(rest) == 5000


def test_what_fits_only_outside_the_first_choice_is_found_all_the_same() -> None:
    nodes = cluster(3000, 1)
    free = nodes.free.copy()
    free[:, 0] = np.arange(3000) % 1700 + 2000
    free[2999] = [500, 10**6, 110]
    sets = [PodSet(workload=0, replicas=1, request=np.array([500, 10**6, 1]))]
    problem = replace(boutique(1, nodes=replace(nodes, free=free)), pod_sets=sets, rules=())
    assert finish(plan(problem)).counts == ({2999: 1},)


@pytest.mark.parametrize("locations", [16, 100, 500, 5000])
def test_columns_are_few_where_pod_sets_are_many_whatever_the_number_of_locations(locations: int) -> None:
    problem = uneven(mesh(2000, 5, nodes=cluster(5000, locations)))
    columns = first(problem)
    assert len(np.unique(problem.nodes.location[columns])) == min(locations, LOCATIONS)
    assert len(columns) * 2000 <= CELLS


@pytest.mark.parametrize(("zones", "part"), [(15, 1.0), (60, 1.0), (15, 0.5)])
def test_each_domain_of_a_hard_spread_has_its_share_of_room(zones: int, part: float) -> None:
    problem = uneven(mesh(909, 11, nodes=cluster(5000, zones), rule="hard"))
    problem = replace(problem, rules=problem.rules[: int(part * 909)])
    columns = first(problem)
    need = sum(pod_set.replicas * pod_set.request for pod_set in problem.pod_sets)
    for zone in range(zones):
        room = problem.nodes.free[columns[problem.nodes.location[columns] == zone]].sum(axis=0)
        assert (room >= part * need / zones).all()


def with_resource(problem: Problem, free: np.ndarray) -> Problem:
    """The same with a resource more, int64[N], that no pod asks for."""
    sets = [replace(pod_set, request=np.append(pod_set.request, 0)) for pod_set in problem.pod_sets]
    nodes = replace(problem.nodes, free=np.column_stack([problem.nodes.free, free]))
    return replace(problem, nodes=nodes, pod_sets=sets)


@pytest.mark.parametrize(
    "free",
    [
        pytest.param(np.zeros(5000, dtype=np.int64), id="no node has it"),
        pytest.param(np.where(np.arange(5000) < 10, 8, 0), id="few nodes have it"),
        pytest.param(np.arange(5000), id="every node has another amount"),
        pytest.param(np.full(5000, -1), id="over-committed"),
    ],
)
@pytest.mark.parametrize(
    "problem",
    [
        pytest.param(uneven(boutique(nodes=cluster(5000, 16))), id="unequal nodes"),
        pytest.param(boutique(nodes=cluster(5000, 16)), id="equal nodes"),
        pytest.param(uneven(mesh(2000, 1, nodes=cluster(5000, 16))), id="many pod sets"),
    ],
)
def test_a_resource_that_no_pod_asks_for_tells_no_nodes_apart(problem: Problem, free: np.ndarray) -> None:
    for columns, expected in zip(choose_columns(with_resource(problem, free)), choose_columns(problem), strict=True):
        assert columns.tolist() == expected.tolist()


def asking_for_more(problem: Problem, **nodes: list[int]) -> Problem:
    """The same with a resource for each name, which some nodes have and one of the last workloads asks for."""
    sets = [replace(one, request=np.append(one.request, [0] * len(nodes))) for one in problem.pod_sets]
    columns = [problem.nodes.free]
    for number, homes in enumerate(nodes.values()):
        columns.append(np.isin(np.arange(problem.nodes.size), homes)[:, None] * 8)
        request = sets[-1 - number].request.copy()
        request[problem.nodes.free.shape[1] + number] = 1
        sets[-1 - number] = replace(sets[-1 - number], request=request)
    return replace(problem, nodes=replace(problem.nodes, free=np.hstack(columns)), pod_sets=sets)


class TestAResourceOfFewNodes:
    PROBLEM = uneven(boutique(nodes=cluster(5000, 16)))
    GPU, FPGA = list(range(10, 5000, 499)), list(range(250, 5000, 499))

    def test_other_pods_still_have_the_emptiest_nodes(self) -> None:
        columns = first(asking_for_more(self.PROBLEM, gpu=self.GPU))
        assert set(first(self.PROBLEM).tolist()) <= set(columns.tolist())
        assert set(self.GPU) <= set(columns.tolist())

    def test_two_of_them_on_different_nodes_are_found_at_the_first_look(self) -> None:
        columns = first(asking_for_more(self.PROBLEM, gpu=self.GPU, fpga=self.FPGA))
        assert set(self.GPU) | set(self.FPGA) <= set(columns.tolist())
        assert len(columns) < 1500

    def test_of_the_others_there_are_as_many_as_without_it(self) -> None:
        """Twenty times as many pods as one node takes: of a few nodes the first look finds no plan."""
        problem = boutique(20, nodes=cluster(5000, 2))
        sets = [replace(one, request=one.request * np.array([12, 1, 1])) for one in problem.pod_sets]
        problem = replace(problem, pod_sets=sets)
        columns = first(asking_for_more(problem, gpu=self.GPU))
        assert len(np.setdiff1d(columns, self.GPU)) >= len(first(problem))

    def test_a_second_look_at_some_nodes_has_them_as_well(self) -> None:
        problem = uneven(mesh(3333, 1, nodes=cluster(5000, 16)))
        for columns in choose_columns(asking_for_more(problem, gpu=self.GPU, fpga=self.FPGA)):
            assert len(columns) < 5000
            assert set(self.GPU) | set(self.FPGA) <= set(columns.tolist())


def test_pods_that_may_go_nowhere_have_no_plan() -> None:
    problem = uneven(boutique(nodes=cluster(5000, 16)))
    nowhere = np.zeros(5000, dtype=np.bool_)
    sets = [replace(pod_set, mask=nowhere) for pod_set in problem.pod_sets]
    answer = finish(plan(replace(problem, pod_sets=sets), partial=True))
    assert sum(answer.missing) == sum(pod_set.replicas for pod_set in sets)


@pytest.mark.parametrize("placed", [{}, {5: 1}], ids=["nobody", "placed"])
def test_without_pods_no_node_is_looked_at_but_those_of_placed_ones(placed: dict[int, int]) -> None:
    problem = uneven(boutique(nodes=cluster(5000, 16)))
    workloads = [replace(workload, placed=placed) for workload in problem.workloads]
    assert first(replace(problem, workloads=workloads, pod_sets=[], rules=())).tolist() == list(placed)


def edge_sites(count: int) -> Nodes:
    """A node in each location; the farther apart, the dearer."""
    place = np.arange(count)
    cost = 1.0 + np.abs(place[:, None] - place)
    return Nodes(free=np.tile([4000, 16384, 110], (count, 1)), location=place, location_cost=cost, zone=place)


def test_of_many_locations_the_nearest_to_what_is_placed_and_then_more() -> None:
    problem = boutique(nodes=edge_sites(3000))
    placed = [replace(workload, placed={2000: 1}) for workload in problem.workloads]
    columns, rest = choose_columns(replace(problem, workloads=placed))
    assert len(columns) == LOCATIONS
    assert abs(columns - 2000).max() <= LOCATIONS // 2
    assert len(columns) < len(rest)
    assert (len(rest) - 1) ** 2 <= PAIRS
    assert 2000 in rest


@pytest.mark.parametrize("placed", [10, 1000])
def test_a_second_look_at_some_nodes_is_at_empty_ones_as_well_however_many_have_placed_pods(placed: int) -> None:
    problem = boutique(nodes=edge_sites(3000))
    workloads = [replace(workload, placed=dict.fromkeys(range(placed), 1)) for workload in problem.workloads]
    _, rest = choose_columns(replace(problem, workloads=workloads))
    assert placed + 500 < len(rest) < 3000


def test_of_many_locations_those_where_pods_may_go() -> None:
    problem = boutique(1, nodes=edge_sites(3000))
    mask = np.zeros(3000, dtype=np.bool_)
    mask[[7, 2900]] = True
    masked = replace(problem, pod_sets=[replace(pod_set, mask=mask) for pod_set in problem.pod_sets])
    assert first(masked).tolist() == [7, 2900]


def test_an_application_over_many_locations_is_placed_in_the_nearest_ones() -> None:
    answer = finish(plan(boutique(2, nodes=edge_sites(2000))))
    assert answer.complete
    nodes = {node for counts in answer.counts for node in counts}
    assert max(nodes) - min(nodes) <= 3
