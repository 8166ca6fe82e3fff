"""The bandwidth plugin's limits of a pod: kubernetes.io/ingress-bandwidth and kubernetes.io/egress-bandwidth.

The node's CNI plugin shapes the pod's traffic by them; Berth never changes them. The kubelet takes from 1k to 1P bit/s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from berth.api.errors import FieldProblem
from berth.api.quantity import read_quantity

INGRESS: Final = "kubernetes.io/ingress-bandwidth"
EGRESS: Final = "kubernetes.io/egress-bandwidth"
LEAST: Final = 10**3
MOST: Final = 10**15
_SHOWN: Final = 64


def annotated_bandwidth(annotations: Mapping[str, str]) -> tuple[int, tuple[FieldProblem, ...]]:
    """Return bit/s of the wider direction, 0 without any, and what is wrong with annotations that do not count.

    A node's link has two directions of the same capacity, so that the wider one decides.
    """
    amounts, problems = [0], list[FieldProblem]()
    for name in (INGRESS, EGRESS):
        text = annotations.get(name)
        if text is None:
            continue
        quantity = read_quantity(text)
        if quantity is not None and LEAST <= quantity.amount <= MOST:
            amounts.append(quantity.value())
        else:
            problems.append(
                FieldProblem(
                    ("metadata", "annotations", name),
                    f"{text[:_SHOWN]!r} is not a bandwidth; the pod is placed as without it, but its node may refuse "
                    "to start it; write a quantity of bit/s from 1k to 1P, such as 10M",
                )
            )
    return max(amounts), tuple(problems)
