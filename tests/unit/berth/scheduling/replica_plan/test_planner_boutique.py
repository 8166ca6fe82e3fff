"""Online Boutique with more replicas, on smaller nodes and on more of them, judged by `bench/replicas`.

On nodes of one core the last three cost what they must (`test_plan_goals.py`).
"""

from __future__ import annotations

import pytest

from bench.replicas.boutique import Case, run
from berth.scheduling.gang.strategies import REPLICAS

REQUIRED, HARD = "required anti-affinity by host", "hard spread over zones"


@pytest.mark.parametrize(
    ("case", "cost", "zones"),
    [
        pytest.param(Case(4), 0.66, 0, id="4 replicas"),
        pytest.param(Case(4, "PreferSameZone"), 0.0, 11, id="4 replicas, PreferSameZone"),
        pytest.param(Case(4, rule=REQUIRED), 0.75, 0, id="4 replicas, required anti-affinity"),
        pytest.param(Case(4, "PreferSameZone", HARD), 0.0, 11, id="4 replicas, hard spread"),
        pytest.param(Case(cores=1), 0.90, 0, id="1 core"),
        pytest.param(Case(prefer="PreferSameZone", cores=1), 0.312, 11, id="1 core, PreferSameZone"),
        pytest.param(Case(rule=REQUIRED, cores=1), 0.712, 0, id="1 core, required anti-affinity"),
        pytest.param(Case(prefer="PreferSameZone", rule=HARD, cores=1), 0.134, 11, id="1 core, hard spread"),
        pytest.param(Case(nodes=200), 0.45, 0, id="200 nodes"),
        pytest.param(Case(prefer="PreferSameZone", nodes=200), 0.0, 11, id="200 nodes, PreferSameZone"),
        pytest.param(Case(rule=REQUIRED, nodes=200), 0.67, 0, id="200 nodes, required anti-affinity"),
        pytest.param(Case(prefer="PreferSameZone", rule=HARD, nodes=200), 0.0, 11, id="200 nodes, hard spread"),
        pytest.param(Case(11, "PreferSameZone"), 0.45, 11, id="11 replicas, PreferSameZone"),
    ],
)
def test_every_workload_survives_at_little_cost_and_even_load(case: Case, cost: float, zones: int) -> None:
    found = run(case, strategy=REPLICAS)
    assert (found.waiting, found.broken) == (0, [])
    assert found.evaluation.cost <= cost
    assert (found.evaluation.survive_node, found.evaluation.survive_zone >= zones) == (11, True)
    assert max(found.evaluation.endpoint_load, found.evaluation.zone_load) <= 1.1
