"""Rules between pods, as data: who has the rule, whom it selects, and what counts as one place.

`domain` numbers the values of the rule's topology key, -1 for a node without the key. `subjects` are the pod sets that
have the rule, `selects` those whose pods it looks for. Pods that are placed already enter as counts by node, replicas
of the problem's own workloads among them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class AntiAffinity:
    """A subject stays away from every domain with another selected pod, and a selected pod from domains with subjects.

    Host ports are this rule as well: pods that use the same port are subjects and selected, each node is a domain.
    """

    domain: Ints
    """int64[N]"""
    subjects: Sequence[int]
    selects: Sequence[int]
    placed: Ints | None = None
    """int64[N], placed pods that are selected; None: none"""
    placed_subjects: Ints | None = None
    """int64[N], placed pods that have the rule; None: none"""
    weight: int | None = None
    """1 to 100 for a preferred term, None for a required one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    """A subject goes where another selected pod is.

    Required terms of one pod are one rule each with the same `selects`: the pods that all its terms select. While there
    is no such pod anywhere, a subject that is selected itself may be the first.
    """

    domain: Ints
    """int64[N]"""
    subjects: Sequence[int]
    selects: Sequence[int]
    placed: Ints | None = None
    """int64[N], placed pods that are selected; None: none"""
    placed_subjects: Ints | None = None
    """int64[N], placed pods that have the preferred term; None: none"""
    weight: int | None = None
    """1 to 100 for a preferred term, None for a required one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """A topology spread constraint: no domain has over `max_skew` more selected pods than the emptiest eligible one.

    Hard: holds for the domains that subjects go to.
    """

    domain: Ints
    """int64[N]"""
    subjects: Sequence[int]
    selects: Sequence[int]
    max_skew: int
    hard: bool = True
    """DoNotSchedule; False: ScheduleAnyway"""
    price: float | None = None
    """of a pod beyond `max_skew` where it is not hard; None: that of every soft spread"""
    min_domains: int = 1
    """with fewer eligible domains the emptiest one counts as empty"""
    eligible: Bools | None = None
    """bool[N], nodes that are counted: they have every key of the pod's constraints and pass its node policies; None:
    all nodes with the key"""
    placed: Ints | None = None
    """int64[N], placed pods that are selected; None: none"""
    present: Bools = field(init=False, repr=False)
    """bool[D], domains with an eligible node"""

    def __post_init__(self) -> None:
        """Find the eligible domains."""
        counted = self.domain >= 0 if self.eligible is None else self.eligible & (self.domain >= 0)
        present = np.zeros(int(self.domain.max(initial=-1)) + 1, dtype=np.bool_)
        present[self.domain[counted]] = True
        object.__setattr__(self, "present", present)


def matters(rule: AntiAffinity | Affinity | Spread, replicas: Sequence[int]) -> bool:
    """Whether some plan may break the rule, or pay for it, with so many pods to be placed of each pod set."""
    having, selected = (sum(replicas[row] for row in rows) for rows in (rule.subjects, rule.selects))
    there = 0 if rule.placed is None else int(rule.placed.sum())
    if isinstance(rule, Spread):
        return bool(having) if rule.hard else selected + there > rule.max_skew
    owners = 0 if rule.placed_subjects is None else int(rule.placed_subjects.sum())
    if isinstance(rule, Affinity):
        return having + (owners if rule.weight is not None else 0) > 0
    everybody = sum(replicas[row] for row in {*rule.subjects, *rule.selects})
    among = min(having, selected) > 0 and everybody > 1
    return among or (having > 0 and there > 0) or (selected > 0 and owners > 0)
