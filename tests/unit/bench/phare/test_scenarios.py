"""The benchmark's own parts: lower bound by hand, accepted-at-most, generated workloads, report from stored rows.

Left out: the experiments themselves (`python -m bench.phare run`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from bench.phare import report
from bench.phare.bound import accepted_at_most, lowest_cost
from bench.phare.boutique import scaled_boutique, zoned_nodes
from bench.phare.runs import place_all, summary
from bench.phare.scenarios import Workload, applications, chains, edge_clusters, opportunistic_nodes
from tests.support.gang import app, nodes

if TYPE_CHECKING:
    from pathlib import Path


class TestBound:
    def test_fills_the_cheap_node_first(self) -> None:
        infrastructure = nodes(10, 10, price=[[1.0, 0.0], [3.0, 0.0]])
        assert lowest_cost(infrastructure, [app(6, 6, 3)]) == pytest.approx(10 * 1 + 5 * 3)

    def test_counts_fractions_where_placements_cannot(self) -> None:
        # Two of 6 do not fit one node of 10; the bound may cut one in two.
        infrastructure = nodes(10, 10, price=[[1.0, 0.0], [3.0, 0.0]])
        sample = place_all(infrastructure, [app(6, 6)])
        assert sample.cost == 24.0
        assert lowest_cost(infrastructure, [app(6, 6)]) == pytest.approx(16.0)

    def test_memory_counts_too(self) -> None:
        # The second node is dearer in cores and cheaper in memory: the memory-hungry part belongs there.
        infrastructure = nodes(10, 10, price=[[1.0, 1.0], [1.2, 0.1]], memory=10)
        hungry = app(4, 4)
        hungry.requests[1, 1] = 8.0
        assert lowest_cost(infrastructure, [hungry]) == pytest.approx(4 + 4 * 1.2 + 1 * 1.0 + 0.8, abs=0.2)

    @pytest.mark.parametrize("seed", [0, 1])
    def test_nothing_undercuts_it(self, seed: int) -> None:
        infrastructure, arrivals = edge_clusters(10, seed), applications(seed, Workload(count=20))
        for strategy in ("berth", "phare", "greedy"):
            sample = place_all(infrastructure, arrivals, strategy=strategy)
            bound = lowest_cost(infrastructure, [application for application, _ in sample.plans])
            assert sample.cost >= bound * (1 - 1e-9)

    def test_nothing_accepted_costs_nothing(self) -> None:
        assert lowest_cost(nodes(1), []) == 0.0

    def test_accepted_at_most_skips_what_does_not_fit(self) -> None:
        assert accepted_at_most(nodes(5, 5), [app(6), app(5), app(4), app(1)]) == 2


class TestScenarios:
    def test_same_seed_same_problem(self) -> None:
        first, second = edge_clusters(20, 3), edge_clusters(20, 3)
        assert np.array_equal(first.price, second.price)
        one, other = applications(3, Workload(count=3)), applications(3, Workload(count=3))
        assert all(np.array_equal(a.requests, b.requests) for a, b in zip(one, other, strict=True))
        assert not np.array_equal(edge_clusters(20, 4).price, first.price)

    def test_published_ranges(self) -> None:
        infrastructure = edge_clusters(200, 0)
        assert infrastructure.capacity[:, 0].min() >= 300
        assert infrastructure.capacity[:, 0].max() <= 500
        assert 0.15 <= infrastructure.price[:, 0].min() <= infrastructure.price[:, 0].max() <= 0.4
        for application in applications(0, Workload(count=20)):
            assert application.size == 10
            assert 4 <= application.requests[:, 0].min() <= application.requests[:, 0].max() <= 20
            assert (application.requests[:, 0] % 1 == 0).all()
            assert 0.0006 <= application.bandwidth.min() <= application.bandwidth.max() <= 0.02

    def test_a_tree_with_extras_is_connected_and_has_thirty_percent_of_all_pairs(self) -> None:
        for application in applications(1, Workload(count=20)):
            assert len(application.edges) == 14
            assert len({tuple(edge) for edge in application.edges.tolist()}) == 14
            reached = {0}
            for _ in range(10):
                reached |= {end for edge in application.edges.tolist() if set(edge) & reached for end in edge}
            assert reached == set(range(10))

    def test_multiplier_scales_demand_only(self) -> None:
        (plain,), (strong,) = (applications(2, Workload(count=1, multiplier=factor)) for factor in (1, 100))
        assert strong.bandwidth == pytest.approx(100 * plain.bandwidth)
        assert np.array_equal(strong.requests, plain.requests)

    def test_chains_bind_their_first_part(self) -> None:
        infrastructure = opportunistic_nodes(40)
        found = chains(infrastructure)
        assert len(found) == 80
        assert found[23].allowed is not None
        assert np.flatnonzero(found[23].allowed.row(0)).tolist() == [3]
        assert found[23].allowed.row(1).all()

    def test_boutique_with_replicas(self) -> None:
        assert scaled_boutique(3).size == 33
        assert len(scaled_boutique(3).edges) == 15 * 9
        infrastructure = zoned_nodes(32, 4000.0)
        assert len(set(infrastructure.location.tolist())) == 16
        assert infrastructure.location_cost.diagonal().tolist() == [1.0] * 16


def test_place_all_reports_each_application() -> None:
    sample = place_all(nodes(10), [app(6), app(6), app(4)])
    assert sample.placed == [True, False, True]
    assert len(sample.seconds) == len(sample.processor) == 3
    assert sample.state is not None
    assert sample.state.free[0, 0] == 0.0


def test_summary_is_in_milliseconds() -> None:
    assert summary([0.001, 0.002, 0.009]) == {"median": 2.0, "p99": pytest.approx(8.86), "max": 9.0}


def test_report_from_stored_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = {"processor": "a processor", "python": "3", "numpy": "2", "load": [0.5, 0, 0]}
    rows = [{"graph": "tree", "multiplier": 1, "placed": 500, "gap": gap} for gap in (0.2, 0.4)]
    stored = {"about": {"command": "the command", "machine": machine}, "rows": rows}
    (tmp_path / "graphs.json").write_text(json.dumps(stored))
    monkeypatch.setattr(report, "DOCS", tmp_path / "docs")
    report.write_report(tmp_path)
    text = (tmp_path / "docs" / "phare.md").read_text()
    assert "| tree | x1 | 2 | 500.0 | 0.300 |" in text
    assert "`the command`; a processor" in text
    assert "Not run yet: `python -m bench.phare run scale`" in text
    assert "{graphs}" not in text
