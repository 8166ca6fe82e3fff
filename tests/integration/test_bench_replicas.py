"""Online Boutique with three replicas of everything, deployed: what is bound is what a plan of it promises.

All cases are for ``python -m bench.replicas boutique --live``.
"""

from __future__ import annotations

import pytest

from bench.replicas.boutique import Case, run
from bench.replicas.live import run_live

CASES = (
    Case(),
    Case(prefer="PreferSameZone"),
    Case(rule="required anti-affinity by host"),
)


@pytest.mark.timeout(600)
def test_deployed_replicas_cost_and_survive_what_a_plan_says() -> None:
    for case, live in zip(CASES, run_live(CASES), strict=True):
        planned = run(case)
        found, wanted = live.evaluation, planned.evaluation
        assert live.broken == [], case.name
        assert found.cost == pytest.approx(wanted.cost, abs=1e-6), case.name
        assert (found.survive_node, found.survive_zone) == (wanted.survive_node, wanted.survive_zone), case.name
