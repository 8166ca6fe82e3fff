"""A decision with every part that one can have."""

from __future__ import annotations

from typing import Final

from berth.network.groups import GroupKey
from berth.scheduling.decision import Alternative, Decision
from berth.scheduling.framework.rejection import Rejection
from tests.support.placement import member

TERMS: Final = {"network": 1.23456789, "price": 0.0333333333}
JOINT: Final = Decision(
    pod=member("frontend-7d4b9c6f5d-x2x9z", "frontend"),
    node="worker-eu-west-1a-17",
    strategy="berth",
    value=sum(TERMS.values()),
    terms=TERMS,
    runner_ups=tuple(Alternative(f"worker-eu-west-1b-{n}", 10.0 * n, TERMS) for n in range(1, 4)),
    feasible=980,
    nodes=1000,
    rejections=(
        Rejection("TaintToleration", "node(s) had untolerated taint(s)", 12),
        Rejection("NodeResourcesFit", "Insufficient cpu", 8),
    ),
    group=GroupKey("shop", "online-boutique"),
    planned_with=10,
    edges=7,
    edge_cost=0.0,
)
"""Of a pod that was planned with an AppGroup."""
