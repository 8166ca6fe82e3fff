"""Strategies by name: each maps an `Instance` to one node per component.

A strategy is a pure function in a file of its own. It returns -1 for components it could not place; it never returns an
assignment that breaks a budget or a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from berth.scheduling.gang.problem import ProblemError
from berth.scheduling.gang.strategies.berth import berth
from berth.scheduling.gang.strategies.greedy import greedy
from berth.scheduling.gang.strategies.phare import phare

if TYPE_CHECKING:
    from collections.abc import Generator

    from berth.scheduling.gang.instance import Indices, Instance


class Strategy(Protocol):
    """Signature of a strategy."""

    def __call__(self, instance: Instance, *, partial: bool) -> Generator[None, None, Indices]:
        """Return int[J], a node per component or -1; with `partial` place what fits, else stop at the first failure.

        It yields where its budget has a pause.
        """
        ...


STRATEGIES: dict[str, Strategy] = {"berth": berth, "greedy": greedy, "phare": phare}
"""Every strategy by its name in a profile."""

DEFAULT = "berth"
"""Name of the strategy that the engine uses when none is named."""

REPLICAS = "replicas"
"""Name of the strategy that plans in counts of replicas, rules between pods included: `berth.scheduling.replica_plan`.
Profiles have it by default; what it cannot express is planned by the engine's default."""


def find(name: str) -> Strategy:
    """Return the strategy called `name`.

    Raises:
        ProblemError: there is none; the message lists the names.
    """
    if name not in STRATEGIES:
        raise ProblemError(f"unknown gang strategy {name!r}; choose one of {', '.join(sorted(STRATEGIES))}")
    return STRATEGIES[name]
