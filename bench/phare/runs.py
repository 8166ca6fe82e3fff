"""One sample: place applications one after another, time every call, check the result independently."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from berth.scheduling.gang import Application, InfrastructureState, Plan, Weights, plan
from hack.harness.gang import commit, violations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from berth.scheduling.gang import Infrastructure


@dataclass
class Sample:
    """What one sample gave."""

    placed: list[bool] = field(default_factory=list)
    """Per application, in arrival order."""
    seconds: list[float] = field(default_factory=list)
    """Wall time per application: building its arrays, compiling, planning, evaluating."""
    processor: list[float] = field(default_factory=list)
    """Processor time of the same, less sensitive to what else the machine does."""
    plans: list[tuple[Application, Plan]] = field(default_factory=list)
    """The accepted ones."""
    state: InfrastructureState | None = None
    """What is left at the end."""

    @property
    def cost(self) -> float:
        """Total cost of the accepted applications."""
        return sum(result.cost for _, result in self.plans)


def _rebuild(application: Application) -> Application:
    """Build the arrays again, as a controller would, so that the timing includes it."""
    return Application.of(
        application.requests,
        names=application.names,
        edges=application.edges,
        bandwidth=application.bandwidth,
        allowed=application.allowed,
        named=application.named,
        has_selector=application.has_selector,
    )


def place_all(
    infrastructure: Infrastructure,
    applications: Sequence[Application],
    *,
    strategy: str = "berth",
    weights: Weights | None = None,
) -> Sample:
    """Place `applications` in order, committing each complete plan.

    Raises:
        AssertionError: the independent validator finds a broken budget or rule.
    """
    state = InfrastructureState(infrastructure)
    sample = Sample(state=state)
    for application in applications:
        wall, processor = time.perf_counter(), time.thread_time()
        result = plan(state, _rebuild(application), weights, strategy)
        sample.processor.append(time.thread_time() - processor)
        sample.seconds.append(time.perf_counter() - wall)
        sample.placed.append(result.complete)
        if result.complete:
            commit(state, application, result.assignment)
            sample.plans.append((application, result))
    broken = violations(infrastructure, [(application, result.assignment) for application, result in sample.plans])
    if broken:
        raise AssertionError(f"{len(broken)} violations, the first: {broken[0]}")
    return sample


def summary(seconds: Sequence[float]) -> dict[str, float]:
    """Return median, p99 and maximum in milliseconds."""
    values = np.asarray(seconds) * 1e3
    return {
        "median": round(float(np.median(values)), 3),
        "p99": round(float(np.percentile(values, 99)), 3),
        "max": round(float(values.max()), 3),
    }
