"""The gang engine: places a whole application over nodes, pure arrays, no I/O.

Reads: an `Infrastructure` (or the living `InfrastructureState`) and an `Application`, both arrays built by the caller
from its cache; node rules arrive as masks. Returns: a `Plan`. Writes nothing; `InfrastructureState.commit` and
`release` are called by the owner of the state. Missing input has a neutral value: unknown bandwidth is infinite, no
price is 0, an unknown network cost is whatever large cost the caller puts in `location_cost` (100 by convention).

A plan never exceeds a budget, a threshold, a largest unit, a mask, a separation or a hard network cost; `validate`
checks that independently of every strategy.
"""

from controllers.placement.gang.evaluate import evaluate
from controllers.placement.gang.links import LinkModel
from controllers.placement.gang.outcome import Evaluation, Plan, RunnerUp, Unplaced
from controllers.placement.gang.plan import plan
from controllers.placement.gang.problem import (
    Anchors,
    Application,
    Infrastructure,
    NodeMasks,
    ProblemError,
    Weights,
)
from controllers.placement.gang.state import InfrastructureState
from controllers.placement.gang.strategies import DEFAULT, STRATEGIES

__all__ = [
    "DEFAULT",
    "STRATEGIES",
    "Anchors",
    "Application",
    "Evaluation",
    "Infrastructure",
    "InfrastructureState",
    "LinkModel",
    "NodeMasks",
    "Plan",
    "ProblemError",
    "RunnerUp",
    "Unplaced",
    "Weights",
    "evaluate",
    "plan",
]
