"""The gang engine's plan as decisions about pods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from berth.network.groups import Group
from berth.scheduling.decision import Alternative, Decision
from berth.scheduling.gang.application import Candidate
from berth.scheduling.gang.outcome import Plan


def decisions_of(group: Group, candidates: Sequence[Candidate], answer: Plan, names: Sequence[str]) -> list[Decision]:
    """Decisions about the pods that the plan places, not assumed yet.

    Args:
        group: their AppGroup.
        candidates: the pods, the components of the plan.
        answer: the plan.
        names: node names by slot.
    """
    placed = int(np.count_nonzero(answer.assignment >= 0))
    decisions: list[Decision] = []
    for number, candidate in enumerate(candidates):
        slot = int(answer.assignment[number])
        if slot < 0:
            continue
        terms = {name: float(values[number]) for name, values in answer.terms.items()}
        runner_ups = tuple(
            Alternative(names[item.node], item.cost, dict(item.terms)) for item in answer.runner_ups.get(number, ())
        )
        decisions.append(
            Decision(
                pod=candidate.info.pod,
                node=names[slot],
                strategy=answer.strategy,
                value=sum(terms.values()),
                terms=terms,
                runner_ups=runner_ups,
                feasible=candidate.result.feasible,
                nodes=candidate.result.nodes,
                rejections=tuple(candidate.result.rejections),
                group=group.key,
                planned_with=placed,
            )
        )
    return decisions
