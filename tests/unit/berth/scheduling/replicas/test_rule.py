"""Rules as data: eligible domains, and rules that no plan can break or pay for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from berth.scheduling.replicas.rule import Affinity, AntiAffinity, Spread, matters
from tests.support.counts import HOST, ZONE

ONE = np.eye(8, dtype=np.int64)[0]
REPLICAS = [0, 1, 3, 4]


def anti(subject: int, *selects: int, **fields: Any) -> AntiAffinity:
    return AntiAffinity(domain=HOST, subjects=[subject], selects=selects, **fields)


def near(subject: int, *selects: int, **fields: Any) -> Affinity:
    return Affinity(domain=HOST, subjects=[subject], selects=selects, **fields)


def spread(subject: int, *selects: int, skew: int, **fields: Any) -> Spread:
    return Spread(domain=ZONE, subjects=[subject], selects=selects, max_skew=skew, **fields)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(anti(1, 1), False, id="one replica keeps away from itself"),
        pytest.param(anti(2, 2), True, id="three do not"),
        pytest.param(anti(1, 2), True, id="one from others"),
        pytest.param(anti(1, 0), False, id="from nobody to come"),
        pytest.param(anti(1, 0, placed=ONE), True, id="from somebody placed"),
        pytest.param(anti(0, 1), False, id="nobody to come keeps away"),
        pytest.param(anti(0, 1, placed_subjects=ONE), True, id="somebody placed keeps away"),
        pytest.param(anti(0, 0, placed=ONE, placed_subjects=ONE), False, id="among placed pods"),
        pytest.param(near(0, 1), False, id="affinity of nobody"),
        pytest.param(near(1, 0), True, id="affinity of somebody"),
        pytest.param(near(0, 1, weight=1, placed_subjects=ONE), True, id="preferred by somebody placed"),
        pytest.param(near(0, 1, placed_subjects=ONE), False, id="required by somebody placed"),
        pytest.param(spread(2, 2, skew=3, hard=False), False, id="fewer than the soft skew"),
        pytest.param(spread(3, 3, skew=3, hard=False), True, id="more than the soft skew"),
        pytest.param(spread(2, 2, skew=3, hard=False, placed=ONE), True, id="more with those placed"),
        pytest.param(spread(2, 2, skew=3), True, id="a hard constraint asks for its key"),
        pytest.param(spread(0, 2, skew=1), False, id="a hard constraint of nobody"),
    ],
)
def test_matters(rule: Affinity | AntiAffinity | Spread, expected: bool) -> None:
    assert matters(rule, REPLICAS) is expected


@pytest.mark.parametrize(
    ("eligible", "present"),
    [
        pytest.param(None, [True, False, True], id="all with the key"),
        pytest.param([True, False, True, False], [True, False, False], id="only eligible nodes"),
        pytest.param([False] * 4, [False, False, False], id="none"),
    ],
)
def test_domains_with_an_eligible_node_are_present(eligible: list[bool] | None, present: list[bool]) -> None:
    domain = np.array([0, 2, -1, 2])
    nodes = None if eligible is None else np.array(eligible)
    rule = Spread(domain=domain, subjects=[0], selects=[0], max_skew=1, eligible=nodes)
    assert rule.present.tolist() == present
