"""The planning call: compile, run a strategy, evaluate, explain."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from berth.scheduling.gang.budget import UNLIMITED, Budget, finish
from berth.scheduling.gang.diagnosis import diagnose
from berth.scheduling.gang.evaluate import evaluate
from berth.scheduling.gang.instance import Instance
from berth.scheduling.gang.outcome import Plan, Unplaced
from berth.scheduling.gang.problem import Application, Infrastructure, Weights
from berth.scheduling.gang.runner_ups import runner_ups
from berth.scheduling.gang.state import InfrastructureState
from berth.scheduling.gang.strategies import DEFAULT, find

_DEFAULT_WEIGHTS = Weights()


def plan(
    infrastructure: Infrastructure | InfrastructureState,
    application: Application,
    weights: Weights | None = None,
    strategy: str = DEFAULT,
    *,
    partial: bool = False,
    explain: bool = False,
    budget: Budget = UNLIMITED,
) -> Plan:
    """Decide a node for every component of `application` at a stretch: :func:`plan_in_turns` without others.

    Raises:
        ProblemError: unknown strategy, or an application whose shapes do not fit the infrastructure.
    """
    return finish(
        plan_in_turns(infrastructure, application, weights, strategy, partial=partial, explain=explain, budget=budget)
    )


def plan_in_turns(
    infrastructure: Infrastructure | InfrastructureState,
    application: Application,
    weights: Weights | None = None,
    strategy: str = DEFAULT,
    *,
    partial: bool = False,
    explain: bool = False,
    budget: Budget = UNLIMITED,
) -> Generator[None, None, Plan]:
    """Decide a node for every component of `application`; nothing is committed.

    The amounts of `infrastructure` must not change while others have their turns.

    All or nothing by default: when one component fits nowhere, no component is placed and `Plan.unplaced` says why.
    With `partial` what fits is placed. With `explain` the three best alternatives of each placed component are added
    (costs time in the number of nodes). The same input always gives the same plan, unless `budget` is over: then the
    best plan so far is returned, and without one the most that was placed.

    Raises:
        ProblemError: unknown strategy, or an application whose shapes do not fit the infrastructure.
    """
    state = infrastructure if isinstance(infrastructure, InfrastructureState) else InfrastructureState(infrastructure)
    rule = weights if weights is not None else _DEFAULT_WEIGHTS
    search = find(strategy)
    instance = Instance(state, application, rule, budget)
    nodes = yield from search(instance, partial=partial)
    unplaced: tuple[Unplaced, ...] = ()
    if (nodes < 0).any():
        unplaced = yield from diagnose(instance, nodes, partial=partial)
        if not partial:
            nodes = np.full_like(nodes, -1)
    assignment = nodes.astype(np.int32)
    yield from budget.pause()
    result = evaluate(state.infrastructure, application, assignment, rule)
    others = (yield from runner_ups(instance, nodes)) if explain and not budget.cut_short else {}
    return Plan(
        assignment=assignment,
        cost=result.cost,
        terms=result.terms,
        strategy=strategy,
        unplaced=unplaced,
        runner_ups=others,
    )
