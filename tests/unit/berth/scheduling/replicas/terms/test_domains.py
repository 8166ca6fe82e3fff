"""Tables over the domains that columns are in, and over those that no plan reaches."""

from __future__ import annotations

import numpy as np
import pytest

from berth.scheduling.replicas.rule import Spread
from berth.scheduling.replicas.terms.domains import Domains, spread_table

DOMAIN = np.array([5, 2, -1, 2, 7, 7])
COLUMNS = np.array([1, 2, 4])
PODS = np.array([1, 2, 4, 8, 16, 32])


def test_domains_with_a_column_are_numbered_anew() -> None:
    domains = Domains(DOMAIN, COLUMNS)
    assert domains.size == 2
    assert domains.column.tolist() == [0, -1, 1]
    assert domains.keyed.tolist() == [True, False, True]
    assert domains.table(PODS).tolist() == [10.0, 48.0, 0.0]
    assert domains.table(None).tolist() == [0.0, 0.0, 0.0]
    assert domains.outside(PODS).tolist() == [1.0, 0, 0, 0, 0, 0]
    assert domains.by_domain(domains.outside(PODS)).tolist() == [0, 0, 0, 0, 0, 1.0, 0, 0]


@pytest.mark.parametrize(
    ("columns", "single"),
    [([1, 2, 4], True), ([0, 4, 5], False), ([], True)],
    ids=["apart", "two in one", "none"],
)
def test_whether_columns_share_a_domain(columns: list[int], single: bool) -> None:
    assert Domains(DOMAIN, np.array(columns, dtype=np.int64)).single is single


@pytest.mark.parametrize(
    ("eligible", "placed", "table", "others"),
    [
        pytest.param(None, None, [0, 0, 0], [0], id="nobody placed: the domain outside is empty"),
        pytest.param(None, PODS, [10, 48, 0], [1], id="placed pods outside"),
        pytest.param([0, 1, 1, 1, 1, 0], PODS, [10, 16, 0], [], id="only eligible nodes, none outside"),
        pytest.param([1, 0, 0, 0, 0, 0], None, [0, 0, 0], [0], id="eligible is only what is outside"),
    ],
)
def test_spread_table(
    eligible: list[int] | None, placed: np.ndarray | None, table: list[float], others: list[float]
) -> None:
    nodes = None if eligible is None else np.array(eligible, dtype=np.bool_)
    rule = Spread(domain=DOMAIN, subjects=[0], selects=[0], max_skew=1, eligible=nodes, placed=placed)
    found, outside = spread_table(Domains(DOMAIN, COLUMNS), rule)
    assert found.tolist() == table
    assert outside.tolist() == others
