"""What a node is to users: beyond the hard limit, within it, within both; with hysteresis."""

from __future__ import annotations

from math import hypot, inf, sqrt
from typing import Final, NamedTuple

from berth.api.latencypolicy import LatencyPolicySpec, NodeState

RANK: Final = {NodeState.UNKNOWN: -1, NodeState.INVALID: 0, NodeState.HARD_VALID: 1, NodeState.SOFT_VALID: 2}
"""Order of states, worst first."""
LEAST_MARGIN: Final = 0.05
"""Share by which a limit is exceeded at least before a node counts as beyond it."""
SAMPLE_MARGIN: Final = 0.15
"""The same after a single round trip: one and a half times the jitter that is usual, 10 %."""

PROOF: Final = 1.4
"""By how much that of a ratio is widened: of many nodes about as near, one looks nearer than it is again and again."""


class Limits(NamedTuple):
    """Limits of a policy in microseconds; infinite where there is none."""

    hard: float
    """beyond it a node is invalid"""
    soft: float
    """a node should not be beyond it; no higher than the hard one"""

    @classmethod
    def of(cls, spec: LatencyPolicySpec) -> Limits:
        """Return the limits of a spec; without a soft one the hard one is both."""
        hard = inf if spec.hard_max_latency is None else spec.hard_max_latency * 1000.0
        soft = hard if spec.soft_max_latency is None else spec.soft_max_latency * 1000.0
        return cls(hard, min(soft, hard))

    def state(self, microseconds: float) -> NodeState:
        """Return the state of a node with that round trip, without hysteresis."""
        if microseconds > self.hard:
            return NodeState.INVALID
        return NodeState.HARD_VALID if microseconds > self.soft else NodeState.SOFT_VALID


def margin(samples: int) -> float:
    """Return the share by which the median of that many round trips may be wrong.

    It falls with the root of their number, as the error of a median does, down to what agents and meters differ by.
    """
    return max(LEAST_MARGIN, SAMPLE_MARGIN / sqrt(max(samples, 1)))


def margin_between(samples: int, others: int) -> float:
    """Return the share by which the ratio of two medians may be wrong; their errors are independent.

    With the 10 % that a move has to gain, a node has to be nearer by 22 % with windows that are full.
    """
    return PROOF * hypot(margin(samples), margin(others))


def classify(previous: NodeState, microseconds: float, samples: int, limits: Limits) -> NodeState:
    """Return the state of a node.

    It becomes worse only when the median exceeds a limit by its margin, and better when it is within the limit: in
    between it stays. A node that was not known counts as good until then.

    Args:
        previous: state so far.
        microseconds: median of the round trips.
        samples: round trips behind it.
        limits: those of the policy.
    """
    plain, lenient = limits.state(microseconds), limits.state(microseconds / (1 + margin(samples)))
    before = NodeState.SOFT_VALID if previous is NodeState.UNKNOWN else previous
    return max(min(before, lenient, key=RANK.__getitem__), plain, key=RANK.__getitem__)
