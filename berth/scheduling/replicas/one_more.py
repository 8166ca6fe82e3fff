"""What one more pod changes: the objective of joint plans for a pod that is placed alone."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from berth.scheduling.replicas.books import Books
from berth.scheduling.replicas.model import Model
from berth.scheduling.replicas.problem import Floats, Problem


def one_more(problem: Problem, row: int = 0) -> Mapping[str, Floats]:
    """Return the exact change of the objective for one more pod of a set on every node, float64[N] by term.

    Hard rules, room and what plugins charge are left out: the filters judge those, and the rest is known already. A
    term without opinion on the pod is absent.
    """
    books = Books(Model(problem, np.arange(problem.nodes.size)))
    workload = books.model.workload[row]
    changes: dict[str, Floats | float] = {
        "network": books.network.add(workload),
        "survival": books.survival.add(workload),
    }
    if books.load.callees:
        changes["load"] = books.load.add(workload)
    changes["rules"] = sum((term.add(row) for term in books.rules if not term.required), 0.0)
    return {term: change for term, change in changes.items() if isinstance(change, np.ndarray)}
