"""The gang engine: places a whole application over nodes, pure arrays, no I/O.

Reads: an `Infrastructure` (or the living `InfrastructureState`) and an `Application`, both arrays built by the caller
from its cache; node rules arrive as masks. Returns: a `Plan`. Writes nothing: free amounts belong to the owner of the
state. Missing input has a neutral value: unknown bandwidth is infinite, no price is 0, an unknown network cost is
whatever large cost the caller puts in `location_cost`.

A plan never exceeds a budget, a threshold, a largest unit, a mask, a separation or a hard network cost;
hack/harness/gang.py checks that independently of every strategy.
"""

from berth.scheduling.gang.evaluate import evaluate
from berth.scheduling.gang.links import LinkModel
from berth.scheduling.gang.outcome import Evaluation, Plan, RunnerUp, Unplaced
from berth.scheduling.gang.plan import plan
from berth.scheduling.gang.problem import (
    Application,
    Infrastructure,
    NodeCosts,
    NodeMasks,
    PlacedPeers,
    ProblemError,
    Weights,
)
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.gang.strategies import DEFAULT, STRATEGIES

__all__ = [
    "DEFAULT",
    "STRATEGIES",
    "Application",
    "Evaluation",
    "Infrastructure",
    "InfrastructureState",
    "LinkModel",
    "NodeCosts",
    "NodeMasks",
    "PlacedPeers",
    "Plan",
    "ProblemError",
    "RunnerUp",
    "Unplaced",
    "Weights",
    "evaluate",
    "plan",
]
